"""Which keys a delta must hold: all that changed since the newest confirmed checkpoint."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.state.generations import Generations

events = st.lists(
    st.tuples(st.just("change"), st.integers(0, 9))
    | st.just(("cut",))
    | st.tuples(st.just("confirm"), st.integers(0, 5)),
    max_size=40,
)


@given(events)
def test_a_delta_holds_what_changed_since_the_last_confirmed_cut(script):
    generations = Generations()
    log, cuts, confirmed = [], {}, 0
    for event in script:
        match event:
            case ("change", key):
                generations.current.add(key)
                log.append(key)
            case ("cut",):
                checkpoint = len(cuts) + 1
                cuts[checkpoint] = len(log)
                since = cuts.get(confirmed, 0)
                assert generations.cut(checkpoint) == set(log[since:])
            case ("confirm", nth) if nth < len(cuts):
                checkpoint = sorted(cuts)[nth]
                generations.confirm(checkpoint)
                confirmed = max(confirmed, checkpoint)


def test_states_may_hold_on_to_the_current_set():
    generations = Generations()
    held = generations.current
    generations.cut(1)
    held.add("a")
    assert generations.cut(2) == {"a"}


def test_a_delta_is_not_changed_by_what_follows():
    generations = Generations()
    generations.current.add("a")
    delta = generations.cut(1)
    generations.current.add("b")
    assert delta == {"a"}


def test_confirming_a_later_checkpoint_settles_the_earlier_ones():
    generations = Generations()
    generations.current.add("a")
    generations.cut(1)
    generations.current.add("b")
    generations.cut(2)
    generations.confirm(2)
    assert generations.cut(3) == set()


class _Counted:
    """A key that counts how often anybody looks at it."""

    looks = 0

    def __hash__(self) -> int:
        _Counted.looks += 1
        return 7


def test_a_cut_after_many_failed_checkpoints_is_as_quick_as_after_two():
    generations, key = Generations(), _Counted()
    looks = []
    for checkpoint in range(1, 301):
        generations.current.add(key)
        before = _Counted.looks
        assert generations.cut(checkpoint) == {key}
        looks.append(_Counted.looks - before)
    assert set(looks[2:]) == {looks[2]}
