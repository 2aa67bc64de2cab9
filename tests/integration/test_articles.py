"""A program as articles print it: PyFlink's imports, names of servers that are not here.

Configuration alone leads it to the servers of the test: `penstock.kafka.servers` to the broker, and
what any AWS client reads to S3.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import until
from test_upi import PARTITIONS, PER_MINUTE, alive, payments, per_minute, seen, send, slots

from penstock.testing.kafka import KafkaBroker

ARTICLES = Path(__file__).parent / "articles"
BUCKET = "article-checkpoints"


@pytest.mark.full("Kafka")
@pytest.mark.parametrize("imports", ["pyflink", "penstock"])
def test_counts_are_seen_once_though_a_slot_is_killed(
    broker: KafkaBroker, bucket: str, tmp_path: Path, imports: str
) -> None:
    import s3fs

    store = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    if not store.exists(BUCKET):
        store.mkdir(BUCKET)
    lines, counts = f"{imports}-payments", f"{imports}-counts"
    for topic in (lines, counts):
        broker.create_topic(topic, PARTITIONS)
    for file in ARTICLES.glob("*.py"):
        text = file.read_text().replace("article-payments", lines).replace("article-counts", counts)
        (tmp_path / file.name).write_text(text.replace("from pyflink", f"from {imports}"))
    settings = [
        f"penstock.kafka.servers=kafka.payments.internal:9092={broker.bootstrap_servers}",
        # The program says 30 s, which is long for a test.
        "execution.checkpointing.interval=500 ms",
        "parallelism.default=2",
    ]
    options = [part for setting in settings for part in ("-D", setting)]
    options += ["--pyflink"] if imports == "pyflink" else []
    minutes = [payments(minute) for minute in range(8)]
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            [sys.executable, "-m", "penstock", "run", *options, "-py", "upi_counts.py"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    try:
        send(broker, lines, [one for minute in minutes[:3] for one in minute])
        done = per_minute([one for minute in minutes[:2] for one in minute])
        until(lambda: alive(job, tmp_path) and seen(broker, counts) >= done, "the first minutes")
        assert store.find(f"{BUCKET}/upi"), "checkpoints are on S3"
        send(broker, lines, minutes[3][: PER_MINUTE // 2])
        os.kill(slots(job.pid)[0], signal.SIGKILL)
        send(broker, lines, minutes[3][PER_MINUTE // 2 :])
        send(broker, lines, [one for minute in minutes[4:] for one in minute])
        expected = per_minute([one for minute in minutes[:-1] for one in minute])
        until(lambda: alive(job, tmp_path) and seen(broker, counts) >= expected, "all minutes")
        job.send_signal(signal.SIGINT)
        job.wait(60)
        assert seen(broker, counts) == expected
    finally:
        job.kill()
        job.wait()
