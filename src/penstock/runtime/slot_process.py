"""The slot's process: real sockets, real threads, the real clock around a `SlotHost`."""

from __future__ import annotations

import os
import pickle
from typing import Any

from penstock.common.clock import SystemClock
from penstock.common.listening import Listening
from penstock.common.mailbox import Mailbox
from penstock.common.payload import SlotPayload
from penstock.common.thread_calls import ThreadCalls
from penstock.common.thread_io import ThreadIo
from penstock.graph.main_module import MainModule
from penstock.network.control import ControlClient
from penstock.network.messages import Deploy, Prepare
from penstock.network.wakeup import Wakeup
from penstock.network.zmq_transport import ZmqTransport
from penstock.runtime.collector import Collector
from penstock.runtime.environment import RAISED
from penstock.runtime.slot_host import HostEnvironment, SlotHost, SlotIdentity, unpickled
from penstock.runtime.slot_logging import SlotLogging
from penstock.runtime.step_watch import StepWatch, StepWatcher

_LONGEST_SLEEP_MS = 1000


def slot_main(slot: int, host: str, payload: bytes) -> None:
    """Run slot `slot` until the JobMaster lets it go."""
    main = MainModule()
    with main.standing_in():
        SlotProcess(slot, host, pickle.loads(payload), main).run()


def warm_up(slot: int, host: str, program: bytes) -> None:
    """Import what a slot that runs `program` needs: the next task in this process has it."""
    unpickled(program)


class SlotProcess:
    """One slot's event loop with its surroundings."""

    def __init__(self, slot: int, host: str, payload: SlotPayload, main: MainModule) -> None:
        self._clock = SystemClock()
        self._wakeup = Wakeup()
        self._mailbox = Mailbox(self._wakeup.wake)
        self._io = ThreadIo(self._mailbox.put, "penstock-io")
        self._calls = ThreadCalls(self._mailbox.put, "penstock-calls")
        watch = StepWatch()
        self._watcher = StepWatcher(watch)
        keys = (payload.client_public, payload.client_secret, payload.server_public)
        self._control = ControlClient(
            payload.control_address, (payload.launch, slot), keys, self._wakeup
        )
        self._logging = SlotLogging()
        self._payload = payload
        self._host_name = host
        self._transport: ZmqTransport | None = None
        environment = HostEnvironment(
            self._clock,
            self._io,
            self._control.send,
            self._wakeup.wake,
            self._open,
            self._calls,
            watch,
            main.load,
            (*RAISED, KeyboardInterrupt),
        )
        identity = SlotIdentity(payload.job_id, payload.launch, slot, host, os.getpid())
        self._host = SlotHost(identity, payload.program, environment)

    def _open(self, public_key: bytes, secret_key: bytes) -> ZmqTransport:
        listening = Listening(self._host_name, ports=self._payload.slot_ports)
        self._transport = ZmqTransport(listening, public_key, secret_key, self._wakeup)
        return self._transport

    def run(self) -> None:
        payload = self._payload
        timeout_ms = payload.heartbeat_timeout_ms
        self._control.start(self._host.heartbeat, payload.heartbeat_interval_ms, timeout_ms)
        self._host.register()
        self._watcher.start()
        self._collector = Collector()
        try:
            while not self._host.left:
                for message in self._control.received():
                    self._handle(message)
                self._mailbox.run()
                if not self._host.turn():
                    self._sleep()
        finally:
            self._logging.undo()
            self._collector.close()
            self._watcher.close()
            self._control.close()
            self._io.close()
            self._calls.close()
            self._wakeup.close()

    def _handle(self, message: Any) -> None:
        if isinstance(message, Prepare):
            self._collector.attempt_ended()
        if isinstance(message, Deploy):
            self._logging.set(message.settings.log_level, message.settings.log_levels)
            with self._collector.quiet():
                self._host.handle(message)
        else:
            self._host.handle(message)

    def _sleep(self) -> None:
        wakeup = self._host.next_wakeup_ms()
        timeout = _LONGEST_SLEEP_MS
        if wakeup is not None:
            timeout = max(0, min(timeout, wakeup - self._clock.now_ms()))
        transport = self._transport
        if transport is not None and self._host.slot is not None and not self._host.left:
            self._host.wait(transport, timeout)
        elif not self._host.left:
            self._wakeup.sleep(timeout)
