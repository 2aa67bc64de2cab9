"""The Kafka demo: a broker, a producer, the UPI job and a consumer, all real, and a slot killed.

    make demo-kafka

The producer lets a minute of payments happen every two seconds. The job (`upi_per_minute.py`)
counts them per merchant and minute, exactly once; the consumer reads committed records only and
shows each minute as it becomes visible. Half-way one of the job's slots is killed with kill -9. At
the end every count is compared with the one that a plain loop gives.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.live import Live
from rich.table import Table
from upi_per_minute import upi_per_minute

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing.kafka import kafka_broker

MINUTES, PER_MINUTE, SECONDS_PER_MINUTE = 8, 3_000, 2
MINUTE_MS = 60_000
PARTITIONS = 2
MERCHANTS = ["Chai Point", "BigBasket", "IRCTC", "Apollo", "Udupi Cafe"]


def payment(number: int, start_ms: int) -> dict:
    """Payment `number`, up to three seconds out of order; the same every time."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    return {
        "merchant_id": MERCHANTS[(mixed >> 16) % len(MERCHANTS)],
        "paise": 100 + mixed % 250_000,
        "ts_ms": start_ms + number * MINUTE_MS // PER_MINUTE + mixed % 3_000,
    }


def expected(start_ms: int) -> Counter:
    """Payments by minute and merchant, from a plain loop; the last minute never ends."""
    counts: Counter = Counter()
    for number in range(MINUTES * PER_MINUTE):
        one = payment(number, start_ms)
        counts[(one["ts_ms"] - start_ms) // MINUTE_MS, one["merchant_id"]] += 1
    return Counter({place: count for place, count in counts.items() if place[0] < MINUTES - 1})


def produce(servers: str, start_ms: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    pause = SECONDS_PER_MINUTE / PER_MINUTE
    started = time.monotonic()
    for number in range(MINUTES * PER_MINUTE):
        value = json.dumps(payment(number, start_ms))
        producer.produce("payments", value, partition=number % PARTITIONS)
        producer.poll(0)
        time.sleep(max(0, started + number * pause - time.monotonic()))
    producer.flush()


class Seen:
    """What a consumer of committed records has seen: counts by minute and merchant."""

    def __init__(self, servers: str, start_ms: int) -> None:
        settings = {"group.id": "demo", "isolation.level": "read_committed", "log_level": 0}
        self._consumer = Consumer({"bootstrap.servers": servers, **settings})
        self._consumer.assign([TopicPartition("counts", 0, 0)])
        self._start_ms = start_ms
        self.counts: dict = {}
        self.twice = 0

    def look(self) -> bool:
        """Wait a little for something new; whether there was."""
        message = self._consumer.poll(0.2)
        if message is None or message.error() is not None:
            return False
        merchant, count = json.loads(message.value())
        place = ((message.timestamp()[1] - self._start_ms) // MINUTE_MS, merchant)
        self.twice += place in self.counts
        self.counts[place] = count
        return True

    def close(self) -> None:
        self._consumer.close()

    def minutes(self) -> int:
        """How many minutes are complete."""
        return sum(
            all((minute, merchant) in self.counts for merchant in MERCHANTS)
            for minute in range(MINUTES)
        )


def picture(seen: Seen, start_ms: int, note: str) -> Table:
    table = Table(title="UPI payments per minute, exactly once through Kafka", caption=note)
    table.add_column("minute")
    for merchant in MERCHANTS:
        table.add_column(merchant, justify="right")
    for minute in sorted({minute for minute, _ in seen.counts}):
        at = time.strftime("%H:%M", time.localtime(start_ms / 1000 + 60 * minute))
        table.add_row(at, *(str(seen.counts.get((minute, name), "")) for name in MERCHANTS))
    return table


def run(console: Console, servers: str, folder: str, start_ms: int) -> Seen:
    settings = {
        "parallelism.default": 2,
        "execution.checkpointing.interval": "500 ms",
        "execution.checkpointing.dir": f"file://{folder}",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    upi_per_minute(env, servers, "payments", "counts")
    job = env.execute_async("UPI per minute")
    threading.Thread(target=produce, args=(servers, start_ms), daemon=True).start()
    seen, note, shown = Seen(servers, start_ms), "", 0
    everything = expected(start_ms)
    with Live(console=console, auto_refresh=False) as live:
        while len(seen.counts) < len(everything):
            if job.get_job_execution_result().done():
                job.get_job_execution_result().result()
            seen.look()
            if console.is_terminal:
                live.update(picture(seen, start_ms, note), refresh=True)
            elif seen.minutes() > shown:
                shown = seen.minutes()
                console.print(f"{shown} of {MINUTES - 1} minutes visible")
            if not note and seen.minutes() >= MINUTES // 2:
                slot, (host, pid) = max(job.progress().slots.items())
                os.kill(pid, signal.SIGKILL)
                note = f"kill -9 of slot {slot} (process {pid} on {host}); the job goes on"
        # A second result for a minute would come with the next checkpoints.
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            seen.look()
        live.update(picture(seen, start_ms, note), refresh=True)
    seen.close()
    job.cancel().result()
    return seen


def main() -> int:
    console = Console()
    console.print(
        "Starting a Kafka broker (the first time its jars are fetched) and local Spark ..."
    )
    start_ms = (int(time.time()) // 60 - MINUTES) * MINUTE_MS
    with kafka_broker() as broker, tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        broker.create_topic("payments", PARTITIONS)
        broker.create_topic("counts", 1)
        seen = run(console, broker.bootstrap_servers, folder, start_ms)
    if seen.twice or Counter(seen.counts) != expected(start_ms):
        console.print(f"[red]The counts are wrong; {seen.twice} of them came twice.[/red]")
        return 1
    total = sum(seen.counts.values())
    console.print(
        f"[green]Exact:[/green] {total:,} payments in {MINUTES - 1} minutes, each seen once, "
        "although a slot was killed."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
