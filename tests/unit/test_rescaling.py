"""What a checkpoint gives to the subtasks of a program that is laid out otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.handles import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    OperatorSnapshot,
    SegmentHandle,
    SubtaskSnapshot,
)
from penstock.checkpoint.metadata import CheckpointMetadata, VertexSnapshot
from penstock.common.keys import NO_GROUP, UNION_GROUP, groups_of_subtask
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.errors import ProgramError
from penstock.graph.execution_graph import ExecutionGraph, SubtaskId
from penstock.jobmanager.matching import Verdict, check_fits, match
from penstock.jobmanager.rescaling import restored_subtasks

MAX = 16


def program(
    parallelism: int, chaining: bool = True, source: str = "source", max_parallelism: int = MAX
) -> ExecutionGraph:
    """source -> map, keyed -> sum -> print; all with uids."""
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism).set_max_parallelism(max_parallelism)
    if not chaining:
        env.disable_operator_chaining()
    numbers = NumberSequenceSource(0, 10)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid(source)
    stream = stream.map(lambda n: n).uid("map")
    stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sum").print().uid("print")
    return env._assemble("job").graph


def saved(parallelism: int, finished: frozenset[int] = frozenset()) -> CheckpointMetadata:
    """A checkpoint of that program, chained; `finished` are subtasks of the source.

    Their readers have yet to say how far they came.
    """

    def source(index: int) -> SubtaskSnapshot:
        splits = tuple([index, n] for n in range(index))
        if index in finished:
            ended = {"source": OperatorSnapshot((), splits)}
            return SubtaskSnapshot(True, MAX_WATERMARK, ended)
        own = SegmentHandle.of(f"own{index}", b"", range(NO_GROUP, NO_GROUP + 1))
        union = SegmentHandle.of(f"union{index}", b"", range(UNION_GROUP, UNION_GROUP + 1))
        operators = {
            "source": OperatorSnapshot((), splits),
            "map": OperatorSnapshot((own, union)),
        }
        clocks = ([f"split-{index}", 10 * index], [None, 5 + index])
        return SubtaskSnapshot(False, 100 + index, operators, clocks=clocks)

    def keyed(index: int) -> SubtaskSnapshot:
        groups = groups_of_subtask(index, MAX, parallelism)
        states = [("__reduced", "value")]
        base = SegmentHandle.of(f"base{index}", b"x", groups, states)
        delta = SegmentHandle.of(f"delta{index}", b"y", groups, states)
        operators = {"sum": OperatorSnapshot((base, delta)), "print": OperatorSnapshot()}
        return SubtaskSnapshot(False, 50 + index, operators)

    indexes = range(parallelism)
    return CheckpointMetadata(
        "job",
        7,
        1,
        0,
        {
            "source": VertexSnapshot(
                "s", parallelism, MAX, tuple(map(source, indexes)), {"source": "s", "map": "m"}
            ),
            "sum": VertexSnapshot(
                "k", parallelism, MAX, tuple(map(keyed, indexes)), {"sum": "Sum", "print": "p"}
            ),
        },
        {"source": []},
        {},
    )


def parts(graph: ExecutionGraph, metadata: CheckpointMetadata, uid: str) -> list[SubtaskSnapshot]:
    """What the subtasks that run the operator begin with."""
    restored = restored_subtasks(graph, metadata)
    vertex = next(v for v in graph.job.vertices if uid in {node.uid for node in v.nodes})
    return [restored[SubtaskId(vertex.id, i)] for i in range(vertex.parallelism)]


widths = st.integers(1, MAX)


@given(widths, widths, st.booleans())
def test_every_key_group_goes_to_its_owner_with_all_that_was_written(old, new, chaining):
    for index, part in enumerate(parts(program(new, chaining), saved(old), "sum")):
        groups = groups_of_subtask(index, MAX, new)
        handles = part.operators["sum"].segments
        covered = [g for h in handles for g in range(h.first_group, h.last_group + 1)]
        assert all(covered.count(group) == 2 for group in groups), "its base and its delta"
        assert all(handle.overlaps(groups) for handle in handles), "nothing else is read"
        numbers = [int(handle.path.removeprefix("delta")) for handle in handles[1::2]]
        assert [handle.path for handle in handles] == [
            f"{kind}{number}" for number in numbers for kind in ("base", "delta")
        ], "a delta stands behind its base"


@given(widths, widths, st.booleans(), st.frozensets(st.integers(0, MAX - 1)))
def test_every_split_goes_to_one_reader(old, new, chaining, finished):
    found = parts(program(new, chaining), saved(old, finished), "source")
    read = [split for part in found for op in part.operators.values() for split in op.splits]
    expected = [[i, n] for i in range(old) for n in range(i)]
    assert sorted(read) == expected


@given(widths, widths, st.booleans())
def test_a_watermark_is_the_minimum_of_those_before(old, new, chaining):
    for index, part in enumerate(parts(program(new, chaining), saved(old), "sum")):
        assert part.watermark == 50 + (index if old == new else 0)


@given(widths, widths)
def test_operator_state_is_offered_to_everyone_who_may_pick_of_it(old, new):
    for index, part in enumerate(parts(program(new), saved(old), "map")):
        paths = [handle.path for handle in part.operators["map"].segments]
        own = [index] if old == new else range(old)
        everything = [f"own{i}" for i in own] + [f"union{i}" for i in range(old)]
        assert sorted(paths) == sorted(everything)


@given(widths, widths)
def test_clocks_of_splits_go_where_the_splits_may_go(old, new):
    for index, part in enumerate(parts(program(new), saved(old), "source")):
        clocks = dict(part.clocks)
        if old == new:
            assert clocks == {f"split-{index}": 10 * index, None: 5 + index}
        else:
            assert clocks == {**{f"split-{i}": 10 * i for i in range(old)}, None: 5}


@given(widths, widths, st.booleans())
def test_what_has_finished_stays_finished(old, new, chaining):
    metadata = saved(old, frozenset(range(old)))
    graph = program(new, chaining)
    assert all(part.finished for part in parts(graph, metadata, "source"))
    assert all(part.finished for part in parts(graph, metadata, "map"))
    assert not any(part.finished for part in parts(graph, metadata, "sum"))


def test_with_the_same_layout_each_subtask_is_finished_or_not_as_before():
    found = parts(program(3), saved(3, frozenset({1})), "source")
    assert [part.finished for part in found] == [False, True, False]
    found = parts(program(2), saved(3, frozenset({1})), "source")
    assert [part.finished for part in found] == [False, False]


def test_behind_a_new_source_nothing_is_finished():
    metadata = saved(2, frozenset({0, 1}))
    found = parts(program(2, source="another", chaining=False), metadata, "map")
    assert not any(part.finished for part in found), "there is input to come"
    restored = restored_subtasks(program(2, source="another", chaining=False), metadata)
    assert {subtask.vertex for subtask in restored} == {1, 2, 3}, "the new one begins at nothing"


def test_after_a_drain_time_begins_anew():
    metadata = saved(2)
    drained = {
        uid: replace(v, subtasks=tuple(replace(s, watermark=MAX_WATERMARK) for s in v.subtasks))
        for uid, v in metadata.vertices.items()
    }
    found = parts(program(2), replace(metadata, vertices=drained), "sum")
    assert [part.watermark for part in found] == [MIN_WATERMARK, MIN_WATERMARK]


# --- matching ---------------------------------------------------------------------------------


def test_unclaimed_state_is_an_error_that_names_uid_and_state():
    metadata = saved(2)
    keyed = metadata.vertices["sum"]
    gone = replace(keyed, operators={"old-sum": "Sum", "print": "p"})
    subtasks = tuple(replace(s, operators={"old-sum": s.operators["sum"]}) for s in keyed.subtasks)
    metadata = replace(
        metadata, vertices={**metadata.vertices, "sum": replace(gone, subtasks=subtasks)}
    )
    with pytest.raises(ProgramError) as refused:
        check_fits(program(2).job, metadata, ignore_unclaimed=False)
    assert "uid old-sum (Sum), which has value state '__reduced'" in str(refused.value)
    [note] = check_fits(program(2).job, metadata, ignore_unclaimed=True)
    assert note.startswith("not restored: ") and "old-sum" in note
    verdicts = {each.uid: each.verdict for each in match(program(2).job, metadata)}
    assert verdicts == {
        "source": Verdict.MATCHED,
        "map": Verdict.MATCHED,
        "sum": Verdict.NEW,
        "print": Verdict.MATCHED,
        "old-sum": Verdict.DROPPED,
    }


def test_positions_of_a_dropped_source_are_unclaimed():
    with pytest.raises(ProgramError, match=r"uid source \(s\), which has source positions"):
        check_fits(program(2, source="another").job, saved(2), ignore_unclaimed=False)


def test_output_that_nobody_could_commit_is_unclaimed():
    metadata = replace(saved(2), committables={"print": ("file",)})
    [note] = [
        problem
        for problem in check_fits(_without_print(), metadata, ignore_unclaimed=True)
        if "print" in problem
    ]
    assert "output that is not committed" in note


def _without_print():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print().uid("another")
    return env._assemble("job").graph.job


def test_another_number_of_key_groups_is_refused():
    with pytest.raises(ProgramError) as refused:
        check_fits(program(2, max_parallelism=32).job, saved(2), ignore_unclaimed=False)
    assert "(uid sum) had max parallelism 16 and has 32 now" in str(refused.value)


def test_keyed_state_for_an_operator_without_keys_is_refused():
    metadata = saved(2)
    keyed = metadata.vertices["sum"]
    swapped = tuple(replace(s, operators={"print": s.operators["sum"]}) for s in keyed.subtasks)
    metadata = replace(
        metadata, vertices={**metadata.vertices, "sum": replace(keyed, subtasks=swapped)}
    )
    with pytest.raises(ProgramError, match=r"\(uid print\) has keyed state \(__reduced\)"):
        check_fits(program(2).job, metadata, ignore_unclaimed=False)
