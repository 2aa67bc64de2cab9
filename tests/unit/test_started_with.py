"""Settings of spark-defaults.conf, as Spark itself reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.started_with import read_properties, started_with


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("spark.master spark://a:7077", {"spark.master": "spark://a:7077"}),
        ("  spark.master=local[2]  ", {"spark.master": "local[2]"}),
        ("spark.master : local", {"spark.master": "local"}),
        (
            "spark.driver.extraJavaOptions -Da=b -Dc=d",
            {"spark.driver.extraJavaOptions": "-Da=b -Dc=d"},
        ),
        ("spark.empty", {"spark.empty": ""}),
        ("# spark.master local", {}),
        ("! spark.master local", {}),
        ("", {}),
        ("other.key 1", {}),
    ],
)
def test_a_line(tmp_path: Path, line: str, found: dict[str, str]) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(f"{line}\n")
    assert read_properties(file) == found
    assert started_with({"SPARK_CONF_DIR": str(tmp_path)}) == found


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert started_with({"SPARK_CONF_DIR": str(tmp_path)}) == {}
