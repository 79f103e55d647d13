"""The predicted steady state of a plan: the one evaluation that all planners use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.layout import Layout
from headgate.planning.problem import SLACK, Problem

__all__ = ["PlanEstimate", "estimate"]


@dataclass(frozen=True, slots=True, eq=False)
class PlanEstimate:
    """Predictions for machines that perform as rated; arrays are by task, in messages a second."""

    omega: float
    gamma: float
    cost_per_h: float
    theta: float
    achievable: Floats
    """What would arrive if nothing held messages up."""

    offered: Floats
    """What comes from outside and what the tasks before send, before the network."""

    arrived: Floats
    processed: Floats
    power: Floats
    """Reference cores."""

    held_back: Floats
    """Messages a second that the network has no room for, by stream."""

    @property
    def relative(self) -> Floats:
        """Relative throughput of each task by itself: processed of what was offered (Omega_i of DYN)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            relative: Floats = np.where(self.offered > 0, self.processed / self.offered, 1.0)
        return relative

    def meets(self, problem: Problem) -> bool:
        return self.omega >= problem.throughput_min - SLACK


def estimate(problem: Problem, active: Ints, layout: Layout) -> PlanEstimate:
    r"""Propagate rates from task to task (DYN, Eq. 4 to 7) with rated machines and nothing waiting.

    A pair of machines carries its instances' share of a stream, at most what the narrower of both can; what is on one
    machine needs no network. This is what the simulator does in its first interval.
    """
    shape, classes = problem.shape, problem.cloud.classes
    cost, out = shape.cost_of(active), shape.out_of(active)
    speed = np.array([each.core_power for each in classes])
    power = (layout.count * speed[layout.kind]) @ layout.placed if len(layout.count) else np.zeros(shape.tasks)
    room = np.array([each.bandwidth_mbit_per_s for each in classes]) * 125_000.0 / problem.message_bytes
    used = layout.placed.sum(axis=1) > 0
    narrowest = room[layout.kind[used]].min() if used.any() else np.inf
    offered, arrived, achievable = (problem.external.copy() for _ in range(3))
    processed = np.zeros(shape.tasks)
    held_back = np.zeros(len(shape.stream_target))
    stream = 0
    for task in range(shape.tasks):
        processed[task] = arrived[task] if cost[task] <= 0 else min(arrived[task], power[task] / cost[task])
        while stream < len(held_back) and shape.stream_source[stream] == task:
            target, share = shape.stream_target[stream], shape.stream_share[stream]
            wanted = processed[task] * out[task] * share
            through = wanted
            if wanted > narrowest and power[task] > 0 and power[target] > 0:
                through = _crossing(wanted, task, target, layout, power, speed, room)
            held_back[stream] = wanted - through
            offered[target] += wanted
            arrived[target] += through
            achievable[target] += achievable[task] * out[task] * share
            stream += 1
    ends = list(shape.outputs)
    could = achievable[ends]
    with np.errstate(invalid="ignore", divide="ignore"):
        omega = float(np.where(could > 0, np.minimum(processed[ends] / could, 1.0), 1.0).mean())
    gamma = problem.value(active)
    cost_per_h = float(sum(count * classes[kind].price_per_h for kind, count in _counted(layout)))
    theta = problem.theta(gamma, cost_per_h)
    return PlanEstimate(omega, gamma, cost_per_h, theta, achievable, offered, arrived, processed, power, held_back)


def _counted(layout: Layout) -> list[tuple[int, int]]:
    return [(int(kind), int(layout.count[layout.kind == kind].sum())) for kind in np.unique(layout.kind)]


def _crossing(
    wanted: float, source: int, target: int, layout: Layout, power: Floats, speed: Floats, room: Floats
) -> float:
    """How many of ``wanted`` messages the network carries, by pairs of machine groups."""
    here = layout.placed[:, source] * speed[layout.kind] / power[source]
    there = layout.placed[:, target] * speed[layout.kind] / power[target]
    senders, readers = np.flatnonzero(here), np.flatnonzero(there)
    part = wanted * np.outer(here[senders], there[readers])
    least = np.minimum.outer(room[layout.kind[senders]], room[layout.kind[readers]])
    pairs = np.outer(layout.count[senders], layout.count[readers]).astype(np.float64)
    alone = np.where(senders[:, None] == readers[None, :], layout.count[senders][:, None], 0)
    moved = (np.minimum(part, least) * (pairs - alone) + part * alone).sum()
    return float(min(moved, wanted))
