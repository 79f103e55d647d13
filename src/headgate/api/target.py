"""Where a client's engine is: behind the Unix socket of a state directory, or at a URL."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from headgate.api.place import is_supervised, socket_place
from headgate.errors import HeadgateError, InputError, os_reason, shorten

__all__ = ["ApiTarget", "NotNowError", "SocketTarget", "UrlTarget"]

CONNECT_S = 10.0
TIMEOUT = httpx.Timeout(None, connect=CONNECT_S)
# A connection for each request: one that is kept may be closed by the engine just as it is used again.
LIMITS = httpx.Limits(max_keepalive_connections=0)


class NotNowError(Exception):
    """A request that may be answered when it is sent again; ``final`` is the error if it is not."""

    def __init__(self, final: HeadgateError) -> None:
        super().__init__(final.message)
        self.final = final


class ApiTarget(Protocol):
    """An engine that may be reached."""

    def client(self) -> httpx.Client: ...
    def async_client(self) -> httpx.AsyncClient: ...
    def check(self) -> None:
        """Raise, if no engine listens, why, and how to start one."""

    def may_return(self) -> bool:
        """Whether an engine that does not answer may be on its way."""

    def gone(self) -> HeadgateError:
        """What a connection that breaks means."""


class SocketTarget:
    """The engine of a state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(socket_place(self.state)), limits=LIMITS, verify=False)
        return httpx.Client(transport=transport, **_SOCKET)

    def async_client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=str(socket_place(self.state)), limits=LIMITS, verify=False)
        return httpx.AsyncClient(transport=transport, **_SOCKET)

    def may_return(self) -> bool:
        return is_supervised(self.state)

    def gone(self) -> HeadgateError:
        message = (
            "The engine stopped before replying. Restart it and run `headgate list` to see whether the change was "
            "applied."
        )
        return InputError("ENGINE_GONE", message)

    def check(self) -> None:
        state = self.state
        start = f"Start one with: headgate run --serve --state {state}"
        if not state.is_dir():
            raise InputError("NO_ENGINE", f"No engine is running on {state}: there is no such directory. {start}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_S)
            try:
                probe.connect(str(socket_place(state)))
            except FileNotFoundError:
                raise NotNowError(InputError("NO_ENGINE", f"No engine is running on {state}. {start}")) from None
            except ConnectionRefusedError:
                message = f"The engine of {state} is dead: its socket is there, but nothing listens. {start}"
                raise NotNowError(InputError("ENGINE_DEAD", message)) from None
            except OSError as error:
                message = f"Cannot reach the engine of {state}: {os_reason(error)}."
                raise InputError("NO_ENGINE", message) from None


class UrlTarget:
    """A service on the network, and the token that says who asks."""

    def __init__(self, url: str, token: str | None = None, certificates: Path | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"{shorten(url)} is no URL of a service: expected one such as https://headgate.example:8080"
            raise InputError("BAD_URL", message)
        self.url, self._token = url.rstrip("/"), token
        self._verify = certificates is None or ssl.create_default_context(cafile=str(certificates))

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.HTTPTransport(limits=LIMITS, verify=self._verify), **self._settings())

    def async_client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(limits=LIMITS, verify=self._verify)
        return httpx.AsyncClient(transport=transport, **self._settings())

    def check(self) -> None:
        """A connection that fails says it well enough."""

    def may_return(self) -> bool:
        return False  # a service that restarts its engine says so itself

    def gone(self) -> HeadgateError:
        return InputError("NO_ENGINE", f"Cannot reach {self.url}, or the connection broke before an answer came.")

    def _settings(self) -> dict[str, Any]:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        return {"base_url": f"{self.url}/v1", "timeout": TIMEOUT, "trust_env": False, "headers": headers}


_SOCKET: dict[str, Any] = {"base_url": "http://engine/v1", "timeout": TIMEOUT, "trust_env": False}
