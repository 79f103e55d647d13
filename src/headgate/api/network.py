"""Listening on the network: an address, and the certificate if connections are encrypted."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from headgate.errors import InputError, os_reason, shorten

__all__ = ["Certificate", "NetworkListener", "address_of_text", "listening"]

LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate and of its private key."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """What encrypts connections; raises :class:`InputError` if the files are of no use."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            message = f"{self.certificate} and {self.key} are no certificate with its key: {error.reason}"
            raise InputError("BAD_CERTIFICATE", message) from None
        except OSError as error:
            message = f"cannot read the certificate {self.certificate} or its key {self.key}: {os_reason(error)}"
            raise InputError("BAD_CERTIFICATE", message) from None
        return context


@dataclass(frozen=True, slots=True)
class NetworkListener:
    """A socket on the network that listens."""

    socket: socket.socket
    certificate: Certificate | None = None

    @property
    def url(self) -> str:
        """Where it is reached.

        >>> with listening("127.0.0.1:0") as listener:
        ...     listener.url.startswith("http://127.0.0.1:")
        True
        """
        host, port = self.socket.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"{'http' if self.certificate is None else 'https'}://{name}:{port}"

    @property
    def is_exposed(self) -> bool:
        """Whether tokens may pass a network as they are."""
        return self.certificate is None and not ip_address(self.socket.getsockname()[0]).is_loopback


def address_of_text(text: str) -> tuple[str, int]:
    """Host and port of an address; a port alone is one of this machine.

    >>> address_of_text("127.0.0.1:8080"), address_of_text("8080"), address_of_text("[::1]:80")
    (('127.0.0.1', 8080), ('127.0.0.1', 8080), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536) or (colon and not host):
        message = f"--listen {shorten(text)} is no address: expected HOST:PORT, such as 127.0.0.1:8080"
        raise InputError("BAD_ADDRESS", message)
    return host.strip("[]") or LOCAL, int(port)


@contextmanager
def listening(address: str, certificate: Certificate | None = None) -> Iterator[NetworkListener]:
    """A socket on the network; raises :class:`InputError` if the address cannot be had."""
    host, port = address_of_text(address)
    if certificate is not None:
        certificate.context()
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError("CANNOT_LISTEN", f"Cannot listen on {address}: {os_reason(error)}.") from None
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(1024)
        except OSError as error:
            raise InputError("CANNOT_LISTEN", f"Cannot listen on {address}: {os_reason(error)}.") from None
        yield NetworkListener(listener, certificate)
