"""Sources that find their input while the job runs, on real Spark, with a slot that is killed."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from job_parts import environment, running, visible_lines
from patience import PATIENCE, until

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.file_system import (
    Encoder,
    FileSink,
    FileSource,
    StreamFormat,
)

pytestmark = pytest.mark.usefixtures("session")


def test_a_socket_is_read_until_the_server_closes() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener:
            connection.sendall(b"".join(b"%d\r\n" % n for n in range(10_000)))

    threading.Thread(target=serve, daemon=True).start()
    env = environment(2)
    lines = env.socket_text_stream("127.0.0.1", listener.getsockname()[1])
    keyed = lines.map(int).key_by(lambda n: n % 3).map(lambda n: n + 1)
    with keyed.execute_and_collect() as results:
        assert sorted(results) == list(range(1, 10_001))


def test_a_watched_folder_after_a_slot_was_killed(tmp_path: Path) -> None:
    watched, out = tmp_path / "in", tmp_path / "out"
    watched.mkdir()

    def put(file: int) -> None:
        path = watched / f".f{file}"
        path.write_text("".join(f'{{"n": {file * 100 + n}}}\n' for n in range(100)))
        os.utime(path, (1_000_000, 1_000_000))
        path.rename(watched / f"f{file}")

    env = environment(2, tmp_path / "checkpoints")
    builder = FileSource.for_record_stream_format(StreamFormat.json_line_format(), str(watched))
    source = builder.monitor_continuously(0.2).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "watched")
    numbers = rows.map(lambda row: row["n"])
    numbers.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build())
    for file in range(5):
        put(file)
    job = env.execute_async()
    try:
        before = running(job, checkpoints=1)
        os.kill(before.slots[1][1], signal.SIGKILL)
        for file in range(5, 10):
            put(file)
        until(lambda: out.exists() and len(visible_lines(out)) >= 1000, "all files are read")
        put(10)
        until(lambda: len(visible_lines(out)) >= 1100, "a file that came later is read")
        assert job.progress().restarts == 1  # type: ignore[attr-defined]
    finally:
        job.cancel().result(timeout=PATIENCE)
    assert sorted(map(int, visible_lines(out))) == list(range(1100))
