"""The changelog of an operator: which cut counts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.checkpoint.handles import SegmentHandle
from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError
from penstock.runtime.change_log import ChangeLog
from penstock.runtime.segment_chain import ChainSettings, Handles, SegmentChain
from penstock.state.descriptors import ValueStateDescriptor
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.marks import mark_of
from penstock.state.segments import Origin


def handles(*names: str) -> Handles:
    return tuple(SegmentHandle.of(f"shared/{n}", b"x" * 10, range(4), ()) for n in names)


@pytest.fixture
def chain() -> SegmentChain:
    chain = SegmentChain(ChainSettings(fanout=2))
    chain.stored(mark_of(1), handles("full"))
    assert chain.confirm(mark_of(1))
    return chain


def test_the_next_checkpoint_builds_upon_what_was_logged(chain: SegmentChain) -> None:
    chain.logged(mark_of(1, 1), handles("log-1"))
    assert chain.base() == handles("full", "log-1")


def test_a_checkpoint_confirmed_later_does_not_undo_what_was_logged(chain: SegmentChain) -> None:
    chain.stored(mark_of(2), handles("full", "delta-2"))
    chain.logged(mark_of(2, 1), handles("log-1"))
    assert chain.confirm(mark_of(2))
    assert chain.base() == handles("full", "log-1")


def test_pieces_move_to_a_checkpoint_that_does_not_name_what_they_build_upon(
    chain: SegmentChain,
) -> None:
    """When it is complete, the older one goes, and its segments with it."""
    chain.stored(mark_of(2), handles("full-2"))
    chain.logged(mark_of(2, 1), handles("log-1"))
    chain.logged(mark_of(2, 2), handles("log-2"))
    assert chain.confirm(mark_of(2))
    assert chain.base() == handles("full-2", "log-1", "log-2")
    chain.logged(mark_of(2, 3), handles("log-3"))
    chain.stored(mark_of(3), handles("full-2", "log-1", "log-2", "log-3", "delta-3"))
    assert chain.confirm(mark_of(3))
    assert chain.base() == handles("full-2", "log-1", "log-2", "log-3", "delta-3")


def test_a_piece_that_is_stored_behind_the_next_checkpoint_is_let_go(chain: SegmentChain) -> None:
    chain.stored(mark_of(2), handles("full", "delta-2"))
    assert chain.confirm(mark_of(2))
    chain.logged(mark_of(1, 1), handles("log-1"))
    assert chain.base() == handles("full", "delta-2")


def test_only_what_a_checkpoint_refers_to_is_merged(chain: SegmentChain) -> None:
    chain.logged(mark_of(1, 1), handles("log-1"))
    chain.logged(mark_of(1, 2), handles("log-2"))
    assert chain.begin_compaction() is None
    chain.stored(mark_of(2), handles("full", "log-1", "log-2", "delta-2"))
    assert chain.confirm(mark_of(2))
    assert chain.begin_compaction() is not None


def test_one_result_of_a_compaction_at_most_waits_for_a_checkpoint(chain: SegmentChain) -> None:
    """The newest one of each chain is spared by sweeps, and no other."""
    chain.stored(mark_of(2), handles("full", "delta-2"))
    assert chain.confirm(mark_of(2))
    chosen = chain.begin_compaction()
    assert chosen is not None
    chain.stored(mark_of(3), handles("full", "delta-2", "delta-3"))
    chain.end_compaction(chosen[0], handles("merged")[0])
    chain.logged(mark_of(3, 1), handles("log-1"))
    assert chain.confirm(mark_of(3))
    # Meanwhile a piece is under way that was cut upon the merged segment.
    assert chain.begin_compaction() is None
    chain.logged(mark_of(3, 2), handles("log-2"))
    assert chain.base() == handles("merged", "log-1", "log-2")


class Later:
    """Does work off the loop when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.waiting.append(lambda: done(work(), None))


@pytest.mark.parametrize(("cut_meanwhile", "counts"), [(False, True), (True, False)])
def test_a_piece_that_a_checkpoint_overtakes_is_let_go(
    chain: SegmentChain, tmp_path: Path, cut_meanwhile: bool, counts: bool
) -> None:
    context = KeyContext()
    backend = HashMapBackend(context, 4)
    state = backend.get_state(ValueStateDescriptor("count", Types.LONG()))
    node = SimpleNamespace(uid="uid", name="operator")
    parts = {"node": node, "chain": chain, "state": backend, "origin": Origin()}
    operator: Any = SimpleNamespace(**parts, groups=range(4))
    io, epoch = Later(), [2]
    store = CheckpointStore(tmp_path.as_uri(), "job")
    log = ChangeLog(operator, store, io, lambda: epoch[0], lambda e: SegmentName(1, e, 0, "a"))
    log.write()
    assert not io.waiting, "nothing has changed"
    context.key = "a"
    state.update(1)
    log.write()
    epoch[0] += cut_meanwhile
    io.waiting.pop()()
    logged = [handle.path for handle in chain.base() if "-log-" in handle.path]
    assert logged == (["shared/1-2-0-a-log-1"] if counts else [])


def refused(**settings: str) -> str:
    values = {"execution.checkpointing.interval": "1 s", **settings}
    env = StreamExecutionEnvironment(Configuration.from_dict(values))
    env.enable_changelog_state_backend(True)
    assert env.is_changelog_state_backend_enabled()
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError) as raised:
        env._assemble("job")
    return str(raised.value)


def test_a_changelog_needs_a_directory() -> None:
    assert "needs a directory for checkpoints" in refused()


def test_a_changelog_needs_incremental_checkpoints() -> None:
    settings = {
        "execution.checkpointing.dir": "file:///tmp/checkpoints",
        "execution.checkpointing.incremental": "false",
    }
    assert "incremental" in refused(**settings)


def test_there_is_no_third_storage() -> None:
    settings = {
        "execution.checkpointing.dir": "file:///tmp/checkpoints",
        "state.backend.changelog.storage": "tape",
    }
    assert "expected one of filesystem, memory" in refused(**settings)
