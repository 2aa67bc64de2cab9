"""What is printed and written of declared types is what real PyFlink prints."""

from __future__ import annotations

import datetime
import decimal

import pytest

from penstock.common import Encoder, Instant, Row, RowKind, Types
from penstock.common.typeinfo.texts import text_of
from penstock.datastream.connectors.file_system import FileSink
from penstock.testing import local_environment

NAMED = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
DOUBLES = {
    1.0: "1.0",
    0.1: "0.1",
    1e10: "1.0E10",
    1e-5: "1.0E-5",
    1.5e300: "1.5E300",
    -0.0: "-0.0",
    123456789.125: "1.23456789125E8",
    1e7: "1.0E7",
    9999999.0: "9999999.0",
    0.001: "0.001",
    0.002: "0.002",
    -2.5e-7: "-2.5E-7",
    float("inf"): "Infinity",
    float("-inf"): "-Infinity",
}
NOON = datetime.datetime(2020, 1, 2, 3, 4, 5)
PRINTED = [
    (Types.STRING(), "hi", "hi"),
    (Types.INT(), 5, "5"),
    (Types.BOOLEAN(), True, "true"),
    (Types.FLOAT(), 0.1, "0.1"),
    (Types.FLOAT(), 1e10, "1.0E10"),
    (Types.FLOAT(), float("inf"), "Infinity"),
    (Types.DOUBLE(), float("nan"), "NaN"),
    (Types.BIG_DEC(), decimal.Decimal("1.50"), "1.50"),
    (Types.SQL_DATE(), NOON.date(), "2020-01-02"),
    (Types.SQL_TIME(), NOON.time(), "03:04:05"),
    (Types.SQL_TIMESTAMP(), NOON, "2020-01-02 03:04:05.0"),
    (Types.SQL_TIMESTAMP(), NOON.replace(microsecond=678000), "2020-01-02 03:04:05.678"),
    (Types.INSTANT(), Instant(1, 2_000_000), "1970-01-01T00:00:01.002Z"),
    (Types.TUPLE([Types.STRING(), Types.INT()]), ("hi", 1), "(hi,1)"),
    (NAMED, Row(a=1, b="hi"), "+I[1,hi]"),
    (NAMED, Row(1, None), "+I[1,None]"),
    (NAMED, Row.of_kind(RowKind.DELETE, 1, "hi"), "-D[1,hi]"),
    (
        Types.ROW([Types.BOOLEAN(), Types.LIST(Types.STRING())]),
        Row(False, ["x"]),
        "+I[False,['x']]",
    ),
    (Types.LIST(Types.INT()), [1, 2, None], "[1, 2, null]"),
    (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, "b": 2}, "{a=1, b=2}"),
    (Types.TUPLE([NAMED, Types.BOOLEAN()]), (Row(1, "x"), False), "(+I[1, x],false)"),
    (
        Types.TUPLE([Types.DOUBLE(), Types.TUPLE([Types.STRING(), Types.LIST(Types.STRING())])]),
        (2.0, ("x", ["p", "q"])),
        "(2.0,(x,[p, q]))",
    ),
    (Types.PICKLED_BYTE_ARRAY(), ("hi", 1), "('hi', 1)"),
    (None, ("hi", 1), "('hi', 1)"),
    (None, Row(1, "a"), "<Row(1, 'a')>"),
]


@pytest.mark.parametrize(("declared", "value", "text"), PRINTED, ids=str)
def test_a_value_is_printed_as_pyflink_prints_it(declared, value, text, capsys) -> None:
    with local_environment() as env:
        env.from_collection([value], declared).print()
        env.execute()
    assert capsys.readouterr().out == f"{text}\n"


def test_doubles_are_written_as_java_writes_them() -> None:
    text = text_of(Types.DOUBLE())
    assert {number: text(number) for number in DOUBLES} == DOUBLES


def test_kinds_of_rows_have_short_names() -> None:
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert repr(RowKind.INSERT) == "<RowKind.INSERT: 0>"


def test_the_type_comes_from_whatever_is_before_the_sink(capsys) -> None:
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    with local_environment() as env:
        pairs = env.from_collection([("hi", 1)], pair)
        pairs.filter(bool).print("filtered")
        pairs.key_by(lambda p: p[0]).reduce(lambda a, b: a).print("reduced")
        pairs.map(lambda p: p).print("undeclared")
        env.execute()
    printed = sorted(capsys.readouterr().out.splitlines())
    assert printed == ["filtered> (hi,1)", "reduced> (hi,1)", "undeclared> ('hi', 1)"]


def test_files_have_the_same_text(tmp_path) -> None:
    records = [("hi", 1)], Types.TUPLE([Types.STRING(), Types.INT()])
    with local_environment() as env:
        for name, args in {"declared": records, "not": records[:1]}.items():
            builder = FileSink.for_row_format(str(tmp_path / name), Encoder.simple_string_encoder())
            env.from_collection(*args).sink_to(builder.build())
        rows = FileSink.for_row_format(str(tmp_path / "rows")).build()
        env.from_collection([(1, "hi")], NAMED).sink_to(rows)
        env.execute()
    found = {name: _text(tmp_path / name) for name in ("declared", "not", "rows")}
    assert found == {"declared": "(hi,1)\n", "not": "('hi', 1)\n", "rows": "+I[1,hi]\n"}


def _text(folder) -> str:
    return "".join(file.read_text() for file in folder.glob("part-*"))
