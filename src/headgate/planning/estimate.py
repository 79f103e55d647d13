"""The predicted steady state of a plan: the one evaluation that all planners use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.capacity.serve import rates_of, serve
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
    speed = np.array([each.core_power for each in classes])[layout.kind]
    power = np.asarray((layout.count * speed) @ layout.placed, dtype=np.float64)
    count = len(layout.kind)
    bandwidth = np.array([each.bandwidth_mbit_per_s for each in classes])[layout.kind]
    rated, none = np.ones((1, 1)), np.zeros(count, dtype=np.int64)
    links = (bandwidth, rated, none, none, 1.0, float(problem.message_bytes), np.zeros(count), np.zeros(count))
    narrowest = float(bandwidth.min()) * 125_000.0 / problem.message_bytes if count else np.inf
    network = (layout.placed, speed, layout.count.astype(np.float64), links, narrowest)
    flow, external, state, _, results = rates_of(shape, active, problem.external)
    arrived, queue, pending, _ = state
    arrived[:] = results[0][:] = external
    omega = serve(flow, (arrived, queue, pending, arrived, power, False), power, network, results)
    achievable, processed = results[:2]
    offered = arrived.copy()
    np.add.at(offered, shape.stream_target, pending)
    gamma = problem.value(active)
    cost_per_h = float(sum(count * classes[kind].price_per_h for kind, count in _counted(layout)))
    theta = problem.theta(gamma, cost_per_h)
    return PlanEstimate(omega, gamma, cost_per_h, theta, achievable, offered, arrived, processed, power, pending)


def _counted(layout: Layout) -> list[tuple[int, int]]:
    return [(int(kind), int(layout.count[layout.kind == kind].sum())) for kind in np.unique(layout.kind)]
