"""Positions that a source notes for checkpoints under way."""

from __future__ import annotations

import weakref

import pytest

from penstock.connectors.source import SourceReader
from penstock.graph.operators import Operator
from penstock.graph.stream_graph import StreamNode
from penstock.runtime.context import SubtaskInfo
from penstock.runtime.ends import RuntimeSource
from penstock.runtime.reporting import OperatorReport


class Positions(list):
    """What one snapshot of the reader has; a plain list cannot be watched."""


class Reader(SourceReader):
    def __init__(self):
        self.noted = []
        self.heard = []

    def add_splits(self, splits):
        raise AssertionError("nothing is assigned here")

    def poll(self):
        return None

    def snapshot(self):
        positions = Positions([{"next": len(self.noted)}])
        self.noted.append(weakref.ref(positions))
        return positions

    def covered(self, splits):
        self.heard.append(splits)


@pytest.fixture
def reader():
    return Reader()


@pytest.fixture
def source(reader):
    node = StreamNode(1, "numbers", Operator(), 1, 128, "numbers")
    return RuntimeSource(node, SubtaskInfo("job", 1, 0, 1, 128), reader, OperatorReport())


def test_the_reader_hears_what_a_complete_checkpoint_covers(source, reader):
    source.cut(1)
    source.cut(2)
    source.confirm(1)
    source.confirm(2)
    assert reader.heard == [[{"next": 0}], [{"next": 1}]]


def test_positions_of_a_failed_checkpoint_are_not_kept(source, reader):
    source.cut(1)
    source.abort(1)
    assert reader.noted[0]() is None


def test_a_failed_checkpoint_takes_no_other_with_it(source, reader):
    for checkpoint in (1, 2, 3):
        source.cut(checkpoint)
    source.abort(2)
    source.confirm(1)
    source.confirm(3)
    assert reader.heard == [[{"next": 0}], [{"next": 2}]]
