"""Classes of the script itself: they travel with the program, and a slot finds them by name.

The script and the slot are processes of their own: in one process there would be one class anyway.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import collections, dataclasses, enum, io, pickle, sys, threading
from fractions import Fraction

from penstock.graph.main_module import ProgramPickler


@dataclasses.dataclass(frozen=True)
class Mentioned:
    value: int

    class Inner(enum.Enum):
        ONE = 1

    class Plain:
        pass


Formerly_ = Mentioned
Pair = collections.namedtuple("Pair", "a b")


def empty():
    return 0


class Element:
    seen = 0

    def mentioned(self):
        return Mentioned(2)


class Heavy:
    data = bytes(5 << 20)


class Guarded:
    lock = threading.Lock()


def function(value):
    assert isinstance(value, Mentioned)
    return collections.defaultdict(empty, {Pair(value, Mentioned.Inner.ONE): Mentioned.Plain()})


records = {
    name: pickle.dumps(made, protocol=5)
    for name, made in {
        "mentioned": Mentioned(1),
        "function": function,
        "element": Element(),
        "heavy": Heavy(),
        "guarded": Guarded(),
    }.items()
}
written = io.BytesIO()
pickler = ProgramPickler(written, sys.modules["__main__"])
pickler.dump(function)
pickler.dump_main()
with open(sys.argv[1], "wb") as file:
    pickle.dump((written.getvalue(), records), file)
"""

SLOT = """
import pickle, sys

from penstock.errors import ProgramError
from penstock.graph.main_module import MainModule

with open(sys.argv[1], "rb") as file:
    program, records = pickle.load(file)
own, slot = sys.modules["__main__"], MainModule()
"""


def run(tmp_path: Path, name: str, program: str) -> str:
    script = tmp_path / name
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "program")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_a_slot(tmp_path: Path, body: str) -> str:
    """What `body`, which has `program` and `records`, prints in another process."""
    run(tmp_path, "job.py", SCRIPT)
    return run(tmp_path, "slot.py", SLOT + body)


def test_functions_and_records_have_the_same_class(tmp_path: Path) -> None:
    body = """
with slot.standing_in():
    function = slot.load(program)
    record = pickle.loads(records["mentioned"])
    made = function(record)
    again = pickle.loads(pickle.dumps(made, protocol=5))
    (pair, plain), = again.items()
    (pair_before, plain_before), = made.items()
    assert type(pair) is type(pair_before) and type(plain) is type(plain_before)
    assert pair.b is pair_before.b
    assert type(pair.a) is type(record)
    print(type(record).__module__, type(plain).__qualname__, again["missing"])
assert sys.modules["__main__"] is own
"""
    assert in_a_slot(tmp_path, body) == "__main__ Mentioned.Plain 0\n"


def test_a_class_that_no_function_mentions_is_there_when_it_is_needed(tmp_path: Path) -> None:
    body = """
with slot.standing_in():
    function = slot.load(program)
    element = pickle.loads(records["element"])
    function(element.mentioned())
    assert pickle.loads(pickle.dumps(element)).seen == 0
    type(element).seen = 5
    # The next attempt: classes are as the script made them.
    function = slot.load(program)
    again = pickle.loads(records["element"])
    function(again.mentioned())
    print(again.seen)
"""
    assert in_a_slot(tmp_path, body) == "0\n"


def test_a_class_that_cannot_be_sent_is_named_when_it_is_needed(tmp_path: Path) -> None:
    body = """
with slot.standing_in():
    slot.load(program)
    for name in ("heavy", "guarded"):
        try:
            pickle.loads(records[name])
        except ProgramError as error:
            print(error)
"""
    heavy, guarded = in_a_slot(tmp_path, body).splitlines()
    assert "the class Heavy" in heavy and "more than 4 MiB of data" in heavy
    assert "the class Guarded" in guarded and "lock" in guarded and "a module of its own" in guarded


def test_a_class_has_all_names_that_the_script_gives_it(tmp_path: Path) -> None:
    body = """
import fractions
former = records["mentioned"].replace(b"Mentioned", b"Formerly_")
assert former != records["mentioned"]
with slot.standing_in():
    slot.load(program)
    print(type(pickle.loads(former)) is type(pickle.loads(records["mentioned"])))
    # A class that has moved from the script to a module, which the script imports.
    print(pickle.loads(b"c__main__\\nFraction\\n.") is fractions.Fraction)
"""
    assert in_a_slot(tmp_path, body) == "True\nTrue\n"


def test_the_next_job_in_the_process_does_not_see_them(tmp_path: Path) -> None:
    body = """
with slot.standing_in():
    slot.load(program)
    pickle.loads(records["element"])
for former in (own, MainModule()._module):
    sys.modules["__main__"] = former
    for name in ("element", "mentioned"):
        try:
            pickle.loads(records[name])
        except AttributeError as error:
            print("absent")
"""
    assert in_a_slot(tmp_path, body) == "absent\n" * 4
