"""One tree of errors, each with a code of its own, all of them picklable."""

from __future__ import annotations

import inspect
import pickle

import cloudpickle
import pytest

from penstock import errors
from penstock.errors import (
    FailureOrigin,
    PenstockError,
    TypeMismatchError,
    UserFunctionError,
)

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, Exception)
]

CODES = {
    "ChannelBrokenError": "CHANNEL_BROKEN",
    "CheckpointDirectoryError": "CHECKPOINT_DIRECTORY",
    "ConfigurationError": "CONFIGURATION",
    "ControlError": "CONTROL",
    "CheckpointError": "CHECKPOINT",
    "CheckpointFormatError": "CHECKPOINT_FORMAT",
    "SupersededError": "SUPERSEDED",
    "CorruptCheckpointError": "CORRUPT_CHECKPOINT",
    "DuplicateNameError": "DUPLICATE_NAME",
    "InvalidParallelismError": "PARALLELISM",
    "JavaOnlyError": "JAVA_ONLY",
    "JobCancelledError": "JOB_CANCELLED",
    "JobFailedError": "JOB_FAILED",
    "LateRecordError": "LATE_RECORD",
    "NoJavaError": "NO_JAVA",
    "NotEnoughSlotsError": "NOT_ENOUGH_SLOTS",
    "PenstockError": "PENSTOCK",
    "ProgramError": "PROGRAM",
    "RecordError": "RECORD",
    "TimestampError": "TIMESTAMP",
    "RescaleError": "RESCALE",
    "ResultShapeError": "RESULT_SHAPE",
    "SinkError": "SINK",
    "LostOutputError": "LOST_OUTPUT",
    "RefusedError": "REFUSED",
    "SinkRefusedError": "SINK_REFUSED",
    "SlotLostError": "SLOT_LOST",
    "SourceError": "SOURCE",
    "SourceMissingError": "SOURCE_MISSING",
    "SourceRefusedError": "SOURCE_REFUSED",
    "SparkLaunchError": "SPARK_LAUNCH",
    "AddressError": "ADDRESS",
    "StateError": "STATE",
    "IncompatibleStateError": "INCOMPATIBLE_STATE",
    "StorageError": "STORAGE",
    "TypeMismatchError": "TYPE_MISMATCH",
    "UnsupportedKeyError": "UNSUPPORTED_KEY",
    "UserFunctionError": "USER_FUNCTION",
}


def sample(kind):
    if kind is UserFunctionError:
        origin = FailureOrigin("Map", 1, 4, "{'a': 1}")
        return UserFunctionError("ValueError: bad", "Traceback ...\nValueError: bad\n", origin)
    return kind("what was wrong")


def test_codes_are_stable():
    """Programs match on these: add to this table, never change it."""
    assert {kind.__name__: kind.code for kind in CLASSES} == CODES


def test_no_two_classes_share_a_code():
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)
    assert all("code" in vars(kind) for kind in CLASSES)


def test_every_error_is_in_the_tree():
    assert all(issubclass(kind, PenstockError) for kind in CLASSES)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda module: module.__name__)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind, pickler):
    error = sample(kind)
    back = pickle.loads(pickler.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    assert (back.code, back.message) == (error.code, error.message)


def test_a_user_function_error_survives_whole():
    error = sample(UserFunctionError)
    back = pickle.loads(pickle.dumps(error))
    assert back.origin == error.origin
    assert back.user_traceback == error.user_traceback


def test_a_user_function_error_reads_from_the_users_frames_to_the_place():
    assert str(sample(UserFunctionError)).splitlines() == [
        "ValueError: bad",
        "Traceback ...",
        "ValueError: bad",
        "  in operator 'Map', subtask 2/4, record {'a': 1}",
    ]


def test_a_type_mismatch_gathers_its_path_from_the_inside_out():
    error = TypeMismatchError("expected LONG, got str", shown="'x'")
    assert str(error) == error.summary() == "expected LONG, got str: 'x'"
    outer = error.inside("price").inside("[3]").inside("items")
    assert outer.path == "items[3].price"
    assert str(outer) == "items[3].price: expected LONG, got str: 'x'"
    assert str(pickle.loads(pickle.dumps(outer))) == str(outer)
    assert isinstance(outer, TypeError)


def test_an_origin_without_a_record_says_nothing_of_one():
    assert str(FailureOrigin("Map", 0, 1)) == "operator 'Map', subtask 1/1"
