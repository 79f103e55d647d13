"""A recorded past as a world with shared pools, and the machines and alternates that there were in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headgate.adaptation.window import Window
from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue
from headgate.model.arrays import Floats
from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.simulation.rates import Recorded
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from headgate.simulation.variability import TracePool

__all__ = ["AsItWas", "ReplayError", "Replayed", "recorded_setting", "replay_error"]


def recorded_setting(seen: Sequence[Window]) -> Setting:
    """The world of some windows: what came, what all alternates cost, how fast machines were, levels and fragments."""
    last = seen[-1]
    terms, shape = last.terms, last.shape
    if last.sharing is None:
        raise BadValue("windows without shared pools", "those of a running engine")
    step_s = (last.ended_s - seen[0].ended_s) / (len(seen) - 1)
    names = [str(name) for name in shape.names]
    rates = {
        names[place]: Recorded(tuple(float(each.external[each.shape.place(names[place])]) for each in seen), step_s)
        for place in shape.sources
    }
    costs = {
        (names[task], way): _usual(seen, names[task], column)
        for task, ways in enumerate(shape.alternates)
        for column, way in enumerate(ways)
    }
    shares = {
        (names[int(source)], names[int(target)]): float(share)
        for source, target, share in zip(shape.stream_source, shape.stream_target, shape.stream_share, strict=True)
    }
    pools = tuple(replace(pool, shares=()) for pool in last.sharing.pools)
    return Setting(
        _labelled(terms.dataflow),
        terms.cloud,
        rates,
        len(seen),
        step_s,
        _speeds(seen),
        costs=costs,
        shares=shares,
        sharing=Sharing(last.sharing.fragments, pools),
        owners=terms.owners,
        levels=terms.levels,
        counts_queues=terms.counts_queues,
    )


def _labelled(dataflow: Dataflow) -> Dataflow:
    """The graph with options that tell its tasks apart: records leave out what tasks do."""
    tasks = tuple(
        replace(
            task,
            alternates=tuple(
                replace(way, config=Config({"label": f"{task.id} {way.name}"})) for way in task.alternates
            ),
        )
        for task in dataflow.tasks
    )
    return replace(dataflow, tasks=tasks)


def _usual(seen: Sequence[Window], task: str, column: int) -> tuple[float, float]:
    """Cost and selectivity of an alternate, the median over all windows."""
    places = [(each.shape, each.shape.place(task)) for each in seen]
    cost = np.median([shape.cost_s[place, column] for shape, place in places])
    return float(cost), float(np.median([shape.selectivity[place, column] for shape, place in places]))


def _speeds(seen: Sequence[Window]) -> TracePool:
    """The mean speed of all machines over time, relative to what they are rated for."""
    rated = np.array([each.core_power for each in seen[-1].terms.cloud.classes])
    known = [
        float((each.machines.speed / rated[each.machines.kind]).mean()) if len(each.machines.names) else np.nan
        for each in seen
    ]
    usual = float(np.nanmean(known)) if np.isfinite(known).any() else 1.0
    values = np.maximum(np.nan_to_num(np.array([known]), nan=usual), 0.01)
    every_s = (seen[-1].ended_s - seen[0].ended_s) / (len(seen) - 1)
    return TracePool(values, np.ones_like(values), np.ones_like(values), every_s, "recorded")


@dataclass(slots=True)
class AsItWas:
    """Has in every interval the machines and the alternates that were recorded."""

    seen: Sequence[Window]
    name: str = "as it was"
    every: int | None = 1

    def begin(self, simulator: Simulator) -> None:
        self._follow(simulator, self.seen[0])

    def decide(self, simulator: Simulator) -> None:
        self._follow(simulator, self.seen[min(simulator.step, len(self.seen) - 1)])

    def _follow(self, simulator: Simulator, window: Window) -> None:
        for task, name in enumerate(window.shape.names):
            place = simulator.shape.place(str(name))
            simulator.switch(0, place, int(window.active[task]))
        slots = simulator.fleet.working(0, simulator.now_s)
        kinds = simulator.fleet.kind[0, slots]
        there = window.machines.kind[window.machines.starts_s <= 0]
        for kind, each in enumerate(simulator.setting.cloud.classes):
            more = int((there == kind).sum() - (kinds == kind).sum())
            for slot in slots[kinds == kind][: max(-more, 0)].tolist():
                simulator.release(0, slot)
            for slot in simulator.acquire(0, kind, max(more, 0)).tolist() if more > 0 else ():
                simulator.place(0, 0, slot, each.cores)
                # It was seen at work, so it has started before.
                simulator.fleet.ready[0, slot] = simulator.now_s


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was measured of a past."""

    omega: float
    gamma: float
    cost: float
    backlog: float
    came: float
    """Messages from outside."""

    @classmethod
    def of(cls, seen: Sequence[Window]) -> Replayed:
        """Means over the windows; the cost of machines is what they would be billed at, by time."""
        step_s = (seen[-1].ended_s - seen[0].ended_s) / (len(seen) - 1)
        prices = np.array([float(each.price_per_h) for each in seen[-1].terms.cloud.classes])
        cost = sum(float(prices[each.machines.kind].sum()) for each in seen) * step_s / 3_600
        gammas = [float(each.shape.value[np.arange(each.shape.tasks), each.active].mean()) for each in seen]
        came: Floats = np.array([float(each.external.sum()) for each in seen]) * step_s
        omegas = [each.omega for each in seen]
        return cls(
            float(np.mean(omegas)), float(np.mean(gammas)), cost, float(seen[-1].waiting.sum()), float(came.sum())
        )


@dataclass(frozen=True, slots=True)
class ReplayError:
    """How far the simulation of a past is from it."""

    omega: float
    cost: float
    """As a share."""

    backlog: float
    """As a share of what came."""


def replay_error(was: Replayed, simulated: Run) -> ReplayError:
    """Simulated minus measured."""
    seen = simulated.summary()
    return ReplayError(
        seen.omega - was.omega,
        (seen.cost - was.cost) / was.cost if was.cost > 0 else 0.0,
        (seen.backlog - was.backlog) / max(was.came, 1.0),
    )
