"""``headgate bench lookahead``: what looking ahead brings, by how far and how well one sees.

Part ``horizon`` is PLAN-AHEAD's Fig. 5 (relative throughput, profit and stability by the length of the prediction
interval, with a perfect oracle), ``error`` its Fig. 6 (profit by error and horizon), ``bias`` its Fig. 7 (profit by
error for three biases), all on the paper's world: ten stages of three tasks, three waves, machines as on EC2, and again
on recorded worlds where the folder of shared data is. Each of the paper's findings is a figure ``finding_...``, or
``recorded_finding_...``, 1 if it was reproduced and 0 if not, with a sentence in the table. Part ``forecast`` has
forecasters of ours in the oracle's place, on four realistic workloads and the recorded ones, ``hindsight`` the bound on
every policy and how near they come to it there. Profit is the paper's, Γ - σμ, and a mean over some worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate_benchmarks.lookahead.bias import BIAS
from headgate_benchmarks.lookahead.error import ERROR
from headgate_benchmarks.lookahead.forecast import forecast_part
from headgate_benchmarks.lookahead.hindsight import hindsight_part
from headgate_benchmarks.lookahead.horizon import HORIZON
from headgate_benchmarks.lookahead.trials import Progress, part_of
from headgate_benchmarks.measured import Measured

__all__ = ["PARTS", "run"]


def run(seed: int, progress: Progress) -> Measured:
    """All parts."""
    figures: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    tables: list[str] = []
    for part in PARTS.values():
        found = part(seed, progress)
        figures |= found.figures
        samples |= found.samples
        tables.append(found.table)
    return Measured(figures | _counted(figures), samples, "\n".join(tables))


def _counted(figures: Mapping[str, Any]) -> dict[str, int]:
    """How many of the paper's findings there are and were reproduced, on generated and on recorded worlds.

    >>> _counted({"finding_a": 1, "finding_b": 0, "recorded_finding_a": 1, "recorded_worlds_with_a": 3})
    {'findings': 2, 'findings_reproduced': 1, 'recorded_findings': 1, 'recorded_findings_reproduced': 1}
    """
    found: dict[str, int] = {}
    for prefix in ("", "recorded_"):
        held = [int(value) for key, value in figures.items() if key.startswith(f"{prefix}finding_")]
        found |= {f"{prefix}findings": len(held), f"{prefix}findings_reproduced": sum(held)} if held else {}
    return found


def _rounded_figure(figure: Any) -> Any:
    return round(figure, 5) if isinstance(figure, float) else figure


def _rounded(part: Callable[[int, Progress], Measured]) -> Callable[[int, Progress], Measured]:
    def run_part(seed: int, progress: Progress) -> Measured:
        found = part(seed, progress)
        figures = {key: _rounded_figure(each) for key, each in found.figures.items()}
        return Measured(figures, found.samples, found.table)

    return run_part


PARTS: Mapping[str, Callable[[int, Progress], Measured]] = {
    "horizon": _rounded(part_of(HORIZON)),
    "error": _rounded(part_of(ERROR)),
    "bias": _rounded(part_of(BIAS)),
    "forecast": _rounded(forecast_part),
    "hindsight": hindsight_part,
}
