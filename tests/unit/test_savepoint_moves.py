"""One savepoint, many ways on: other parallelisms and backends, side by side, and back in time."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

import pytest
from patience import PATIENCE
from totals_job import KEYS, NUMBERS, after_some, environment, expected, stopped, totals, written

from penstock.common.keys import groups_of_subtask
from penstock.testing.local_environment import LocalEnvironment

BACKEND = "state.backend.type"


@pytest.mark.parametrize("parallelism", [1, 3, 5])
@pytest.mark.parametrize(("home", "away"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_away_to_another_parallelism_and_backend_and_back(
    parallelism: int, home: str, away: str
) -> None:
    with environment() as env:
        path = None
        for width, backend in ((2, home), (parallelism, away), (2, home)):
            job = totals(env, 10**9, width, path, **{BACKEND: backend})
            after_some(job, 1)
            path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
            job.get_job_execution_result().result(PATIENCE)
        counts: dict[str, list[int]] = {}
        for line in written(env):
            key, count = line.split()
            counts.setdefault(key, []).append(int(count))
        assert len(counts) == KEYS
        for seen in counts.values():
            assert sorted(seen) == list(range(1, len(seen) + 1)), "each count once, none left out"


def test_two_jobs_from_one_savepoint_run_side_by_side() -> None:
    with environment() as env:
        path = stopped(env)
        before = written(env)
        jobs = [totals(env, NUMBERS, width, path, out) for width, out in ((1, "a"), (3, "b"))]
        assert len({str(job.get_job_id()) for job in jobs}) == 2
        for job in jobs:
            job.get_job_execution_result().result(PATIENCE)
        assert written(env, "a") == written(env, "b")
        assert sorted(before + written(env, "a")) == expected(NUMBERS)


def test_a_job_goes_back_in_time() -> None:
    with environment() as env:
        job = totals(env, NUMBERS)
        after_some(job, 1)
        older = job.trigger_savepoint(f"{env.storage}/savepoints").result(PATIENCE)
        after_some(job, job.progress().completed_checkpoints + 2)
        newer = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        for path, out in ((newer, "onward"), (older, "again")):
            totals(env, NUMBERS, 2, path, out).get_job_execution_result().result(PATIENCE)
        onward, again = written(env, "onward"), written(env, "again")
        assert sorted(written(env) + onward) == expected(NUMBERS)
        assert len(again) > len(onward), "it begins earlier"
        assert set(again) > set(onward), "and comes to the same end"


@pytest.mark.parametrize(("old", "new"), [(4, 2), (2, 4), (3, 2), (1, 3)])
def test_only_the_files_of_key_groups_of_ones_own_are_read(old: int, new: int) -> None:
    with environment() as env:
        job = totals(env, NUMBERS, old)
        after_some(job, 1)
        path = job.stop_with_savepoint(False, f"{env.storage}/savepoints").result(PATIENCE)
        job.get_job_execution_result().result(PATIENCE)
        reads = _count_reads(env)
        totals(env, NUMBERS, new, path).get_job_execution_result().result(PATIENCE)
        read = {name: count for name, count in reads.items() if "-from-" in name}
        assert len(read) >= min(old, 2)
        for name, count in read.items():
            writer = int(name.split("-")[-2])
            groups = set(groups_of_subtask(writer, 128, old))
            owners = [j for j in range(new) if groups & set(groups_of_subtask(j, 128, new))]
            # Whoever has a key group in it reads it, and nobody else.
            assert count == len(owners), name


def _count_reads(env: LocalEnvironment) -> Counter[str]:
    """How often each segment is read, from now on."""
    reads: Counter[str] = Counter()
    read = env.filesystem.read

    def counting(path: str) -> bytes:
        reads[PurePath(path).name] += 1
        return read(path)

    env.filesystem.read = counting  # type: ignore[method-assign]
    return reads
