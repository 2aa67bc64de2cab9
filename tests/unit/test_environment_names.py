"""Names of the environment that do their work elsewhere: each has the effect that it says."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from penstock.common import Configuration, ExecutionConfig
from penstock.common.packing import installed, pack
from penstock.common.shipped_files import PackedFile, Role, ShippedFile
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.client_sinks import CollectSink
from penstock.connectors.collection import CollectionSource
from penstock.connectors.sink import Sink, SinkWriter
from penstock.datastream import (
    MapFunction,
    MemorySize,
    SlotSharingGroup,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.datastream.connectors.base import StreamTransformer, SupportsPreprocessing
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.data_stream import CachedDataStream, KeyedStream
from penstock.errors import (
    InvalidParallelismError,
    JavaOnlyError,
    JobFailedError,
    ProgramError,
)
from penstock.runtime.keyed_operator import RuntimeKeyedFunction
from penstock.testing import local_environment

# --- slot sharing groups ----------------------------------------------------------------------


def test_a_group_is_known_by_its_name():
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(1).build()
    assert (group.get_name(), group.get_cpu_cores()) == ("heavy", 1.0)
    env = StreamExecutionEnvironment().register_slot_sharing_group(group)
    stream = env.from_collection([1]).map(str).slot_sharing_group(group)
    stream.print().slot_sharing_group("light")
    groups = {node.name: node.slot_sharing_group for node in env._program.nodes.values()}
    assert groups == {"Source: Collection Source": "default", "Map": "heavy", "Print": "light"}


def test_a_group_may_say_what_its_slots_take():
    size = MemorySize.of_mebi_bytes(3)
    builder = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(3)
    group = builder.set_task_off_heap_memory_mb(3).set_managed_memory_mb(3).build()
    assert group.get_cpu_cores() == 2.0
    assert group.get_task_heap_memory() == group.get_task_off_heap_memory() == size
    assert group.get_managed_memory() == size and group.get_external_resources() == {}
    with pytest.raises(ProgramError, match="runs nothing"):
        SlotSharingGroup.builder("heavy").set_cpu_cores(0)
    with pytest.raises(ProgramError, match=r"spark\.task\.resource\.gpu\.amount"):
        SlotSharingGroup.builder("heavy").set_external_resource("gpu", 1)


@pytest.mark.parametrize("registered", [True, False])
def test_slots_of_a_group_have_its_managed_memory(registered, monkeypatch):
    given = {}

    def keyed(self, node, info, clock, settings, state):
        given[node.name] = state.managed
        made(self, node, info, clock, settings, state)

    made = RuntimeKeyedFunction.__init__
    monkeypatch.setattr(RuntimeKeyedFunction, "__init__", keyed)
    group = SlotSharingGroup.builder("heavy").set_managed_memory_mb(3).build()
    with local_environment() as env:
        if registered:
            env.register_slot_sharing_group(group)
        stream = env.from_collection([1, 2]).key_by(lambda n: n).reduce(max).name("light")
        stream.slot_sharing_group("default")
        heavy = stream.key_by(lambda n: n).reduce(max).name("heavy")
        heavy.slot_sharing_group("heavy" if registered else group)
        assert sorted(heavy.execute_and_collect()) == [1, 2]
    assert given == {"light": 256 << 20, "heavy": 3 << 20}


def test_sizes_of_memory():
    size = MemorySize.of_mebi_bytes(3 * 1024 * 1024 + 1)
    assert size.get_bytes() == (3 << 40) + (1 << 20)
    assert (size.get_tebi_bytes(), size.get_gibi_bytes()) == (3, 3 << 10)
    assert (size.get_mebi_bytes(), size.get_kibi_bytes()) == ((3 << 20) + 1, (3 << 30) + 1024)
    assert MemorySize(1) < MemorySize(2) and MemorySize() == MemorySize(0)
    for wrong in (-1, 1.5, "1"):
        with pytest.raises(ProgramError):
            MemorySize(wrong)


# --- settings ---------------------------------------------------------------------------------


def test_what_has_no_effect_here_can_only_be_set_to_that():
    config = ExecutionConfig(Configuration())
    assert config.set_latency_tracking_interval(0).get_latency_tracking_interval() == 0
    for refused in (
        lambda: config.set_latency_tracking_interval(100),
        lambda: config.set_task_cancellation_timeout(0),
        lambda: config.set_global_job_parameters("a"),
    ):
        with pytest.raises(ProgramError):
            refused()
    with pytest.raises(JavaOnlyError, match="set_task_cancellation_timeout"):
        config.set_task_cancellation_interval(5)


def test_the_cancellation_timeout_reaches_the_job():
    env = StreamExecutionEnvironment()
    env.get_config().set_task_cancellation_timeout(4000)
    env.from_collection([1]).print()
    assert env._assemble(None).timeouts.stop == 12_000


def test_parallelism_of_environments_made_later(monkeypatch):
    monkeypatch.setattr(StreamExecutionEnvironment, "_local_defaults", {})
    assert StreamExecutionEnvironment.get_default_local_parallelism() == 1
    StreamExecutionEnvironment.set_default_local_parallelism(3)
    env = StreamExecutionEnvironment()
    assert StreamExecutionEnvironment.get_default_local_parallelism() == 3
    assert env.get_parallelism() == 3 and env.set_parallelism(2).get_parallelism() == 2
    with pytest.raises(InvalidParallelismError):
        StreamExecutionEnvironment.set_default_local_parallelism(0)


def test_checkpoint_storages_tell_what_holds():
    memory, files = JobManagerCheckpointStorage(), FileSystemCheckpointStorage("/data", 0)
    assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5 << 20
    assert memory.get_max_state_size() == 5 << 20 and memory.get_savepoint_path() is None
    assert JobManagerCheckpointStorage(max_state_size=7).get_max_state_size() == 7
    assert files.get_min_file_size_threshold() == files.get_write_buffer_size() == 0
    with pytest.raises(ProgramError, match="write_buffer_size means nothing here"):
        FileSystemCheckpointStorage("/data", write_buffer_size=4096)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("file:///data/checkpoints/", "file:///data/checkpoints"),
        ("s3://bucket/a//", "s3://bucket/a"),
        ("/data/", "/data"),
        ("s3://bucket/", "s3://bucket/"),
        ("file:///", "file:///"),
        ("/", "/"),
    ],
)
def test_a_checkpoint_path_has_no_final_slash(given, path):
    assert FileSystemCheckpointStorage(given).get_checkpoint_path() == path


def test_a_changelog_that_nobody_asked_for_is_none():
    env = StreamExecutionEnvironment()
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False


def test_execution_configs_are_compared_by_what_they_say():
    first, second = (StreamExecutionEnvironment().get_config() for _ in range(2))
    assert first == second and hash(first) == hash(second)
    first.set_parallelism(3)
    assert first != second
    second.set_parallelism(3).set_global_job_parameters({"a": "b"})
    assert first != second
    first.set_global_job_parameters({"a": "b"})
    assert first == second and hash(first) == hash(second)


def test_java_wrappers_say_what_to_use():
    with pytest.raises(JavaOnlyError, match="from_source"):
        SourceFunction("org.example.Source")


def test_a_source_can_be_added_without_watermarks():
    with local_environment() as env:
        stream = env.add_source(NumberSequenceSource(1, 3))
        assert stream.get_name() == "Source: Custom Source"
        assert sorted(stream.execute_and_collect()) == [1, 2, 3]
        with pytest.raises(ProgramError, match="FlinkKafkaConsumer or another Source, not a list"):
            env.add_source([1, 2, 3])


def test_every_kind_of_accumulation_is_one_of_its_kinds():
    kinds = KeyedStream.AccumulateType
    results = {kind: list(accumulated(kind)) for kind in kinds}
    assert results == {
        kinds.SUM: [(1, 5, "a"), (1, 8, "a")],
        kinds.MIN: [(1, 5, "a"), (1, 3, "a")],
        kinds.MAX: [(1, 5, "a"), (1, 5, "a")],
        kinds.MIN_BY: [(1, 5, "a"), (1, 3, "b")],
        kinds.MAX_BY: [(1, 5, "a"), (1, 5, "a")],
    }


def accumulated(kind):
    with local_environment() as env:
        keyed = env.from_collection([(1, 5, "a"), (1, 3, "b")]).key_by(lambda r: r[0])
        yield from getattr(keyed, kind.name.lower())(1).execute_and_collect()


# --- files ------------------------------------------------------------------------------------


class Look(MapFunction):
    def open(self, runtime_context):
        import shipped_by_a_test

        cache = runtime_context.get_distributed_cache()
        self.found = (
            shipped_by_a_test.NAME,
            Path(cache.get_file("file")).read_text(),
            sorted(path.name for path in Path(cache.get_file("folder")).iterdir()),
            Path("data/inside.txt").read_text(),
            runtime_context.get_job_parameter("a", "none"),
            runtime_context.get_job_parameter("b", "none"),
        )

    def map(self, value):
        return self.found


def test_what_is_shipped_is_there_while_the_job_runs(tmp_path):
    (tmp_path / "shipped_by_a_test.py").write_text("NAME = 'module'")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("x")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("inside.txt", "unpacked")
    path, cwd = list(sys.path), Path.cwd()
    with local_environment() as env:
        env.add_python_file(str(tmp_path / "shipped_by_a_test.py"))
        env.add_python_archive(str(tmp_path / "a.zip"), "data")
        env.register_cached_file(f"file://{tmp_path}/folder/x.txt", "file")
        env.register_cached_file(str(tmp_path / "folder"), "folder")
        env.get_config().set_global_job_parameters({"a": 1})
        [found] = env.from_collection([1]).map(Look()).execute_and_collect()
    assert found == ("module", "x", ["x.txt"], "unpacked", "1", "none")
    assert sys.path == path and Path.cwd() == cwd and "shipped_by_a_test" not in sys.modules


def test_a_cached_file_that_nobody_registered(tmp_path):
    (tmp_path / "x").write_text("x")

    class Ask(MapFunction):
        def open(self, runtime_context):
            runtime_context.get_distributed_cache().get_file("modell")

        def map(self, value):
            return value

    with local_environment() as env:
        env.register_cached_file(str(tmp_path / "x"), "model")
        env.from_collection([1]).map(Ask()).print()
        with pytest.raises(JobFailedError, match=r"no cached file 'modell'.*there are model"):
            env.execute()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda env: env.add_python_file("/no/such.py"), "/no/such.py .* does not exist"),
        (lambda env: env.add_python_archive(__file__), "is no archive"),
        (lambda env: env.add_python_archive(__file__, "../up"), "not below the working directory"),
        (lambda env: env.add_python_file("hdfs://x/y.py"), "only files of this machine"),
        (lambda env: env.add_python_file("a,b"), "without commas"),
        (lambda env: env.set_python_requirements("/no/such.txt"), "/no/such.txt .* not exist"),
        (lambda env: env.register_cached_file("/no/such", "x"), "/no/such .* does not exist"),
    ],
)
def test_what_cannot_be_shipped_is_refused_before_anything_runs(ask, message):
    def program(env):
        ask(env)
        env.from_collection([1]).print()
        env.execute()

    with local_environment() as env, pytest.raises(ProgramError, match=message):
        program(env)


def test_two_files_of_one_name(tmp_path):
    (tmp_path / "a").write_text("a")
    env = StreamExecutionEnvironment()
    env.register_cached_file(str(tmp_path / "a"), "name")
    env.register_cached_file(str(tmp_path / "a"), "name")
    with pytest.raises(ProgramError, match="are both to be cached as 'name'"):
        env.register_cached_file(__file__, "name")


def test_a_python_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "venv.zip", "w") as archive:
        archive.writestr("bin/python", "")
    env = StreamExecutionEnvironment()
    env.add_python_archive(str(tmp_path / "venv.zip"))
    env.set_python_executable("venv.zip/bin/python")
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match=r"is in archive venv\.zip"):
        env.execute()


def packed(tmp_path: Path, text: str) -> PackedFile:
    (tmp_path / "versioned_by_a_test.py").write_text(f"TEXT = {text!r}")
    return pack(ShippedFile(Role.PYTHON, str(tmp_path / "versioned_by_a_test.py"), "x"), tmp_path)


def test_jobs_of_one_process_do_not_see_each_others_modules(tmp_path):
    seen = []
    for version in (packed(tmp_path, "one"), packed(tmp_path, "two")):
        with installed("job", [version], tmp_path):
            import versioned_by_a_test

            seen.append(versioned_by_a_test.TEXT)
    assert seen == ["one", "two"]


def test_an_executable_file_can_be_executed(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    file = ShippedFile(Role.CACHED, str(script), "run", executable=True)
    with installed("job", [pack(file, tmp_path)], tmp_path):
        from penstock.common.shipped_files import cached_file

        assert Path(cached_file("job", "run")).stat().st_mode & 0o111


# --- caches -----------------------------------------------------------------------------------


def counted(env, tmp_path):
    """A stream that notes how often it is computed."""

    def note(value):
        with (tmp_path / "log").open("a") as log:
            log.write("x")
        return value * 10

    return env.from_collection([1, 2, 3]).map(note)


def runs(tmp_path):
    return len((tmp_path / "log").read_text()) // 3


def test_a_cached_stream_is_computed_once(tmp_path):
    with local_environment() as env:
        env.set_parallelism(2)
        cached = counted(env, tmp_path).cache()
        assert isinstance(cached, CachedDataStream) and cached.cache() is cached
        for _ in range(2):
            assert sorted(cached.execute_and_collect()) == [10, 20, 30]
        more = cached.map(lambda n: n + 1).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
        sums = sorted(more.execute_and_collect())
        assert len(sums) == 3 and sums[-1] == 63
        assert runs(tmp_path) == 1
        cached.invalidate()
        assert sorted(cached.execute_and_collect()) == [10, 20, 30]
        assert runs(tmp_path) == 2
        assert sorted(cached.execute_and_collect()) == [10, 20, 30]
        assert runs(tmp_path) == 2


def test_a_cached_stream_where_every_operator_needs_a_uid():
    with local_environment() as env:
        env.get_config().disable_auto_generated_uids()
        cached = env.from_collection([1]).uid("numbers").cache()
        cached.print().uid("out")
        with pytest.raises(ProgramError, match="operator 'Cache' has no uid"):
            env.execute()
        cached.uid("cache")
        env.execute()
        cached.print().uid("again")
        env.execute()


def test_a_job_that_failed_caches_nothing(tmp_path):
    with local_environment() as env:
        cached = counted(env, tmp_path).cache()
        cached.map(lambda n: 1 // (n - 30)).print()
        with pytest.raises(JobFailedError):
            env.execute()
        assert sorted(cached.execute_and_collect()) == [10, 20, 30]
        assert runs(tmp_path) == 2


def test_a_closed_environment_has_no_caches(tmp_path):
    with local_environment() as env:
        cached = counted(env, tmp_path).cache()
        list(cached.execute_and_collect())
        StreamExecutionEnvironment.close(env)
        list(cached.execute_and_collect())
        assert runs(tmp_path) == 2


@pytest.mark.parametrize("seed", range(5))
def test_a_cache_holds_every_record_once_whatever_breaks(seed):
    with local_environment(seed=seed, faults=True) as env:
        env.set_parallelism(2)
        cached = env.from_collection(range(200)).rebalance().map(lambda n: n).cache()
        assert sorted(cached.execute_and_collect()) == list(range(200))
        assert sorted(cached.execute_and_collect()) == list(range(200))


def test_a_keyed_stream_is_not_cached():
    keyed = StreamExecutionEnvironment().from_collection([1]).key_by(lambda n: n)
    with pytest.raises(ProgramError, match=r"call cache\(\) before key_by"):
        keyed.cache()


# --- sinks and sources ------------------------------------------------------------------------


class Doubling(StreamTransformer):
    def apply(self, ds):
        return ds.map(lambda n: 2 * n)


class DoubledSink(CollectSink, SupportsPreprocessing):
    def get_transformer(self):
        return Doubling()


def test_a_sink_may_prepare_its_stream():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).sink_to(DoubledSink()).name("out")
    assert [node.name for node in env._program.nodes.values()][-2:] == ["Map", "out"]


class Measured(CollectionSource):
    def create_reader(self, context):
        reads = context.metrics.add_group("files").counter("read")
        reader = super().create_reader(context)
        poll = reader.poll

        def counting(limit):
            values = poll(limit)
            reads.inc(len(values or ()))
            return values

        reader.poll = counting
        return reader


class MeasuredSink(Sink):
    def create_writer(self, context):
        return MeasuredWriter(context.metrics)


class MeasuredWriter(SinkWriter):
    def __init__(self, metrics):
        self.bytes = metrics.distribution("bytes")

    def write(self, value):
        self.bytes.update(len(value))


def test_sources_and_sinks_have_metrics():
    with local_environment() as env:
        strategy = WatermarkStrategy.no_watermarks()
        source = env.from_source(Measured(["a", "bcd"]), strategy, "letters").set_parallelism(1)
        source.sink_to(MeasuredSink()).name("count")
        metrics = env.execute().metrics
    found = {(reading.operator, reading.name): reading.value for reading in metrics}
    assert found["Source: letters", "files.read"] == 2
    assert found["count", "bytes"].sum == 4
