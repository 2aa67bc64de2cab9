"""What becomes of each state of an operator: what was saved against what its function declares."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.cli.states import DeclaredState, DeclaredStates
from penstock.errors import IncompatibleStateError
from penstock.inspection.catalog import OperatorInfo, StateInfo
from penstock.state.migration import migration_of_state
from penstock.state.schema import PICKLED

MATCHED, MIGRATED, NEW, DROPPED, INCOMPATIBLE, UNKNOWN = (
    "matched",
    "migrated",
    "new",
    "dropped",
    "incompatible",
    "unknown",
)


@dataclass(frozen=True)
class StateMatch:
    """One state, saved or declared or both."""

    verdict: str
    text: str
    problem: str | None = None
    """Why the job will fail when its function asks for it."""


def match_states(saved: OperatorInfo, declared: DeclaredStates | None) -> list[StateMatch]:
    """Every state that was saved, and then those that only the function has.

    `declared` is None where nobody can tell before the job runs.
    """
    asked = {state.name: state for state in declared.typed} if declared is not None else {}
    matches = [_match(state, asked.pop(state.name, None), declared) for state in saved.states]
    new = [StateMatch(NEW, f"{s.kind} state {s.name!r}: {s.type_info}") for s in asked.values()]
    return matches + new


def _match(
    saved: StateInfo, asked: DeclaredState | None, declared: DeclaredStates | None
) -> StateMatch:
    text = f"{saved.kind} state {saved.name!r}"
    if saved.name.startswith("__"):
        return StateMatch(MATCHED, text)
    if asked is None:
        if declared is None:
            return StateMatch(UNKNOWN, f"{text}: which states it declares is seen when it runs")
        return StateMatch(DROPPED, f"{text}: its function does not ask for it when it is opened")
    if asked.kind != saved.kind:
        problem = (
            f"state {saved.name!r} was saved as {saved.kind} state and is now declared as "
            f"{asked.kind} state; give it a new name or declare it as it was"
        )
        return StateMatch(INCOMPATIBLE, text, problem)
    try:
        migration_of_state(saved.name, saved.type_info, asked.type_info)
    except IncompatibleStateError as error:
        return StateMatch(INCOMPATIBLE, text, error.message)
    if saved.type_info == asked.type_info or PICKLED in (saved.type_info, asked.type_info):
        return StateMatch(MATCHED, f"{text}: {saved.type_info}")
    return StateMatch(MIGRATED, f"{text}: {saved.type_info} becomes {asked.type_info}")
