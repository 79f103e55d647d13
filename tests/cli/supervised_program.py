"""A program under supervision: its engine is a few lines that serve, fail or die as a file says, one word a start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import typer

from headgate.api.server import serving
from headgate.cli import engine_link
from headgate.cli.background import stop_signals
from headgate.cli.supervisor import supervised
from headgate.errors import InputError
from headgate.model.status import FragmentStatus
from headgate.service import restarts

QUICK, HEALTHY_S = 0.1, 0.5
"""In place of the real first pause, and of how long an engine must serve to be healthy."""


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def next_word(folder: Path) -> str:
    words = (folder / "words").read_text().split()
    (folder / "words").write_text(" ".join(words[1:]))
    return words[0] if words else "serve"


def main(folder: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Counts changes by request id; the first time it has made one called "boom", it dies before it answers."""
        await receive()
        request = dict(scope["headers"]).get(b"idempotency-key", b"").decode()
        made = folder / f"made-{request}"
        if request == "boom" and not made.exists():
            made.touch()
            kill()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps({"process": os.getpid()}).encode()})

    with supervised(folder / "state") as link, stop_signals(link.stopping), link.reporting():
        word = next_word(folder)
        print(word, "without newest" if link.crash else "", flush=True)
        left = [subprocess.Popen(["sleep", "1000"]).pid] if word == "leaving" else []
        (folder / "processes").write_text(" ".join(map(str, [os.getpid(), *left])))
        if word == "input":
            raise InputError("BAD", "this cannot be run")
        if word == "kill":
            kill()
        if word == "slow":
            time.sleep(2)
        with serving(folder / "state", app, link.listener), link.serving():
            if word == "bug":
                raise RuntimeError("a bug")
            if word == "served":
                kill()
            while not link.stopping.wait(0.02):
                link.saw([FragmentStatus("f", "f", "source", 1, 0, 1, 0, 0, 0.0, 0, None, 0.0)])


if __name__ == "__main__":
    restarts.FIRST_PAUSE_S = QUICK
    vars(engine_link)["HEALTHY_S"] = HEALTHY_S
    try:
        main(Path(sys.argv[1]))
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except InputError as error:
        print(error.message)
        sys.exit(2)
