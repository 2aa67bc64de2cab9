"""Keys of Flink's that work: each changes what a job does."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from pathlib import Path

import pytest

from penstock.checkpoint.segment_names import SegmentName
from penstock.checkpoint.store import CheckpointStore
from penstock.common import Configuration, Types
from penstock.common.clock import SystemClock
from penstock.common.settings import RocksTuning, StateSettings
from penstock.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.streams import FOREVER_MS
from penstock.errors import ConfigurationError
from penstock.runtime.operator_cut import OperatorCut
from penstock.runtime.slot_logging import SlotLogging
from penstock.state.kinds import KeyContext
from penstock.state.rocks_database import RocksDatabase
from penstock.state.rocksdb import RocksDBBackend
from penstock.state.segments import GroupBlock, decode_segment, encode_segment, segment_parts
from penstock.testing import local_environment

DIRECTORY = {"execution.checkpointing.interval": "1 s", "execution.checkpointing.dir": "/c"}


def job_with(**values):
    env = StreamExecutionEnvironment(Configuration.from_dict(values))
    source = env.from_collection([1]).name("one").uid("one")
    source.map(str).name("text").uid("text").set_parallelism(1).print()
    return env._assemble(None)


def vertices(**values):
    return [vertex.name for vertex in job_with(**values).graph.job.vertices]


# --- the plan ---------------------------------------------------------------------------------


def test_a_job_has_the_name_of_the_configuration():
    assert job_with().name == "Penstock Streaming Job"
    assert job_with(**{"pipeline.name": "payments"}).name == "payments"
    env = StreamExecutionEnvironment(Configuration.from_dict({"pipeline.name": "payments"}))
    env.from_collection([1]).print()
    assert env._assemble("own").name == "own"


@pytest.mark.parametrize(
    "key", ["python.operator-chaining.enabled", "pipeline.operator-chaining.enabled"]
)
def test_either_key_ends_chaining(key):
    assert vertices() == ["one -> text -> Print"]
    assert vertices(**{key: "false"}) == ["one", "text", "Print"]


def test_operators_of_another_max_parallelism_are_fused_or_not():
    key = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"

    def chains(fused):
        env = StreamExecutionEnvironment(Configuration.from_dict({key: fused}))
        assert env.is_chaining_of_operators_with_different_max_parallelism_enabled() is (
            fused == "true"
        )
        env.from_collection([1]).map(str).set_parallelism(1).set_max_parallelism(7).print()
        return [vertex.name for vertex in env._assemble(None).graph.job.vertices]

    assert chains("true") == ["Source: Collection Source -> Map -> Print"]
    assert chains("false") == ["Source: Collection Source", "Map", "Print"]


def test_names_may_begin_with_the_number_of_the_vertex():
    key = "pipeline.vertex-name-include-index-prefix"
    assert vertices(**{key: "true"}) == ["[vertex-0]one -> text -> Print"]


def test_a_vertex_can_be_given_another_parallelism():
    key = "pipeline.jobvertex-parallelism-overrides"

    def parallelisms(overrides):
        env = StreamExecutionEnvironment(Configuration.from_dict({key: overrides}))
        stream = env.from_collection([1]).uid("source").key_by(lambda n: n)
        stream.reduce(lambda a, b: a + b).uid("sum").set_parallelism(2).print()
        return [vertex.parallelism for vertex in env._assemble(None).graph.job.vertices]

    assert parallelisms("{}") == [1, 2, 1]
    assert parallelisms("sum:4") == [1, 4, 1]
    with pytest.raises(ConfigurationError, match=r"uid 'total'; there are .*sum"):
        parallelisms("total:4")


def test_the_parallelism_for_tables_holds_where_no_other_is_set():
    key = "table.exec.resource.default-parallelism"

    def parallelism(**values):
        return StreamExecutionEnvironment(Configuration.from_dict(values)).get_parallelism()

    assert parallelism(**{key: "3"}) == 3
    assert parallelism(**{key: "-1"}) == 1
    assert parallelism(**{key: "3", "parallelism.default": "2"}) == 2


def test_buffers_wait_until_they_are_full_if_the_timeout_is_off():
    env = StreamExecutionEnvironment()
    env.configure(Configuration().set_boolean("execution.buffer-timeout.enabled", False))
    env.from_collection([1]).print()
    assert env.get_buffer_timeout() == -1
    assert env._assemble(None).settings.buffer_timeout_ms == FOREVER_MS


# --- checkpoints ------------------------------------------------------------------------------


def test_the_storage_says_where_checkpoints_are():
    key = "execution.checkpointing.storage"
    assert not job_with(**DIRECTORY).store.in_memory
    assert job_with(**DIRECTORY, **{key: "jobmanager"}).store.in_memory
    assert job_with(**DIRECTORY, **{"state.checkpoint-storage": "jobmanager"}).store.in_memory
    assert not job_with(**DIRECTORY, **{key: "filesystem"}).store.in_memory
    with pytest.raises(ConfigurationError, match=r"set execution\.checkpointing\.dir"):
        job_with(**{key: "filesystem"})


class Total(KeyedProcessFunction):
    """Counts the records of a key, and fails once in between."""

    failed = False

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.STRING()))

    def process_element(self, value, ctx):
        total = int((self.total.value() or "0").rstrip("x")) + 1
        # A value that is worth compressing.
        self.total.update(f"{total}{'x' * 1000}")
        if value == 900 and not Total.failed:
            Total.failed = True
            raise ValueError("once")
        yield total


def totals(env):
    stream = env.from_collection(list(range(1000))).key_by(lambda n: n % 2)
    results = list(stream.process(Total()).execute_and_collect())
    return max(results)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("compressed", [True, False])
def test_state_is_compressed_and_read_again(backend, compressed, monkeypatch):
    monkeypatch.setattr(Total, "failed", False)
    written = []

    def parts(blocks, origin=None, compress=False):
        written.append(compress)
        return segment_parts(blocks, origin, compress)

    monkeypatch.setattr("penstock.runtime.segment_writing.segment_parts", parts)
    settings = Configuration.from_dict(
        {
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.snapshot-compression": compressed,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "1 ms",
            "state.backend.type": backend,
        }
    )
    with local_environment(seed=1, configuration=settings) as env:
        assert env.get_config().is_use_snapshot_compression() is compressed
        env._configuration.set_string("execution.checkpointing.dir", f"{env.storage}/c")
        assert totals(env) == 500
    assert Total.failed and set(written) == {compressed}


def test_a_compressed_segment_is_smaller_and_holds_the_same():
    blocks = [GroupBlock("s", "value", group, [b"x" * 500, b"y" * 500]) for group in (0, 3)]
    plain, packed = encode_segment(blocks), b"".join(segment_parts(blocks, None, True))
    assert len(packed) < len(plain) / 2
    read = [[(b.group, b.payload) for b in decode_segment(d, range(4))] for d in (plain, packed)]
    assert read[0] == read[1]
    assert [b.payload for b in decode_segment(packed, range(1, 4))] == [b"x" * 500 + b"y" * 500]


def test_changes_may_wait_in_memory_for_their_checkpoint():
    values = {**DIRECTORY, "state.backend.changelog.enabled": "true"}
    assert job_with(**values).settings.changelog_ms == 200
    values["state.backend.changelog.storage"] = "memory"
    assert job_with(**values).settings.changelog_ms is None
    # Nothing is written between checkpoints, so no directory is needed.
    del values["execution.checkpointing.dir"]
    assert job_with(**values).store.in_memory


# --- what slots are given ---------------------------------------------------------------------


def test_a_cached_file_is_found_by_its_name(tmp_path):
    class Read(MapFunction):
        def open(self, runtime_context):
            self.path = runtime_context.get_distributed_cache().get_file("rules")

        def map(self, value):
            return Path(self.path).read_text(), os.access(self.path, os.X_OK)

    (tmp_path / "rules.txt").write_text("none")
    files = f"name:rules,path:{tmp_path}/rules.txt,executable:true"
    settings = Configuration.from_dict({"pipeline.cached-files": files})
    with local_environment(configuration=settings) as env:
        assert list(env.from_collection([1]).map(Read()).execute_and_collect()) == [("none", True)]
    with pytest.raises(ConfigurationError, match="expected files such as"):
        job_with(**{"pipeline.cached-files": "name:rules"})


def test_slots_import_from_folders_of_their_host(tmp_path):
    class Imported(MapFunction):
        def open(self, runtime_context):
            import module_of_the_host

            self.answer = module_of_the_host.ANSWER

        def map(self, value):
            return self.answer

    (tmp_path / "module_of_the_host.py").write_text("ANSWER = 42\n")
    before = list(sys.path)
    folders = f"/nowhere:{tmp_path}"
    settings = Configuration.from_dict({"python.pythonpath": folders})
    with local_environment(configuration=settings) as env:
        assert list(env.from_collection([1]).map(Imported()).execute_and_collect()) == [42]
    assert sys.path == before and "module_of_the_host" not in sys.modules


def test_slots_log_from_the_level_that_is_set(monkeypatch):
    values = {
        "python.logging.default.level": "warn",
        "python.logging.level.overrides": "my.module:DEBUG",
    }
    settings = job_with(**values).settings
    assert (settings.log_level, settings.log_levels) == ("WARNING", {"my.module": "DEBUG"})
    root, mine = logging.getLogger(), logging.getLogger("my.module")
    monkeypatch.setattr(root, "handlers", [])
    before = root.level, mine.level
    slot = SlotLogging()
    slot.set("ERROR", settings.log_levels)
    assert (root.level, mine.level) == (logging.ERROR, logging.DEBUG)
    assert len(root.handlers) == 1
    slot.undo()
    assert (root.level, mine.level) == before and not root.handlers
    slot.set(None, {})
    assert not root.handlers
    with pytest.raises(ConfigurationError, match="expected DEBUG"):
        job_with(**{"python.logging.default.level": "loud"})


# --- RocksDB ----------------------------------------------------------------------------------


def state_with(**values):
    keys = {f"state.backend.rocksdb.{key}": value for key, value in values.items()}
    return job_with(**{"state.backend.type": "rocksdb", **keys}).settings.state


OPTIONS = {
    "block.blocksize": ("16 kb", "block_size=16384"),
    "block.metadata-blocksize": ("8 kb", "metadata_block_size=8192"),
    "use-bloom-filter": ("false", "filter_policy=nullptr"),
    "memory.partitioned-index-filters": ("true", "partition_filters=true"),
    "compaction.style": ("UNIVERSAL", "compaction_style=kCompactionStyleUniversal"),
    "compaction.level.use-dynamic-size": ("false", "level_compaction_dynamic_level_bytes=false"),
    "compaction.level.target-file-size-base": ("3 mb", "target_file_size_base=3145728"),
    "compaction.level.max-size-level-base": ("5 mb", "max_bytes_for_level_base=5242880"),
    "compression.per.level": (
        "NO_COMPRESSION;LZ4_COMPRESSION",
        "compression_per_level=kNoCompression:kLZ4Compression:kLZ4Compression",
    ),
    "files.open": ("50", "max_open_files=50"),
    "thread.num": ("7", "max_background_jobs=7"),
    "writebuffer.number-to-merge": ("2", "min_write_buffer_number_to_merge=2"),
    "log.file-num": ("3", "keep_log_file_num=3"),
    "log.max-file-size": ("1 mb", "max_log_file_size=1048576"),
}


def written_options(settings, folder):
    """What RocksDB itself says about how it was set up."""
    database = RocksDatabase(StateSettings(**{**vars(settings), "local_dir": str(folder)}))
    database.write([(b"k", b"v")], [])
    text = "".join(path.read_text() for path in folder.glob("*/OPTIONS-*"))
    database.close()
    return text


@pytest.mark.parametrize("key", OPTIONS)
def test_rocksdb_is_told(key, tmp_path):
    value, line = OPTIONS[key]
    assert line not in written_options(StateSettings("rocksdb"), tmp_path)
    # Of two buffers RocksDB merges one at most.
    assert line in written_options(state_with(**{key: value, "writebuffer.count": "3"}), tmp_path)


def test_filters_are_as_large_as_they_are_told(tmp_path):
    def size(bits):
        settings = state_with(**{"bloom-filter.bits-per-key": bits, "localdir": str(tmp_path)})
        database = RocksDatabase(settings)
        database.write([(b"%d" % number, b"") for number in range(2000)], [])
        database._db.flush()
        described = database._db.property_value("rocksdb.aggregated-table-properties")
        database.close()
        return int(re.search(r"filter block size=(\d+)", described)[1])

    assert size("20.0") > 3 * size("5.0") > 0


def test_rocksdb_merges_nothing_if_so_told(tmp_path):
    text = written_options(state_with(**{"compaction.style": "NONE"}), tmp_path)
    assert "disable_auto_compactions=true" in text


def test_rocksdb_logs_where_it_is_told(tmp_path):
    (tmp_path / "logs").mkdir()
    settings = state_with(**{"log.dir": str(tmp_path / "logs")})
    assert settings.tuning == RocksTuning(log_dir=str(tmp_path / "logs"))
    written_options(settings, tmp_path)
    assert [path for path in (tmp_path / "logs").iterdir() if path.name.endswith("LOG")]


def test_the_memory_of_rocksdb():
    mb = 1 << 20

    def memory(**values):
        settings = state_with(**values)
        return settings.managed // mb, settings.block_cache() // mb, settings.write_buffer() // mb

    assert memory() == (256, 64, 32)
    assert memory(**{"memory.fixed-per-slot": "64 mb"}) == (64, 16, 8)
    assert memory(**{"memory.fixed-per-tm": "64 mb"}) == (64, 16, 8)
    assert memory(**{"memory.write-buffer-ratio": "0.25"}) == (256, 96, 16)
    assert memory(**{"memory.managed": "false"}) == (256, 8, 64)


@pytest.mark.parametrize("key", ["state.backend.rocksdb.localdir", "io.tmp.dirs"])
def test_databases_are_spread_over_disks(key, tmp_path):
    class Disks(KeyedProcessFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

        def process_element(self, value, ctx):
            self.seen.update(value)
            yield [len(list(tmp_path.glob(f"{disk}/penstock-rocksdb-*"))) for disk in "ab"]

    settings = Configuration.from_dict(
        {
            "state.backend.type": "rocksdb",
            "taskmanager.memory.managed.size": "0",
            "parallelism.default": "2",
            key: f"{tmp_path}/a,{tmp_path}/b",
        }
    )
    with local_environment(seed=1, configuration=settings) as env:
        stream = env.from_collection(list(range(100))).key_by(lambda n: n)
        assert [1, 1] in list(stream.process(Disks()).execute_and_collect())


def test_files_of_a_database_are_stored_at_the_same_time(tmp_path):
    """Two threads meet in the storage; one alone would wait there for ever."""
    meeting = threading.Barrier(2, timeout=60)

    class Meeting(CheckpointStore):
        def write_segment(self, name, *parts):
            if re.search(r"-(CURRENT|MANIFEST)", name):
                meeting.wait()
            return super().write_segment(name, *parts)

    settings = StateSettings("rocksdb", str(tmp_path), managed=0, files_from=0, transfer_threads=4)
    context = KeyContext()
    backend = RocksDBBackend(context, 16, SystemClock(), settings)
    context.key = "k"
    backend.get_state(ValueStateDescriptor("count", Types.LONG())).update(1)
    captured = backend.cut(1, full=True, files=True)
    cut = OperatorCut(
        "uid", 1, blocks=captured, groups=range(16), files=captured.files, origin=None
    )
    cut.store(Meeting((tmp_path / "c").as_uri(), "job"), SegmentName(1, 1, 0, "op"))
    assert meeting.n_waiting == 0 and not meeting.broken
