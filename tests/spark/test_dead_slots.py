"""A function that takes its process along: the error says how it died and in which operator."""

from __future__ import annotations

from typing import Any

_PROGRAM = """
import ctypes, os, sys

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JobFailedError


def crash(value):
    return ctypes.string_at(0)


def leave(value):
    os._exit(7)


def interrupt(value):
    raise KeyboardInterrupt


for function in (crash, leave, interrupt):
    settings = {"spark.master": "local[2]", "penstock.progress": "off"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.from_collection([1]).map(function).name("Fatal").print()
    try:
        env.execute()
    except JobFailedError as error:
        print(error)
        print(error.__cause__)
    print("--")
"""


def test_how_and_where_it_died_is_told(run_driver: Any) -> None:
    out, _ = run_driver(_PROGRAM)
    crashed, left, interrupted, _ = out.split("--\n")
    assert "Fatal Python error: Segmentation fault" in crashed.splitlines()[0]
    assert "in crash" in crashed and "-> Fatal" in crashed, crashed
    assert "os._exit(7) was called" in left.splitlines()[0]
    assert "in leave" in left and "-> Fatal" in left, left
    assert "KeyboardInterrupt; in operator 'Fatal', subtask 1/1, record 1" in interrupted
    assert "in interrupt" in interrupted, interrupted
