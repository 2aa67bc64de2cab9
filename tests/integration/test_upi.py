"""The UPI program, as a user runs it, against a real broker, with a slot killed half-way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_parts import is_slot
from kafka_parts import read_all, write
from patience import until

from penstock.testing.kafka import KafkaBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MINUTE_MS, PARTITIONS, PER_MINUTE = 60_000, 2, 400
START_MS = 1_700_000_040_000
MERCHANTS = ["Chai Point", "IRCTC", "Metro"]
assert START_MS % MINUTE_MS == 0


def payments(minute: int) -> list[dict[str, Any]]:
    """The payments of a minute, up to four seconds out of order."""
    chance = random.Random(minute)
    times = [chance.randrange(MINUTE_MS) for _ in range(PER_MINUTE)]
    times.sort(key=lambda at: at + chance.randrange(4_000))
    return [
        {"merchant_id": chance.choice(MERCHANTS), "ts_ms": START_MS + minute * MINUTE_MS + at}
        for at in times
    ]


def per_minute(some: list[dict[str, Any]]) -> Counter[tuple[int, str, int]]:
    """What should come out: the end of the minute, the merchant, the count, each once."""
    counts = Counter((one["ts_ms"] // MINUTE_MS, one["merchant_id"]) for one in some)
    return Counter(
        ((minute + 1) * MINUTE_MS - 1, merchant, count)
        for (minute, merchant), count in counts.items()
    )


def send(broker: KafkaBroker, topic: str, some: list[dict[str, Any]]) -> None:
    write(
        broker,
        topic,
        [
            {"value": json.dumps(one), "partition": number % PARTITIONS}
            for number, one in enumerate(some)
        ],
    )


def seen(broker: KafkaBroker, topic: str) -> Counter[tuple[int, str, int]]:
    return Counter(
        (message.timestamp()[1], *json.loads(message.value()))
        for message in read_all(broker, topic)
    )


def test_every_minute_is_counted_once_though_a_slot_is_killed(
    broker: KafkaBroker, topic: Callable[..., str], tmp_path: Path
) -> None:
    lines, counts = topic(PARTITIONS), topic(PARTITIONS)
    minutes = [payments(minute) for minute in range(8)]
    arguments = [broker.bootstrap_servers, lines, counts, str(tmp_path / "checkpoints"), "300"]
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "upi_per_minute.py"), *arguments],
            stdout=log,
            stderr=log,
        )
    try:
        # A minute is over when both partitions have a payment of the next.
        send(broker, lines, [one for minute in minutes[:3] for one in minute])
        done = per_minute([one for minute in minutes[:2] for one in minute])
        # A session and the first checkpoints take their time on a machine that has others to serve.
        until(lambda: alive(job, tmp_path) and seen(broker, counts) >= done, "the first minutes")
        # Half a minute is in the state, and half of it comes while a slot is away.
        send(broker, lines, minutes[3][: PER_MINUTE // 2])
        os.kill(slots(job.pid)[0], signal.SIGKILL)
        send(broker, lines, minutes[3][PER_MINUTE // 2 :])
        send(broker, lines, [one for minute in minutes[4:] for one in minute])
        expected = per_minute([one for minute in minutes[:-1] for one in minute])
        until(lambda: alive(job, tmp_path) and seen(broker, counts) >= expected, "all minutes")
        job.send_signal(signal.SIGINT)
        job.wait(30)
        assert seen(broker, counts) == expected
    finally:
        job.kill()
        job.wait()


@pytest.mark.full("Kafka")
def test_the_demo_ends_by_itself_and_is_exact() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo_kafka.py")],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exact: " in done.stdout and "kill -9" in done.stdout


def alive(job: subprocess.Popen[bytes], folder: Path) -> bool:
    assert job.poll() is None, (folder / "log").read_text()
    return True


def slots(driver: int) -> list[int]:
    below = psutil.Process(driver).children(recursive=True)
    workers = [p for p in below if "python" in p.name() and not p.children()]
    return [worker.pid for worker in workers if is_slot(worker.pid)]
