"""A Kafka broker on loopback, in a process of its own that a test can kill and start again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from penstock.errors import PenstockError
from penstock.spark.java import ensure_java
from penstock.testing.children import START_SECONDS, die_with_parent
from penstock.testing.kafka.jars import kafka_jars
from penstock.testing.ports import free_ports

# One broker holds every copy there is, and the internal topics have one partition each: with the
# usual fifty, the first transaction waits for fifty leaders.
_SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.max.timeout.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # A broker that was killed comes back when its old session has expired.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "log.segment.bytes": "67108864",
    # Messages carry event time, and a test's events may be of any year.
    "log.retention.ms": "-1",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass(frozen=True)
class Security:
    """A second listener, for clients that must log in or encrypt."""

    users: Mapping[str, str] = field(default_factory=dict)
    """Names and passwords, for SASL PLAIN; none: nobody need log in."""
    certificate: str | None = None
    """A certificate for 127.0.0.1 in PEM, for TLS."""
    key: str | None = None
    """Its private key in PEM (PKCS 8, not encrypted)."""

    @property
    def protocol(self) -> str:
        """As in the property `security.protocol`."""
        transport = "PLAINTEXT" if self.certificate is None else "SSL"
        return f"SASL_{transport}" if self.users else transport

    def settings(self) -> dict[str, str]:
        """Of the server, for the listener SECURE."""
        found = {}
        if self.users:
            logins = " ".join(f'user_{name}="{word}"' for name, word in self.users.items())
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            found["sasl.enabled.mechanisms"] = "PLAIN"
            found["listener.name.secure.plain.sasl.jaas.config"] = f"{module} required {logins};"
        if self.certificate is not None:
            found["ssl.keystore.type"] = "PEM"
            found["ssl.keystore.certificate.chain"] = _one_line(self.certificate)
            found["ssl.keystore.key"] = _one_line(self.key or "")
        return found


@dataclass(frozen=True)
class Seat:
    """The place of a broker in its cluster, where every broker is a controller too."""

    cluster: str
    """The id of the cluster."""
    controllers: tuple[int, ...]
    """The ports of all controllers; they are numbered from 1."""
    number: int
    """Which one of them this is."""

    @staticmethod
    def new(count: int) -> list[Seat]:
        """The seats of a new cluster."""
        cluster, ports = uuid.uuid4().hex[:22], tuple(free_ports(count))
        return [Seat(cluster, ports, number) for number in range(1, count + 1)]

    @property
    def port(self) -> int:
        return self.controllers[self.number - 1]

    def voters(self) -> str:
        """As in the property `controller.quorum.voters`."""
        ports = enumerate(self.controllers, 1)
        return ",".join(f"{number}@127.0.0.1:{port}" for number, port in ports)


class KafkaBroker:
    """A broker and its data. Made by `kafka_broker` or `kafka_cluster`."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], security: Security, seat: Seat
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._security = security
        self._seat = seat
        self._port, secure = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{self._port}"
        self.secure_servers = f"127.0.0.1:{secure}"
        """Where `Security` is asked for."""
        self._properties = folder / "server.properties"
        self._log = folder / "broker.log"
        self._classpath = os.pathsep.join(str(jar) for jar in kafka_jars())
        self._process: subprocess.Popen[bytes] | None = None
        ensure_java()
        home = os.environ.get("JAVA_HOME")
        self._java = str(Path(home, "bin", "java")) if home else "java"
        self._write_properties(settings)
        self._format()

    @property
    def pid(self) -> int:
        """The process of the running broker."""
        if self._process is None:
            raise PenstockError("the broker is not running")
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, on the data that it left, and wait until it answers."""
        self.launch()
        self.await_answer()

    def launch(self) -> None:
        """Start it; it answers when most of its cluster runs."""
        if self.runs:
            raise PenstockError("the broker is running already")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C for the test is not one for the broker
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )

    def await_answer(self) -> None:
        """Wait until it answers, and knows of a broker that runs."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(KafkaException):
                if self._admin().list_topics(timeout=1).brokers:
                    return
            if not self.runs:
                raise PenstockError(f"the broker ended: {self._last_words()}")
            if time.monotonic() > deadline:
                self.kill()
                raise PenstockError(f"the broker does not answer: {self._last_words()}")
            time.sleep(0.1)

    def configure(self, **settings: str) -> None:
        """Change settings, with `_` for each dot; they hold from the next start."""
        with self._properties.open("a", encoding="utf-8") as properties:
            for key, value in settings.items():
                properties.write(f"{key.replace('_', '.')}={value}\n")

    def kill(self) -> None:
        """kill -9: no goodbye to clients, no clean log. `start` brings it back."""
        process = self._process
        if process is not None:
            self._process = None
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic, or add partitions to it; settings with `_` for each dot."""
        admin = self._admin()
        config = {key.replace("_", "."): value for key, value in settings.items()}
        if name in admin.list_topics(timeout=30).topics:
            futures = admin.create_partitions([NewPartitions(name, partitions)])
        else:
            futures = admin.create_topics([NewTopic(name, partitions, config=config)])
        futures[name].result(30)
        deadline = time.monotonic() + 30
        while True:
            found = admin.list_topics(timeout=30).topics.get(name)
            if found is not None and len(found.partitions) == partitions:
                return
            if time.monotonic() > deadline:
                raise PenstockError(f"topic {name} does not appear")
            time.sleep(0.05)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all that is in it."""
        admin = self._admin()
        admin.delete_topics([name])[name].result(30)

    def topics(self) -> set[str]:
        """The names of all topics."""
        return set(self._admin().list_topics(timeout=30).topics)

    def segments(self, topic: str, partition: int) -> list[Path]:
        """The files of a partition's log, oldest first. What is changed in them, clients read."""
        return sorted((self._folder / "data" / f"{topic}-{partition}").glob("*.log"))

    def _admin(self) -> AdminClient:
        # Whether it answers is this class's own question: its client need not report refusals.
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def _write_properties(self, settings: Mapping[str, str]) -> None:
        listeners = f"PLAINTEXT://{self.bootstrap_servers},SECURE://{self.secure_servers}"
        protocols = f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:{self._security.protocol}"
        own = {
            "node.id": str(self._seat.number),
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._seat.port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": protocols,
            "controller.quorum.voters": self._seat.voters(),
            "log.dirs": str(self._folder / "data"),
            **self._security.settings(),
        }
        lines = [f"{key}={value}" for key, value in {**_SETTINGS, **own, **settings}.items()]
        self._properties.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _format(self) -> None:
        arguments = ("format", "-t", self._seat.cluster, "-c", str(self._properties))
        done = subprocess.run(
            self._command("kafka.tools.StorageTool", *arguments),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise PenstockError(f"the broker's folder cannot be made: {done.stdout}{done.stderr}")

    def _command(self, main: str, *arguments: str) -> list[str]:
        # A broker for tests lives for minutes: what the second compiler would gain it does not
        # get back.
        flags = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return [self._java, *flags, "-cp", self._classpath, main, *arguments]

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def kafka_broker(
    settings: Mapping[str, str] | None = None, security: Security | None = None
) -> Iterator[KafkaBroker]:
    """A running broker while the block runs; nothing of it is left afterwards.

    `settings` are server properties on top of those that make a single node work. `security` is
    what `secure_servers` ask of clients; `bootstrap_servers` ask nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix="penstock-kafka-"))
    try:
        broker = KafkaBroker(folder, settings or {}, security or Security(), *Seat.new(1))
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one_line(pem: str) -> str:
    """As the value of a Java property."""
    return pem.strip().replace("\n", "\\n")
