"""The classes of the script itself, in the slots.

Pickle writes an object as the module of its class and its name there. A class of the script that a
user runs is in the module `__main__`, and so is a class of a notebook's cell. In a slot's process
`__main__` is another module, of Spark. So the classes of the script travel with the program, once,
and while a slot runs, a module with these classes has the name `__main__`. What is pickled per
record is the name.

A class that the functions of the program mention travels with them, in one pickle, so a function
and a record have the same class. The others may still be needed: the elements of a collection
are made in the driver, and restored state was made by an earlier run. Each of those is pickled by
itself, and made in a slot when its name is first met.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from penstock.errors import ProgramError

_MAIN = "__main__"
_LARGEST = 4 << 20
"""Bytes of a class that no function mentions: one that drags a data set along stays behind."""


# --- in the driver ----------------------------------------------------------------------------


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if isinstance(obj, type) and obj.__module__ == _MAIN:
            # Left out by cloudpickle, and it is what pickle finds a class inside another by.
            state, _ = reduced[2]
            state["__qualname__"] = obj.__qualname__
        return reduced


class ProgramPickler(_Pickler):
    """Pickles a program, and behind it what `main`, the script's module, calls by a name."""

    def __init__(self, file: io.BytesIO, main: ModuleType) -> None:
        super().__init__(file)
        self._main = main
        self._met: dict[str, Any] = {}

    def reducer_override(self, obj: Any) -> Any:
        """Note what of the script is come across, and pickle it as ever."""
        if isinstance(obj, (type, FunctionType)) and _is_named(self._main, obj):
            self._met[obj.__qualname__] = obj
        return super().reducer_override(obj)

    def dump_main(self) -> None:
        """To be called after the program was dumped: what it mentions, then the other classes."""
        classes = {n: each for n, each in vars(self._main).items() if isinstance(each, type)}
        met = {id(each) for each in self._met.values()}
        # By all their names: state may have been saved under a former one.
        found = {**self._met, **{n: each for n, each in classes.items() if id(each) in met}}
        self.dump(found)
        self.dump({n: _alone(each) for n, each in classes.items() if n not in found})


def _is_named(main: ModuleType, obj: type | FunctionType) -> bool:
    """Whether `obj` is what the script's module has under its name."""
    return obj.__module__ == _MAIN and vars(main).get(obj.__qualname__) is obj


def _alone(value: type) -> bytes | str:
    """A class, pickled; or why it cannot be sent."""
    written = _Limited()
    try:
        _Pickler(written).dump(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return written.getvalue()


class _Limited(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > _LARGEST:
            raise ValueError(f"it refers to more than {_LARGEST >> 20} MiB of data")
        return super().write(data)


# --- in a slot --------------------------------------------------------------------------------


class MainModule:
    """Stands for the script's module in a slot's process."""

    def __init__(self) -> None:
        self._module = ModuleType(_MAIN)
        # For every record pickle asks whether the module is still being imported. A module that
        # does not say so takes longer: a quarter of the time of a small record.
        spec = self._module.__spec__ = ModuleSpec(_MAIN, None)
        vars(spec)["_initializing"] = False
        self._names: set[str] = set()
        self._others: dict[str, bytes | str] = {}
        vars(self._module)["__getattr__"] = self._find

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        """Within the block `__main__` is the script's module; the process serves others later."""
        before = sys.modules[_MAIN]
        sys.modules[_MAIN] = self._module
        try:
            yield
        finally:
            sys.modules[_MAIN] = before

    def load(self, program: bytes) -> Any:
        """The program; and its classes, which are made anew, are found by their names."""
        unpickler = pickle.Unpickler(io.BytesIO(program))
        graph = unpickler.load()
        met, self._others = unpickler.load(), unpickler.load()
        space = vars(self._module)
        for name in self._names:
            del space[name]
        space.update(met)
        self._names = set(met)
        return graph

    def _find(self, name: str) -> Any:
        """A class that no function mentions, when it is asked for."""
        pickled = self._others.get(name)
        if pickled is None:
            raise AttributeError(f"the program has no {name!r}")
        if isinstance(pickled, str):
            raise ProgramError(
                f"objects of the class {name} are needed and it cannot be sent to the slots: "
                f"{pickled}; put it into a module of its own"
            )
        found = cloudpickle.loads(pickled)
        vars(self._module)[name] = found
        self._names.add(name)
        return found
