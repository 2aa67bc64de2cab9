"""JARs of connectors that are built in are not needed; others are refused."""

from __future__ import annotations

import logging

import pytest

from penstock.common import jars
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import JavaOnlyError


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(jars, "_said", set())


@pytest.mark.parametrize("method", ["add_jars", "add_classpaths"])
@pytest.mark.parametrize(
    ("jar", "what"),
    [
        ("file:///opt/flink-sql-connector-kafka-3.2.0-1.19.jar", "Kafka"),
        ("file:///opt/kafka-clients-3.7.0.jar", "Kafka"),
        ("file:///opt/flink-connector-jdbc-3.1.2-1.18.jar", "JDBC"),
        ("file:///opt/postgresql-42.7.3.jar", "JDBC"),
        ("file:///opt/flink-connector-files-1.19.0.jar", "files"),
        ("file:///opt/flink-sql-parquet-1.19.0.jar", "files"),
        ("file:///opt/flink-s3-fs-hadoop-1.19.0.jar", "S3"),
    ],
)
def test_a_jar_of_what_is_built_in_is_not_needed(caplog, method, jar, what):
    env = StreamExecutionEnvironment()
    with caplog.at_level(logging.WARNING):
        getattr(env, method)(jar)
        getattr(env, method)(jar, jar)
    [said] = caplog.messages
    assert said == f"{method}(): no JAR is needed for {what}, which is built in: {jar}"


@pytest.mark.parametrize("method", ["add_jars", "add_classpaths"])
def test_a_jar_of_the_users_own_is_refused(method):
    env = StreamExecutionEnvironment()
    with pytest.raises(JavaOnlyError, match=rf"^{method}\(\): file:///mine\.jar: .* Python"):
        getattr(env, method)("file:///opt/kafka.jar", "file:///mine.jar")
