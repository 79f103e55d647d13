"""What an engine has measured, from its state directory, whether or not it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.model.level_time import LevelStatus, LevelTime
from headgate.model.table import Table, TableColumn
from headgate.store.files import read_json
from headgate.store.observations import history_of

__all__ = [
    "MINUTE",
    "as_documents",
    "earliest",
    "export",
    "history",
    "interval_facts",
    "intervals_table",
    "last_minute",
    "latest",
    "levels_kept",
    "observations_since",
]

MINUTE = 12
"""Intervals in a minute."""

MOST_STEPS = 1_000

INTERVAL = (
    TableColumn("ended", "ended"),
    TableColumn("seconds", "seconds", form=".1f"),
    TableColumn("rows_in_per_s", "rows in", "rows/s", ",.0f"),
    TableColumn("rows_out_per_s", "rows out", "rows/s", ",.0f"),
    TableColumn("behind", "rows waiting", form=",d"),
    TableColumn("p95_s", "p95", "s", ".2f"),
    TableColumn("omega", "throughput", form=".3f"),
    TableColumn("profit", "profit", form="+.3f"),
)


def latest(state: Path, since: float = 0.0, most: int = 1) -> list[Observation]:
    """The newest observations that ended after a moment, oldest first."""
    history = history_of(state)
    if most == 1:
        last = history.last()
        return [last] if last is not None and last.ended > since else []
    return list(deque(history.read(since), maxlen=most))


def earliest(state: Path, since: float, most: int) -> list[Observation]:
    """The first observations that ended after a moment."""
    return list(islice(history_of(state).read(since), most))


def observations_since(state: Path, since: float) -> Iterator[Observation]:
    """All observations that ended after a moment, oldest first."""
    return history_of(state).read(since)


def as_documents(observations: Iterable[Observation]) -> Iterator[Any]:
    """Observations as plain values for JSON."""
    form = TypeAdapter(Observation)
    return (form.dump_python(observation, mode="json") for observation in observations)


def export(observations: Iterable[Observation], folder: Path) -> dict[str, int]:
    """Write parquet tables into a new directory; answers how many rows each has."""
    from headgate.runtime.observing.export import export_observations

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("FILE_EXISTS", f"{folder} is not an empty directory; choose another one")
    return export_observations(observations, folder)


def intervals_table(observations: Iterable[Observation]) -> Table:
    """A row for each interval: rows in and out, those that wait, the slowest sink, and the figures of all together."""
    return Table("Observations", INTERVAL, tuple(map(_interval, observations)))


def levels_kept(state: Path, seen: Observation) -> tuple[Table, ...]:
    """For how long the dataflows of an observation were as agreed; nothing where that was not kept."""
    from headgate.service.live_figures import levels_table

    kept = read_json(state / "level_times.json") or {}
    flows = [
        {"name": flow.name, "level": asdict(LevelStatus.of(flow.level, LevelTime(**kept[flow.name]), seen.ended))}
        for flow in seen.dataflows
        if flow.name in kept
    ]
    return (levels_table(flows),) if flows else ()


def last_minute(newest: Sequence[Observation]) -> Observation | None:
    """The newest intervals as one, with its figures; none if nothing was measured."""
    from headgate.adaptation.evaluating import evaluated
    from headgate.adaptation.joining import joined

    recent = [seen for seen in newest if seen.ended > newest[-1].ended - 60.0]
    return evaluated(joined(recent)) if recent else None


def history(state: Path, start: float, end: float, resolution_s: float) -> list[Observation]:
    """What was measured in a span of time: an observation for each step of it, with its figures, oldest first.

    Raises :class:`InputError` for more than :data:`MOST_STEPS` steps.
    """
    from headgate.adaptation.evaluating import evaluated
    from headgate.adaptation.joining import joined

    if not (resolution_s > 0.0 and start < end and (end - start) / resolution_s <= MOST_STEPS):
        message = f"expected a span of at most {MOST_STEPS:,} steps, which ends after it begins"
        raise InputError("BAD_SPAN", message)
    steps: dict[int, list[Observation]] = {}
    for seen in takewhile(lambda one: one.ended <= end, history_of(state).read(start)):
        steps.setdefault(int((seen.ended - start) / resolution_s), []).append(seen)
    return [evaluated(joined(measured)) for _, measured in sorted(steps.items())]


def interval_facts(seen: Observation) -> dict[str, Any]:
    """Rows in and out, those that wait, the slowest sink, and the figures of all together."""
    rows_in = sum(fragment.rows_in for fragment in seen.fragments if fragment.kind == "source")
    return {
        "seconds": seen.seconds,
        "rows_in_per_s": rows_in / seen.seconds,
        "rows_out_per_s": sum(sink.rows for sink in seen.sinks) / seen.seconds,
        "behind": sum(fragment.rows_behind or 0 for fragment in seen.fragments),
        "p95_s": max((sink.sojourn.p95_s for sink in seen.sinks if sink.sojourn is not None), default=None),
        "omega": None if seen.together is None else seen.together.omega,
        "profit": None if seen.together is None else seen.together.theta,
    }


def _interval(seen: Observation) -> dict[str, Any]:
    ended = datetime.fromtimestamp(seen.ended, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return {"ended": ended, **interval_facts(seen)}
