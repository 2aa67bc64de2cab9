"""Small values of the front: times, ids, futures, schemas."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import Future

import cloudpickle
import pytest

from penstock.common import (
    ByteArraySchema,
    CompletableFuture,
    DeserializationSchema,
    Duration,
    Encoder,
    InputDependencyConstraint,
    Instant,
    JobExecutionResult,
    JobID,
    Row,
    SerializationSchema,
    SimpleStringSchema,
    Time,
)
from penstock.common.serialization import RowFieldExtractorSchema
from penstock.errors import ProgramError, TypeMismatchError

# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duration", "millis"),
    [
        (Duration.of_days(1), 86_400_000),
        (Duration.of_hours(1), 3_600_000),
        (Duration.of_minutes(1), 60_000),
        (Duration.of_seconds(1), 1000),
        (Duration.of_millis(1), 1),
        (Duration.of_nanos(1_999_999), 1),
        (Time.days(1), 86_400_000),
        (Time.hours(1), 3_600_000),
        (Time.minutes(1), 60_000),
        (Time.seconds(1), 1000),
        (Time.milliseconds(1), 1),
        (Time(5), 5),
    ],
)
def test_lengths_of_time(duration, millis):
    length = duration.to_millis() if isinstance(duration, Duration) else duration.to_milliseconds()
    assert length == millis
    assert pickle.loads(pickle.dumps(duration)) == duration


def test_lengths_of_time_are_values():
    assert Time.seconds(60) == Time.minutes(1) != Time.minutes(2)
    assert len({Time.seconds(60), Time.minutes(1)}) == 1
    assert Duration.of_seconds(60) == Duration.of_minutes(1) > Duration.of_seconds(59)
    assert repr(Time.seconds(1)) == "Time(1000)"


@pytest.mark.parametrize("millis", [0, 1, 1999, -1, -1000, 1_700_000_000_123])
def test_instants_keep_their_milliseconds(millis):
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis
    assert 0 <= Instant.of_epoch_milli(millis).nanos < 10**9


def test_instants_are_ordered_values():
    assert Instant(1, 2) == Instant(1, 2) < Instant(1, 3) < Instant(2, 0)


# --- jobs -------------------------------------------------------------------------------------


def test_a_job_id_is_text():
    result = JobExecutionResult("ab12", 7)
    assert result.get_job_id() == "ab12" and isinstance(result.get_job_id(), JobID)
    assert result.get_net_runtime() == 7
    assert f"{pickle.loads(pickle.dumps(JobID('ab12')))}" == "ab12"


def test_a_future_follows_another():
    other: Future[int] = Future()
    future = CompletableFuture.following(other, lambda done: done.result() + 1)
    assert not future.done() and not future.cancel()
    other.set_result(1)
    assert future.done() and future.result() == 2 and not future.cancelled()


def test_a_future_passes_failures_on():
    other: Future[int] = Future()
    future = CompletableFuture.following(other, lambda done: done.result())
    other.set_exception(ValueError("bad"))
    assert isinstance(future.exception(), ValueError)
    with pytest.raises(ValueError, match="bad"):
        future.result()


def test_a_future_can_be_awaited():
    async def wait():
        return await CompletableFuture.completed(7)

    assert asyncio.run(wait()) == 7


def test_names_that_are_only_imported():
    assert {constraint.name for constraint in InputDependencyConstraint} == {"ANY", "ALL"}


# --- schemas ----------------------------------------------------------------------------------


def test_strings_in_a_charset():
    schema = pickle.loads(cloudpickle.dumps(SimpleStringSchema("UTF-16-LE")))
    assert schema.serialize("ä") == b"\xe4\x00" and schema.deserialize(b"\xe4\x00") == "ä"
    with pytest.raises(TypeMismatchError, match="takes str, not int; map records to str first: 7"):
        schema.serialize(7)


@pytest.mark.parametrize("make", [SimpleStringSchema, Encoder.simple_string_encoder])
def test_a_charset_that_does_not_exist_is_found_at_once(make):
    with pytest.raises(ProgramError, match="no character set 'UTF-9'"):
        make("UTF-9")


def test_bytes_stay_as_they_are():
    assert ByteArraySchema().serialize(bytearray(b"a")) == ByteArraySchema().deserialize(b"a")
    with pytest.raises(TypeMismatchError, match="takes bytes"):
        ByteArraySchema().serialize("a")


def test_a_field_of_a_row():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row("a", b"b")) == schema.serialize(("a", b"b")) == b"b"
    # Empty, and not a tombstone.
    assert schema.serialize(("a", None)) == schema.serialize(None) == b""
    with pytest.raises(TypeMismatchError, match="takes bytes, not str"):
        schema.serialize((b"a", "b"))
    with pytest.raises(ValueError, match="points nowhere"):
        RowFieldExtractorSchema(-1)
    assert schema == RowFieldExtractorSchema(1) and schema != RowFieldExtractorSchema(2)
    assert len({schema, RowFieldExtractorSchema(1), RowFieldExtractorSchema(2)}) == 2


def test_schemas_can_be_written_in_python():
    class Numbers(SerializationSchema, DeserializationSchema):
        def serialize(self, value):
            return b"%d" % value

        def deserialize(self, message):
            return int(message)

    assert Numbers().deserialize(Numbers().serialize(7)) == 7
    with pytest.raises(TypeError):
        SerializationSchema()


def test_an_encoder_writes_lines_and_is_a_function():
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder()))
    assert encoder(7) == encoder.encode(7) == b"7\n"
    assert Encoder.simple_string_encoder("UTF-16-LE")("a") == b"a\x00\n\x00"

    class Csv(Encoder):
        def encode(self, value):
            return (",".join(value) + "\r\n").encode()

    assert Csv()(["a", "b"]) == b"a,b\r\n"
