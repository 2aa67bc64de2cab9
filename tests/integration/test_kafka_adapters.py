"""What is built on the Kafka source: bad records, sources in turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_parts import Reading, source, write

from penstock.common import Duration, WatermarkStrategy
from penstock.connectors.bad_records import BadRecord
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import DivertBadRecords
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.kafka import ConsumerRecord, JsonSchema
from penstock.testing import local_environment
from penstock.testing.conformance import check_bounded_source
from penstock.testing.kafka import KafkaBroker

pytestmark = pytest.mark.full("Kafka")

Topic = Callable[..., str]
NONE = WatermarkStrategy.no_watermarks()

# --- bad records ------------------------------------------------------------------------------


def test_a_poison_message_is_kept_whole_in_its_place(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    poison = {"value": "{nonsense", "key": "k", "headers": [("h", b"1")], "timestamp": 77}
    write(broker, name, ['{"a": 1}', poison, '{"a": 2}'])
    builder = source(broker, name).set_bounded("latest").keep_bad_records()
    with Reading(builder.set_value_only_deserializer(JsonSchema()).build()) as reading:
        first, bad, last = reading.to_end()
        assert reading.metrics()["numRecordsInErrors"] == 1
    assert (first, last) == ({"a": 1}, {"a": 2})
    assert isinstance(bad, BadRecord) and bad.error.startswith("JSONDecodeError: ")
    assert bad.record == ConsumerRecord(name, 0, 1, 77, b"k", b"{nonsense", (("h", b"1"),))


def test_poison_messages_go_to_a_side_output(broker: KafkaBroker, topic: Topic) -> None:
    name = topic()
    write(broker, name, ["{}", *(json.dumps({"ts": n * 1_000}) for n in range(5)), "x"])
    write(broker, name, [b"\xff"])
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    strategy = strategy.with_timestamp_assigner(lambda value, _: value.get("ts", 0))
    bad = OutputTag("bad")
    builder = source(broker, name).set_bounded("latest").keep_bad_records()
    builder.set_value_only_deserializer(JsonSchema())
    with local_environment(seed=1) as env:
        stream = env.from_source(builder.build(), strategy, "payments").set_parallelism(1)
        good = stream.process(DivertBadRecords(bad))
        refused = good.get_side_output(bad).map(lambda one: ("bad", one.record.offset))
        found = list(
            good.map(lambda one: ("good", one.get("ts"))).union(refused).execute_and_collect()
        )
    expected = [("good", None), *(("good", n * 1_000) for n in range(5)), ("bad", 6), ("bad", 7)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


# --- files, then Kafka ------------------------------------------------------------------------


def test_files_and_then_a_topic(broker: KafkaBroker, topic: Topic, tmp_path: Path) -> None:
    name = topic(2)
    (tmp_path / "old.txt").write_text("".join(f"old {n}\n" for n in range(50)))
    for number in range(2):
        write(broker, name, [f"new {number}:{n}" for n in range(50)], partition=number)
    files = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path)
    ).build()
    live = source(broker, name).set_bounded("latest").build()
    hybrid = HybridSource.builder(files).add_source(live).build()
    records = check_bounded_source(hybrid, ordered=False)
    assert records[:50] == [f"old {n}" for n in range(50)] and len(records) == 150
    with local_environment(seed=2) as env:
        stream = env.from_source(hybrid, NONE, "payments").set_parallelism(2)
        assert sorted(stream.execute_and_collect()) == sorted(records)
