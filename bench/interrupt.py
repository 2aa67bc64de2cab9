"""Ctrl-C: how long it takes until the driver has ended, and until nothing of it is left.

Three drivers, each in a process group of its own that gets SIGINT once both tasks run, as from a
terminal: a Penstock job whose records come and go, a Penstock job that is stuck in user code, and
PySpark alone with two tasks that sleep. Five rounds in turn, medians.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.common import result_row, share_with_workers, start_module
from bench.data import birth_line
from penstock.common import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource

ROUNDS = 5
TASKS = 2
DRIVERS = ("flowing", "stuck", "bare")
LONG = 600.0


@dataclass(frozen=True)
class Ending:
    """Seconds from the interrupt to the driver's exit, and to that of the last it had started."""

    exit: float
    gone: float


# --- the drivers ------------------------------------------------------------------------------


class Enter:
    """Notes which process runs it, and takes its time."""

    def __init__(self, folder: str, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds

    def __call__(self, value: object) -> object:
        Path(self._folder, str(os.getpid())).touch()
        time.sleep(self._seconds)
        return value


def run_penstock(folder: str, seconds: float) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(TASKS)
    source = DataGeneratorSource(birth_line, None, 200)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
    stream.map(Enter(folder, seconds)).filter(lambda line: False).print()
    env.execute("interrupt")


def run_bare(folder: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(f"local[{TASKS}]").getOrCreate()

    def body(numbers: Iterable[int]) -> Iterable[object]:
        return map(Enter(folder, LONG), numbers)

    spark.sparkContext.parallelize(range(TASKS), TASKS).mapPartitions(body).collect()


def drive(driver: str, folder: str) -> None:
    share_with_workers()
    if driver == "bare":
        run_bare(folder)
    else:
        run_penstock(folder, LONG if driver == "stuck" else 0)


# --- measuring --------------------------------------------------------------------------------


def interrupted(driver: str) -> Ending:
    """Start a driver, interrupt it when its tasks run, and see it go."""
    with tempfile.TemporaryDirectory() as folder:
        process = start_module(
            "bench.interrupt",
            *(driver, folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return _interrupt(process, folder)
        finally:
            process.kill()  # if it has not come to its end


def _interrupt(process: subprocess.Popen[str], folder: str) -> Ending:
    while len(list(Path(folder).iterdir())) < TASKS:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with code {process.returncode}")
        time.sleep(0.02)
    time.sleep(1)
    below = psutil.Process(process.pid).children(recursive=True)
    started = time.perf_counter()
    os.killpg(process.pid, signal.SIGINT)
    process.wait()
    exited = time.perf_counter() - started
    while any(map(_runs, below)):
        time.sleep(0.005)
    return Ending(exited, time.perf_counter() - started)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def main() -> None:
    endings: dict[str, list[Ending]] = {driver: [] for driver in DRIVERS}
    for number in range(ROUNDS):
        for driver in DRIVERS if number % 2 == 0 else reversed(DRIVERS):
            ending = interrupted(driver)
            endings[driver].append(ending)
            print(f"round {number + 1}: {driver} {ending}", file=sys.stderr)
    exits = {name: statistics.median(one.exit for one in all_) for name, all_ in endings.items()}
    gone = {name: statistics.median(one.gone for one in all_) for name, all_ in endings.items()}
    details = "; ".join(
        f"{name}: exit after {exits[name]:.2f} s, nothing left after {gone[name]:.2f} s"
        for name in DRIVERS
    )
    print(details)
    figure = ", ".join(
        f"{name} {gone[name] / gone['bare']:.2f} x" for name in DRIVERS if name != "bare"
    )
    print(result_row("interrupt", f"{figure} bare PySpark's", details))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        drive(*sys.argv[1:])
    else:
        main()
