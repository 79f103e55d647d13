"""The process at the other end of a Unix socket and the user whose it is; and who sends a request, for the routes.

What authenticates in another way than :mod:`headgate.api.identities` puts its :class:`Principal` into the request's
state before this is asked.
"""

from __future__ import annotations

import os
import pwd
import socket
import struct
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request

from headgate.access.policy import AccessPolicy
from headgate.access.principal import Principal

__all__ = ["Caller", "Peer", "caller", "peer_of", "principal_of", "running_user"]

CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    """The process at the other end of a Unix socket."""

    process: int
    user: int


def peer_of(connection: Any) -> Peer | None:
    """Who is at the other end, as the kernel says; nothing for other sockets."""
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    if not hasattr(socket, "SO_PEERCRED"):  # only who may enter the socket's folder can connect
        return Peer(0, os.getuid())
    process, user, _ = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    return Peer(process, user)


def principal_of(peer: Peer, policy: AccessPolicy) -> Principal:
    """The principal that a process speaks for: the user who runs it."""
    origin = f"unix socket, process {peer.process}"
    return policy.principal(_name(peer.user), runs_engine=peer.user in (0, os.getuid()), origin=origin)


def running_user(policy: AccessPolicy) -> Principal:
    """Who runs this process."""
    return policy.principal(_name(os.getuid()), runs_engine=True, origin="command line of the engine")


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid-{user}"


async def caller(request: Request) -> Principal:
    """Who sends a request; raises :class:`AccessRefused` for somebody unknown, or who may not use the route."""
    admitted: Principal | None = getattr(request.state, "admitted", None)
    if admitted is None:
        admitted = request.state.admitted = request.app.state.identities.admit(request)
    return admitted


Caller = Annotated[Principal, Depends(caller)]
"""Who sends the request; every route has one."""
