"""The command line: what each command prints, and how mistakes end it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from xml.etree import ElementTree

import pytest

import penstock
from penstock import __version__
from penstock.cli import detach
from penstock.cli.failures import describe
from penstock.cli.main import COMMANDS, run
from penstock.errors import JobFailedError, StateError

PROGRAM = """
import sys
from penstock.datastream import StreamExecutionEnvironment

print("building", sys.argv[1:])
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
words = env.from_collection(["a", "b"]).key_by(lambda word: word)
words.reduce(lambda a, b: a + b).name("Join <words>").print()
env.execute("words")
print("not reached without running")
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Processes that are started from there import the same package, however it was found here.
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).absolute().parents[1]))
    Path("job.py").write_text(PROGRAM)


@pytest.fixture
def call(capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_version(call):
    for asked in ("version", "--version"):
        assert call(asked) == (0, f"penstock {__version__}\n", "")


def test_help_lists_every_command(call):
    for arguments in ((), ("--help",)):
        code, out, _ = call(*arguments)
        assert code == 0
        assert all(f"\n  {name} " in out for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "no command 'rnu'; did you mean run?"),
        (["xyz"], "no command 'xyz'; there are init, run, info, list, savepoint, stop, rescale, "),
        (["run"], "Missing argument 'JOB'."),
        (["run", "gone.py"], "File 'gone.py' does not exist."),
        (["run", "--config", "gone.yaml", "job.py"], "File 'gone.yaml' does not exist."),
        (["run", "-D", "parallelism.default", "job.py"], "expected KEY=VALUE"),
        (["run", "-D", "parallelism.default=", "job.py"], "expected KEY=VALUE"),
        (["run", "-D", "=2", "job.py"], "expected KEY=VALUE"),
        (["run", "-D", "paralelism.default=2", "job.py"], "did you mean parallelism.default?"),
        (["run", "-D", "parallelism.default=two", "job.py"], "expected an integer"),
        (["run", "-p", "0", "job.py"], "0 is not in the range"),
        (["run", "--job-id", "../x", "job.py"], "it names a directory"),
        (["info", "--svg", "no/such/folder.svg", "job.py"], "No such file or directory"),
        (["version", "extra"], "unexpected extra argument"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_mistake_is_one_line(call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    [line] = [line for line in err.splitlines() if not line.startswith("building")]
    assert line.startswith("penstock: ") and message in line


def test_a_mistake_in_the_file_is_one_line(call):
    Path("penstock.yaml").write_text("parallelism:\n\tdefault: 2\n")
    assert call("run", "job.py") == (
        2,
        "",
        "penstock: penstock.yaml:2: a tab; YAML is indented with spaces\n",
    )


# --- info -------------------------------------------------------------------------------------


def test_info_draws_chains_exchanges_and_state(call):
    code, out, err = call("info", "job.py", "--an", "argument")
    assert code == 0
    assert out.splitlines()[0] == "words: 2 chains, 1 exchange, 3 subtasks, 2 slots"
    assert "[0] parallelism 1" in out and "[1] parallelism 2" in out
    assert "(read position)" in out and "Join <words>  (keyed state)" in out
    assert "HASH → [1]" in out
    first, *warnings = err.splitlines()
    assert first == "building ['--an', 'argument']"
    assert [line.partition(" has state and no uid")[0] for line in warnings] == [
        "penstock: Source: Collection Source",
        "penstock: Join <words>",
    ]


STATEFUL = """
from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


class Fraud(KeyedProcessFunction):
    def open(self, runtime_context):
        print("opened")
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        kinds = MapStateDescriptor("seen", Types.STRING(), Types.INT())
        self.seen = runtime_context.get_map_state(kinds)

    def process_element(self, value, ctx):
        yield value


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Connects(Fraud):
    def open(self, runtime_context):
        raise ConnectionError("no database here")


class Waits(Fraud):
    def open(self, runtime_context):
        import threading
        threading.Event().wait()


class Twice(Fraud):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("one", Types.LONG()))
        runtime_context.get_list_state(ListStateDescriptor("one", Types.LONG()))


class Unkeyed(MapFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("lost", Types.LONG()))

    def map(self, value):
        return value


env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["a", "b"])
keyed = words.key_by(lambda word: word)
words.map(Unkeyed()).name("unkeyed").print()
for function in (Fraud(), Timers(), Connects(), Twice(), Waits()):
    keyed.process(function).name(type(function).__name__.lower()).print()
env.execute("states")
"""


def test_info_shows_the_states_that_functions_declare(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    Path("stateful.py").write_text(STATEFUL)
    code, out, err = call("info", "stateful.py")
    assert code == 0 and "opened" in err and "opened" not in out
    assert "fraud  (count: value of LONG; seen: map of STRING, INT)" in out
    assert "timers  (timers at most)" in out
    # What cannot be known is said as before: one raised, and one never came back.
    assert "connects  (keyed state)" in out and "waits  (keyed state)" in out
    assert "twice  (will fail: " in out and "'one'" in out
    assert "unkeyed  (will fail: operator 'unkeyed' asks for keyed state 'lost'" in out


def test_info_opens_nothing_when_asked_not_to(call):
    Path("stateful.py").write_text(STATEFUL)
    code, out, err = call("info", "--no-open", "stateful.py")
    assert code == 0 and "opened" not in err
    assert "fraud  (keyed state)" in out


def test_info_where_the_terminal_knows_only_ascii(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    command = [sys.executable, "-m", "penstock", "info", "job.py"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "+- HASH -> [1]" in out and out.isascii()


def test_info_as_json_is_only_json(call):
    code, out, _ = call("info", "-p", "3", "--json", "job.py")
    nodes = json.loads(out)["nodes"]
    assert code == 0
    assert [node["parallelism"] for node in nodes] == [1, 3, 3]


def test_info_as_a_picture(call):
    code, out, _ = call("info", "--svg", "plan.svg", "job.py")
    assert (code, out) == (0, "")
    texts = ["".join(text.itertext()) for text in ElementTree.parse("plan.svg").iter()]
    assert "Join <words>(keyed state)" in texts and "HASH" in texts


def test_info_of_a_program_that_executes_nothing(call):
    Path("job.py").write_text("print('hello')")
    assert call("info", "job.py") == (1, "", "hello\npenstock: job.py never calls execute()\n")


# --- config -----------------------------------------------------------------------------------


def shown(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


def test_config_says_where_values_came_from(call):
    Path("penstock.yaml").write_text("heartbeat:\n  timeout: 20s\nparallelism.default: 7\n")
    found = shown(call("config", "-D", "spark.x=1", "-Dspark.auth.secret=s", "job.py")[1])
    assert found["heartbeat.timeout"] == ["20s", "penstock.yaml:2"]
    assert found["parallelism.default"] == ["2", "program"]
    assert found["heartbeat.interval"] == ["500", "ms", "default"]
    assert found["execution.checkpointing.dir"] == ["(not", "set)", "default"]
    assert found["spark.x"] == ["1", "-D"]
    assert found["spark.auth.secret"] == ["(not", "shown)", "-D"]


def test_config_without_a_program(call):
    Path("other.yaml").write_text("parallelism.default: 7\n")
    found = shown(call("config", "--config", "other.yaml", "--master", "local[2]")[1])
    assert found["parallelism.default"] == ["7", "other.yaml:1"]
    assert found["spark.master"] == ["local[2]", "--master"]
    found = shown(call("config", "-p", "8", "-D", "parallelism.default=9")[1])
    assert found["parallelism.default"] == ["8", "-p"]


def test_config_does_not_cut_long_values(call):
    long = "x" * 300
    assert long in call("config", "-D", f"spark.long={long}")[1]


# --- run --------------------------------------------------------------------------------------


def test_a_program_runs_as_main_with_its_arguments(call):
    Path("helper.py").write_text("NAME = 'helped'")
    Path("job.py").write_text(
        "import sys, helper\nprint(__name__, __file__, sys.argv, helper.NAME)\n"
    )
    before = list(sys.path)
    code, out, _ = call("run", "job.py", "-p", "4", "--", "x")
    assert (code, out) == (0, "__main__ job.py ['job.py', '-p', '4', '--', 'x'] helped\n")
    assert sys.path == before


def test_a_program_that_raises_shows_only_its_own_frames(call):
    Path("job.py").write_text("def f():\n    return 1 // 0\n\nf()\n")
    code, out, err = call("run", "job.py")
    assert (code, out) == (1, "")
    assert err.startswith(
        'Traceback (most recent call last):\n  File "job.py", line 4, in <module>'
    )
    assert "ZeroDivisionError" in err and "penstock" not in err


def test_a_mistake_in_a_program_names_the_line_of_the_program(call):
    Path("job.py").write_text(
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "StreamExecutionEnvironment().execute()\n"
    )
    code, _, err = call("run", "job.py")
    assert code == 1
    assert 'File "job.py", line 2' in err
    assert err.count("File ") == 1
    assert err.endswith("ProgramError: the program has no operators: nothing to execute\n")


def test_what_failed_a_job_is_said_once():
    failed = JobFailedError("job 'x' failed: no key")
    failed.__cause__ = StateError("no key")
    ended = Future()
    ended.set_exception(failed)
    with pytest.raises(JobFailedError) as caught:
        ended.result()
    told = describe(caught.value)
    assert told.count("no key") == 1 and told.endswith("JobFailedError: job 'x' failed: no key\n")
    assert "concurrent" not in told


def test_a_jar_is_refused_with_what_to_give_instead(call):
    code, _, err = call("run", "-s", "savepoint-1", "myApplication.jar")
    assert code == 2
    assert "a program of Java's" in err and "myApplication.py" in " ".join(err.split())


def test_a_program_that_does_not_compile(call):
    Path("job.py").write_text("def f(:\n")
    code, _, err = call("run", "job.py")
    assert code == 1 and "SyntaxError" in err and 'File "job.py", line 1' in err


def test_a_program_chooses_its_own_exit_code():
    Path("job.py").write_text("raise SystemExit(7)")
    with pytest.raises(SystemExit) as ended:
        run(["run", "job.py"])
    assert ended.value.code == 7


def test_an_interrupted_program_exits_as_shells_expect(call):
    Path("job.py").write_text("raise KeyboardInterrupt")
    assert call("run", "job.py") == (130, "", "penstock: interrupted\n")


def test_a_detached_program_is_a_process_with_a_log(call):
    Path("job.py").write_text("import os, sys\nprint('here', os.getpid(), sys.argv[1:])\n")
    code, out, _ = call("run", "-d", "job.py", "a", "-d")
    words = out.split()
    pid, log = words[1].rstrip(","), Path(words[3])
    assert code == 0 and log.parent == Path.cwd()
    expected = f"here {pid} ['a', '-d']\n"
    deadline = time.monotonic() + 30
    while log.read_text() != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert log.read_text() == expected


def test_a_detached_program_gets_the_same_options(call, monkeypatch):
    started = []

    def start(job: Path, command: list[str]) -> tuple[int, Path]:
        started.append(command)
        return 1, Path("x.log")

    monkeypatch.setattr(detach, "start_detached", start)
    Path("c.yaml").write_text("")
    options = ["-D", "spark.x=1", "--parallelism", "2", "--master", "local"]
    options += ["--config", "c.yaml", "--pyflink", "--job-id", "j"]
    assert call("run", "-d", *options, "job.py", "x")[0] == 0
    assert started == [["run", *options, "job.py", "x"]]


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "penstock", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"penstock {__version__}\n"


def test_an_exchange_over_a_column_is_drawn_below_the_boxes(call):
    Path("job.py").write_text(
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment()\n"
        "numbers = env.from_collection([1])\n"
        "numbers.rebalance().map(str).rebalance().union(numbers).print()\n"
        "env.execute()\n"
    )
    assert call("info", "--svg", "plan.svg", "job.py")[0] == 0
    elements = list(ElementTree.parse("plan.svg").iter())
    boxes = [element for element in elements if element.get("class") == "chain"]
    lowest = max(float(box.get("y", 0)) + float(box.get("height", 0)) for box in boxes)
    names = {element.text: element for element in elements if element.get("class") == "exchange"}
    assert len(boxes) == 3 and set(names) == {"REBALANCE", "FORWARD"}
    assert float(names["FORWARD"].get("y", 0)) > lowest
