"""Ports: how a channel's elements reach the gate they are meant for."""

from __future__ import annotations

from typing import Any

from penstock.graph.execution_graph import ChannelId
from penstock.network.elements import Control
from penstock.network.frames import Frame, FrameKind, dump_element
from penstock.runtime.environment import Transport
from penstock.runtime.gate import InputGate
from penstock.runtime.input_channel import InputChannel


class LocalPort:
    """To a gate in the same slot: by reference, because records were isolated when emitted."""

    __slots__ = ("_channel", "_gate")

    def __init__(self, gate: InputGate, channel: InputChannel) -> None:
        self._gate = gate
        self._channel = channel

    def encode(self, batch: list[Any], flat: bool) -> tuple[Any, int | None]:
        return batch, None

    def send_batch(self, encoded: Any, sequence: int) -> None:
        self._gate.push(self._channel, encoded)

    def send_control(self, element: Control, sequence: int) -> None:
        self._gate.push(self._channel, element)


class RemotePort:
    """To a gate in another slot."""

    __slots__ = ("_attempt", "_channel", "_slot", "_transport")

    def __init__(self, transport: Transport, slot: int, attempt: int, channel: ChannelId) -> None:
        self._transport = transport
        self._slot = slot
        self._attempt = attempt
        self._channel = channel

    def encode(self, batch: list[Any], flat: bool) -> tuple[Any, int | None]:
        payload = dump_element(batch, flat)
        return payload, len(payload)

    def send_batch(self, encoded: Any, sequence: int) -> None:
        self._send(FrameKind.DATA, encoded, sequence)

    def send_control(self, element: Control, sequence: int) -> None:
        self._send(FrameKind.CONTROL, dump_element(element), sequence)

    def _send(self, kind: FrameKind, payload: bytes, sequence: int) -> None:
        frame = Frame(kind, self._attempt, *self._channel, sequence, payload)
        self._transport.send(self._slot, frame)
