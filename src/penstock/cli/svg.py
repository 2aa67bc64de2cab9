"""A job graph as an SVG picture: chains in columns from the sources to the sinks.

An exchange between neighbouring columns is a curve between them; one that passes over a column
takes a lane of its own below all boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from xml.sax.saxutils import escape

from penstock.cli.chains import exchange, state_of
from penstock.cli.states import DeclaredStates
from penstock.graph.job_graph import JobEdge, JobGraph, JobVertex

_CHARACTER, _LINE, _PADDING, _GAP, _MARGIN = 7.3, 18, 12, 36, 20

_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2937 }
.title { font-weight: bold } .state { fill: #b45309 } .exchange { fill: #0369a1 }
.chain { fill: #f8fafc; stroke: #64748b } path { fill: none; stroke: #0369a1 }
"""


_Lines = list[tuple[str, str]]
"""What a box says: a text and a state on each line."""


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    next_column: float = 0.0


def draw_svg(graph: JobGraph, declared: Mapping[int, DeclaredStates]) -> str:
    """The text of an SVG file."""
    lines = {vertex.id: _lines(vertex, declared) for vertex in graph.vertices}
    boxes = _layout(graph, lines)
    lowest = max(box.y + box.height for box in boxes.values())
    far = [edge for edge in graph.edges if not _neighbours(edge, boxes)]
    lanes = {edge.id: lowest + (number + 1) * _GAP for number, edge in enumerate(far)}
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    height = max([lowest, *lanes.values()]) + _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<title>{escape(graph.name)}</title><style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_arrow(exchange(graph, edge), edge, boxes, lanes) for edge in graph.edges),
        *(_chain(lines[vertex.id], boxes[vertex.id]) for vertex in graph.vertices),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _layout(graph: JobGraph, lines: Mapping[int, _Lines]) -> dict[int, _Box]:
    columns: dict[int, list[JobVertex]] = {}
    depth: dict[int, int] = {}
    for vertex in graph.vertices:  # inputs come first
        above = [depth[edge.source] + 1 for edge in graph.inputs(vertex.id)]
        depth[vertex.id] = max(above, default=0)
        columns.setdefault(depth[vertex.id], []).append(vertex)
    boxes: dict[int, _Box] = {}
    x: float = _MARGIN
    for _, vertices in sorted(columns.items()):
        labels = [exchange(graph, e) for vertex in vertices for e in graph.outputs(vertex.id)]
        room = max((len(label) for label in labels), default=0) * _CHARACTER + 2 * _GAP
        next_x = x + max(_width(lines[vertex.id]) for vertex in vertices) + room
        y: float = _MARGIN
        for vertex in vertices:
            height = len(lines[vertex.id]) * _LINE + 2 * _PADDING
            boxes[vertex.id] = _Box(x, y, _width(lines[vertex.id]), height, next_x)
            y += height + _GAP
        x = next_x
    return boxes


def _width(lines: _Lines) -> float:
    longest = max(len(title) + 1 + len(state) for title, state in lines)
    return longest * _CHARACTER + 2 * _PADDING


def _lines(vertex: JobVertex, declared: Mapping[int, DeclaredStates]) -> _Lines:
    lines = [(f"[{vertex.id}] parallelism {vertex.parallelism}", "")]
    for node in vertex.nodes:
        state = state_of(node, declared)
        lines.append((node.name, f"({state})" if state is not None else ""))
    return lines


def _chain(lines: _Lines, box: _Box) -> str:
    corner = f'x="{box.x:.0f}" y="{box.y:.0f}"'
    size = f'width="{box.width:.0f}" height="{box.height:.0f}"'
    parts = [f'<rect class="chain" {corner} {size} rx="6"/>']
    for number, (title, state) in enumerate(lines):
        y = box.y + _PADDING + (number + 0.75) * _LINE
        style = ' class="title"' if number == 0 else ""
        parts.append(
            f'<text{style} x="{box.x + _PADDING:.0f}" y="{y:.0f}">{escape(title)}'
            f'<tspan class="state" dx="{_CHARACTER}">{escape(state)}</tspan></text>'
        )
    return "\n".join(parts)


def _neighbours(edge: JobEdge, boxes: dict[int, _Box]) -> bool:
    return boxes[edge.source].next_column == boxes[edge.target].x


def _arrow(label: str, edge: JobEdge, boxes: dict[int, _Box], lanes: dict[int, float]) -> str:
    source, target = boxes[edge.source], boxes[edge.target]
    x1, y1 = source.x + source.width, source.y + source.height / 2
    x2, y2 = target.x, target.y + target.height / 2
    if edge.id in lanes:
        lane, turn = lanes[edge.id], x2 - 1.5 * _GAP
        way = (
            f"{_curve(x1, y1, source.next_column, lane)} H {turn:.0f} {_curve(turn, lane, x2, y2)}"
        )
        x, y = (source.next_column + turn) / 2, lane
    else:
        way = _curve(x1, y1, x2, y2)
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
    return (
        f'<path d="M {x1:.0f} {y1:.0f} {way} m -7 -4 l 7 4 l -7 4"/>\n'
        f'<text class="exchange" x="{x:.0f}" y="{y - 6:.0f}" text-anchor="middle">'
        f"{escape(label)}</text>"
    )


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (x1 + x2) / 2
    return f"C {middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
