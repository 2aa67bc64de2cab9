"""A debugger that is attached to a slot: while it looks, the job waits and is not given up."""

from __future__ import annotations

from pathlib import Path

from debugger import Debugger
from patience import PATIENCE, until
from spark_fixtures import RunDriver

from penstock.testing.ports import free_ports

PROGRAM = """
import sys
import threading

from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment

port, told = int(sys.argv[1]), sys.argv[2]


class Look(MapFunction):
    def open(self, runtime_context):
        import debugpy

        debugpy.listen(("127.0.0.1", port))
        debugpy.wait_for_client()

    def map(self, value):
        return value * 10  # the breakpoint


settings = {"heartbeat.timeout": "2 s", "heartbeat.interval": "100 ms", "penstock.progress": "off"}
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
env.from_collection([1, 2]).map(Look()).set_parallelism(1).print()
job = env.execute_async("looked at")


def tick():
    while not ended.wait(0.1):
        with open(told, "a") as file:
            file.write(".")


ended = threading.Event()
threading.Thread(target=tick, daemon=True).start()
job.get_job_execution_result().result()
ended.set()
print("restarts", job.progress().restarts)
"""
LINE = 1 + PROGRAM.splitlines().index("        return value * 10  # the breakpoint")


def test_a_slot_that_stands_at_a_breakpoint_is_not_given_up(
    start_driver: RunDriver, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    told = tmp_path / "told"
    driver = start_driver(PROGRAM, str(port), str(told))
    with Debugger(port) as debugger:
        debugger.attach(tmp_path / "driver.py", LINE)
        thread = debugger.stopped()
        before = len(told.read_text())
        # Twice as long as a slot may be silent: the driver ticks ten times in a second.
        until(lambda: len(told.read_text()) >= before + 40, "time passes")
        debugger.go_on(thread)
        debugger.go_on(debugger.stopped())
        out, err = driver.communicate(timeout=PATIENCE)
    assert out.splitlines() == ["10", "20", "restarts 0"], err
