"""A planning problem: a dataflow, its rates, the available machines and the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite

import numpy as np

from headgate.errors import BadValue, InputError
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from headgate.planning.objective import BreakEven

__all__ = ["SLACK", "Problem"]

SLACK = 1e-9
"""What sums of shares may be off by."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    r"""Maximise :math:`\Theta = \Gamma - \Gamma_{max} - \sigma (\mu - C_{max})`, :math:`\Omega \ge \hat\Omega`.

    All of it is for an hour of steady rates on machines that perform as rated. Every task whose active alternate
    costs anything has an instance at least; an instance has one core for itself.

    >>> from headgate import parse
    >>> from headgate.model.cluster.catalogues import catalogue
    >>> flow = parse("tasks: [{id: a, type: opaque, cost_s: 0.5, ports: {outputs: [out]}}]", "yaml").dataflow
    >>> problem = Problem.of(flow, catalogue("ec2-2013"), {"a": 10.0})
    >>> problem.throughput_min, problem.needed_power(problem.best).tolist()
    (0.8, [5.0])
    """

    dataflow: Dataflow
    cloud: Cloud
    rates: Mapping[str, float]
    """Messages per second from outside, by source."""

    throughput_min: float = 0.8
    break_even: BreakEven | None = None
    """That of one hour; needed where a task has a choice."""

    budget_per_h: Decimal | None = None
    cores_max: int | None = None
    message_bytes: float = 100.0
    costs: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Measured (cost_s, selectivity) by (task, alternate), before what the dataflow says."""

    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Share of the messages that pass a stream's predicate, by (source, target); 1 if not given."""

    waiting: Mapping[str, float] = field(default_factory=dict)
    """What waits for tasks and is to be worked off, in messages per second, by task: as if it came from outside."""

    shape: Shape = field(init=False, repr=False)
    external: Floats = field(init=False, repr=False)
    """Messages per second from outside, by task."""

    def __post_init__(self) -> None:
        if not 0 < self.throughput_min <= 1:
            raise BadValue(f"the least relative throughput is {self.throughput_min:g}", "above 0, at most 1")
        if not (isfinite(self.message_bytes) and self.message_bytes > 0):
            raise BadValue(f"message_bytes is {self.message_bytes}", "bytes above 0")
        for name, rate in self.rates.items():
            if not (isfinite(rate) and rate >= 0):
                raise BadValue(f"the rate of '{name}' is {rate}", "messages per second, not below 0")
        shape = Shape.of(self.dataflow, self.costs, self.shares)
        if shape.stream_returns.any():
            message = f"dataflow '{self.dataflow.name}' has a loop, which cannot be planned"
            raise InputError("LOOP", f"{message}; size its processors with 'headgate size'")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "external", self._external(shape))
        if self.break_even is None and any(len(ways) > 1 for ways in shape.alternates):
            message = f"dataflow '{self.dataflow.name}' has alternates but no break-even costs"
            raise InputError(
                "NO_BREAK_EVEN",
                f"{message}; add break_even_at_best_per_h and break_even_at_worst_per_h to its service_level",
            )

    def _external(self, shape: Shape) -> Floats:
        shape.check_rates(self.rates, "50")
        came, late = self.rates, self.waiting
        return np.array([float(came.get(name, 0.0)) + float(late.get(name, 0.0)) for name in map(str, shape.names)])

    @classmethod
    def of(
        cls,
        dataflow: Dataflow,
        cloud: Cloud,
        rates: Mapping[str, float],
        message_bytes: float = 100.0,
        costs: Mapping[tuple[str, str], tuple[float, float]] | None = None,
        shares: Mapping[tuple[str, str], float] | None = None,
    ) -> Problem:
        """The one that a dataflow's service level poses."""
        level = dataflow.service_level
        return cls(
            dataflow,
            cloud,
            rates,
            level.throughput_min,
            BreakEven.of(dataflow),
            level.budget_per_h,
            level.processors_max,
            message_bytes,
            costs or {},
            shares or {},
        )

    @property
    def tasks(self) -> int:
        return self.shape.tasks

    @property
    def sigma(self) -> float:
        """What a unit of money is worth in value; 0 where no task has a choice."""
        return 0.0 if self.break_even is None else self.break_even.sigma

    @property
    def best(self) -> Ints:
        """The alternate of most value for each task; of several the cheapest."""
        shape = self.shape
        best = [
            max(range(len(ways)), key=lambda j, i=i: (shape.value[i, j], -shape.cost_s[i, j]))  # type: ignore[misc]
            for i, ways in enumerate(shape.alternates)
        ]
        return np.array(best, dtype=np.int64)

    def theta(self, value: float, cost_per_h: float) -> float:
        """Profit of an hour; 0 where nothing says what value is worth."""
        return 0.0 if self.break_even is None else self.break_even.profit(value, cost_per_h)

    def achievable(self, active: Ints) -> Floats:
        """Messages per second into each task if no task is a bottleneck."""
        return self.shape.achievable(self.external, self.shape.out_of(active))

    def needed_power(self, active: Ints) -> Floats:
        """Reference cores with which each task keeps up with everything."""
        return self.achievable(active) * self.shape.cost_of(active)

    def value(self, active: Ints) -> float:
        """Gamma (Eq. 3)."""
        return float(self.shape.value[np.arange(self.tasks), active].mean())

    def without_choice(self) -> Problem:
        """The same with the alternates of most value alone: what DYN's Fig. 7(c) compares with."""
        shape, best = self.shape, self.best
        by_name = {str(name): int(best[place]) for place, name in enumerate(shape.names)}
        tasks = tuple(replace(task, alternates=(task.alternates[by_name[task.id]],)) for task in self.dataflow.tasks)
        return replace(self, dataflow=replace(self.dataflow, tasks=tasks))
