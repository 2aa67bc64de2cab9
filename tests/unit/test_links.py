"""Links between slots: what is lost is proved by counts behind it, and what is slow is not lost."""

from __future__ import annotations

import pytest

from penstock.common.typeinfo import Types
from penstock.connectors.client_sinks import CollectSink
from penstock.errors import ChannelBrokenError
from penstock.network.frames import FrameKind
from penstock.testing import local_environment
from penstock.testing.simulator import Simulation

VALUES = [f"k{n % 7}" for n in range(200)]


def one(value):
    return value


def dealing(env):
    """A source that sends to the subtasks of another vertex, in two slots."""
    keyed = env.from_collection(VALUES, Types.STRING()).key_by(one)
    keyed.map(one).sink_to(CollectSink())


# --- slots ------------------------------------------------------------------------------------


def beat(running):
    """What every heartbeat makes: the loops count in their next turn."""
    for slot in running.slots:
        slot.heartbeat()
    return running.run()


def kinds(kind):
    return kind.name


def test_what_arrived_is_as_much_as_was_counted(cluster):
    running = cluster(dealing, parallelism=2)
    counted = []
    running.tamper = lambda sender, receiver, frame: [counted.append(frame) or frame]
    for _ in range(3):
        beat(running)
    assert sum(frame.kind == FrameKind.COUNT for frame in counted) >= 2
    assert sorted(running.collected()) == sorted(VALUES)
    assert running.ended() and not running.failures()


@pytest.mark.parametrize("lost", [FrameKind.DATA, FrameKind.CONTROL, FrameKind.CREDIT], ids=kinds)
def test_a_lost_last_frame_is_noticed(cluster, lost):
    """Nothing follows that would show a gap, but for the count."""
    whole = cluster(dealing, parallelism=2)
    sent = []
    whole.tamper = lambda sender, receiver, frame: [sent.append(frame) or frame]
    whole.run()
    last = [frame for frame in sent if frame.kind == lost][-1]
    follows = [f for f in sent if f[1:5] == last[1:5] and f.sequence > last.sequence]

    running = cluster(dealing, parallelism=2)
    gone = {
        last,
        *(f for f in follows if (f.kind == FrameKind.CREDIT) == (lost is FrameKind.CREDIT)),
    }
    running.tamper = lambda sender, receiver, frame: [] if frame in gone else [frame]
    running.run()
    assert not running.failures(), "nothing is known yet"
    beat(running)
    [error] = running.failures()
    assert isinstance(error, ChannelBrokenError)
    assert "were lost on the way from slot" in str(error)


def test_a_count_that_is_lost_itself_is_repeated(cluster):
    running = cluster(dealing, parallelism=2)

    def lose_the_end(sender, receiver, frame):
        if frame.kind == FrameKind.CONTROL:
            return []
        if frame.kind == FrameKind.COUNT:
            counts.append(frame)
            return [frame] if len(counts) > 3 else []
        return [frame]

    counts = []
    running.tamper = lose_the_end
    for _ in range(100):
        beat(running)
        if running.failures():
            break
    assert "were lost on the way from slot" in str(running.failures()[0])


def test_a_link_without_news_is_mostly_left_alone(cluster):
    running = cluster(dealing, parallelism=2)
    beat(running)
    counts = []
    running.tamper = lambda sender, receiver, frame: [counts.append(frame) or frame]
    beat(running)
    settled = len(counts)
    for _ in range(8):
        beat(running)
    assert len(counts) == settled


def test_a_count_of_another_attempt_says_nothing(cluster):
    running = cluster(dealing, parallelism=2)
    running.tamper = lambda sender, receiver, frame: [
        frame._replace(attempt=99, sequence=frame.sequence + 1_000_000),
        frame,
    ]
    for _ in range(3):
        beat(running)
    assert running.ended() and not running.failures()


# --- jobs -------------------------------------------------------------------------------------


class Stalls:
    """Lets one link stand still for a while, once it has something to carry."""

    def __init__(self, patch, ms):
        self.seen = []
        original = Simulation.tick

        def tick(simulation):
            waiting = [pair for pair, frames in simulation.network.items() if frames]
            if waiting and not self.seen:
                self.seen.append(waiting[0])
                simulation.stalled["frame", waiting[0]] = simulation.clock.now + ms
            original(simulation)

        patch.setattr(Simulation, "tick", tick)


@pytest.mark.parametrize("seed", range(4))
def test_a_link_that_is_slow_has_lost_nothing(monkeypatch, seed):
    stalls = Stalls(monkeypatch, 600_000)
    with local_environment(seed=seed) as env:
        env.set_parallelism(2)
        collected = env.from_collection(VALUES, Types.STRING()).key_by(one).map(one)
        with collected.execute_and_collect() as results:
            assert sorted(results) == sorted(VALUES)
        assert stalls.seen
        assert env.simulation.master.progress().restarts == 0
