"""Clients that must encrypt and log in: source, sink, and the commits that go past the client."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kafka_parts import read, read_all, values
from sink_parts import begun, committer, put

from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.errors import PenstockError, SinkError
from penstock.testing.kafka import KafkaBroker, Security, kafka_broker

# One process starts the broker of these tests.
pytestmark = [pytest.mark.full("Kafka"), pytest.mark.xdist_group("security")]

USERS = {"upi": "correct horse"}


def certificate() -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(encoding).decode(), private.decode()


@pytest.fixture(scope="module")
def pem() -> tuple[str, str]:
    return certificate()


@pytest.fixture(scope="module")
def secure(pem: tuple[str, str]) -> Iterator[KafkaBroker]:
    with kafka_broker(security=Security(USERS, *pem)) as broker:
        broker.create_topic("payments", 1)
        yield broker


@pytest.fixture
def properties(pem: tuple[str, str], tmp_path: Path) -> dict[str, str]:
    """What the documentation of librdkafka says to set."""
    (tmp_path / "ca.pem").write_text(pem[0])
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "upi",
        "sasl.password": USERS["upi"],
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }


def sink(broker: KafkaBroker, properties: dict[str, str], prefix: str) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic("payments").build()
    builder = KafkaSink.builder().set_bootstrap_servers(broker.secure_servers)
    builder.set_record_serializer(schema).set_transactional_id_prefix(prefix)
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    for key, value in properties.items():
        builder.set_property(key, value)
    return builder.build()


def test_writing_exactly_once_and_reading_over_tls_with_a_password(
    secure: KafkaBroker, properties: dict[str, str]
) -> None:
    built = sink(secure, properties, "secure")
    end, writer = begun(built)
    put(writer, "a", "b")
    prepared = writer.prepare_commit()()
    assert read_all(secure, "payments") == []
    end.commit(prepared)
    assert values(read_all(secure, "payments")) == ["a", "b"]
    writer.close()
    end.close()
    source = KafkaSource.builder().set_bootstrap_servers(secure.secure_servers)
    source.set_topics("payments").set_properties(properties).set_bounded("latest")
    assert read(source) == ["a", "b"]


def test_a_wrong_password_and_an_unknown_certificate_are_errors_at_once(
    secure: KafkaBroker, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {**properties, "sasl.password": "correct donkey"}
    end = committer(sink(secure, wrong, "wrong"))
    with pytest.raises(SinkError, match="refuses the user 'upi' or its password") as caught:
        end.abort_others([])
    assert "donkey" not in str(caught.value), "a password is nobody's business"
    end.close()
    untrusting = {**properties}
    del untrusting["ssl.ca.location"]
    end = committer(sink(secure, untrusting, "unknown"))
    with pytest.raises(SinkError, match="certificate"):
        end.abort_others([])
    end.close()
    monkeypatch.setattr("penstock.connectors.kafka.partitions.ASK_SECONDS", 3.0)
    source = KafkaSource.builder().set_bootstrap_servers(secure.secure_servers)
    source.set_topics("payments").set_properties(wrong).set_bounded("latest")
    with pytest.raises(PenstockError, match="does not answer") as refused:
        read(source)
    assert "donkey" not in str(refused.value)
