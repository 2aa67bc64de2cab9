"""The slot: one loop that runs subtask j of every vertex, for one attempt.

A turn takes in what arrived, gives every ready subtask one bounded step, in a fixed circle, and
sends what is due. A subtask whose output has no room is passed over, so pressure travels upstream
by itself and the loop never blocks. When nothing is ready, partial buffers leave at once and the
loop sleeps until something arrives: at low rates latency is the hop, not the buffer.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import ChannelBrokenError, PenstockError
from penstock.graph.execution_graph import ChannelId, ExecutionGraph, SubtaskId
from penstock.network.frames import Frame, FrameKind, load_element
from penstock.network.messages import (
    Abort,
    Align,
    AssignSplits,
    Complete,
    Deploy,
    EmitCredit,
    Failed,
    Heartbeat,
    SubtaskMetrics,
    SubtaskReport,
    Trigger,
)
from penstock.runtime.accounting import Activity
from penstock.runtime.build import BuiltSlot, SlotBuilder
from penstock.runtime.environment import SlotEnvironment
from penstock.runtime.failure import explain
from penstock.runtime.links import Links
from penstock.runtime.startup import Startup
from penstock.runtime.subtask import Subtask


class Slot:
    """One slot in one attempt. Everything happens in the thread that calls it.

    When it is made its state is restored; it runs from `open` on.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        job_id: str,
        slot: int,
        deploy: Deploy,
        environment: SlotEnvironment,
        startup: Startup | None = None,
    ) -> None:
        self.slot = slot
        self.attempt = deploy.attempt
        self.failed = False
        self._environment = environment
        self._clock = environment.clock
        self._settings = deploy.settings
        self._stale_frames = 0
        self._report_wanted = False
        self._count_wanted = False
        self._reports: dict[tuple[int, int], SubtaskReport] = {}
        self._granting: dict[ChannelId, int] = {}
        self._granted: dict[ChannelId, int] = {}
        self._credited: dict[ChannelId, int] = {}
        self._graph = graph
        startup = startup or Startup(deploy.restored.values(), lambda: None)
        self._builder = SlotBuilder(
            graph, job_id, slot, deploy, environment, self._release_remote, startup
        )
        self._built: BuiltSlot = self._builder.restore()
        self.is_open = False
        self.subtasks: dict[SubtaskId, Subtask] = {}
        self._circle: list[Subtask] = []

    def open(self) -> None:
        """Open every function: from now on the slot takes turns."""
        self._builder.open(self.fail)
        self._links = self._linked(self._built)
        self.subtasks = {task.id: task for task in self._built.subtasks}
        self._circle = list(self.subtasks.values())
        self.is_open = True

    # --- the turn -----------------------------------------------------------------------------

    def turn(self) -> bool:
        """One turn; False when there was nothing to do and the loop may sleep."""
        if self.failed:
            return False
        progressed = self._receive()
        now_ms = self._clock.now_ms()
        task: Subtask | None = None
        try:
            if self._report_wanted:
                self._report()
            for task in self._circle:
                if task.ready(now_ms):
                    task.accounting.enter(Activity.BUSY, self._clock.monotonic_ns())
                    task.step(now_ms)
                    progressed = True
                self._account(task)
            task = None
            self._return_credits(idle=not progressed)
            if self._count_wanted:
                self._count()
            idle = not progressed
            for task in self._circle:
                if idle or task.flush_due(now_ms):
                    progressed = task.flush(now_ms) or progressed
        except self._environment.raised as error:
            self._fail_in(task, error)
            return False
        return progressed

    def _report(self) -> None:
        """Note what user functions registered, for the next heartbeat to send."""
        self._report_wanted = False
        reports = ((task.id, task.report()) for task in self._circle if not task.at_end)
        self._reports = {subtask: report for subtask, report in reports if report is not None}

    def _account(self, task: Subtask) -> None:
        accounting = task.accounting
        if task.pressed() and not task.at_end:
            activity = Activity.BACKPRESSURED
        elif task.calling() or task.ready(self._clock.now_ms()):
            # Its calls keep it from going on; or it is ready, but another subtask has the loop: as
            # a thread that waits for a processor.
            activity = Activity.BUSY
        else:
            activity = Activity.IDLE
        if activity is not accounting.activity:
            accounting.enter(activity, self._clock.monotonic_ns())

    def next_wakeup_ms(self) -> int | None:
        """When the loop must turn again even if nothing arrives."""
        times = [task.next_wakeup_ms() for task in self._circle]
        return min((time for time in times if time is not None), default=None)

    # --- the network --------------------------------------------------------------------------

    def _receive(self) -> bool:
        frames = self._environment.transport.receive()
        try:
            for frame in frames:
                self._frame(frame)
        except Exception as error:
            self._fail_in(None, error)
        return bool(frames)

    def _frame(self, frame: Frame) -> None:
        if frame.attempt != self.attempt:
            self._stale_frames += 1
            return
        channel = ChannelId(frame.edge, frame.sender, frame.receiver)
        if frame.kind == FrameKind.CREDIT:
            granted = frame.sequence - self._credited.get(channel, 0)
            self._credited[channel] = frame.sequence
            self._built.senders[channel].grant(granted)
            return
        if frame.kind == FrameKind.COUNT:
            self._check_count(frame)
            return
        gate, receiver = self._built.receivers[channel]
        if frame.sequence != receiver.sequence + 1:
            raise ChannelBrokenError(
                f"{self._describe(channel)}: element {receiver.sequence + 1} was expected and "
                f"{frame.sequence} came; what lies between was lost on the way"
            )
        receiver.sequence = frame.sequence
        if frame.kind == FrameKind.DATA:
            # Records are made when they are processed, while they are in the processor's cache.
            gate.push(receiver, frame.payload)
        else:
            gate.push(receiver, load_element(frame.payload))

    def _linked(self, built: BuiltSlot) -> Links:
        receivers = {
            channel: receiver
            for channel, (_, receiver) in built.receivers.items()
            if self._graph.slot_of(self._graph.sender_of(channel)) != self.slot
        }
        return Links(self._graph, built.remote_senders, receivers, self._granted, self._credited)

    def _count(self) -> None:
        """Tell other slots how much they were sent: without that, a lost end is never missed."""
        self._count_wanted = False
        for peer, count in self._links.counts():
            frame = Frame(FrameKind.COUNT, self.attempt, 0, self.slot, peer, count, b"")
            self._environment.transport.send(peer, frame)

    def _check_count(self, frame: Frame) -> None:
        lost = self._links.lost(frame.sender, frame.sequence)
        if lost > 0:
            raise ChannelBrokenError(
                f"{lost} of {frame.sequence} elements and credits were lost on the way from slot "
                f"{frame.sender} to slot {self.slot}: the connection between them broke"
            )

    def _describe(self, channel: ChannelId) -> str:
        job = self._graph.job
        edge = job.edges[channel.edge]
        source, target = job.vertex(edge.source).name, job.vertex(edge.target).name
        return (
            f"channel from {source!r} subtask {channel.sender + 1} to {target!r} "
            f"subtask {channel.receiver + 1}"
        )

    def _release_remote(self, channel: ChannelId) -> None:
        self._granting[channel] = self._granting.get(channel, 0) + 1

    def _return_credits(self, idle: bool) -> None:
        """Give credits back in lots of half a channel's, or all of them before sleeping."""
        if not self._granting:
            return
        lot = 1 if idle else max(1, self._settings.credits // 2)
        for channel, credits in list(self._granting.items()):
            if credits >= lot:
                del self._granting[channel]
                total = self._granted[channel] = self._granted.get(channel, 0) + credits
                peer = self._graph.slot_of(self._graph.sender_of(channel))
                frame = Frame(FrameKind.CREDIT, self.attempt, *channel, total, b"")
                self._environment.transport.send(peer, frame)

    # --- messages of the JobMaster ------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Act on a message about this attempt."""
        task: Subtask | None = None
        try:
            if isinstance(message, Trigger):
                for task in self._circle:
                    task.trigger(message)
            elif isinstance(message, Complete):
                for task in self._circle:
                    task.confirm(message.checkpoint)
            elif isinstance(message, Abort):
                for task in self._circle:
                    task.abort(message.checkpoint)
            elif isinstance(message, AssignSplits):
                task = self.subtasks[SubtaskId(*message.subtask)]
                task.assign(message.splits, message.ask_again_ms, message.waited_for)
            elif isinstance(message, Align):
                self.subtasks[SubtaskId(*message.subtask)].align(message.limit)
            elif isinstance(message, EmitCredit):
                self._built.emitters[SubtaskId(*message.subtask), message.uid].grant(
                    message.messages
                )
        except self._environment.raised as error:
            self._fail_in(task, error)

    # --- failure and end ----------------------------------------------------------------------

    def _fail_in(self, task: Subtask | None, error: BaseException) -> None:
        if task is None:
            self._fail_with(explain(error, None, 0, 1, False))
            return
        vertex = self._graph.job.vertex(task.id.vertex)
        redact = self._settings.redact_records
        self._fail_with(
            explain(error, task.chain, task.id.index, vertex.parallelism, redact, vertex.name)
        )

    def fail(self, error: BaseException) -> None:
        """Something outside a subtask's step failed: work done off the loop, or the network."""
        self._fail_in(None, error)

    def _fail_with(self, error: PenstockError) -> None:
        if not self.failed:
            self.failed = True
            self._environment.tell(Failed(self.attempt, self.slot, error))

    def heartbeat(self, strangers: int = 0) -> Heartbeat:
        """How the slot is doing; reads counters only, so another thread may ask."""
        # As often as the driver hears of this slot, its peers do: the loop counts when it turns.
        self._count_wanted = True
        metrics: dict[tuple[int, int], SubtaskMetrics] = {
            task.id: task.metrics() for task in self._circle
        }
        if any(task.reports() for task in self._circle):
            # Gauges are the user's code, and that runs in the loop only: it reads them soon.
            self._report_wanted = True
            self._environment.wake()
        return Heartbeat(self.attempt, self.slot, metrics, strangers, self._reports)

    def close(self) -> list[BaseException]:
        """Close every function, reader and writer. Afterwards nothing of the attempt acts."""
        self.failed = True
        if not self.is_open:
            return self._builder.close()
        errors = [error for task in self._circle for error in task.close()]
        return errors + self._built.helpers.close()

    def forget(self) -> None:
        """After `close`: let go of all state, which may take long; other threads run meanwhile."""
        self._builder.forget()
