"""Declared types hold: values are converted to them, and the first that does not fit is shown."""

from __future__ import annotations

import pytest

from penstock.common import Row, Types
from penstock.connectors.client_sinks import CollectSink


def collected(cluster, build, **settings):
    running = cluster(lambda env: build(env).sink_to(CollectSink()), **settings).run()
    assert not running.failures()
    return running.collected()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_a_function_gives_is_converted(cluster, parallelism):
    def build(env):
        numbers = env.from_collection([2, 1])
        return numbers.map(lambda n: n, Types.DOUBLE()).rebalance().map(lambda n: n)

    found = sorted(collected(cluster, build, parallelism=parallelism))
    assert found == [1.0, 2.0] and {type(number) for number in found} == {float}


def test_a_source_has_a_type_too(cluster):
    row = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])

    def build(env):
        return env.from_collection([("ann", 30)], row).map(lambda person: person.name)

    assert collected(cluster, build) == ["ann"]


def test_rows_are_keys_and_records(cluster):
    row = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.LONG()])

    def build(env):
        rows = env.from_collection([Row(name="a", n=1), Row(name="a", n=2)], row)
        return rows.key_by(lambda r: r["name"]).sum("n").map(lambda r: r["n"])

    assert collected(cluster, build) == [1, 3]


@pytest.mark.parametrize("redact", [False, True])
def test_the_first_record_that_does_not_fit_is_shown(cluster, redact):
    def build(env):
        numbers = env.from_collection([1, 2, 3])
        shaped = numbers.map(lambda n: n if n < 2 else f"secret {n}", Types.LONG()).name("Shape")
        shaped.sink_to(CollectSink())

    [error] = cluster(build, redact_records=redact).run().failures()
    assert error.code == "TYPE_MISMATCH"
    assert "expected LONG, got str" in str(error) and "operator 'Shape'" in str(error)
    assert ("secret 2" in str(error)) is not redact
    assert "secret 3" not in str(error)
