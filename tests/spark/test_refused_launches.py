"""A job whose slots cannot start, and never will, ends at once though restarts have no end."""

from __future__ import annotations

from typing import Any

_PROGRAM = """
import os

from patience import PATIENCE
from pyspark.sql import SparkSession

from penstock.common import Configuration, JobStatus, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.data_generator import DataGeneratorSource
from penstock.errors import JobFailedError
from patience import until


def start(settings={}):
    configuration = Configuration.from_dict({"penstock.progress": "off", **settings})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.enable_checkpointing(100)
    source = DataGeneratorSource(lambda n: n, rate_per_second=100)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.filter(lambda n: False).print()
    return env.execute_async("refused")


def end(job):
    try:
        job.get_job_execution_result().result(PATIENCE)
    except JobFailedError as error:
        assert error.__cause__.lasting, error.__cause__
        print(error)


def users_session():
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


session = users_session()
job = start()
until(lambda: job.progress().completed_checkpoints > 0, "the job runs")
session.stop()
end(job)

os.environ["PYSPARK_PYTHON"] = "/no/python3"
session = users_session()
end(start())
session.stop()

end(start({"spark.master": "local[2]"}))
"""


def test_what_would_be_met_again_is_not_restarted(run_driver: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    out, _ = run_driver(_PROGRAM)
    stopped, *no_python = out.splitlines()
    assert stopped.startswith("job 'refused' failed: the Spark session was stopped")
    assert len(no_python) == 2, out
    for line in no_python:
        assert (
            "Spark is to run slots with, /no/python3, cannot be executed: set PYSPARK_PYTHON"
            in line
        )
