"""A driver that is reached from another terminal: who may, and what comes back."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from patience import PATIENCE

from penstock.checkpoint.savepoints import open_snapshot
from penstock.cli.main import penstock, run
from penstock.common import Configuration, WatermarkStrategy
from penstock.control import drivers
from penstock.control.client import ask, find_job, find_jobs
from penstock.control.drivers import Driver
from penstock.control.server import ControlServer
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.controlled import commands
from penstock.datastream.job_client import RunningJob
from penstock.errors import ControlError
from penstock.testing import local_environment


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CONTROL_DIR", str(tmp_path / "drivers"))
    return tmp_path / "drivers"


@pytest.fixture
def running() -> Iterator[RunningJob]:
    """A job without an end that other terminals can reach."""
    settings = Configuration.from_dict({"execution.checkpointing.interval": "10 ms"})
    with local_environment(seed=1, configuration=settings) as env:
        source = NumberSequenceSource(0, 10**12)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        sums = stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sums")
        sums.filter(lambda _: False).print()
        job = env.execute_async("endless")
        while not sum(m.records_in for s, m in job.progress().metrics.items() if s.vertex == 1):
            time.sleep(0.01)  # without a record there is no state to find in a savepoint
        server = ControlServer(commands(lambda: {r.job.id: r for r in env._runners}))
        server.announce()
        yield job
        server.close()


def test_only_the_user_can_read_the_token(running: RunningJob, folder: Path) -> None:
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads(path.read_text())["pid"] == os.getpid()


def test_without_the_token_nothing_is_told(running: RunningJob) -> None:
    [driver] = drivers.drivers()
    with pytest.raises(ControlError, match="the token is wrong"):
        ask(Driver(driver.pid, driver.port, "guessed"), "list")
    assert not running.get_job_execution_result().done()


def test_what_a_dead_driver_left_is_removed(folder: Path) -> None:
    process = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(process, 0)
    drivers.announce(Driver(process, 1, "token"))
    assert drivers.drivers() == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", [{"host": "other"}, {"container": "other"}])
def test_a_driver_elsewhere_is_left_alone(folder: Path, place: dict[str, str]) -> None:
    process = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(process, 0)
    drivers.announce(Driver(process, 1, "token", **place))
    listed = CliRunner().invoke(penstock, ["list"]).output
    host = place.get("host", drivers.this_host())
    assert listed == (
        f"no job runs\non {host}: a driver, process {process}; its jobs are listed there\n"
    )
    assert len(list(folder.iterdir())) == 1
    with pytest.raises(ControlError, match=f"drivers on {host} may have it"):
        find_job("numbers")


def test_what_a_driver_left_before_this_host_was_started_anew_is_removed(folder: Path) -> None:
    drivers.announce(Driver(os.getpid(), 1, "token", boot="an earlier one"))
    assert drivers.drivers() == []
    assert list(folder.iterdir()) == []


def test_drivers_of_two_hosts_with_one_process_id(folder: Path) -> None:
    for host in ("one", "two"):
        drivers.announce(Driver(7, 1, "token", host))
    assert {driver.host for driver in drivers.drivers()} == {"one", "two"}


def test_a_driver_that_does_not_answer_is_passed_over() -> None:
    drivers.announce(Driver(os.getpid(), 1, "token"))
    assert find_jobs() == []
    [driver] = drivers.drivers()
    with pytest.raises(ControlError, match="does not answer"):
        ask(driver, "list")


def test_a_job_is_found_by_its_id_a_part_of_it_or_its_name(running: RunningJob) -> None:
    job_id = str(running.get_job_id())
    assert {find_job(name).id for name in (job_id, job_id[:8], "endless")} == {job_id}
    with pytest.raises(ControlError, match="no job other runs here"):
        find_job("other")


def test_a_savepoint_from_the_command_line(running: RunningJob, tmp_path: Path) -> None:
    told = CliRunner().invoke(penstock, ["savepoint", "endless", str(tmp_path / "savepoints")])
    path = told.output.strip()
    assert open_snapshot(path).metadata.job_id == str(running.get_job_id())
    listed = CliRunner().invoke(penstock, ["state", "ls", path]).output
    assert "Reduce (uid sums): " in listed and "value state '__reduced'" in listed
    assert "source positions" in listed
    assert run(["savepoint", "-d", path]) == 0
    assert not Path(path).exists()


def test_a_job_is_stopped_and_listed(running: RunningJob, tmp_path: Path) -> None:
    listed = CliRunner().invoke(penstock, ["list"]).output
    assert str(running.get_job_id()) in listed and "RUNNING" in listed
    told = CliRunner().invoke(penstock, ["stop", "-p", str(tmp_path / "savepoints"), "endless"])
    assert open_snapshot(told.output.strip()).metadata.vertices
    running.get_job_execution_result().result(PATIENCE)
    assert CliRunner().invoke(penstock, ["list"]).output == "no job runs\n"
    assert "FINISHED" in CliRunner().invoke(penstock, ["list", "--all"]).output


def test_a_job_is_rescaled(running: RunningJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rescale", "endless", "-p", "3"]) == 0
    assert {vertex.parallelism for vertex in running.graph.vertices} == {3}
    assert run(["rescale", "endless", "-p", "999"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "999 is not between 1 and its max parallelism 128" in line
    assert run(["rescale", "endless", "-p", "0"]) == 2
    assert not running.get_job_execution_result().done()


def test_a_job_is_cancelled(running: RunningJob) -> None:
    assert run(["cancel", "endless"]) == 0
    assert running.get_job_status().result(PATIENCE).name == "CANCELED"


def test_what_cannot_be_done_is_one_line_on_stderr(
    running: RunningJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["savepoint", "endless"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("penstock: there is no directory for savepoints")
    assert run(["savepoint", "-d", "/nowhere/savepoint-x"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "there is no savepoint or checkpoint" in line
    assert run(["savepoint"]) == 2


PROGRAM = """
from penstock.common import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
source = NumberSequenceSource(0, 10**12)
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
sums = stream.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("UID")
sums.filter(lambda _: False).print()
env.execute()
"""


def test_a_dry_run_says_what_is_matched_new_and_dropped(
    running: RunningJob, tmp_path: Path
) -> None:
    path = running.trigger_savepoint(str(tmp_path / "savepoints")).result(PATIENCE)
    same, other = tmp_path / "same.py", tmp_path / "other.py"
    same.write_text(PROGRAM.replace("UID", "sums"))
    other.write_text(PROGRAM.replace("UID", "totals"))

    def dry_run(*arguments: str) -> tuple[int, str]:
        told = CliRunner().invoke(penstock, ["run", "--dry-run", *arguments], standalone_mode=False)
        return told.return_value, told.output

    code, output = dry_run("-s", path, str(same))
    assert code == 0 and output.endswith("the job would start\n")
    assert "matched      Reduce (uid sums)\n" in output
    code, output = dry_run("-s", path, str(other))
    assert code == 1
    assert "new          Reduce (uid totals)\n" in output
    assert "dropped      Reduce (uid sums)\n" in output
    assert "the job would not start: " in output and "uid sums" in output.splitlines()[-1]
    assert dry_run("-n", "-s", path, str(other))[0] == 0
    code, output = dry_run("-D", "pipeline.max-parallelism=64", "-s", path, str(same))
    assert code == 1 and "incompatible Reduce (uid sums)\n" in output
