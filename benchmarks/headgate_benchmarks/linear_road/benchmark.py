"""``headgate bench linearroad``: expressways on two cores with every answer right and in time.

Everything is at true pace: a second of traffic takes a second. An expressway has some 1,700 reports a second, as Linear
Road's own data have towards the end of their three hours. Four kinds of runs, on one Spark:

1. *Warming up.* A little traffic that is not judged.
2. *Ramp.* Expressways are added one after the other, until there are no more or it is clear that they are too many.
   When answers are about to be late, congestion and travel time are switched to their cheapest alternates.
3. *Hold.* Some fewer expressways than were there at the first late answer, all from the start, for 105 seconds in
   which tolls are charged and accidents happen. If every answer is right and in time, again with more, else with
   fewer, until the limit is known.
4. *Beyond.* The fewest that were too many, with the cheapest alternates from the start.

- ``expressways``: the most with which a hold had every answer right and none late; 0 if there is none;
- ``reports_per_s``, ``answers``, ``in_time`` (also by kind), ``p99_s_KIND``, ``worst_s``, ``cpu_share`` (of two cores):
  of that hold, or of the one with the fewest expressways; ``p99_s`` is that of toll notifications;
- ``ramp_late_at``: expressways that were there when the first answer was late, 0 if none was; ``ramp_in_time`` and
  ``ramp_right``; ``ramp_beyond_in_time``: the share of answers in time to what came in from then on; ``switched_at_s``:
  when alternates were switched, -1 if they were not;
- ``beyond_expressways``, ``beyond_in_time``, ``beyond_right``, ``beyond_held``: of that last run.

Tolls follow the rules and have no alternates, so switching can save little; ``notes`` say what was switched. Input of
the first seconds of a run, while Spark compiles, is not judged for time, only for being right.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.figures import dress, picture
from headgate_benchmarks.linear_road.trial import Outcome, example, trial
from headgate_benchmarks.on_spark import on_spark
from headgate_benchmarks.study import Measured, Progress

__all__ = ["LINEAR_ROAD"]

BEGIN_S = 25
"""The second at which holds begin: cars that stop then have reported four times by the end of the second minute."""


@dataclass(frozen=True, slots=True)
class Sizes:
    reports_per_s: int = 1_700
    warm_s: int = 15
    hold_s: int = 105
    ramp_s: int = 110
    lead_s: int = 20
    first: int = 12
    every_s: int = 6
    most: int = 30
    """Expressways at the start of the ramp, how often there is one more, and the most there are."""

    enough_s: float = 600.0
    """After so long no other hold is begun, once there is one that kept up; 0: one hold is all."""

    def road(self) -> Any:
        """An expressway."""
        rate = self.reports_per_s
        road = example("traffic").Road
        return road(cars=rate * 30, entering_per_s=rate / 14, accident_s=0, accidents=1, crowding=1.2)


PRESSED_S, BEYOND_S = 4.0, 20.0
"""Alternates are switched when an answer takes about so long, and so long after that the ramp ends."""

STEP = 6
"""Up or down go so many levels by one, twice as many by two, and so on, while only one side of the border is known."""

CHEAP = {"travel_time": "history_mean", "congestion": "smoothing"}
"""What is switched to. Travel times first: from then on they do not depend on what congestion has learned."""

KINDS = ("tolls", "alerts", "balances", "expenditures", "travel_times")


def _run(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """Warm up, the ramp, holds, and one beyond."""
    began = time.monotonic()
    with on_spark(memory="4g") as (spark, folder):
        trials = _Trials(spark, folder, seed, progress, sizes)
        if sizes.warm_s:
            trials.hold("warm", 1, sizes.warm_s)
        lead_s, first = sizes.lead_s, sizes.first
        starts = [0 if n < first else lead_s + sizes.every_s * (n - first + 1) for n in range(sizes.most)]
        watcher = _Pressure(progress, lead_s)
        ramp = trials.ramp(starts, watcher)
        there = sum(start <= (sizes.ramp_s if ramp.first_late_s is None else ramp.first_late_s) for start in starts)
        holds = _search(
            max(1, there - max(1, there // STEP)),
            lambda level: trials.hold("hold", level, sizes.hold_s),
            lambda: time.monotonic() - began < sizes.enough_s,
        )
        beyond = trials.hold("beyond", _beyond(holds), sizes.hold_s, CHEAP)
    return _measured(ramp, holds, beyond, there, watcher)


def _search(level: int, hold: Callable[[int], Outcome], go_on: Callable[[], bool]) -> dict[int, Outcome]:
    """Go up from a level that is held, down from one that is not, and halve what is between, until the border is known.

    When there is no time to go on, it ends with the first that is held.
    """
    holds: dict[int, Outcome] = {}
    least, most = 0, math.inf  # held, and not held
    while most - least > 1 and (not least or go_on()):
        holds[level] = hold(level)
        if holds[level].held:
            least = level
        else:
            most = level
        if math.isinf(most):
            level = least + max(1, least // STEP)
        elif least:
            level = (least + int(most)) // 2
        else:
            level = int(most) - max(1, int(most) // STEP)
    return holds


def _held(holds: Mapping[int, Outcome]) -> int:
    """The most that were held."""
    return max((level for level, outcome in holds.items() if outcome.held), default=0)


def _beyond(holds: Mapping[int, Outcome]) -> int:
    """The fewest that were not held; one more than were, if all that were tried were."""
    return min((level for level, outcome in holds.items() if not outcome.held), default=_held(holds) + 1)


class _Trials:
    """Runs of one benchmark, each in a folder of its own."""

    def __init__(self, spark: Any, folder: Path, seed: int, progress: Progress, sizes: Sizes) -> None:
        self.spark, self.folder, self.seed, self.progress, self.sizes = spark, folder, seed, progress, sizes

    def ramp(self, starts: list[int], watcher: _Pressure) -> Outcome:
        self.progress("ramp: making traffic")
        return self._trial("ramp", len(starts), self.sizes.ramp_s, self.seed, starts, watcher=watcher)

    def hold(self, name: str, level: int, seconds: int, alternates: Mapping[str, str] | None = None) -> Outcome:
        self.progress(f"{name}: expressways {level}, for {seconds} s")
        return self._trial(name, level, seconds, self.seed + 1, None, alternates=alternates)

    def _trial(self, name: str, level: int, seconds: int, seed: int, starts: list[int] | None, **how: Any) -> Outcome:
        road = self.sizes.road()
        traffic = example("traffic").make(level, seconds, seed, road, starts, BEGIN_S)
        place = self.folder / f"{name}{level}"
        outcome = trial(self.spark, place, traffic, road, lead_s=self.sizes.lead_s, seed=seed, **how)
        worst = max(outcome.worst_s.values(), default=0.0)
        self.progress(f"{name}: in time {outcome.in_time:.4f}, worst {worst:.1f} s, right: {outcome.right}")
        return outcome


class _Pressure:
    """Switches to cheaper alternates when answers are about to be late, and ends the ramp some time after that."""

    def __init__(self, progress: Progress, lead_s: float) -> None:
        self._progress, self._lead_s = progress, lead_s
        self.at_s: float | None = None
        self.switched: dict[str, str] = {}
        self.why = "nothing was switched: answers never took long"

    def look(self, engine: Any, since_s: float) -> bool:
        if self.at_s is not None:
            return since_s < self.at_s + BEYOND_S
        takes_s, behind = (
            _takes_s(engine),
            sum(fragment.backlog.rows() or 0 for fragment in list(engine.fragments.values())),
        )
        if int(since_s) % 10 == 0:
            self._progress(f"{since_s:.0f} s: an answer takes about {takes_s:.1f} s, {behind} rows between queries")
        if since_s > self._lead_s and takes_s > PRESSED_S:
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

    longest = {True: 0.0, False: 0.0}
    for fragment in list(engine.fragments.values()):
        is_source, last = fragment.fragment.kind is Kind.SOURCE, fragment.last
        # One that has rows and has not ended takes at least what has passed since the last one did.
        under_way_s = time.time() - last.began - last.seconds if is_source or fragment.backlog.rows() else 0.0
        longest[is_source] = max(longest[is_source], last.seconds, under_way_s)
    return sum(longest.values())


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
    return Measured(figures, samples, notes=notes)


def _merged(queries: list[list[str]]) -> str:
    """Which tasks run in one query."""
    shared = "; ".join(", ".join(tasks) for tasks in queries if len(tasks) > 1)
    return f"{sum(map(len, queries))} tasks in {len(queries)} queries, of which these run together: {shared}"


def _plot(measured: Measured, folder: Path) -> list[Path]:
    """The worst response of each second, of the ramp and of the run that was held."""
    held = f"{measured.figures['expressways']:.0f}"
    runs = {"expressways are added": (measured.samples["ramp"]["responses"], "#e07b39")}
    if held in measured.samples["holds"]:
        runs[f"{held} from the start"] = (measured.samples["holds"][held]["responses"], "#1b6ca8")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for label, (responses, shade) in runs.items():
            axes.plot(*zip(*responses, strict=True), label=label, color=shade)
        axes.axhline(5, color="#a33", linestyle="--", linewidth=1)
        axes.annotate("deadline", (0.995, 5), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="#a33")
        at_s = measured.figures["switched_at_s"]
        if at_s >= 0:
            axes.axvline(at_s, color="#888", linestyle=":", linewidth=1)
            axes.annotate("alternates switched", (at_s, 0), xytext=(3, 6), textcoords="offset points", color="#666")
        axes.set_ylim(0, 1.4 * max(5.0, *(took for responses, _ in runs.values() for _, took in responses)))
        x, y = "seconds since the first report", "worst response of a toll notification, s"
        dress(axes, x=x, y=y, legend=1, at="upper left")

    return [picture(folder / "linear_road.png", (9, 4), draw)]


LINEAR_ROAD = Benchmark(
    "linearroad",
    "Expressways with every answer of Linear Road right and in time.",
    {"linearroad": _run},
    Sizes(),
    Sizes(20, 0, 5, 6, 2, 1, 2, 2, 0.0),
    "expressways reports_per_s answers in_time in_time_* p99_s p99_s_* worst_s right cpu_share ramp_late_at "
    "ramp_in_time ramp_right ramp_beyond_in_time switched_at_s beyond_expressways beyond_in_time beyond_right "
    "beyond_held",
    _plot,
)
