"""A value that cannot be pickled: what its author reads."""

from __future__ import annotations

import collections

import pytest
from patience import PATIENCE

from penstock.connectors.collection import CollectionSource
from penstock.errors import JobFailedError, ProgramError, RecordError
from penstock.network.frames import dump_element
from penstock.runtime.isolation import isolate
from penstock.testing import local_environment

Called = collections.namedtuple("Otherwise", "a")


class Again:
    pass


stale = Again()


class Again:  # type: ignore[no-redef]
    """Defined anew, as in a notebook's cell that is run twice."""


def local() -> object:
    class Local:
        pass

    return Local()


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (local(), "at the top level of the script"),
        (Called(1), "in a variable of that name"),
        (stale, "make the object again"),
    ],
    ids=["local", "called otherwise", "defined anew"],
)
def test_the_author_reads_what_to_do(value: object, advice: str) -> None:
    with pytest.raises(ProgramError, match=advice):
        CollectionSource([value])
    with pytest.raises(RecordError, match=advice):
        isolate([value])
    with pytest.raises(RecordError, match=advice):
        dump_element([value])


def test_such_a_record_is_no_reason_to_start_the_job_again() -> None:
    with local_environment() as env:
        env.enable_checkpointing(100)  # and with it restarts without end
        env.from_collection([1]).map(lambda n: [local()]).name("Make").rebalance().print()
        job = env.execute_async()
        with pytest.raises(JobFailedError, match="operator 'Make'") as caught:
            job.get_job_execution_result().result(PATIENCE)
    assert caught.value.__cause__.code == "RECORD"
    assert (job.progress().attempt, job.progress().restarts) == (1, 0)
