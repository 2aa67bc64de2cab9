"""A checkpoint whose barriers may overtake after a while: the slot wakes up for it once."""

from __future__ import annotations

from penstock.connectors.client_sinks import CollectSink
from penstock.network.messages import Trigger


def test_a_slot_is_woken_when_barriers_may_overtake_and_not_again(cluster):
    running = cluster(lambda env: env.from_collection([1, 2]).sink_to(CollectSink())).run()
    [slot] = running.slots
    assert slot.next_wakeup_ms() is None, "nothing else wakes it"
    begun = running.clock.now
    running.tell(Trigger(running.ATTEMPT, 1, 0, overtakes_after_ms=50))
    running.clock.now = begun + 49
    running.run()
    assert slot.next_wakeup_ms() == begun + 50
    running.clock.now = begun + 50
    running.run()
    assert slot.next_wakeup_ms() is None
