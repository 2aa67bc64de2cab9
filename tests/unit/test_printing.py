"""Printing: a pipe that nobody reads holds nobody up, and nothing of what is printed is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

import pytest
from patience import until

from penstock.datastream.results import ClientResults
from penstock.testing import local_environment

LINES = [f"line {n} {'x' * 90} ü" for n in range(3_000)]
"""More than a pipe holds."""


class Pipe:
    """A pipe that is the standard output of what is delivered, and what was read from it."""

    def __init__(self):
        self.reader, writer = os.pipe()
        self.stream = os.fdopen(writer, "w", encoding="utf-8")
        self.read = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def _drain(self):
        while data := os.read(self.reader, 65536):
            self.read += data

    def begin_to_read(self):
        self._thread.start()

    def close(self):
        self.stream.close()
        self._thread.join()
        os.close(self.reader)

    def lines(self):
        return self.read.decode().splitlines()


@pytest.fixture
def pipe():
    return Pipe()


def deliver(results, pipe, lines):
    # Not around the test as a whole: pytest exchanges the stream as well.
    with contextlib.redirect_stdout(pipe.stream):
        for start in range(0, len(lines), 100):
            results.deliver("print", 0, lines[start : start + 100])


def test_a_full_pipe_does_not_hold_up_who_delivers(pipe):
    results = ClientResults()
    delivering = threading.Thread(target=deliver, args=(results, pipe, LINES), daemon=True)
    delivering.start()
    until(lambda: not delivering.is_alive(), "that everything is delivered")
    assert results.backlog() > 0, "a client that does not keep up is told apart by its backlog"
    pipe.begin_to_read()
    results.flush()
    assert results.backlog() == 0
    pipe.close()
    assert pipe.lines() == LINES


def test_whoever_waits_for_room_is_told_of_every_piece(pipe):
    results, told = ClientResults(), []
    results.on_taken(lambda: told.append(results.backlog()))
    deliver(results, pipe, LINES)
    pipe.begin_to_read()
    results.flush()
    until(lambda: told[-1] == 0, "the last piece")
    pipe.close()


def test_lines_of_any_length_arrive_as_they_are(pipe):
    pipe.begin_to_read()
    results, lines = ClientResults(), ["", "ü" * 5_000, "short", "x" * 100_000, ""]
    deliver(results, pipe, lines)
    results.flush()
    pipe.close()
    assert pipe.lines() == lines


def test_who_gives_up_does_not_wait_for_a_full_pipe(pipe):
    results = ClientResults()
    deliver(results, pipe, LINES)
    results.flush(timeout_s=0.01)
    until(lambda: results.backlog() == 0, "that the thread has given up")
    pipe.begin_to_read()
    pipe.close()
    assert pipe.lines() == LINES[: len(pipe.lines())] != LINES


def test_a_pipe_whose_reader_has_gone_is_an_error(pipe):
    os.close(pipe.reader)
    results = ClientResults()
    deliver(results, pipe, ["lost"])
    with pytest.raises(BrokenPipeError):
        results.flush()
    with pytest.raises(BrokenPipeError):
        deliver(results, pipe, ["lost as well"])
    with contextlib.suppress(BrokenPipeError):
        pipe.stream.close()


def test_a_job_has_printed_everything_when_it_is_over(capsys):
    with local_environment() as env:
        env.from_collection(list(range(2_000))).print()
        env.execute()
        assert sorted(map(int, capsys.readouterr().out.split())) == list(range(2_000))


PROGRAM = """
import threading
from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.testing import local_environment

with local_environment() as env:
    numbers = DataGeneratorSource(lambda n: "x" * 1000, 10**9)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").print()
    job = env.execute_async()
    while job._runner._listener.backlog() < 64:
        threading.Event().wait(0.01)
    job.cancel().result()
"""


def test_a_job_with_a_full_pipe_can_be_cancelled():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
    try:
        # It ends by itself, without a complaint, though nobody reads what it prints.
        assert process.wait(timeout=300) == 0
    finally:
        process.kill()
        process.communicate()
