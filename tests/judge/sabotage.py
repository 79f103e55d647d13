"""Engines that are broken on purpose, to see that the judge notices: named by ``HEADGATE_JUDGE_SABOTAGE``.

Each waits for its third chance, so that there is something right before it.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SABOTAGES"]

AT = 3


def _drop_a_row() -> None:
    """A row is missing in a file that goes to a sink."""
    from headgate.tasks import sinks

    move, times = sinks._move, itertools.count(1)

    def broken(staged: Path, final: Path) -> None:
        if staged.exists() and final.parent.name == "rows" and next(times) == AT:
            lines = staged.read_text(encoding="utf-8").splitlines(keepends=True)
            staged.write_text("".join(lines[:-1]), encoding="utf-8")
        move(staged, final)

    sinks._move = broken


def _double_a_delivery() -> None:
    """A file goes to a sink twice, under two names."""
    from headgate.tasks import sinks

    move, times = sinks._move, itertools.count(1)

    def broken(staged: Path, final: Path) -> None:
        if staged.exists() and final.parent.name == "rows" and next(times) == AT:
            epoch, rest = final.name[5:13], final.name[13:]
            shutil.copyfile(staged, final.with_name(f"part-{int(epoch) + 90_000:08d}{rest}"))
        move(staged, final)

    sinks._move = broken


def _skip_a_write() -> None:
    """That a batch was published is not written: the next one takes its place."""
    from headgate.runtime.exchange import files

    exchange: Any = files
    write, times = exchange.write_json, itertools.count(1)

    def broken(path: Path, value: Any, step_name: str | None = None) -> None:
        if step_name != "head" or next(times) != AT:
            write(path, value, step_name)

    exchange.write_json = broken


SABOTAGES: dict[str, Callable[[], None]] = {
    "drop a row": _drop_a_row,
    "double a delivery": _double_a_delivery,
    "skip a write": _skip_a_write,
}
