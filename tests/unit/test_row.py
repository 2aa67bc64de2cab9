"""Rows: named and positional fields, kinds, equality, copies."""

from __future__ import annotations

import copy
import pickle

import cloudpickle
import pytest

from penstock.common import Row, RowKind
from penstock.common.types import Row as SameRow
from penstock.errors import JavaOnlyError

ADA = Row(name="Ada", born=1815)


def test_named_fields_keep_their_order():
    assert list(Row(b=1, a=2)) == [1, 2]
    assert SameRow is Row


def test_a_field_is_found_by_name_attribute_and_position():
    assert ADA["name"] == ADA.name == ADA[0] == "Ada"
    assert ADA[-1] == 1815 and ADA[0:2] == ["Ada", 1815]


def test_positional_values_may_serve_as_names():
    person = Row("name", "born")
    assert person("Ada", 1815) == ADA
    assert "name" in person
    with pytest.raises(ValueError, match="3 values for the 2 fields"):
        person(1, 2, 3)


def test_fields_can_be_set():
    row = Row(name="Ada", born=1)
    row["born"] = 1815
    assert row == ADA
    row[0] = "Eve"
    assert row.name == "Eve"


def test_names_can_be_given_later():
    row = Row("Ada", 1815)
    assert row != ADA
    row.set_field_names(("name", "born"))
    assert row == ADA


@pytest.mark.parametrize("row", [ADA, Row(1, 2)], ids=repr)
def test_a_field_that_is_not_there(row):
    with pytest.raises(KeyError):
        row["died"]
    with pytest.raises(KeyError):
        row["died"] = 1
    with pytest.raises(AttributeError, match="has no field 'died'"):
        _ = row.died
    with pytest.raises(IndexError):
        row[2]


def test_an_attribute_is_not_set_by_mistake():
    with pytest.raises(AttributeError, match=r"row\['born'\] = "):
        ADA.born = 1
    with pytest.raises(ValueError, match="positional or named"):
        Row(1, a=2)


def test_values_by_names():
    assert ADA.get_fields_by_names(["born", "name"]) == [1815, "Ada"]
    assert ADA.get_fields_by_names(["born"]) == [1815]
    assert Row(1, 2).get_fields_by_names(["born", "name"]) == [1, 2]
    with pytest.raises(ValueError, match="no field 'died' among name, born"):
        ADA.get_fields_by_names(["died"])


def test_a_row_as_a_dict():
    row = Row(id=1, who=ADA, more=[ADA, {"x": ADA}])
    assert row.as_dict() == {"id": 1, "who": ADA, "more": [ADA, {"x": ADA}]}
    ada = {"name": "Ada", "born": 1815}
    assert row.as_dict(recursive=True) == {"id": 1, "who": ada, "more": [ada, {"x": ada}]}
    with pytest.raises(TypeError, match="without field names"):
        Row(1).as_dict()


def test_kinds():
    assert ADA.get_row_kind() is RowKind.INSERT
    gone = Row.of_kind(RowKind.DELETE, name="Ada", born=1815)
    assert gone.get_row_kind() is RowKind.DELETE and gone != ADA
    gone.set_row_kind(RowKind.INSERT)
    assert gone == ADA
    assert Row.of_kind(RowKind.DELETE, 1)[0] == 1
    with pytest.raises(JavaOnlyError):
        RowKind.INSERT.to_j_row_kind()
    assert [kind.value for kind in RowKind] == [0, 1, 2, 3]


def test_equality_sees_names_and_values():
    assert Row(name="Ada", born=1815) == ADA and hash(ADA) == hash(Row(name="Ada", born=1815))
    assert Row(1, 2) == Row(1, 2) != Row(2, 1)
    assert Row(a=1) != Row(b=1) and Row(a=1) != Row(1) and Row(1) != (1,)
    assert len({ADA, Row(name="Ada", born=1815)}) == 1


def test_a_row_is_a_small_collection():
    assert len(ADA) == 2 and list(ADA) == ["Ada", 1815] and tuple(Row()) == ()
    assert 1815 in ADA and "name" not in ADA


def test_how_a_row_is_shown():
    assert repr(ADA) == "Row(name='Ada', born=1815)"
    assert repr(Row("a", 1)) == "<Row('a', 1)>"


@pytest.mark.parametrize(
    "row", [ADA, Row(1, "a"), Row(), Row.of_kind(RowKind.DELETE, a=[1])], ids=repr
)
@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda module: module.__name__)
def test_a_row_survives_pickling(row, pickler):
    assert pickle.loads(pickler.dumps(row)) == row


def test_copies_do_not_share_fields():
    row = Row(a=[1], b=2)
    shallow, deep = copy.copy(row), copy.deepcopy(row)
    row["b"] = 3
    row["a"].append(4)
    row.set_field_names(["x", "y"])
    assert shallow == Row(a=[1, 4], b=2) and deep == Row(a=[1], b=2)
