"""A connection to a broker for requests that the client library does not offer.

Plain or TLS, with SASL PLAIN where that is configured: by the same properties as the client's.
"""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
from collections.abc import Mapping

from penstock.connectors.kafka.wire import Reader, Writer
from penstock.errors import ProgramError, SinkError

TIMEOUT_SECONDS = 10.0
_CLIENT = "penstock"
_HANDSHAKE, _AUTHENTICATE = 17, 36


class BrokerConnection:
    """Sends one request at a time; OSError when the broker cannot be reached or breaks off.

    A broker that answers and does not let the user in is a SinkError: waiting would not help.
    """

    def __init__(
        self, host: str, port: int, properties: Mapping[str, str], seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._numbers = itertools.count()
        self._socket = socket.create_connection((host, port), seconds)
        try:
            protocol = security_protocol(properties)
            if "SSL" in protocol:
                self._socket = _encrypted(self._socket, host, properties)
            if "SASL" in protocol:
                self._log_in(properties)
        except BaseException:
            self._socket.close()
            raise

    def wait(self, seconds: float) -> None:
        """From now on, wait so long for a broker that sends nothing."""
        self._socket.settimeout(seconds)

    def request(self, api: int, version: int, body: Writer, flexible: bool = True) -> Reader:
        """The answer to a request, after its header."""
        number = next(self._numbers)
        header = Writer().int16(api).int16(version).int32(number).string(_CLIENT)
        if flexible:
            header.tags()
        message = header.done() + body.done()
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (length,) = struct.unpack(">i", self._receive(4))
        answer = Reader(self._receive(length))
        if answer.int32() != number:
            raise OSError("the broker answered another request")
        if flexible:
            answer.tags()
        return answer

    def close(self) -> None:
        self._socket.close()

    def _receive(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            part = self._socket.recv(length - len(data))
            if not part:
                raise OSError("the broker closed the connection")
            data += part
        return bytes(data)

    def _log_in(self, properties: Mapping[str, str]) -> None:
        answer = self.request(_HANDSHAKE, 1, Writer().string("PLAIN"), flexible=False)
        if code := answer.int16():
            raise SinkError(f"the broker does not take SASL PLAIN (error {code})")
        name, password = properties.get("sasl.username", ""), properties.get("sasl.password", "")
        token = f"\0{name}\0{password}".encode()
        answer = self.request(_AUTHENTICATE, 2, Writer().compact_bytes(token).tags())
        if code := answer.int16():
            raise SinkError(f"the broker refuses the user {name!r} or its password (error {code})")


def security_protocol(properties: Mapping[str, str]) -> str:
    """The security protocol; ProgramError for one that only the client library speaks."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "PLAIN"))
    if "SASL" in protocol and mechanism.upper() != "PLAIN":
        raise ProgramError(
            f"exactly-once delivery to Kafka logs in with SASL PLAIN, not {mechanism}; use PLAIN "
            "over SASL_SSL, client certificates (SSL), or delivery at least once"
        )
    return protocol


def _encrypted(plain: socket.socket, host: str, properties: Mapping[str, str]) -> socket.socket:
    try:
        return _tls(properties).wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise SinkError(
            f"the certificate of the broker at {host} is not trusted: {error.verify_message}; "
            "ssl.ca.location names a PEM file with the authority that signed it"
        ) from error


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
    if properties.get("ssl.endpoint.identification.algorithm", "https") in ("", "none"):
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = properties.get("ssl.certificate.location")
    if certificate is not None:
        key = properties.get("ssl.key.location")
        context.load_cert_chain(certificate, key, properties.get("ssl.key.password"))
    return context
