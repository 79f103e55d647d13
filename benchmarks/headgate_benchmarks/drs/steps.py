"""Part ``steps`` of ``headgate bench drs``: steps of the rate under the DRS policy with a latency to keep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.drs.calibration import (
    NOT_PROFILING,
    TRIGGER_S,
    Floats,
    Sizes,
    calibrate,
    network_of,
    operators_of,
)
from headgate_benchmarks.drs.flows import SERVICE, chain, record
from headgate_benchmarks.drs.live import hold
from headgate_benchmarks.study import Progress

if TYPE_CHECKING:
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow

__all__ = ["reactions", "run_steps"]


def run_steps(
    spark: Any, folder: Path, service_s: Floats, costs: BatchCosts | None, seed: int, progress: Progress, sizes: Sizes
) -> dict[str, Any]:
    """Play the steps; costs that are not known yet are calibrated first."""
    from headgate.adaptation.policies.drs import DrsSettings
    from headgate.adaptation.policies.drs_policy import DrsPolicy, Managed, act
    from headgate.queueing.batch_sizing import assign_flow, min_flow
    from headgate.queueing.fitting.smoothing import AlphaWeighted
    from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
    from headgate.runtime.engine.cluster import SparkCluster
    from headgate.runtime.engine.engine import Engine

    folder.mkdir(parents=True)
    if costs is None:
        record(folder / "calibration.json", [(sizes.chain_rate, 900.0)], seed)
        with Engine(folder / "first", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
            engine.submit(chain("calibration", folder / "calibration.json"))
            free = SparkFlow(network_of(service_s, sizes.chain_rate), BatchCosts(0.0), TRIGGER_S)
            costs = calibrate(SparkCluster(engine), operators_of(engine), free, progress, sizes)
    known = costs

    def flow(rate: float) -> SparkFlow:
        return SparkFlow(network_of(service_s, rate), known, TRIGGER_S)

    # A latency that four fifths of all processors keep at the second rate (18 of 22 at 12 rows a second): fewer are
    # enough at the first, and at the last all of them are needed.
    second, enough = flow(sizes.rates[1]), round(0.82 * sizes.processors)
    target = round(1.1 * float(predict_flow(second, assign_flow(second, enough)).mean_s[0]), 2)
    settings = DrsSettings(
        processors_max=sizes.processors,
        latency_max_s=target,
        latency_min_s=round(0.8 * target, 2),
        reallocation_interval_s=sizes.window_s / 2,
    )
    record(folder / "recording.json", [(rate, sizes.step_s) for rate in (sizes.rates[0], *sizes.rates)], seed + 7)
    dataflow = chain("steps", folder / "recording.json")
    scv = {each.task: each.scv for each in SERVICE}
    managed = Managed(dataflow, tuple(scv), known, TRIGGER_S, service_s, scv)
    policy = DrsPolicy(managed, settings, AlphaWeighted(0.2), learns=False)
    windows: list[dict[str, Any]] = []
    with Engine(folder / "state", spark=spark, trigger_s=TRIGGER_S, measuring=NOT_PROFILING) as engine:
        engine.submit(dataflow)
        began = time.monotonic()
        cluster, tasks = SparkCluster(engine), operators_of(engine)
        # The first step is played twice: what the start leaves behind is gone when it counts.
        hold(cluster, tasks, min_flow(flow(sizes.rates[0]), target, most=sizes.processors), 3, 99, sizes.step_s / 3)
        look = _Keeping(cluster)
        number = 0
        while (at := time.monotonic() - began) < sizes.step_s * (1 + len(sizes.rates)):
            time.sleep(max(0.0, sizes.step_s + number * sizes.window_s - at))
            number += 1
            answer = act(look, policy, time.monotonic())
            windows.append(_window(look, answer, time.monotonic() - began - sizes.step_s, policy, sizes))
            progress(f"steps: {windows[-1]['rate_per_s']:.0f} rows/s: {answer.reason}")
    return {"windows": windows, "latency_max_s": target, "figures": reactions(windows, target, sizes)}


class _Keeping:
    """A cluster that keeps its last observation."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.seen: Any = None

    def observe(self) -> Any:
        self.seen = self._cluster.observe()
        return self.seen

    def apply(self, actions: Any) -> None:
        self._cluster.apply(actions)


def _window(look: _Keeping, answer: Any, at_s: float, policy: Any, sizes: Sizes) -> dict[str, Any]:
    names = policy.managed.operators
    now = {task.name.rpartition(".")[2]: task.partitions for task in look.seen.tasks}
    sink = look.seen.sinks[0]
    fitted = answer.estimates
    return {
        "at_s": at_s,
        "rate_per_s": sizes.rates[min(max(int((at_s - sizes.window_s / 2) // sizes.step_s), 0), len(sizes.rates) - 1)],
        "fitted_rate_per_s": None if fitted is None else fitted.network.external_rate_per_s,
        "allocation": [now[name] for name in names],
        "decided": None if answer.decision is None else list(answer.decision.allocation),
        "changed": bool(answer.actions),
        "measured_s": None if sink.sojourn is None else sink.sojourn.mean_s,
        "rows": sink.rows,
        "because": answer.reason,
    }


def reactions(windows: Sequence[Mapping[str, Any]], target: float, sizes: Sizes) -> dict[str, Any]:
    """From each step, how many windows pass until processors change in its direction, and the latency."""
    delays = []
    for number in range(1, len(sizes.rates)):
        up = sizes.rates[number] > sizes.rates[number - 1]
        # The window that ends with the step has seen nothing of it.
        first, last = number * sizes.step_s + sizes.window_s / 2, (number + 1) * sizes.step_s + sizes.window_s / 2
        after = [w for w in windows if first < w["at_s"] <= last]
        changed = [
            place
            for place, w in enumerate(after, start=1)
            if w["changed"] and (sum(w["decided"]) - sum(w["allocation"])) * (1 if up else -1) > 0
        ]
        delays.append(changed[0] if changed else len(after) + 1)
    measured = [(w["rows"], w["measured_s"]) for w in windows if w["measured_s"] is not None]
    within = sum(rows for rows, sojourn in measured if sojourn <= target) / max(sum(rows for rows, _ in measured), 1)
    return {
        "steps_windows_to_change": max(delays),
        "steps_windows_to_change_each": ":".join(map(str, delays)),
        "steps_latency_max_s": target,
        "steps_share_within": within,
        "steps_changes": sum(w["changed"] for w in windows),
        "steps_processors": ":".join(str(sum(w["decided"] or w["allocation"])) for w in windows),
    }
