"""What is pickled, told without unpickling it.

To unpickle is to run whatever the bytes say. So a pickle of somebody else's is gone through like a
text: its instructions are counted and none is carried out.

>>> import datetime, pickle
>>> found = described(pickle.dumps([7, ("a", 1), datetime.date(2026, 5, 4)], protocol=5))
>>> [(each.type_name, each.size) for each in found]
[('int', 2), ('tuple', 8), ('datetime.date', 31)]
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.errors import CorruptCheckpointError


@dataclass(frozen=True, eq=False)
class Pickled:
    """A value that was not unpickled; it looks as the command line shows it."""

    type_name: str
    size: int

    def __repr__(self) -> str:
        return f"<pickled {self.type_name}, {self.size:,} bytes: --trust shows it>"


class _Item(NamedTuple):
    """What an instruction would put onto the stack."""

    type_name: str
    start: int
    text: str = ""
    """Of a text what it says, and of a class its name: a class is named by texts."""


def described(data: bytes) -> list[Pickled]:
    """The elements of a pickled list; CorruptCheckpointError if that is not what it is."""
    try:
        return _Reading().elements(data)
    except (ValueError, IndexError, KeyError) as error:
        raise CorruptCheckpointError(f"a column of state is no pickled list: {error}") from error


@dataclass
class _Reading:
    stack: list[_Item] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """How high the stack was at each mark."""
    memo: dict[int, _Item] = field(default_factory=dict)

    def elements(self, data: bytes) -> list[Pickled]:
        found: list[Pickled] = []
        for code, argument, place in pickletools.genops(data):
            assert place is not None, "bytes have places"
            if code.name in ("APPEND", "APPENDS"):
                items = self._taken(code.name == "APPENDS")
                if len(self.stack) == 1:
                    ends = [item.start for item in items[1:]] + [place]
                    pairs = zip(items, ends, strict=True)
                    found += [Pickled(item.type_name, end - item.start) for item, end in pairs]
            else:
                self._follow(code, argument, place)
        return found

    def _follow(self, code: Any, argument: Any, place: int) -> None:
        name = code.name
        if name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument]._replace(start=place))
        elif name == "MARK":
            self.marks.append(len(self.stack))
        else:
            marked = pickletools.markobject in code.stack_before
            # Below the mark may lie what is added to.
            single = [o for o in code.stack_before if o not in _MARKED]
            above = self._taken(True) if marked else []
            used = [self.stack.pop() for _ in single][::-1] + above
            for made in code.stack_after:
                start = used[0].start if used else place
                self.stack.append(_made(code, made, argument, used, start))

    def _taken(self, marked: bool) -> list[_Item]:
        """What lies above the last mark, or the topmost; it is taken off."""
        height = self.marks.pop() if marked else len(self.stack) - 1
        if height < 0:
            raise ValueError("there is nothing on the stack")
        items = self.stack[height:]
        del self.stack[height:]
        return items


_MARKED = (pickletools.markobject, pickletools.stackslice)
_CALLS = ("REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ")
_KEEPS = ("BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "DUP")


def _made(code: Any, made: Any, argument: Any, used: list[_Item], start: int) -> _Item:
    """What an instruction makes of what it takes."""
    if code.name == "STACK_GLOBAL":
        module, name = used
        return _Item("class", start, f"{module.text}.{name.text}")
    if code.name in ("GLOBAL", "INST"):
        named = str(argument).replace(" ", ".")
        return _Item("class" if code.name == "GLOBAL" else named, start, named)
    if code.name in _CALLS:
        return _Item(used[0].text or used[0].type_name, start)
    if code.name in _KEEPS:
        return used[0]
    kind = made.obtype
    type_name = kind.__name__ if isinstance(kind, type) else made.name
    return _Item(type_name, start, argument if isinstance(argument, str) else "")
