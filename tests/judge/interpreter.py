"""The program that Spark takes for Python: it asks :mod:`tests.judge.fork_server` for a fork, and ends with it."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["interpreter"]

INTERPRETER = """#!{python} -IS
import array, json, os, select, signal, socket, sys
if sys.argv[1:2] != ["-m"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
asked = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
files = array.array("i", [0, 1, 2])
server.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
server.sendall(asked)
child = int.from_bytes(server.recv(8), "big")
for number in (0, 1, 2):
    os.close(number)
try:
    end = os.pidfd_open(child)
except ProcessLookupError:
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: signal.pidfd_send_signal(end, signal.SIGTERM))
select.select([end], [], [])
"""


def interpreter(folder: Path, address: Path) -> Path:
    """Write the program that Spark takes for Python."""
    path = folder / "python"
    path.write_text(INTERPRETER.format(python=sys.executable, address=str(address)), encoding="utf-8")
    path.chmod(0o755)
    return path
