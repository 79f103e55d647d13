"""Engines that are broken on purpose, to see that the judge notices: named by ``HEADGATE_JUDGE_SABOTAGE``.

Each waits for its third chance, so that there is something right before it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

__all__ = ["SABOTAGES"]

AT = 3
AWHILE_S = 3.0


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
    """A change is answered and is not in the journal: it is gone when the engine dies a moment later."""
    from headgate.store.entries import Acknowledged, SnapshotPublished
    from headgate.store.journal import Journal

    append, times = Journal.append, itertools.count(1)

    def broken(self: Journal, *entries: Any, durable: bool = True) -> Any:
        done = append(self, *entries, durable=durable)
        if any(isinstance(entry, SnapshotPublished) for entry in entries) and next(times) == AT:
            lost = [entry for entry in entries if isinstance(entry, SnapshotPublished | Acknowledged)]

            def die() -> None:
                self.compact(lambda entry: entry not in lost)
                os.kill(os.getpid(), signal.SIGKILL)

            threading.Timer(AWHILE_S, die).start()
        return done

    Journal.append = broken  # type: ignore[method-assign]


def _reorder_a_file() -> None:
    """A batch of several files has them in another order."""
    from headgate.runtime.file_source import driver as source

    driver: Any = source
    plan, times = driver.next_plan, itertools.count(1)

    def broken(*arguments: Any) -> Any:
        made = plan(*arguments)
        if len(made.spans) > 1 and next(times) >= AT:
            return replace(made, spans=made.spans[::-1])
        return made

    driver.next_plan = broken


def _run_the_old_plan() -> None:
    """For a while, epochs of a source run the snapshot before the one that is current."""
    from headgate.runtime.compile.plan import Kind
    from headgate.runtime.epochs.fragment import RunningFragment

    plans, since = RunningFragment._plans, dict[int, float]()

    def broken(self: RunningFragment, epoch: int) -> Any:
        made = plans(self, epoch)
        number = made[-1].number if made else 0
        began = since.setdefault(number, time.monotonic())
        if self.fragment.kind is Kind.SOURCE and number >= AT and time.monotonic() < began + AWHILE_S:
            return [self.context.plan(number - 1)]
        return made

    RunningFragment._plans = broken  # type: ignore[method-assign]


SABOTAGES: dict[str, Callable[[], None]] = {
    "drop a row": _drop_a_row,
    "double a delivery": _double_a_delivery,
    "skip a write": _skip_a_write,
    "reorder a file": _reorder_a_file,
    "run the old plan": _run_the_old_plan,
}
