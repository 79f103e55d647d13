"""What Spark starts for Python here: it asks for a fork of a process with its imports done, and lives as long as that.

    python -IS fork_client.py ADDRESS -m MODULE [ARGUMENT ...]

It is a script with imports that take no time. Without a server it becomes Python.
"""

import array
import json
import os
import select
import signal
import socket
import sys

__all__ = ["run"]


def run(address: str, arguments: list[str]) -> None:
    """Be what was asked for until it ends."""
    asked = json.dumps([arguments[1:], dict(os.environ), os.getcwd()]).encode()  # noqa: PTH109
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
        files = array.array("i", [0, 1, 2])
        server.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        server.sendall(asked)
        child = int.from_bytes(server.recv(8), "big")
    except OSError:
        child = 0
    if not child:
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606
    for number in (0, 1, 2):
        os.close(number)
    try:
        end = os.pidfd_open(child)
    except ProcessLookupError:
        return
    signal.signal(signal.SIGTERM, lambda *_: signal.pidfd_send_signal(end, signal.SIGTERM))
    select.select([end], [], [])


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
