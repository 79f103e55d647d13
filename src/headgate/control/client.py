"""The other side of the control socket: ask the engine of a state directory for something."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.control.place import socket_place
from headgate.errors import Fault, HeadgateError, InputError, InvalidDataflow, Place, os_reason

__all__ = ["ask"]

CONNECT_S = 10.0


def ask(state: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request and wait for the answer, however long the engine works on it; raises what the engine refuses."""
    with contextlib.closing(_connected(state)) as connection:
        connection.settimeout(None)
        line = b""
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = connection.makefile("rb").readline()
    if not line.endswith(b"\n"):
        told = (
            f"the engine of {state} ended before it answered; start it again, and headgate list tells whether it had "
            "taken the request"
        )
        raise InputError("ENGINE_GONE", told)
    answer = json.loads(line)
    if "error" in answer:
        raise _raised(answer["error"])
    found: dict[str, Any] = answer["answer"]
    return found


def _connected(state: Path) -> socket.socket:
    start = f"start one with headgate run --serve --state {state}"
    if not state.is_dir():
        raise InputError("NO_ENGINE", f"no engine is running on {state}: there is no such directory; {start}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_S)
    try:
        connection.connect(str(socket_place(state)))
    except FileNotFoundError:
        connection.close()
        raise InputError("NO_ENGINE", f"no engine is running on {state}; {start}") from None
    except ConnectionRefusedError:
        connection.close()
        told = f"the engine of {state} is dead: it left its socket and nobody listens; {start}"
        raise InputError("ENGINE_DEAD", told) from None
    except OSError as error:
        connection.close()
        told = f"cannot reach the engine of {state}: {os_reason(error)}"
        raise InputError("NO_ENGINE", told) from None
    return connection


def _raised(error: Mapping[str, Any]) -> HeadgateError:
    if error.get("faults"):
        return InvalidDataflow(_fault(fault) for fault in error["faults"])
    return InputError(error["condition"], error["message"])


def _fault(told: Mapping[str, Any]) -> Fault:
    place = Place(told["file"], told["line"], told["column"])
    return Fault(told["condition"], told["message"], place, told["task"], told["expected"], told["nearest"])
