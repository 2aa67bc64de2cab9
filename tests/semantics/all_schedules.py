"""All schedules: a few processes share one storage, and every order of their calls is tried.

A process is a function that does nothing but call its storage, so what it does next depends on the
answers it got and on nothing else. It is run again from its beginning with the answers so far,
until it asks for one that it has not got:

    Explorer([first_driver, second_driver], check_files, check).explore()

A state is what the storage holds and what each process has been answered; a state that was reached
in two ways is looked at once. A process that dies is one whose next call never comes, so what holds
in every state holds whenever processes die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from penstock.common.filesystem import (
    AppendStream,
    Content,
    MemoryFileSystem,
    parts_of,
    register_scheme,
)
from penstock.errors import PenstockError, StorageError

Files = Mapping[str, bytes]
Process = Callable[[str], Any]
"""Gets the address of its storage; what it returns is its result."""


class Call(NamedTuple):
    """A call of the storage."""

    operation: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.operation} {self.arguments[0]}"


class Answer(NamedTuple):
    """What a call returned or raised."""

    value: Any
    missing: bool = False

    def give(self) -> Any:
        if self.missing:
            raise StorageError(f"{self.value} is missing") from FileNotFoundError(self.value)
        return self.value


class Asks(BaseException):
    """A process has come to a call that it has no answer to."""

    def __init__(self, call: Call) -> None:
        self.call = call


class _Replayed:
    """A storage that gives the answers that it has, one after another."""

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self._answers = iter(answers)

    def _call(self, operation: str, *arguments: Any) -> Any:
        answer = next(self._answers, None)
        if answer is None:
            raise Asks(Call(operation, arguments))
        return answer.give()

    def create(self, path: str, content: Content) -> bool:
        return bool(self._call("create", path, b"".join(parts_of(content))))

    def read(self, path: str) -> bytes:
        return self._call("read", path)  # type: ignore[no-any-return]

    def read_part(self, path: str, start: int, size: int) -> bytes:
        return self.read(path)[start : start + size]

    def exists(self, path: str) -> bool:
        return bool(self._call("exists", path))

    def list(self, directory: str) -> list[str]:
        return list(self._call("list", directory))

    def delete(self, path: str) -> None:
        self._call("delete", path)

    def append(self, path: str) -> AppendStream:
        raise NotImplementedError

    def rename(self, source: str, target: str) -> None:
        raise NotImplementedError


class Ended(NamedTuple):
    """A process that has come to its end."""

    result: Any
    error: PenstockError | None


class State(NamedTuple):
    """A moment: what the storage holds, and where each process is, each by a number."""

    files: int
    places: tuple[int, ...]
    disturbed: bool


_storage: dict[str, _Replayed] = {}
register_scheme("replayed", lambda authority: _storage[authority])


class Explorer:
    """Every state that some schedule leads to."""

    def __init__(
        self,
        processes: list[Process],
        check_files: Callable[[Files], None],
        check: Callable[[Files, list[Call | Ended]], None],
        files: Files | None = None,
        others: Callable[[Files], Iterator[tuple[str, Files]]] = lambda files: iter(()),
    ) -> None:
        self._processes = processes
        self._check_files = check_files
        """Sees everything that is ever stored."""
        self._check = check
        """Sees every state in which a process has come to its end."""
        self._others = others
        """What else may happen to the files, once in a schedule, by name."""
        self._files: list[dict[str, bytes]] = []
        self._numbers: dict[tuple[tuple[str, bytes], ...], int] = {}
        self._begin = self._number(dict(files or {}))
        self._steps: dict[tuple[int, Call], tuple[int, Answer]] = {}
        self._places: list[tuple[int, tuple[Answer, ...], Call | Ended]] = []
        self._goes: dict[tuple[int, Answer], int] = {}
        self._looked_at: set[int] = set()
        self.states = 0
        self.ends = 0
        """States in which every process has come to its end."""

    def explore(self) -> None:
        """Look at every state; an AssertionError of `check` gets the schedule that leads there."""
        places = tuple(self._place(number, ()) for number in range(len(self._processes)))
        start = State(self._begin, places, False)
        # Depth first; of every state one way to it, as what happened last and where.
        came: dict[State, tuple[State, str] | None] = {start: None}
        pending = [start]
        while pending:
            state = pending.pop()
            due = [self._places[place][2] for place in state.places]
            try:
                self._look(state.files, due)
            except AssertionError as error:
                raise AssertionError("\n  ".join([str(error), *_way(came, state)])) from error
            for after, what in self._next(state, due):
                if after not in came:
                    came[after] = (state, what)
                    pending.append(after)
        self.states = len(came)

    def _look(self, files: int, due: list[Call | Ended]) -> None:
        if files not in self._looked_at:
            self._looked_at.add(files)
            self._check_files(self._files[files])
        ended = [isinstance(each, Ended) for each in due]
        if any(ended):
            self._check(self._files[files], due)
        self.ends += all(ended)

    def _next(self, state: State, due: list[Call | Ended]) -> Iterator[tuple[State, str]]:
        for number, call in enumerate(due):
            if isinstance(call, Call):
                files, answer = self._carry_out(state.files, call)
                places = list(state.places)
                places[number] = self._go(places[number], answer)
                yield State(files, tuple(places), state.disturbed), f"{number + 1}: {call}"
        if not state.disturbed:
            for name, changed in self._others(self._files[state.files]):
                yield State(self._number(dict(changed)), state.places, True), name

    def _carry_out(self, files: int, call: Call) -> tuple[int, Answer]:
        if (files, call) not in self._steps:
            storage = MemoryFileSystem()
            storage.files = dict(self._files[files])
            answer = _answer(storage, call)
            self._steps[files, call] = self._number(storage.files), answer
        return self._steps[files, call]

    def _number(self, files: dict[str, bytes]) -> int:
        key = tuple(sorted(files.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self._files)
            self._files.append(files)
        return self._numbers[key]

    def _place(self, process: int, answers: tuple[Answer, ...]) -> int:
        """Where a process is after these answers, and what it does next."""
        due = _run(self._processes[process], answers)
        self._places.append((process, answers, due))
        return len(self._places) - 1

    def _go(self, place: int, answer: Answer) -> int:
        if (place, answer) not in self._goes:
            process, answers, _ = self._places[place]
            self._goes[place, answer] = self._place(process, (*answers, answer))
        return self._goes[place, answer]


def _way(came: Mapping[State, tuple[State, str] | None], state: State) -> list[str]:
    way = []
    while (before := came[state]) is not None:
        state, what = before
        way.append(what)
    return way[::-1]


def _run(process: Process, answers: tuple[Answer, ...]) -> Call | Ended:
    _storage["it"] = _Replayed(answers)
    try:
        return Ended(process("replayed://it"), None)
    except Asks as asks:
        return asks.call
    except PenstockError as error:
        return Ended(None, error)
    finally:
        del _storage["it"]


def run_alone(process: Process, files: Files) -> tuple[Ended, dict[str, bytes]]:
    """What becomes of a process that nobody else is in the way of, and what is stored then."""
    storage = MemoryFileSystem()
    storage.files = dict(files)
    answers: tuple[Answer, ...] = ()
    while True:
        due = _run(process, answers)
        if isinstance(due, Ended):
            return due, storage.files
        answers = (*answers, _answer(storage, due))


def _answer(storage: MemoryFileSystem, call: Call) -> Answer:
    try:
        value = getattr(storage, call.operation)(*call.arguments)
    except StorageError:
        return Answer(call.arguments[0], missing=True)
    return Answer(tuple(value) if isinstance(value, list) else value)
