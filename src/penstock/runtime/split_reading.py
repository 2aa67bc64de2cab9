"""How a source's subtask reads: splits asked for and assigned, polls that are worth it."""

from __future__ import annotations

from typing import Any

from penstock.common.clock import has_come
from penstock.common.plain import Plain
from penstock.graph.execution_graph import SubtaskId
from penstock.network.messages import SplitRequest
from penstock.runtime.ends import RuntimeSource
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.event_time import EventClock

ASK_AGAIN_MS = 1000
"""When a reader without splits asks again, unless the enumerator says."""


class SplitReading:
    """The reader of one subtask and its dealings with the enumerator."""

    def __init__(
        self, source: RuntimeSource, subtask: SubtaskId, attempt: int, environment: SlotEnvironment
    ) -> None:
        self.reader = source.reader
        self._subtask = subtask
        self._attempt = attempt
        self._environment = environment
        self._clock = environment.clock
        self._asked = False
        self._late: list[tuple[list[Plain] | None, int | None, bool]] = []
        self._wakes = 0
        self._idle_at_wakes: int | None = None
        self._poll_at_ms: int | None = None
        self._poll_after_ms = 0
        self._ask_after_ms = ASK_AGAIN_MS
        self.ask_at_ms: int | None = None
        """When to ask for splits again."""
        self.out_of_splits = False
        self.no_more_splits = False
        self.without_splits = False
        """Whether the enumerator said that there is none for this reader just now."""

    def ask_due(self, now_ms: int) -> bool:
        return has_come(self.ask_at_ms, self._ask_after_ms, now_ms)

    def worth_a_poll(self, now_ms: int) -> bool:
        """Whether there may be something to read."""
        if self.out_of_splits:
            return False
        if not self._idle():
            return True
        return has_come(self._poll_at_ms, self._poll_after_ms, now_ms)

    def next_poll_ms(self) -> int | None:
        """When a poll is worth it by the clock alone; None if the reader says by itself."""
        return self._poll_at_ms if self._idle() and not self.out_of_splits else None

    def _idle(self) -> bool:
        """Whether the last poll had nothing and the reader has not said since that it has."""
        return self._idle_at_wakes == self._wakes

    def poll(self, limit: int) -> list[Any] | None:
        """What there is to read, perhaps nothing; None: all splits are read to their ends."""
        self._idle_at_wakes = None
        wakes = self._wakes
        values = self.reader.poll(limit)
        if values is None:
            self.out_of_splits = not self.no_more_splits
        elif not values:
            # As it was before the poll: what the reader got since then is worth another one.
            self._idle_at_wakes = wakes
            self._poll_at_ms = self.reader.next_poll_ms()
            if self._poll_at_ms is not None:
                self._poll_after_ms = max(0, self._poll_at_ms - self._clock.now_ms())
        return values

    def woken(self) -> None:
        """A reader's thread has something: worth a poll. Called from any thread."""
        self._wakes += 1

    def align(self, clock: EventClock, limit: int) -> None:
        """Let those splits wait that are ahead of others, where the reader can do that."""
        if not clock.aligned or not self.reader.pauses_splits:
            return
        self.forget_ended(clock)
        pause, resume = clock.align(limit)
        if pause or resume:
            self.reader.pause_or_resume_splits(pause, resume)
        if resume:
            # What waited is worth a poll.
            self._idle_at_wakes = None

    def forget_ended(self, clock: EventClock) -> None:
        """Splits that were read to their ends hold nothing back."""
        splits = self.reader.active_splits()
        if splits is not None:
            clock.retain(splits)

    # --- splits -------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask the enumerator for splits, unless it has been asked."""
        self.ask_at_ms = None
        if not self._asked:
            self._asked = True
            self._environment.tell(SplitRequest(self._attempt, self._subtask))

    def assign(
        self, splits: list[Plain] | None, ask_again_ms: int | None, waited_for: bool
    ) -> None:
        """The enumerator's answer; None: there will be no more."""
        self._asked = False
        # One that still reads hears this too, when it is told when to ask.
        self.without_splits = splits == [] and self.out_of_splits and not waited_for
        if splits is None:
            self.no_more_splits = True
        elif splits:
            self.reader.add_splits(splits)
        elif ask_again_ms is None:
            ask_again_ms = ASK_AGAIN_MS
        if splits is None or splits:
            self.out_of_splits = False
            self._idle_at_wakes = None
        if ask_again_ms is not None and splits is not None:
            self.ask_at_ms = self._clock.now_ms() + ask_again_ms
            self._ask_after_ms = ask_again_ms

    def assign_later(
        self, splits: list[Plain] | None, ask_again_ms: int | None, waited_for: bool
    ) -> None:
        """Keep the answer until `take_late`."""
        self._late.append((splits, ask_again_ms, waited_for))

    def take_late(self) -> None:
        """Act on the answers that were kept."""
        late, self._late = self._late, []
        for splits, ask_again_ms, waited_for in late:
            self.assign(splits, ask_again_ms, waited_for)
