"""The StreamExecutionEnvironment: where a program starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.common import config_options as options
from penstock.common.config_layers import Setting, Settings, in_force, settings_of, values_of
from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.collection import CollectionSource
from penstock.connectors.file_source import TextFileSource
from penstock.connectors.source import Source
from penstock.datastream import invocation
from penstock.datastream.assembly import assemble
from penstock.datastream.checkpointing_mode import CheckpointingMode
from penstock.datastream.data_stream import FOREVER_MS, DataStream
from penstock.datastream.job_client import Runner, RunningJob
from penstock.datastream.program import Program, Upstream
from penstock.datastream.results import ClientResults, CloseableIterator
from penstock.errors import InvalidParallelismError, ProgramError
from penstock.graph.operators import SourceOperator
from penstock.graph.plan import plan_json
from penstock.graph.stream_graph import StreamNode
from penstock.jobmanager.job import Job

if TYPE_CHECKING:
    from penstock.jobmanager.dispatcher import Dispatcher
    from penstock.jobmanager.resource_manager import ResourceManager


_PROGRAM = "program"


class StreamExecutionEnvironment:
    """Builds a program and runs it on Spark.

    Settings come from the configuration file, then from the program, then from the command line;
    later wins.
    """

    _make: ClassVar[Callable[[Configuration | None], StreamExecutionEnvironment] | None] = None
    """Makes the environments of programs that are run by a test; see `penstock.testing`."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._file = invocation.current().file()
        self._own: dict[str, Setting] = {}
        self._program = Program()
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        make = StreamExecutionEnvironment._make or StreamExecutionEnvironment
        return make(configuration)

    # --- settings -----------------------------------------------------------------------------

    def configure(self, configuration: Configuration) -> None:
        """Take over these values."""
        self._own.update(settings_of(configuration.to_dict(), _PROGRAM))

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        if parallelism < 1:
            raise InvalidParallelismError(f"a parallelism of {parallelism} runs nothing")
        return self._set(options.PARALLELISM, parallelism)

    def get_parallelism(self) -> int:
        return options.PARALLELISM.read(self._values())

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_max_parallelism(self) -> int:
        return options.MAX_PARALLELISM.read(self._values())

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """How long a buffer may gather while its subtask is busy; -1: until it is full.

        Before a slot sleeps all buffers leave, whatever is set here.
        """
        if timeout_millis == -1:
            timeout_millis = FOREVER_MS
        return self._set(options.BUFFER_TIMEOUT, timeout_millis)

    def get_buffer_timeout(self) -> int:
        return options.BUFFER_TIMEOUT.read(self._values())

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        return self._set(options.OPERATOR_CHAINING, "false")

    def is_chaining_enabled(self) -> bool:
        return options.OPERATOR_CHAINING.read(self._values())

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    ) -> StreamExecutionEnvironment:
        """A checkpoint every `interval` milliseconds."""
        self._set(options.CHECKPOINT_MODE, mode.name)
        return self._set(options.CHECKPOINT_INTERVAL, interval)

    def _set(self, option: options.Option[Any], value: Any) -> StreamExecutionEnvironment:
        self._own[option.key] = Setting(str(value), _PROGRAM)
        return self

    def _settings(self) -> Settings:
        return in_force(self._file, self._own, invocation.current().overrides)

    def _values(self) -> dict[str, str]:
        return values_of(self._settings())

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
        if not isinstance(source, Source):
            raise ProgramError(f"from_source() needs a Source, not a {type(source).__name__}")
        return self._source(source, source_name, type_info, self.get_parallelism())

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a file, or of all files in a folder."""
        source = TextFileSource([file_path], charset_name)
        return self._source(source, "Text File", None, self.get_parallelism())

    def _source(
        self, source: Source, name: str, type_info: TypeInformation | None, parallelism: int
    ) -> DataStream:
        node = StreamNode(
            self._program.next_id(),
            f"Source: {name}",
            SourceOperator(source),
            parallelism,
            self.get_max_parallelism(),
            output_type=type_info,
        )
        return DataStream(self, (Upstream(self._program.add(node, ()), None),))

    # --- running ------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program, show how it is doing (`penstock.progress`), and wait for its end."""
        from penstock.datastream.live import shown

        job = self._submit(job_name, None)[0]
        mode = options.PROGRESS.read(self._values())
        with shown(mode, job.graph, job.progress):
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
        return assemble(self._program, self._values(), job_name, job_id)

    def _submit(
        self, job_name: str | None, collecting: int | None
    ) -> tuple[RunningJob, ClientResults]:
        asked = invocation.current()
        job = self._assemble(job_name, asked.take_job_id())
        if asked.preview is not None:
            asked.preview(job, self._settings())
        uids = {node.id: node.uid for vertex in job.graph.job.vertices for node in vertex.nodes}
        results = ClientResults(uids[collecting] if collecting is not None else None)
        runner = self._start(job, results)
        # The next execute() runs what is added from here on, as in Flink.
        self._program.mark_executed()
        return RunningJob(runner), results

    def _start(self, job: Job, results: ClientResults) -> Runner:
        return _dispatcher(self._values()).submit(job, results)


_dispatchers: dict[int, tuple[ResourceManager, Dispatcher]] = {}
_dispatchers_lock = threading.Lock()


def _dispatcher(values: Mapping[str, str]) -> Dispatcher:
    """The Dispatcher of the Spark session in use; one per session."""
    from penstock.jobmanager.dispatcher import Dispatcher
    from penstock.jobmanager.resource_manager import ResourceManager
    from penstock.runtime.slot_process import slot_main
    from penstock.spark.launcher import SparkLauncher
    from penstock.spark.session import session_for

    spark = {key: value for key, value in values.items() if key.startswith("spark.")}
    master = spark.pop(options.MASTER.key, None)
    session = session_for(master, "penstock", spark)
    with _dispatchers_lock:
        key = id(session.sparkContext)
        if key not in _dispatchers:
            resources = ResourceManager(SparkLauncher(session), slot_main)
            _dispatchers[key] = (resources, Dispatcher(resources))
        return _dispatchers[key][1]
