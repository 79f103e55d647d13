"""Forks engines from a process that has imported everything: each is a session of its own and runs ``headgate``.

A line on standard input is a JSON object with ``arguments``, ``log`` and ``folder``; the answer is the process id.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys

import headgate.api.application
import headgate.api.server
import headgate.runtime.engine.engine  # noqa: F401
from headgate.cli.main import main
from tests.judge.sabotage import SABOTAGES


def _engine(arguments: list[str], log: str, folder: str) -> None:
    """Become an engine."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    with open(os.devnull, "rb") as nothing, open(log, "ab") as file:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["headgate", *arguments]
    main()


if __name__ == "__main__":
    if sabotage := os.environ.get("HEADGATE_JUDGE_SABOTAGE"):
        SABOTAGES[sabotage]()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _engine(**json.loads(line))
            os._exit(0)
        print(child, flush=True)
