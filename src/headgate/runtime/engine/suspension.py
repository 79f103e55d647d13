"""Going on without what may have ended the engine: such dataflows are paused or refused once, and not lost.

A dataflow is *on probation* from when it is first tried until the engine has lived for a while with it. If Spark's
process crashes meanwhile, the next engine goes on without it at once. After a crash loop, the dataflow that was
submitted last is paused, whenever that was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.model.names import DataflowName
from headgate.model.status import DataflowStatus, EngineCrash
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.store.entries import DataflowStored
from headgate.store.files import read_json, write_json

__all__ = ["PROBATION_S", "Suspensions"]

PROBATION_S = 30.0
"""How long the engine must live with a dataflow before its end is not the dataflow's fault."""


class Suspensions:
    """Which dataflows were paused after a crash, and why, and which are on probation; in files."""

    def __init__(
        self, file: Path, plans: Plans, crash: EngineCrash | None = None, now: Callable[[], float] = time.time
    ) -> None:
        """Read the files; after a crash pause what may be its cause, before anything is started."""
        self._file, self._now = file, now
        self._reasons: dict[str, str] = read_json(file) or {}
        self._probation_file = file.with_name("probation.json")
        kept: dict[str, Any] = read_json(self._probation_file) or {}
        self._new: dict[str, float] = kept.get("new", {})
        """When dataflows were accepted that are on probation."""

        self._blamed: dict[str, str] = kept.get("blamed", {})
        """Why, of dataflows that were being tried when Spark's process crashed, by what their authors wrote."""

        if crash is not None:
            self._blamed |= dict.fromkeys(kept.get("trying", ()), crash.reason)
            self._pause_suspects(plans, crash)
        self._new = dict.fromkeys(self._new, now())
        self._keep()

    @contextmanager
    def trying(self, change: PendingChange) -> Iterator[None]:
        """While a change is tried, note what is new in it; afterwards that is on probation.

        Raises :class:`InputError`, once, for what was being tried when Spark's process crashed.
        """
        ids = [_as_written(one) for one in change.new]
        if not ids:
            yield
            return
        blamed = [(id, self._blamed.pop(id)) for id in ids if id in self._blamed]
        if blamed:
            self._keep()
            message = f"this dataflow was being checked when the engine crashed ({blamed[0][1]})"
            raise InputError("CRASHED_THE_ENGINE", f"{message}; submit it again to try it once more")
        self._keep(ids)
        try:
            yield
            names = (submission.change.dataflow for submission in change.submissions)
            self._new |= dict.fromkeys(map(str, names), self._now())
        finally:
            self._keep()

    def explain(self, flows: Sequence[DataflowStatus]) -> list[DataflowStatus]:
        """Dataflows, with the reasons of those that are still paused."""
        if any(at + PROBATION_S < self._now() for at in list(self._new.values())):
            self._new = {name: at for name, at in self._new.items() if at + PROBATION_S >= self._now()}
            self._keep()
        paused = {flow.name for flow in flows if flow.state == "paused"}
        if not paused >= self._reasons.keys():
            self._note({name: reason for name, reason in self._reasons.items() if name in paused})
        return [replace(flow, reason=self._reasons.get(flow.name) or flow.reason) for flow in flows]

    def _pause_suspects(self, plans: Plans, crash: EngineCrash) -> None:
        snapshot = plans.snapshot
        running = [flow.name for flow in snapshot.dataflows if flow.name not in snapshot.paused]
        suspects = [name for name in running if name in self._new] or (running[-1:] if crash.is_loop else [])
        if not suspects:
            return
        self._note({**self._reasons, **{name: _sentence(name in self._new, crash.reason) for name in suspects}})
        tasks = [task for name in suspects for task in snapshot.find(name).signatures.values()]
        paused = snapshot.paused | set(map(DataflowName, suspects))
        following, plan = PendingChange(snapshot).chosen(tasks, paused=paused).compiled(plans.current)
        plans.prepare(plan)
        plans.publish(following, plan)
        self._new = {name: at for name, at in self._new.items() if name not in suspects}

    def _note(self, reasons: dict[str, str]) -> None:
        write_json(self._file, reasons)
        self._reasons = reasons

    def _keep(self, trying: Sequence[str] = ()) -> None:
        if trying or self._new or self._blamed or self._probation_file.exists():
            kept = {"new": self._new, "blamed": dict(list(self._blamed.items())[-100:]), "trying": list(trying)}
            write_json(self._probation_file, kept)


def _as_written(stored: DataflowStored) -> str:
    """Stands for what an author wrote: how it is run depends on what runs already."""
    return hashlib.blake2b(json.dumps(stored.document["written"]).encode(), digest_size=16).hexdigest()


def _sentence(is_new: bool, reason: str) -> str:
    why = "while it was new" if is_new else "again and again, and this dataflow was the newest"
    message = f"paused because the engine crashed {why}"
    return f"{message} (last: {reason}); resume it through the API, or withdraw it and submit it again"
