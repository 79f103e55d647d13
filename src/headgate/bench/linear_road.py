"""``headgate bench linearroad``: expressways held on two cores with every answer right and in time.

Everything is at true pace: a second of traffic takes a second. An expressway has some 1,700 reports a second, as Linear
Road's own data have towards the end of their three hours. Two kinds of runs, on one Spark:

1. *Ramp.* Expressways come one after the other, until answers are late or there are no more. When rows pile up,
   congestion and travel time are switched to their cheapest alternates.
2. *Hold.* As many expressways as were there before the first late answer, all from the start, for 105 seconds in
   which tolls are charged and accidents happen. If an answer is wrong or late, again with one less.

- ``expressways``: the most that a hold has shown, every answer right and none late; 0 if none has;
- ``reports_per_s``, ``in_time``, ``p99_s``, ``worst_s``: of that hold; ``p99_s`` is of notifications;
- ``ramp_late_at``: expressways that were there when the first answer was late; ``beyond_in_time``: the share of answers
  in time after that, with the alternates switched.

What comes in during the first seconds, while Spark compiles, is not judged for time; it is for being right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from headgate.bench.linear_road_trial import Outcome, example, make_importable, trial
from headgate.bench.measured import Measured

__all__ = ["run"]

REPORTS_PER_S = 1_700
BEGIN_S = 25
"""The second at which holds begin: cars that stop then have told so four times by the end of the second minute."""

HOLD_S, RAMP_S, LEAD_S = 105, 110, 20
FIRST, EVERY_S, MOST = 1, 9, 11
"""Expressways at the start of the ramp, how often there is one more, and the most there are."""

ENOUGH_S = 330
"""No other hold is begun after so long."""

CHEAP = {"congestion": "smoothing", "travel_time": "history_mean"}

Progress = Callable[[str], None]


def road() -> Any:
    """What each expressway is like."""
    return example("traffic").Road(
        cars=REPORTS_PER_S * 30, entering_per_s=REPORTS_PER_S / 14, accident_s=0, accidents=1, crowding=1.2
    )


def run(seed: int, progress: Progress) -> Measured:
    """The ramp, then holds."""
    from headgate.bench.on_spark import on_spark

    make_importable()
    began = time.monotonic()
    with on_spark(memory="4g") as (spark, folder):
        progress("ramp: making traffic")
        starts = [0 if n < FIRST else LEAD_S + EVERY_S * (n - FIRST + 1) for n in range(MOST)]
        traffic = example("traffic").make(MOST, RAMP_S, seed, road(), starts, BEGIN_S)
        switching = _Switching(progress)
        ramp = trial(spark, folder / "ramp", traffic, road(), lead_s=LEAD_S, seed=seed, meanwhile_do=switching.look)
        there = sum(start <= (RAMP_S if ramp.first_late_s is None else ramp.first_late_s) for start in starts)
        level = there if ramp.first_late_s is None else max(1, there - 1)
        holds: dict[int, Outcome] = {}
        while level >= 1 and time.monotonic() - began < ENOUGH_S:
            progress(f"hold: {level} expressways for {HOLD_S} s")
            traffic = example("traffic").make(level, HOLD_S, seed + 1, road(), None, BEGIN_S)
            holds[level] = trial(spark, folder / f"hold{level}", traffic, road(), lead_s=LEAD_S, seed=seed + 1)
            if holds[level].held:
                break
            progress(
                f"{level} expressways were not held: in time {holds[level].in_time:.4f}, right {holds[level].right}"
            )
            level -= 1
    return _measured(ramp, holds, there, switching)


class _Switching:
    """Switches to cheaper alternates when rows wait for longer than a few seconds."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.at_s: float | None = None

    def look(self, engine: Any, since_s: float) -> None:
        behind = sum(fragment.behind() for fragment in engine.fragments.values())
        if int(since_s) % 10 == 0:
            self._progress(f"{since_s:.0f} s: {behind} rows behind")
        if self.at_s is None and since_s > LEAD_S and behind > 6 * REPORTS_PER_S * (1 + (since_s - LEAD_S) / EVERY_S):
            self.at_s = since_s
            self._progress(f"{since_s:.0f} s: {behind} rows behind; switching to {', '.join(CHEAP.values())}")
            for task, alternate in CHEAP.items():
                engine.switch("linear_road", task, alternate)


def _measured(ramp: Outcome, holds: dict[int, Outcome], there: int, switching: _Switching) -> Measured:
    held = next((level for level, outcome in holds.items() if outcome.held), 0)
    best = holds.get(held) or (holds[min(holds)] if holds else ramp)
    late = [took > 5 for at, took in ramp.responses if ramp.first_late_s is not None and at >= ramp.first_late_s]
    figures = {
        "expressways": float(held),
        "reports_per_s": best.reports_per_s,
        "answers": float(best.answers),
        "in_time": best.in_time,
        "p99_s": best.p99_s.get("tolls", 0.0),
        "worst_s": max(best.worst_s.values(), default=0.0),
        "p99_balance_s": best.p99_s.get("balances", 0.0),
        "cpu_share": best.cpu_s / best.seconds / 2,
        "ramp_late_at": float(there if ramp.first_late_s is not None else 0),
        "ramp_in_time": ramp.in_time,
        "switched_at_s": -1.0 if switching.at_s is None else switching.at_s,
        "beyond_in_time": 1.0 if not late else 1 - sum(late) / len(late),
    }
    samples = {"ramp": asdict(ramp), "holds": {str(level): asdict(outcome) for level, outcome in holds.items()}}
    return Measured({name: round(value, 4) for name, value in figures.items()}, samples)
