"""What the past of an engine would have been, and cost, under other policies, at other rates and prices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from headgate.adaptation.window import Window
from headgate.errors import BadValue, InputError
from headgate.model.arrays import Floats
from headgate.model.cluster.vm_class import Cloud
from headgate.model.table import Table, TableColumn
from headgate.service.recorded_engine import recorded_windows
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import Recorded
from headgate.simulation.recorded import AsItWas, Replayed, recorded_setting, replay_error
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate

__all__ = ["PastReplay", "WhatIf", "last_span", "replay_past", "what_if_facts", "what_if_tables"]

WINDOW_S, SHORT_S, FEW = 60.0, 10.0, 5
"""The past is replayed in steps of a minute; one of fewer than so many minutes in shorter ones."""

POINTS = 240
"""How many points of a series are given at most."""

Notify = Callable[[float, str], None]
"""Takes how much is done, from 0 to 1, and what is being done."""

_RUNS = (
    TableColumn("policy", "policy"),
    TableColumn("omega", "Ω", form=".4f"),
    TableColumn("gamma", "Γ", form=".4f"),
    TableColumn("cost", "cost", form=".4g"),
    TableColumn("theta", "Θ", form=".4g"),
    TableColumn("changes", "changes", form=",.4g"),
    TableColumn("backlog", "backlog", form=",.0f"),
)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question about the past; moments are seconds since 1970."""

    policies: tuple[str, ...]
    since: float
    until: float
    rate_factor: float = 1.0
    """How many times as much comes as came."""

    price_factor: float = 1.0
    """How many times as much machines cost."""


@dataclass(frozen=True, slots=True, eq=False)
class PastReplay:
    """The past as it was, as it is simulated, and as it would have been."""

    asked: WhatIf
    began: float
    was: Replayed
    simulated: Run
    runs: tuple[Run, ...]


def replay_past(state: Path, asked: WhatIf, notify: Notify = lambda _done, _what: None) -> PastReplay:
    """Replay a span of the past as it was, then under each of some policies."""
    notify(0.0, "reading what was recorded")
    seen = _windows(state, asked, WINDOW_S)
    if len(seen) < FEW:
        seen = _windows(state, asked, SHORT_S)
    if len(seen) < 2:
        raise InputError(
            "BAD_OBSERVATIONS", f"too little was observed then: a replay needs {2 * SHORT_S:.0f} s at least"
        )
    recorded = recorded_setting(seen)
    setting = _changed(recorded, asked)
    count = len(asked.policies) + 1

    def report(place: int, what: str) -> Callable[[int, int], None]:
        return lambda step, steps: notify((place + step / max(steps, 1)) / count, what)

    simulated = simulate(recorded, AsItWas(seen), report(0, "as it was"))
    chosen = [(place, name, make_policy(name, setting)) for place, name in enumerate(asked.policies, 1)]
    runs = tuple(simulate(setting, policy, report(place, name)) for place, name, policy in chosen)
    return PastReplay(asked, seen[0].ended_s, Replayed.of(seen), simulated, runs)


def _windows(state: Path, asked: WhatIf, window_s: float) -> list[Window]:
    return [one for one in recorded_windows(state, asked.since, window_s) if one.ended_s <= asked.until]


def _changed(setting: Setting, asked: WhatIf) -> Setting:
    """The recorded world at other rates and prices."""
    if not (0 < asked.rate_factor <= 1_000 and 0 <= asked.price_factor <= 1_000):
        given = f"rates times {asked.rate_factor:g} and prices times {asked.price_factor:g}"
        raise BadValue(given, "factors above 0, and at most 1,000")
    rates = {name: _times(series, asked.rate_factor) for name, series in setting.rates.items()}
    return replace(setting, rates=rates, cloud=_priced(setting.cloud, Decimal(str(asked.price_factor))))


def _times(series: Any, factor: float) -> Any:
    assert isinstance(series, Recorded)
    return replace(series, values_per_s=tuple(value * factor for value in series.values_per_s))


def _priced(cloud: Cloud, factor: Decimal) -> Cloud:
    return replace(cloud, classes=tuple(replace(one, price_per_h=one.price_per_h * factor) for one in cloud.classes))


def what_if_facts(replayed: PastReplay) -> dict[str, Any]:
    """The answer as one JSON value."""
    was, error = replayed.was, replay_error(replayed.was, replayed.simulated)
    named = [("as it was, simulated", replayed.simulated), *((run.policy, run) for run in replayed.runs)]
    return {
        "since": replayed.began,
        "until": replayed.asked.until,
        "rate_factor": replayed.asked.rate_factor,
        "price_factor": replayed.asked.price_factor,
        "currency": replayed.simulated.setting.cloud.currency,
        "measured": {"omega": was.omega, "gamma": was.gamma, "cost": was.cost, "backlog": was.backlog},
        "runs": [_run_facts(name, run) for name, run in named],
        "error": {"omega": error.omega, "cost": error.cost, "backlog": error.backlog},
    }


def _run_facts(name: str, run: Run) -> dict[str, Any]:
    totals = run.totals()
    step = max(1, -(-len(run.hours) // POINTS))
    series = {
        "hours": _thinned(np.asarray(run.hours), step),
        "omega": _thinned(run.omega[:, 0], step),
        "cores": _thinned(run.cores[:, 0], step),
        "cost": _thinned(run.mu[:, 0], step),
        "input_per_s": _thinned(run.input_per_s[:, 0], step),
    }
    return {"policy": name, **{column.key: totals.get(column.key) for column in _RUNS[1:]}, "series": series}


def _thinned(values: Floats, step: int) -> list[float]:
    return [round(float(value), 6) for value in values[::step]]


def what_if_tables(facts: dict[str, Any]) -> list[Table]:
    """A row for what was measured, for its own simulation, and for each policy."""
    rows: Sequence[dict[str, Any]] = [{"policy": "as measured", **facts["measured"]}, *facts["runs"]]
    error = facts["error"]
    off = f"Ω {error['omega']:+.3f}, cost {error['cost']:+.1%}, backlog {error['backlog']:+.1%} of what came"
    notes = [
        f"Error of the replay itself: {off}.",
        "A policy that differs from what was by less than that is no better and no worse.",
    ]
    if (facts["rate_factor"], facts["price_factor"]) != (1.0, 1.0):
        notes.append(f"Policies: rates times {facts['rate_factor']:g}, prices times {facts['price_factor']:g}.")
    return [Table("Replay", _RUNS, tuple(rows), tuple(notes))]


def last_span(
    policies: Sequence[str],
    since_s: float,
    *,
    rate_factor: float = 1.0,
    price_factor: float = 1.0,
    now: float | None = None,
) -> WhatIf:
    """The question about the last ``since_s`` seconds."""
    moment = time.time() if now is None else now
    return WhatIf(tuple(policies), moment - since_s, moment, rate_factor, price_factor)
