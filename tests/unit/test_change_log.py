"""The changelog of an operator: which cut counts, and what is refused."""

from __future__ import annotations

import pytest

from penstock.checkpoint.handles import SegmentHandle
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError
from penstock.runtime.segment_chain import ChainSettings, Handles, SegmentChain
from penstock.state.marks import mark_of


def handles(*names: str) -> Handles:
    return tuple(SegmentHandle.of(f"shared/{n}", b"x" * 10, range(4), ()) for n in names)


@pytest.fixture
def chain() -> SegmentChain:
    chain = SegmentChain(ChainSettings(fanout=2))
    chain.stored(mark_of(1), handles("full"))
    assert chain.confirm(mark_of(1))
    return chain


def test_the_next_checkpoint_builds_upon_what_was_logged(chain: SegmentChain) -> None:
    chain.settle(mark_of(1, 1), handles("full", "log-1"))
    assert chain.base() == handles("full", "log-1")


def test_a_checkpoint_confirmed_later_does_not_undo_what_was_logged(chain: SegmentChain) -> None:
    chain.stored(mark_of(2), handles("full", "delta-2"))
    chain.settle(mark_of(2, 1), handles("full", "log-1"))
    assert chain.confirm(mark_of(2))
    assert chain.base() == handles("full", "log-1")


def test_a_piece_that_is_stored_behind_the_next_checkpoint_is_let_go(chain: SegmentChain) -> None:
    chain.stored(mark_of(2), handles("full", "delta-2"))
    assert chain.confirm(mark_of(2))
    chain.settle(mark_of(1, 1), handles("full", "log-1"))
    assert chain.base() == handles("full", "delta-2")


def test_only_what_a_checkpoint_refers_to_is_merged(chain: SegmentChain) -> None:
    chain.settle(mark_of(1, 1), handles("full", "log-1"))
    chain.settle(mark_of(1, 2), handles("full", "log-1", "log-2"))
    assert chain.begin_compaction() is None
    chain.stored(mark_of(2), handles("full", "log-1", "log-2", "delta-2"))
    assert chain.confirm(mark_of(2))
    assert chain.begin_compaction() is not None


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


def test_memory_is_no_storage() -> None:
    settings = {
        "execution.checkpointing.dir": "file:///tmp/checkpoints",
        "state.backend.changelog.storage": "memory",
    }
    assert "expected filesystem" in refused(**settings)
