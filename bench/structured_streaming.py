"""The keyed count on Spark Structured Streaming, set up to do well.

`transformWithState` (Row API) on RocksDB with changelog checkpoints, every micro-batch started as
soon as the one before is done, JSON parsed in the JVM. Records come over a local socket, so that
they are born one by one, as in the Penstock job; every record is one result, as there, and
arrives in a `foreach` writer.
"""

import argparse
import dataclasses
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.common import quiet_stderr, share_with_workers
from bench.data import birth_line
from bench.stamps import Latencies, LatencyFigures, latency_figures

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS: dict[str, str | bool | int | float | None] = {
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
}
# The first batch starts Python workers and RocksDB, and what gathered meanwhile is worked off in
# batches that are too large: on a busy machine that took most of a minute. Counting it would not be
# fair.
WARMUP, SECONDS = 60.0, 30.0


class Count(StatefulProcessor):
    """One running count per merchant, one result per payment."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        stored = self._count.get()
        count = stored[0] if stored else 0
        for row in rows:
            count += 1
            yield Row(merchant=key[0], n=count, birth=row.birth)
        self._count.update((count,))

    def close(self) -> None:
        pass


class LatencyWriter:
    """A `foreach` writer that notes when each record arrived."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, partition_id: int, epoch_id: int) -> bool:
        self._latencies = Latencies(self._folder)
        return True

    def process(self, row: Row) -> None:
        self._latencies.add(row.birth)

    def close(self, error: Exception | None) -> None:
        self._latencies.save()


def feed(server: socket.socket, rate: float, seconds: float) -> None:
    """Send `rate` lines per second to whoever connects."""
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, start + number / rate - time.monotonic()))
        connection.sendall(birth_line(number).encode() + b"\n")


def start_query(spark: SparkSession, port: int, folder: str) -> StreamingQuery:
    lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port)
    schema = "id long, merchant string, amount long, birth long"
    payments = lines.load().select(f.from_json("value", schema).alias("p")).select("p.*")
    counts = payments.groupBy("merchant").transformWithState(
        statefulProcessor=Count(),
        outputStructType="merchant string, n long, birth long",
        outputMode="Update",
        timeMode="None",
    )
    writer = counts.writeStream.foreach(LatencyWriter(folder)).outputMode("update")
    return writer.option("checkpointLocation", f"{folder}/checkpoint").start()


def measure(rate: float = 200, warmup: float = WARMUP, seconds: float = SECONDS) -> LatencyFigures:
    """Run the query in a session of its own and give the latencies after the warm-up."""
    share_with_workers()
    builder = SparkSession.builder.master("local[2]").appName("structured-streaming")
    spark = builder.config(map=SETTINGS).getOrCreate()
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        args = (server, rate, warmup + seconds + 1)
        feeder = threading.Thread(target=feed, args=args, daemon=True)
        feeder.start()
        query = start_query(spark, server.getsockname()[1], folder)
        while feeder.is_alive():
            feeder.join(timeout=1)
            if error := query.exception():
                raise error
        query.processAllAvailable()
        query.stop()
        spark.stop()
        return latency_figures(folder, warmup, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    with quiet_stderr():
        figures = measure(options.rate)
    if options.json:
        print(json.dumps(dataclasses.asdict(figures)))
    else:
        print(f"transformWithState: {figures}")


if __name__ == "__main__":
    main()
