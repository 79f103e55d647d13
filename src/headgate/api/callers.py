"""Who sends a request: on the Unix socket the user whose process it is. A request from nobody known is refused.

What authenticates in another way, such as by a token, puts its :class:`Principal` into the request's state before this
is asked.
"""

from __future__ import annotations

import os
import pwd
import socket
import struct
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request

from headgate.access.authority import AccessRefused, Verb, check_access
from headgate.access.policy import AccessPolicy
from headgate.access.principal import AccessRole, Principal

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


def caller(request: Request) -> Principal:
    """Who sends a request; raises :class:`AccessRefused` for somebody unknown or without a role."""
    who: Principal | None = getattr(request.state, "principal", None)
    if who is None:
        peer: Peer | None = getattr(request.state, "peer", None)
        if peer is None:
            raise AccessRefused("NOT_AUTHENTICATED", "This request does not say who sends it; send a token with it.")
        who = principal_of(peer, request.app.state.policy)
        request.state.principal = who
    if who.role is AccessRole.NONE:
        check_access(who, Verb.READ)
    return who


Caller = Annotated[Principal, Depends(caller)]
"""Who sends the request; every route has one."""
