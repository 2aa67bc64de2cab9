"""Configuration: keys that mean something, values that can be read, errors that name the key."""

from __future__ import annotations

import pytest

from penstock.common import ConfigOption, ConfigOptions, Configuration
from penstock.common import config_options as options
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.assembly import assemble
from penstock.errors import ConfigurationError
from penstock.jobmanager.restart import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("250", 250),
        ("250 ms", 250),
        ("250ms", 250),
        ("1 milli", 1),
        ("60s", 60_000),
        ("60 sec", 60_000),
        ("2 seconds", 2000),
        ("10 min", 600_000),
        ("10m", 600_000),
        (" 1 Hour ", 3_600_000),
        ("1 d", 86_400_000),
        ("3 DAYS", 259_200_000),
    ],
)
def test_durations_are_read_as_flink_writes_them(text, milliseconds):
    assert options.parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "ms", "-1 s", "1.5 s", "10 fortnights", "1 s 2", "1h30m"])
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(ValueError, match="expected a duration such as"):
        options.parse_duration_ms(text)


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        (options.PARALLELISM, "two", "parallelism.default: 'two'"),
        (options.CHECKPOINT_INTERVAL, "often", "execution.checkpointing.interval: 'often'"),
        (options.OPERATOR_CHAINING, "yes", "expected true or false"),
        (options.CHECKPOINT_MODE, "TWICE", "expected one of EXACTLY_ONCE, AT_LEAST_ONCE"),
        (options.RESTART_STRATEGY, "hope", "restart-strategy.type: 'hope'"),
    ],
    ids=lambda part: getattr(part, "key", None),
)
def test_a_value_that_cannot_be_read_names_its_key(option, value, hint):
    with pytest.raises(ConfigurationError) as refused:
        option.read({option.key: value})
    assert option.key in str(refused.value)
    assert hint in str(refused.value)


def test_an_alias_is_read_and_named():
    alias = "state.checkpoints.num-retained"
    assert options.CHECKPOINTS_RETAINED.read({alias: "3"}) == 3
    with pytest.raises(ConfigurationError, match=f"^{alias}: 'x'"):
        options.CHECKPOINTS_RETAINED.read({alias: "x"})


def test_the_key_itself_goes_before_its_alias():
    values = {"execution.buffer-timeout": "5 ms", "execution.buffer-timeout.interval": "7 ms"}
    assert options.BUFFER_TIMEOUT.read(values) == 7


def test_no_value_means_the_default():
    for option in options.OPTIONS:
        assert option.read({}) is option.default


@pytest.mark.parametrize("word", ["exactly_once", "EXACTLY-ONCE", " Exactly_Once "])
def test_words_are_read_whatever_their_case(word):
    assert options.CHECKPOINT_MODE.read({options.CHECKPOINT_MODE.key: word}) == "EXACTLY_ONCE"


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(ConfigurationError) as refused:
        options.check_keys({"execution.checkpoint.interval": "1 s"})
    assert str(refused.value) == (
        "unknown configuration key 'execution.checkpoint.interval'; "
        "did you mean execution.checkpointing.interval?"
    )


def test_an_unknown_key_that_is_like_none_is_only_named():
    with pytest.raises(ConfigurationError) as refused:
        options.check_keys({"qqqqq": "1"})
    assert str(refused.value) == "unknown configuration key 'qqqqq'"


def test_sparks_keys_are_sparks_to_judge():
    options.check_keys({"spark.executor.memory": "2g", "spark.no.such.thing": "x"})
    with pytest.raises(ConfigurationError):
        options.check_keys({"sparkle": "1"})


def test_every_known_key_passes():
    keys = [key for option in options.OPTIONS for key in (option.key, *option.aliases)]
    assert len(keys) == len(set(keys))
    options.check_keys(dict.fromkeys(keys, ""))


# --- Configuration ----------------------------------------------------------------------------


def test_typed_values_are_kept_as_text():
    configuration = Configuration.from_dict({"a": True, "b": 7, "c": "x"})
    assert configuration.to_dict() == {"a": "true", "b": "7", "c": "x"}
    assert configuration.get_boolean("a", False) is True
    assert configuration.get_integer("b", 0) == 7
    assert configuration.get_string("c", "") == "x"


def test_defaults_hold_where_nothing_is_set():
    configuration = Configuration()
    assert configuration.get_boolean("a", True) is True
    assert configuration.get_integer("a", 5) == 5
    assert configuration.get_string("a", "d") == "d"
    assert not configuration.contains_key("a")


def test_a_copy_does_not_share_values():
    first = Configuration().set_string("a", "1")
    second = Configuration(first).set_integer("a", 2).set_boolean("b", False)
    assert first.to_dict() == {"a": "1"}
    assert second.to_dict() == {"a": "2", "b": "false"}
    assert first != second and first == Configuration.from_dict({"a": 1})


def test_add_all_overwrites():
    both = Configuration.from_dict({"a": 1, "b": 1}).add_all(Configuration.from_dict({"b": 2}))
    assert both.key_set() == {"a", "b"}
    assert both.get_integer("b", 0) == 2


def test_add_all_with_a_prefix():
    target = {"z": "9"}
    both = Configuration().add_all(Configuration.from_dict({"a": 1}), "p.")
    both.add_all_to_dict(target)
    assert target == {"z": "9", "p.a": "1"}
    assert both.add_all(both, "q.").key_set() == {"p.a", "q.p.a"}


def test_floats_and_bytes():
    configuration = Configuration().set_float("f", 0.1).set_bytearray("b", bytearray(b"\x00\xff"))
    assert configuration.get_float("f", 0.0) == 0.1 and configuration.get_float("x", 2.5) == 2.5
    assert configuration.get_bytearray("b", bytearray()) == bytearray(b"\x00\xff")
    assert configuration.get_bytearray("x", bytearray(b"d")) == bytearray(b"d")


def test_a_configuration_can_be_a_key_and_prints_as_flinks():
    first, second = (Configuration().set_integer("a", 1).set_string("b", "x") for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert len({first, second, Configuration()}) == 2
    assert str(first) == "{a=1, b=x}" and str(Configuration()) == "{}"
    assert Configuration.parse_list_value(None) == []


def test_a_dict_gets_what_was_set_as_what_it_was():
    configuration = Configuration().set_integer("i", 1).set_boolean("b", True).set_float("f", 0.5)
    configuration.set_bytearray("y", bytearray(b"z")).set_string("s", "1").set_integer("t", 2)
    configuration.set_string("t", "text")
    found = {}
    Configuration().add_all(Configuration(configuration), "p.").add_all_to_dict(found)
    expected = {"i": 1, "b": True, "f": 0.5, "y": b"z", "s": "1", "t": "text"}
    assert found == {f"p.{key}": value for key, value in expected.items()}
    assert configuration.to_dict()["b"] == "true"
    configuration.remove_config("i")
    configuration.add_all_to_dict(left := {})
    assert "i" not in left


def test_a_key_can_be_removed():
    configuration = Configuration.from_dict({"a": ""})
    assert configuration.remove_config("a") and not configuration.remove_config("a")
    assert configuration.key_set() == set()


@pytest.mark.parametrize(
    "read",
    [
        lambda configuration: configuration.get_integer("a", 0),
        lambda configuration: configuration.get_boolean("a", False),
        lambda configuration: configuration.get_float("a", 0.0),
        lambda configuration: configuration.get_bytearray("a", bytearray()),
    ],
)
def test_what_cannot_be_read_names_its_key(read):
    with pytest.raises(ConfigurationError, match=r"^a: '\?x': "):
        read(Configuration().set_string("a", "?x"))


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("[]", []),
        ("a", ["a"]),
        ("a;b ; c;", ["a", "b", "c"]),
        ("[a, b]", ["a", "b"]),
        ("['a, b', \"c\\\"d\", 'it''s']", ["a, b", 'c"d', "it's"]),
        ("- a, b\n- 'c'", ["a, b", "c"]),
    ],
)
def test_lists(text, items):
    assert Configuration.parse_list_value(text) == items


@pytest.mark.parametrize("text", ["[a", "['a]", "['a' b]"])
def test_lists_that_are_not_closed(text):
    with pytest.raises(ConfigurationError):
        Configuration.parse_list_value(text)


def test_options_are_read_and_set_through_a_configuration():
    configuration = Configuration.from_dict({"state.checkpoints.num-retained": 5})
    assert configuration.get(options.CHECKPOINTS_RETAINED) == 5
    configuration.set(options.CHECKPOINTS_RETAINED, 7)
    assert configuration.to_dict() == {"execution.checkpointing.num-retained": "7"}
    assert configuration.set(options.CHECKPOINTS_RETAINED, None).to_dict() == {}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "true", True),
        ("int", "7", 7),
        ("long", "7", 7),
        ("float", "0.5", 0.5),
        ("double", "0.5", 0.5),
        ("string", "x", "x"),
    ],
)
def test_an_option_of_ones_own(kind, text, value):
    builder = getattr(ConfigOptions.key("k"), f"{kind}_type")()
    option = builder.default_value(value)
    assert isinstance(option, ConfigOption)
    assert Configuration().get(option) is value
    assert Configuration().set_string("k", text).get(option) == value
    assert Configuration().set(option, value).to_dict() == {"k": text}
    assert Configuration().get(builder.no_default_value()) is None


# --- from a configuration to a job ------------------------------------------------------------


def job(**values):
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    return assemble(env._program, {key.replace("_", "."): v for key, v in values.items()}, None)


def test_an_environment_refuses_unknown_keys_at_once():
    with pytest.raises(ConfigurationError, match=r"did you mean parallelism\.default"):
        StreamExecutionEnvironment(Configuration.from_dict({"parallelism.defualt": 2}))
    with pytest.raises(ConfigurationError):
        StreamExecutionEnvironment().configure(Configuration.from_dict({"nonsense": 2}))


def test_without_checkpoints_the_first_failure_is_the_last():
    assert job().restart == NoRestart()
    assert job().store is None


def test_with_checkpoints_a_job_goes_on_after_a_failure():
    values = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": "memory:///checkpoints",
    }
    assert job(**values).restart == ExponentialDelayRestart(1_000, 60_000, 1.5, 0.1, 3_600_000)
    assert job(**values, **{"restart-strategy.type": "none"}).restart == NoRestart()


def test_a_fixed_delay_is_taken_over():
    values = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "2 s",
    }
    assert job(**values).restart == FixedDelayRestart(3, 2000)


def test_a_failure_rate_is_taken_over():
    values = {
        "restart-strategy": "failure-rate",
        "restart-strategy.failure-rate.max-failures-per-interval": "3",
        "restart-strategy.failure-rate.failure-rate-interval": "5 min",
        "restart-strategy.failure-rate.delay": "10 s",
    }
    assert job(**values).restart == FailureRateRestart(3, 300_000, 10_000)


def test_an_exponential_delay_is_taken_over():
    below = "restart-strategy.exponential-delay."
    values = {
        "restart-strategy.type": "exponential-delay",
        f"{below}initial-backoff": "10 s",
        f"{below}max-backoff": "2 min",
        f"{below}backoff-multiplier": "1.4",
        f"{below}reset-backoff-threshold": "10 min",
        f"{below}jitter-factor": "0.2",
        f"{below}attempts-before-reset-backoff": "8",
    }
    expected = ExponentialDelayRestart(10_000, 120_000, 1.4, 0.2, 600_000, 8)
    assert job(**values).restart == expected
    values[f"{below}attempts-before-reset-backoff"] = "infinite"
    assert job(**values).restart.attempts is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("backoff-multiplier", "0.5"), ("jitter-factor", "1.5"), ("max-backoff", "1 ms")],
)
def test_an_exponential_delay_that_makes_no_sense_is_refused(key, value):
    key = f"restart-strategy.exponential-delay.{key}"
    with pytest.raises(ConfigurationError, match=f"{key}: expected"):
        job(**{"restart-strategy": "exponential-delay", key: value})


def test_checkpoints_without_a_directory_live_in_the_memory_of_the_jobmaster():
    store = job(**{"execution.checkpointing.interval": "1 s"}).store
    assert store is not None
    assert store.in_memory


def test_an_interval_that_is_too_short_is_refused():
    with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.interval: 9 ms"):
        job(**{"execution.checkpointing.interval": "9 ms"})
