"""The StreamExecutionEnvironment: where a program starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.common import config_options as options
from penstock.common.config_layers import Setting, values_of
from penstock.common.configuration import Configuration
from penstock.common.flink_keys import say_meaningless
from penstock.common.jars import accept_jars
from penstock.common.java_only import java_only
from penstock.common.job_client import JobClient, JobExecutionResult
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.client_sinks import PrintSink
from penstock.connectors.collection import CollectionSource
from penstock.connectors.file_source import FilesSource
from penstock.connectors.line_format import LineFormat
from penstock.connectors.socket_source import SocketTextSource
from penstock.connectors.source import Source
from penstock.datastream import invocation
from penstock.datastream.assembly import assemble
from penstock.datastream.checks import need
from penstock.datastream.environment_files import FilesOfEnvironment
from penstock.datastream.environment_settings import SettingsOfEnvironment
from penstock.datastream.job_client import Runner, RunningJob
from penstock.datastream.program import CachedRecords, Program, Upstream
from penstock.datastream.program_configuration import ProgramConfiguration
from penstock.datastream.python_dependencies import required_packages
from penstock.datastream.results import ClientResults, CloseableIterator
from penstock.datastream.streams import DataStream
from penstock.errors import InvalidParallelismError, ProgramError
from penstock.graph.operators import SinkOperator, SourceOperator
from penstock.graph.plan import plan_json
from penstock.graph.stream_graph import StreamNode
from penstock.jobmanager.job import Job

if TYPE_CHECKING:
    from penstock.jobmanager.dispatcher import Dispatcher
    from penstock.jobmanager.resource_manager import ResourceManager


class StreamExecutionEnvironment(FilesOfEnvironment, SettingsOfEnvironment):
    """Builds a program and runs it on Spark.

    Settings come from the configuration file, then from the program, then from the command line;
    later wins.
    """

    _make: ClassVar[Callable[[Configuration | None], StreamExecutionEnvironment] | None] = None
    """Makes the environments of programs that are run by a test; see `penstock.testing`."""

    _local_defaults: ClassVar[dict[str, Setting]] = {}

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__()
        self._configuration = ProgramConfiguration(
            {**self._local_defaults, **invocation.current().file()}
        )
        self._program = Program()
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """An environment with these settings."""
        make = StreamExecutionEnvironment._make or StreamExecutionEnvironment
        return make(configuration)

    @staticmethod
    def get_default_local_parallelism() -> int:
        """The parallelism of operators that set none, in environments that are made from now on."""
        return options.PARALLELISM.read(values_of(StreamExecutionEnvironment._local_defaults))

    @staticmethod
    def set_default_local_parallelism(parallelism: int) -> None:
        """Set it; a configuration file, the program and the command line all win over it."""
        if parallelism < 1:
            raise InvalidParallelismError(f"a parallelism of {parallelism} runs nothing")
        setting = Setting(str(parallelism), "set_default_local_parallelism()")
        StreamExecutionEnvironment._local_defaults = {options.PARALLELISM.key: setting}

    create_input = java_only("create_input", "use from_source() with a FileSource")

    def add_jars(self, *jars_path: str) -> None:
        """Nothing is needed for connectors that are built in; JavaOnlyError for other JARs."""
        accept_jars("add_jars()", jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Nothing is needed for connectors that are built in; JavaOnlyError for other JARs."""
        accept_jars("add_classpaths()", classpaths)

    # --- sources ------------------------------------------------------------------------------

    def from_collection(
        self, collection: Iterable[Any], type_info: TypeInformation | None = None
    ) -> DataStream:
        """The elements of a collection, in order."""
        source = CollectionSource(collection)
        return self._source(source, "Collection Source", type_info, parallelism=1)

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of a source, with timestamps and watermarks by the strategy.

        Without a timestamp assigner the timestamps are those the source gives, if it gives any.
        """
        if not isinstance(source, Source):
            raise ProgramError(f"from_source() needs a Source, not a {type(source).__name__}")
        need(watermark_strategy, WatermarkStrategy, "from_source()")
        if source.watermark_strategy is not None:
            raise ProgramError(
                f"the {type(source).__name__} has been given watermarks already, and from_source() "
                "gives it others: use add_source(), or do not give it any before"
            )
        return self._source(source, source_name, type_info, strategy=watermark_strategy)

    def add_source(
        self,
        source_func: Source,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of a source that was given its watermarks before, or has none.

        That is a FlinkKafkaConsumer, for programs that have one; any other Source too. Without
        watermarks of its own, `stream.assign_timestamps_and_watermarks` makes some behind it.
        """
        if not isinstance(source_func, Source):
            raise ProgramError(
                "add_source() needs a FlinkKafkaConsumer or another Source, not a "
                f"{type(source_func).__name__}"
            )
        if type_info is None:
            type_info = source_func.produced_type
        strategy = source_func.watermark_strategy
        return self._source(source_func, source_name, type_info, strategy=strategy)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a file, or of all files in a folder."""
        source = FilesSource([file_path], LineFormat(charset_name))
        return self._source(source, "Text File", None)

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream:
        """The text that a server sends, a record at every delimiter; one reader reads it.

        The stream ends when the server closes the connection, after `max_retry` attempts to connect
        again (-1: without end). A socket cannot be asked to send again: what was read after the
        last checkpoint is lost in a crash, so this source is at-most-once.
        """
        source = SocketTextSource(hostname, port, delimiter, max_retry)
        return self._source(source, "Socket Stream", Types.STRING(), parallelism=1)

    def _source(
        self,
        source: Source,
        name: str,
        type_info: TypeInformation | None,
        parallelism: int | None = None,
        strategy: WatermarkStrategy | None = None,
    ) -> DataStream:
        if strategy == WatermarkStrategy.no_watermarks():
            strategy = None
        node = StreamNode(
            self._program.next_id(),
            f"Source: {name}",
            SourceOperator(source, strategy),
            parallelism or self.get_parallelism(),
            self.get_max_parallelism(),
            output_type=type_info,
            own_parallelism=parallelism is not None,
        )
        return DataStream(self, (Upstream(self._program.add(node, ()), None),))

    # --- running ------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program, show how it is doing (`penstock.progress`), and wait for its end."""
        from penstock.datastream.live import shown

        job = self._submit(job_name, None)[0]
        mode = options.PROGRESS.read(self._values())
        with shown(mode, lambda: job.graph, job.progress):
            return job.result()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Run the program in the background."""
        return self._submit(job_name, None)[0]

    def get_execution_plan(self) -> str:
        """The program that execute() would run, as JSON, in the shape of Flink's plans."""
        return plan_json(self._assemble(None).graph.job)

    def _execute_collecting(self, node: int, job_name: str | None) -> CloseableIterator:
        job, results = self._submit(job_name, node)
        return CloseableIterator(results, job)

    def _assemble(self, job_name: str | None, job_id: str | None = None) -> Job:
        cached = tuple(self._cached_files.values())
        return assemble(self._program, self._values(), job_name, job_id, cached)

    def _submit(
        self, job_name: str | None, collecting: int | None
    ) -> tuple[RunningJob, ClientResults]:
        asked = invocation.current()
        job = self._assemble(job_name, asked.take_job_id())
        say_meaningless(self._values())
        if asked.preview is not None:
            asked.preview(job, self._configuration.settings())
        job = replace(job, files=(*job.files, *required_packages(self._values())))
        nodes = [node for vertex in job.graph.job.vertices for node in vertex.nodes]
        uids = {node.id: node.uid for node in nodes}
        caches = {
            uids[node]: records
            for node, records in self._program.cache_sinks().items()
            if node in uids
        }
        results = ClientResults(
            uids[collecting] if collecting is not None else None,
            frozenset(node.uid for node in nodes if _prints_to_stderr(node)),
            frozenset(caches),
        )
        runner = self._start(job, results)
        results.on_taken(runner.client_moved)
        runner.result.add_done_callback(lambda ended: _keep(ended, results, caches))
        # The next execute() runs what is added from here on, as in Flink.
        self._program.mark_executed()
        return RunningJob(runner), results

    def close(self) -> None:
        """Forget the records of cached streams. Jobs that run go on, and so does the session."""
        for records in self._program.caches.values():
            records.values = None

    def _start(self, job: Job, results: ClientResults) -> Runner:
        return _dispatcher(self._values()).submit(job, results)


def _keep(
    ended: Future[JobExecutionResult], results: ClientResults, caches: dict[str, CachedRecords]
) -> None:
    """Fill the caches with what a job made that has ended well."""
    if ended.exception() is None:
        for uid, records in caches.items():
            records.values = results.kept[uid]


def _prints_to_stderr(node: StreamNode) -> bool:
    operator = node.operator
    if not isinstance(operator, SinkOperator) or not isinstance(operator.sink, PrintSink):
        return False
    return operator.sink.to_stderr


_dispatchers: dict[int, tuple[ResourceManager, Dispatcher]] = {}
_dispatchers_lock = threading.Lock()


def _dispatcher(values: Mapping[str, str]) -> Dispatcher:
    """The Dispatcher of the Spark session in use; one per session."""
    from penstock.datastream.controlled import serve
    from penstock.jobmanager.dispatcher import Dispatcher
    from penstock.jobmanager.resource_manager import ResourceManager
    from penstock.runtime.slot_process import slot_main, warm_up
    from penstock.spark.launcher import SparkLauncher
    from penstock.spark.security import check_security
    from penstock.spark.session import session_for

    spark = {key: value for key, value in values.items() if key.startswith("spark.")}
    master = spark.pop(options.MASTER.key, None)
    session = session_for(master, "penstock", spark)
    check_security(session, options.SECURE_CLUSTER.read(values))
    with _dispatchers_lock:
        key = id(session.sparkContext)
        if key not in _dispatchers:
            resources = ResourceManager(SparkLauncher(session), slot_main, warm_up)
            _dispatchers[key] = (resources, Dispatcher(resources))
        serve(_jobs)
        return _dispatchers[key][1]


def _jobs() -> dict[str, Runner]:
    """Every job that was submitted in this process."""
    with _dispatchers_lock:
        dispatchers = [dispatcher for _, dispatcher in _dispatchers.values()]
    return {job_id: runner for each in dispatchers for job_id, runner in each.jobs().items()}
