"""The programs under `examples/` run as they are and say what they should."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import psutil
from job_parts import is_slot
from patience import PATIENCE, until
from slot_driver import gone

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_the_fraud_counter_trips_for_the_busy_card() -> None:
    alarms = [line.partition("> ")[2] for line in run("fraud_counter.py")]
    assert set(alarms) == {"card-00: more than 10 payments within a minute"}
    # Forty payments a minute of that card for two and a half minutes; when a timer clears the
    # count depends on how often watermarks come.
    assert 1 <= len(alarms) <= 3


def test_rules_take_effect_while_the_job_runs() -> None:
    refusals = [
        re.fullmatch(r"\d> (.+): (\d+) is above (\d+) .*", line)
        for line in run("rules_on_the_side.py")
    ]
    seen = {(found[1], int(found[3])) for found in refusals if found}
    assert all(refusals)
    assert ("tea house", 800) in seen
    assert seen <= {("tea house", 500), ("tea house", 800), ("bakery", 300)}
    assert all(int(found[2]) > int(found[3]) for found in refusals if found)


def test_the_running_average_survives_a_kill(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    (tmp_path / "config.yaml").write_text(f"execution.checkpointing.dir: {checkpoints}\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        arguments = ["127.0.0.1", str(server.getsockname()[1])]
        job = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "running_average.py"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PENSTOCK_CONF_DIR": str(tmp_path)},
        )
        assert job.stdout is not None
        try:
            line, _ = server.accept()
            line.sendall(b"a 10\nnonsense\n")
            assert job.stdout.readline().partition("> ")[2] == "a: 10 after 1\n"
            # Of two more checkpoints the second began when the line had been seen.
            seen = _newest(checkpoints)
            until(lambda: _newest(checkpoints) >= seen + 2, "two more checkpoints")
            slots = _slots(job.pid)
            assert len(slots) == 2
            os.kill(slots[-1], signal.SIGKILL)
            again, _ = server.accept()
            again.sendall(b"a 20\n")
            assert job.stdout.readline().partition("> ")[2] == "a: 15 after 2\n"
            children = [p.pid for p in psutil.Process(job.pid).children(True)]
            job.send_signal(signal.SIGINT)
            job.wait(PATIENCE)
            until(lambda: gone(children), "all is gone")
        finally:
            job.kill()
            job.wait()


def _newest(checkpoints: Path) -> int:
    """The number of the newest checkpoint; 0 if there is none."""
    manifests = checkpoints.glob("*/chk-*/_metadata")
    return max((int(path.parent.name[4:]) for path in manifests), default=0)


def _slots(driver: int) -> list[int]:
    """The slots' processes: the workers, not the daemon that forks them nor the JVM."""
    below = psutil.Process(driver).children(recursive=True)
    workers = [p for p in below if "python" in p.name() and not p.children()]
    return [worker.pid for worker in workers if is_slot(worker.pid)]


def test_the_demo_ends_exact_and_draws_its_result(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "penstock.demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Exact: all 48,000 payments" in ended.stdout
    assert "kill -9 of slot" in ended.stdout
    drawn = xml.dom.minidom.parse(str(tmp_path / "upi-per-minute.svg"))
    assert len(drawn.getElementsByTagName("title")) == 8 * 7
