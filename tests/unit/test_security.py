"""Which sessions let secrets travel in the clear."""

from __future__ import annotations

import pytest

from penstock.spark.security import weakness

AUTHENTIC = {"spark.authenticate": "true"}
ENCRYPTED = {"spark.network.crypto.enabled": "true"}
TLS = {"spark.ssl.rpc.enabled": "true"}


@pytest.mark.parametrize("master", ["spark://10.0.0.1:7077", "yarn", "k8s://https://10.0.0.1:443"])
@pytest.mark.parametrize(
    ("conf", "missing"),
    [
        ({}, "add spark.authenticate=true and spark.network.crypto.enabled=true to"),
        (AUTHENTIC, "add spark.network.crypto.enabled=true to"),
        (ENCRYPTED, "add spark.authenticate=true to"),
        ({**AUTHENTIC, "spark.network.crypto.enabled": "false"}, "add spark.network.crypto"),
    ],
)
def test_what_is_missing_is_named(master: str, conf: dict[str, str], missing: str) -> None:
    found = weakness(master, conf)
    assert found is not None
    assert found.startswith(f"on {master} the program")
    assert missing in found


@pytest.mark.parametrize("conf", [{**AUTHENTIC, **ENCRYPTED}, {**AUTHENTIC, **TLS}])
def test_a_secure_cluster_is_fine(conf: dict[str, str]) -> None:
    assert weakness("spark://10.0.0.1:7077", conf) is None


@pytest.mark.parametrize(
    "master", ["local[4]", "local-cluster[2,2,1024]", "spark://127.0.0.1:7077"]
)
def test_what_stays_on_this_machine_is_fine(master: str) -> None:
    assert weakness(master, {}) is None
