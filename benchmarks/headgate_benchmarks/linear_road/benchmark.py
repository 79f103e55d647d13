"""``headgate bench linearroad``: expressways held on two cores with every answer right and in time.

Everything is at true pace: a second of traffic takes a second. An expressway has some 1,700 reports a second, as Linear
Road's own data have towards the end of their three hours. Four kinds of runs, on one Spark:

1. *Warming up.* A little traffic that is not judged.
2. *Ramp.* Expressways come one after the other, until there are no more or it is clear that they are too many. When
   answers are about to be late, congestion and travel time are switched to their cheapest alternates.
3. *Hold.* Some fewer expressways than were there at the first late answer, all from the start, for 105 seconds in
   which tolls are charged and accidents happen. If every answer is right and in time, again with more, else with
   fewer, until it is known how many are held.
4. *Beyond.* The fewest that were not held, with the cheapest alternates from the start.

- ``expressways``: the most that a hold has shown, every answer right and none late; 0 if none has;
- ``reports_per_s``, ``answers``, ``in_time`` (also by kind), ``p99_s_KIND``, ``worst_s``, ``cpu_share`` (of two cores):
  of that hold, or of the one with the fewest expressways if none was held; ``p99_s`` is that of toll notifications;
- ``ramp_late_at``: expressways that were there when the first answer was late, 0 if none was; ``ramp_in_time`` and
  ``ramp_right``; ``ramp_beyond_in_time``: the share of answers in time to what came in from then on; ``switched_at_s``:
  when alternates were switched, -1 if they were not;
- ``beyond_expressways``, ``beyond_in_time``, ``beyond_right``, ``beyond_held``: of that last run.

Tolls are by the rules and have no alternates, so there is little that switching can win; ``notes`` tell what was done.
What comes in during the first seconds of a run, while Spark compiles, is not judged for time; it is for being right.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headgate_benchmarks.linear_road.trial import Outcome, example, make_importable, trial
from headgate_benchmarks.measured import Measured

__all__ = ["run"]

REPORTS_PER_S = 1_700
BEGIN_S = 25
"""The second at which holds begin: cars that stop then have told so four times by the end of the second minute."""

WARM_S, HOLD_S, RAMP_S, LEAD_S = 15, 105, 110, 20
FIRST, EVERY_S, MOST = 12, 6, 30
"""Expressways at the start of the ramp, how often there is one more, and the most there are."""

PRESSED_S, BEYOND_S = 4.0, 20.0
"""Alternates are switched when an answer takes about so long, and so long after that the ramp ends."""

STEP = 6
"""Up or down go so many levels by one, twice as many by two, and so on, while only one side of the border is known."""

ENOUGH_S = 600
"""No other hold is begun after so long, once there is one that has been held."""

CHEAP = {"travel_time": "history_mean", "congestion": "smoothing"}
"""What is switched to. Travel times first: from then on they do not depend on what congestion has learned."""

KINDS = ("tolls", "alerts", "balances", "expenditures", "travel_times")

Progress = Callable[[str], None]


def road() -> Any:
    """What each expressway is like."""
    return example("traffic").Road(
        cars=REPORTS_PER_S * 30, entering_per_s=REPORTS_PER_S / 14, accident_s=0, accidents=1, crowding=1.2
    )


def run(seed: int, progress: Progress) -> Measured:
    """Warm up, the ramp, holds, and one beyond."""
    from headgate_benchmarks.on_spark import on_spark

    make_importable()
    began = time.monotonic()
    with on_spark(memory="4g") as (spark, folder):
        trials = _Trials(spark, folder, seed, progress)
        trials.hold("warm", 1, WARM_S)
        starts = [0 if n < FIRST else LEAD_S + EVERY_S * (n - FIRST + 1) for n in range(MOST)]
        watcher = _Pressure(progress)
        ramp = trials.ramp(starts, watcher)
        there = sum(start <= (RAMP_S if ramp.first_late_s is None else ramp.first_late_s) for start in starts)
        holds = _search(
            max(1, there - max(1, there // STEP)),
            lambda level: trials.hold("hold", level, HOLD_S),
            lambda: time.monotonic() - began < ENOUGH_S,
        )
        beyond = trials.hold("beyond", _beyond(holds), HOLD_S, CHEAP)
    return _measured(ramp, holds, beyond, there, watcher)


def _search(level: int, hold: Callable[[int], Outcome], go_on: Callable[[], bool]) -> dict[int, Outcome]:
    """Go up from a level that is held, down from one that is not, and halve what is between, until the border is known.

    When there is no time to go on, it ends with the first that is held.
    """
    found: dict[int, Outcome] = {}
    least, most = 0, math.inf  # held, and not held
    while most - least > 1 and (not least or go_on()):
        found[level] = hold(level)
        if found[level].held:
            least = level
        else:
            most = level
        if math.isinf(most):
            level = least + max(1, least // STEP)
        elif least:
            level = (least + int(most)) // 2
        else:
            level = int(most) - max(1, int(most) // STEP)
    return found


def _held(holds: Mapping[int, Outcome]) -> int:
    """The most that were held."""
    return max((level for level, outcome in holds.items() if outcome.held), default=0)


def _beyond(holds: Mapping[int, Outcome]) -> int:
    """The fewest that were not held; one more than were, if all that were tried were."""
    return min((level for level, outcome in holds.items() if not outcome.held), default=_held(holds) + 1)


class _Trials:
    """Runs of one benchmark, each in a folder of its own."""

    def __init__(self, spark: Any, folder: Path, seed: int, progress: Progress) -> None:
        self.spark, self.folder, self.seed, self.progress = spark, folder, seed, progress

    def ramp(self, starts: list[int], watcher: _Pressure) -> Outcome:
        self.progress("ramp: making traffic")
        traffic = example("traffic").make(MOST, RAMP_S, self.seed, road(), starts, BEGIN_S)
        place = self.folder / "ramp"
        outcome = trial(self.spark, place, traffic, road(), lead_s=LEAD_S, seed=self.seed, watcher=watcher)
        self._tell("ramp", outcome)
        return outcome

    def hold(self, name: str, level: int, seconds: int, alternates: Mapping[str, str] | None = None) -> Outcome:
        self.progress(f"{name}: expressways {level}, for {seconds} s")
        seed = self.seed + 1
        traffic = example("traffic").make(level, seconds, seed, road(), None, BEGIN_S)
        place = self.folder / f"{name}{level}"
        outcome = trial(self.spark, place, traffic, road(), lead_s=LEAD_S, seed=seed, alternates=alternates)
        self._tell(name, outcome)
        return outcome

    def _tell(self, name: str, outcome: Outcome) -> None:
        worst = max(outcome.worst_s.values(), default=0.0)
        self.progress(f"{name}: in time {outcome.in_time:.4f}, worst {worst:.1f} s, right: {outcome.right}")


class _Pressure:
    """Switches to cheaper alternates when answers are about to be late, and ends the ramp some time after that."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.at_s: float | None = None
        self.switched: dict[str, str] = {}
        self.why = "nothing was switched: answers never took long"

    def look(self, engine: Any, since_s: float) -> bool:
        if self.at_s is not None:
            return since_s < self.at_s + BEYOND_S
        takes_s, behind = _takes_s(engine), sum(fragment.behind() for fragment in list(engine.fragments.values()))
        if int(since_s) % 10 == 0:
            self._progress(f"{since_s:.0f} s: an answer takes about {takes_s:.1f} s, {behind} rows between queries")
        if since_s > LEAD_S and takes_s > PRESSED_S:
            self.at_s = since_s
            for task, alternate in CHEAP.items():
                engine.switch("linear_road", task, alternate)
                self.switched[task] = alternate
            chosen = ", ".join(f"{task} to {alternate}" for task, alternate in CHEAP.items())
            self.why = f"after {since_s:.0f} s an answer took about {takes_s:.1f} s: switched {chosen}"
            self._progress(self.why)
        return True


def _takes_s(engine: Any) -> float:
    """About how long an answer takes: an epoch of the source, and one of the slowest query behind it."""
    from headgate.runtime.compile.plan import Kind

    found = {True: 0.0, False: 0.0}
    for fragment in list(engine.fragments.values()):
        is_source, last = fragment.fragment.kind is Kind.SOURCE, fragment.last
        # One that has rows and has not ended takes at least what has passed since the last one did.
        under_way_s = time.time() - last.began - last.seconds if is_source or fragment.behind() else 0.0
        found[is_source] = max(found[is_source], last.seconds, under_way_s)
    return sum(found.values())


def _measured(ramp: Outcome, holds: Mapping[int, Outcome], beyond: Outcome, there: int, watcher: _Pressure) -> Measured:
    held, pushed = _held(holds), _beyond(holds)
    best = holds[held or min(holds)]
    figures = {
        "expressways": float(held),
        "reports_per_s": best.reports_per_s,
        "answers": float(best.answers),
        "in_time": best.in_time,
        **{f"in_time_{kind}": best.in_time_by_kind.get(kind, 1.0) for kind in KINDS},
        "p99_s": best.p99_s.get("tolls", 0.0),
        **{f"p99_s_{kind}": best.p99_s.get(kind, 0.0) for kind in KINDS},
        "worst_s": max(best.worst_s.values(), default=0.0),
        "right": float(best.right),
        "cpu_share": best.cpu_s / best.seconds / 2,
        "ramp_late_at": float(there if ramp.first_late_s is not None else 0),
        "ramp_in_time": ramp.in_time,
        "ramp_right": float(ramp.right),
        "ramp_beyond_in_time": ramp.beyond_in_time,
        "switched_at_s": -1.0 if watcher.at_s is None else watcher.at_s,
        "beyond_expressways": float(pushed),
        "beyond_in_time": beyond.in_time,
        "beyond_right": float(beyond.right),
        "beyond_held": float(beyond.held),
    }
    notes = {
        "ramp": watcher.why,
        "beyond": (
            f"{pushed} expressways with {', '.join(CHEAP.values())} from the start: "
            f"{'held' if beyond.held else f'not held, {beyond.in_time:.2%} of answers in time'}"
        ),
        "merged": _merged(beyond.queries),
    }
    samples = {
        "ramp": asdict(ramp),
        "holds": {str(level): asdict(outcome) for level, outcome in holds.items()},
        "beyond": asdict(beyond),
    }
    return Measured({name: round(value, 4) for name, value in figures.items()}, samples, notes=notes)


def _merged(queries: list[list[str]]) -> str:
    """What runs together with what."""
    shared = "; ".join(", ".join(tasks) for tasks in queries if len(tasks) > 1)
    return f"{sum(map(len, queries))} tasks in {len(queries)} queries, of which these run together: {shared}"
