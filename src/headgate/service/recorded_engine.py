"""What a state directory knows of an engine's past, as policies see it: windows of recorded observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headgate.adaptation.controller.windows import EpochGoal, window_of
from headgate.adaptation.evaluating import evaluated
from headgate.adaptation.joining import joined
from headgate.adaptation.kept import read_kept
from headgate.adaptation.policy import Capabilities, Terms
from headgate.adaptation.window import Window
from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.store.decision_entries import TermsRecorded
from headgate.store.journal import read_journal
from headgate.store.observations import history_of

__all__ = ["EPOCHS", "recorded_terms", "recorded_windows"]

EPOCHS = EpochGoal(0.5, 2.0)
"""What engines aim at unless their settings say otherwise."""


def recorded_terms(state: Path) -> tuple[Terms, Capabilities]:
    """Graph, levels and machines of the last recorded decision; raises :class:`InputError` where there is none."""
    history_of(state)
    entries = [entry for _, entry in read_journal(state / "journal", TermsRecorded)]
    if not entries:
        message = f"no policy has ever decided with the state directory '{state}', so its levels are unknown"
        raise InputError("NO_TERMS", f"{message}; let one for some minutes: headgate policy --mode recommend")
    document = entries[-1].document
    return read_kept(document["terms"]), read_kept(document["capabilities"])


def recorded_windows(state: Path, since: float, window_s: float) -> list[Window]:
    """What was seen after a moment, in windows of about so many seconds, while the tasks were those of the end."""
    terms, capabilities = recorded_terms(state)
    wanted = set(terms.signatures.values())
    lately: list[Observation] = []
    for each in history_of(state).read(since):
        running = {task.task for task in each.tasks} | {sink.task for sink in each.sinks}
        if not wanted <= running:
            lately.clear()
        elif each.seconds > 0:
            lately.append(each)
    if not lately:
        message = "nothing was observed of the tasks that policies decide on"
        raise InputError("BAD_OBSERVATIONS", f"{message}; look further back with --since, or wait for the next minute")
    return [
        replace(window_of(terms, capabilities, _merged(part), EPOCHS), measured=None)
        for part in _parts(lately, window_s)
    ]


def _merged(part: Sequence[Observation]) -> Observation:
    return evaluated(replace(joined(part), machines=part[-1].machines))


def _parts(intervals: Sequence[Observation], window_s: float) -> Iterator[list[Observation]]:
    part: list[Observation] = []
    for each in intervals:
        part.append(each)
        if sum(one.seconds for one in part) >= window_s * (1 - 1e-9):
            yield part
            part = []
    if part and sum(one.seconds for one in part) >= window_s / 2:
        yield part
