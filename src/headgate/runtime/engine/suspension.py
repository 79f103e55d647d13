"""Going on without what was newest: after a crash loop the dataflow that was submitted last is paused, not lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headgate.model.status import DataflowStatus
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.store.files import read_json, write_json

__all__ = ["Suspensions"]


class Suspensions:
    """Which dataflows were paused after a crash loop, and why; in a file, so that it is known after a restart."""

    def __init__(self, file: Path, plans: Plans, without_newest: str | None = None) -> None:
        """Read the file; pause one more dataflow, if there is a reason to, before anything is started."""
        self._file = file
        self._reasons: dict[str, str] = read_json(file) or {}
        if without_newest is not None:
            self._pause_newest(plans, without_newest)

    def _pause_newest(self, plans: Plans, reason: str) -> None:
        snapshot = plans.snapshot
        names = [flow.name for flow in snapshot.dataflows if flow.name not in snapshot.paused]
        if not names:
            return
        tasks = snapshot.find(names[-1]).signatures.values()
        change = PendingChange(snapshot).chosen(tasks, paused=snapshot.paused | {names[-1]})
        self._note({**self._reasons, names[-1]: reason})
        following, plan = change.compiled(plans.current)
        plans.prepare(plan)
        plans.publish(following, plan)

    def explain(self, flows: Sequence[DataflowStatus]) -> list[DataflowStatus]:
        """Dataflows, with the reasons of those that are still paused."""
        paused = {flow.name for flow in flows if flow.state == "paused"}
        if not paused >= self._reasons.keys():
            self._note({name: reason for name, reason in self._reasons.items() if name in paused})
        return [replace(flow, reason=_sentence(self._reasons.get(flow.name), flow.reason)) for flow in flows]

    def _note(self, reasons: dict[str, str]) -> None:
        write_json(self._file, reasons)
        self._reasons = reasons


def _sentence(reason: str | None, otherwise: str) -> str:
    if reason is None:
        return otherwise
    message = "paused because the engine crashed again and again, and this dataflow was the newest"
    return f"{message} (last: {reason}); resume it through the API, or withdraw it and submit it again"
