"""What a service says to systemd: that it is ready, and that it stops."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

__all__ = ["notify_service_manager"]


def notify_service_manager(state: str) -> None:
    """Send a state such as ``READY=1`` to the service manager, if there is one that waits for it (``sd_notify``)."""
    place = os.environ.get("NOTIFY_SOCKET")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), address)
