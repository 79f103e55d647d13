"""Waiting for dataflows that catch up with what had passed when they were submitted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headgate.cli.remote import client_of
from headgate.errors import HeadgateError, printable

__all__ = ["wait_for_catch_up"]

EVERY_S = 0.5


def wait_for_catch_up(state: Path, names: Sequence[str]) -> None:
    """Wait until dataflows have caught up; on a terminal, show how far they are. Raises if one cannot go on."""
    if not sys.stderr.isatty():
        _wait(state, names, lambda _: None)
        return
    from rich.console import Console

    with Console(stderr=True).status("catching up ...") as shown:
        _wait(state, names, lambda text: shown.update(printable(text)))


def _wait(state: Path, names: Sequence[str], show: Callable[[str], None]) -> None:
    while True:
        with client_of(state) as client:
            flows = client.status()["dataflows"]
        behind = [flow for flow in flows if flow["name"] in names and flow["catch_up"] is not None]
        for flow in behind:
            if flow["state"] not in ("catching up", "throttled"):
                message = f"dataflow '{flow['name']}' is {flow['state']} and has not caught up: {flow['reason']}"
                raise HeadgateError("NOT_CAUGHT_UP", message)
        if not behind:
            return
        show("; ".join(f"{flow['name']}: {flow['reason']}" for flow in behind))
        time.sleep(EVERY_S)
