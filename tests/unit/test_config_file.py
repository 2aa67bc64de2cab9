"""The configuration file: where it is found, what it may say, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.common.config_file import find_config_file, read_config_file
from penstock.common.config_layers import Setting, values_of
from penstock.errors import ConfigurationError


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file into a working directory of its own; the name as a program would see it."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "penstock.yaml") -> Path:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
        return Path(name)

    return write


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read_config_file(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


NESTED = """
parallelism:
  default: 4
execution:
  checkpointing:
    interval: 10 s
  buffer-timeout: 5ms
"""
FLAT = """
parallelism.default: 4
execution.checkpointing.interval: "10 s"
execution.buffer-timeout: '5ms'
"""
MIXED = """
parallelism.default: 4
execution:
  checkpointing.interval: 10 s
  buffer-timeout: {interval: 5ms}
"""


@pytest.mark.parametrize("text", [NESTED, FLAT, MIXED])
def test_keys_may_be_nested_or_flat(write, text):
    assert values_of(read_config_file(write(text))) == {
        "parallelism.default": "4",
        "execution.checkpointing.interval": "10 s",
        "execution.buffer-timeout.interval": "5ms",
    }


def test_a_setting_knows_its_line(write):
    path = write("# a comment\n\nparallelism:\n  default: 4\n")
    assert read_config_file(path) == {"parallelism.default": Setting("4", "penstock.yaml:4")}


def test_values_are_kept_as_written(write):
    text = "spark.a: yes\nspark.b: 0x10\nspark.c: 1.0\nspark.d: 12:30:00\nspark:\n  e: 'null'\n"
    found = values_of(read_config_file(write(text)))
    assert found == {
        "spark.a": "yes",
        "spark.b": "0x10",
        "spark.c": "1.0",
        "spark.d": "12:30:00",
        "spark.e": "null",
    }


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_sets_nothing(write, text):
    path = write(text)
    if text == "---\n":
        assert "expected lines of the form" in refusal(path)
    else:
        assert read_config_file(path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "parallelism.default: 1\nparalelism.default: 2\n",
            (
                "penstock.yaml:2: unknown configuration key 'paralelism.default'; "
                "did you mean parallelism.default?"
            ),
        ),
        (
            "execution:\n  checkpoint:\n    interval: 1 s\n",
            (
                "penstock.yaml:3: unknown configuration key 'execution.checkpoint.interval'; "
                "did you mean execution.checkpointing.interval?"
            ),
        ),
        (
            "parallelism.default: two\n",
            "penstock.yaml:1: parallelism.default: 'two': expected an integer",
        ),
        (
            "parallelism:\n\tdefault: 2\n",
            "penstock.yaml:2: a tab; YAML is indented with spaces",
        ),
        (
            "parallelism.default:\t- 2\n",
            "penstock.yaml:1: a tab; YAML is indented with spaces",
        ),
        (
            "parallelism.default: 2\nparallelism.default: 3\n",
            "penstock.yaml:2: parallelism.default is '3' here and '2' in line 1",
        ),
        (
            "parallelism:\n  default: 2\nparallelism.default: 3\n",
            "penstock.yaml:3: parallelism.default is '3' here and '2' in line 2",
        ),
        (
            "restart-strategy: none\nrestart-strategy: off\n",
            "penstock.yaml:2: restart-strategy is 'off' here and 'none' in line 1",
        ),
        (
            "heartbeat.timeout: 1 s\nparallelism.default: [1, 2]\n",
            "penstock.yaml:2: parallelism.default: expected a single value, not a list",
        ),
        ("parallelism.default:\n", "penstock.yaml:1: parallelism.default has no value"),
        ("parallelism.default: ~\n", "penstock.yaml:1: parallelism.default has no value"),
        ("- a\n- b\n", "penstock.yaml:1: expected lines of the form `key: value`"),
        ("just words\n", "penstock.yaml:1: expected lines of the form `key: value`"),
        ("? [a, b]\n: c\n", "penstock.yaml:1: a key must be a single word"),
        ("spark: &all\n  a: *all\n", "penstock.yaml:1: nested too deeply"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(write, text, message):
    assert refusal(write(text)) == message


@pytest.mark.parametrize(
    "text", ["a: [1\n", "a: 'open\n", "a: 1\n b: 2\n", "a: *nothing\n", "a: 1\n---\nb: 2\n"]
)
def test_what_is_not_yaml_names_the_line(write, text):
    assert refusal(write(text)).startswith("penstock.yaml:")


@pytest.mark.parametrize("swapped", [False, True])
def test_the_present_spelling_wins_over_an_older_one(write, swapped):
    lines = ["state.backend.incremental: true", "execution.checkpointing.incremental: false"]
    lines += ["state.backend: rocksdb", "state.backend.type: hashmap"]
    found = values_of(read_config_file(write("\n".join(reversed(lines) if swapped else lines))))
    assert found == {
        "execution.checkpointing.incremental": "false",
        "state.backend.type": "hashmap",
    }


def test_the_same_value_twice_does_no_harm(write):
    path = write("parallelism:\n  default: 2\nparallelism.default: 2\n")
    assert values_of(read_config_file(path)) == {"parallelism.default": "2"}


def test_a_file_that_is_not_text_is_refused(write):
    path = write("")
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal(path) == "penstock.yaml: cannot be read: it is not UTF-8 text"
    path.write_bytes(b"a: \x01")
    assert refusal(path).startswith("penstock.yaml: not YAML")


def test_a_missing_file_is_refused(write):
    assert refusal(Path("gone.yaml")) == "gone.yaml: cannot be read: No such file or directory"


def test_a_config_yaml_that_may_be_somebody_elses_says_so(write):
    path = write("database:\n  host: db\n", "config.yaml")
    assert refusal(path).endswith(
        "(if this file is not Penstock's, name another with --config or PENSTOCK_CONF_DIR)"
    )


# --- which file -------------------------------------------------------------------------------


def test_names_are_tried_in_order(write):
    assert find_config_file({}) is None
    for name in ("flink-conf.yaml", "config.yaml", "penstock.yaml"):
        write("", name)
        assert find_config_file({}) == Path(name)


def test_a_directory_in_the_environment_goes_before_the_working_directory(write):
    write("")
    ours, theirs = write("", "ours/penstock.yaml"), write("", "theirs/flink-conf.yaml")
    both = {"PENSTOCK_CONF_DIR": "ours", "FLINK_CONF_DIR": "theirs"}
    assert find_config_file(both) == ours
    assert find_config_file({"FLINK_CONF_DIR": "theirs"}) == theirs
    assert find_config_file({"PENSTOCK_CONF_DIR": "", "FLINK_CONF_DIR": "theirs"}) == theirs


def test_a_directory_without_a_file_is_refused(write):
    write("")
    with pytest.raises(ConfigurationError) as refused:
        find_config_file({"PENSTOCK_CONF_DIR": "empty"})
    assert str(refused.value) == (
        "PENSTOCK_CONF_DIR is empty, which holds no penstock.yaml, config.yaml or flink-conf.yaml"
    )
