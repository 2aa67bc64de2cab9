"""Restoring large state does not keep other threads waiting: heartbeats go out meanwhile."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from penstock import kept
from penstock.common import Configuration, Instant
from penstock.datastream.functions import MapFunction
from penstock.state import columns
from penstock.state.hashmap import HashMapBackend
from penstock.state.kinds import KeyContext
from penstock.state.schema import PICKLED
from penstock.testing import local_environment


class FailOnce(MapFunction):
    """Raises in the first attempt."""

    backends: list[HashMapBackend] = []

    def map(self, value: int) -> int:
        if value == 90 and len(self.backends) == 1:
            raise RuntimeError("out of luck")
        return value


LARGE = [{"number": n, "text": f"text {n}", "at": Instant(n, 0)} for n in range(100_000)]


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_large_pickle_is_read_as_a_small_one(protocol: int) -> None:
    assert kept.loads(pickle.dumps(LARGE, protocol)) == LARGE
    long_line = {"x" * 1_000_000: b"y" * 3_000_000}
    assert kept.loads(pickle.dumps(long_line, protocol)) == long_line


def test_the_interpreter_is_passed_every_few_kilobytes_of_a_large_pickle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    longest = 0
    read = kept._Sliced.read

    def noted(self: Any, size: int) -> bytes:
        nonlocal longest
        longest = max(longest, size)
        return read(self, size)

    monkeypatch.setattr(kept._Sliced, "read", noted)
    kept.loads(pickle.dumps(LARGE, 5))
    assert 0 < longest < 1 << 18


def test_and_when_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = columns._Frames.write

    def noted(self: Any, data: bytes) -> None:
        sizes.append(len(data))
        write(self, data)

    monkeypatch.setattr(columns._Frames, "write", noted)
    column = columns.encode_column(PICKLED, LARGE)
    assert len(column) > 1 << 20 and max(sizes) < 1 << 18
    assert columns.decode_column(column, len(LARGE)) == LARGE


def test_what_is_written_in_frames_is_the_pickle_that_it_was() -> None:
    changing = bytearray(b"z" * 200_000)
    values = [*LARGE[:5_000], b"x" * 200_000, "y" * 200_000, changing, changing]
    expected = pickle.dumps(values, protocol=5)
    column = columns.encode_column(PICKLED, values)
    assert column == b"P" + len(expected).to_bytes(8, "little") + expected


def test_a_large_pickle_of_former_names_is_read_too() -> None:
    former = pickle.dumps(LARGE, 5).replace(b"\x8c\rpenstock.kept", b"\x8c\x14penstock.common.time")
    assert b"penstock.kept" not in former and len(former) > 1 << 20
    # The frame that names the type is seven bytes longer now.
    place = former.index(b"\x95", 2) + 1
    size = int.from_bytes(former[place : place + 8], "little") + 7
    assert kept.loads(former[:place] + size.to_bytes(8, "little") + former[place + 8 :]) == LARGE


def test_a_torn_large_pickle_is_an_error() -> None:
    with pytest.raises((EOFError, pickle.UnpicklingError)):
        kept.loads(pickle.dumps(LARGE, 5)[:-100])


def test_state_goes_with_its_attempt_and_not_when_the_collector_comes_by() -> None:
    class Watched:
        alive = 0

        def __init__(self) -> None:
            Watched.alive += 1

        def __del__(self) -> None:
            Watched.alive -= 1

    backend = HashMapBackend(KeyContext(), 128)
    backend.table("values", "value").entries.update({n: Watched() for n in range(10)})
    assert Watched.alive == 10
    backend.close()
    backend.forget()
    assert Watched.alive == 0


def test_the_next_attempt_in_a_process_begins_without_the_state_of_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[int] = []
    make = HashMapBackend.__init__
    made = FailOnce.backends = []

    def noted(self: HashMapBackend, *args: Any) -> None:
        left.append(sum(len(t.entries) for each in made for t in each._tables.values()))
        made.append(self)
        make(self, *args)

    monkeypatch.setattr(HashMapBackend, "__init__", noted)
    settings = {"restart-strategy.type": "fixed-delay"}
    with local_environment(configuration=Configuration.from_dict(settings)) as env:
        numbers = env.from_collection(range(100))
        numbers.key_by(lambda n: n).reduce(lambda a, b: a + b).map(FailOnce()).print()
        env.execute()
    assert len(made) == 2 and left == [0, 0]
