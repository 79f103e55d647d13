"""Part ``error`` of ``headgate bench lookahead``: PLAN-AHEAD's Fig. 6, look-ahead's profit by error and horizon."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate_benchmarks.lookahead.trials import Row, Study, Told, head, line, means, trial

if TYPE_CHECKING:
    from headgate_benchmarks.lookahead.workloads import Workload

__all__ = ["ERROR"]

HORIZONS_MIN = (10, 20, 30, 40, 50, 60)
ERRORS = (0.0, 0.05, 0.10, 0.15, 0.20)


def _trials(world: Workload) -> list[Row]:
    from headgate.adaptation.look_ahead import LookAheadSettings

    return [
        trial(
            world, "lookahead", LookAheadSettings(f"oracle:{error}", 60.0 * minutes), error=error, horizon_min=minutes
        )
        for error in ERRORS
        for minutes in HORIZONS_MIN
    ]


def _told(rows: Sequence[Row]) -> Told:
    mean = means(rows, "error", "horizon_min")
    found = Told()
    found.figures = {
        f"error_{round(100 * error)}_profit_{minutes}min": mean[error, minutes]["profit"]
        for error in ERRORS
        for minutes in HORIZONS_MIN
    }
    overall = [statistics.mean(mean[error, minutes]["profit"] for minutes in HORIZONS_MIN) for error in ERRORS]
    falls = all(later < earlier for earlier, later in pairwise(overall))
    told = f"profit falls as the error grows: {', '.join(f'{each:.4f}' for each in overall)} over all horizons"
    found.find("profit_falls_with_error", falls, told)
    large = [error for error in ERRORS if error > 0.10]
    peaks = {}
    for error in large:
        curve = [mean[error, minutes]["profit"] for minutes in HORIZONS_MIN]
        peaks[error] = HORIZONS_MIN[max(range(len(curve)), key=lambda place: curve[place])]
    inner = all(HORIZONS_MIN[0] < peak < HORIZONS_MIN[-1] for peak in peaks.values())
    told = "with an error above 10 % a longer horizon first helps, then hurts: the best is at "
    told += ", ".join(f"{peak} min with {error:.0%}" for error, peak in peaks.items())
    found.find("long_horizon_hurts_above_10_percent", inner, told)
    found.table = ["Fig. 6: look-ahead's profit by error and horizon (minutes)", head(HORIZONS_MIN)]
    found.table += [line(f"{error:.0%}", (mean[error, each]["profit"] for each in HORIZONS_MIN)) for error in ERRORS]
    return found


ERROR = Study("error", _trials, _told)
