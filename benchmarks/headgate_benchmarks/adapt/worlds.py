"""The worlds of ``headgate bench adapt``: what arrives when, what it costs, what machines there are, what fails."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headgate.machines.provider import machine_class
from headgate.model.cluster.vm_class import VmClass

__all__ = ["SCENARIOS", "Alternate", "Fault", "Flow", "Scenario", "due_times"]

SLOT2 = machine_class("slot2", 2, 2**30, Decimal("0.10"), boot_s=10.0)
CRUMB = machine_class("crumb", 1, 2**30, Decimal("0.02"), core_power=0.15, boot_s=10.0)
BEST_PER_H = 0.6
"""The break-even cost at the best value; what matters is by how much the other one is below it."""


@dataclass(frozen=True, slots=True)
class Alternate:
    """A way of the task that costs something."""

    name: str
    seconds: float
    value: float


@dataclass(frozen=True, slots=True)
class Flow:
    """A dataflow: the source and the task that all share, and a sink of its own."""

    name: str
    joins: float = 0.0
    """After which share of the time it is submitted."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, at a share of the time."""

    kind: str
    """``machine``: one is killed; ``refuse``: the provider has no machines for a while; ``engine``: it is killed."""

    at: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world. Rates are of the share of its time that has passed, so that shorter runs are the same story."""

    name: str
    asks: str
    rate: Callable[[float], float]
    """Rows a second."""

    ways: tuple[Alternate, ...]
    machine: VmClass = SLOT2
    function: str = "wait"
    latency_max_s: float = 20.0
    sigma_steps: float = 1 / 3
    """What a machine costs over a value step: :math:`\\sigma` times the price of a machine, in steps of Gamma."""

    flows: tuple[Flow, ...] = (Flow("a"),)
    faults: tuple[Fault, ...] = ()
    noise: float = 0.0
    steps_at: tuple[float, ...] = ()
    """Shares of the time at which the rate jumps."""

    @property
    def cost_s(self) -> float:
        """Core-seconds of a row in the best alternate."""
        return max(way.seconds for way in self.ways)

    @property
    def value_step(self) -> float:
        """By how much the worst alternate lowers Gamma."""
        return (1 - min(way.value for way in self.ways)) / self.tasks

    @property
    def tasks(self) -> int:
        return 3

    @property
    def break_even(self) -> tuple[float, float] | None:
        """Break-even costs an hour, at the best and at the worst value; none where there is nothing to trade."""
        if self.value_step == 0:
            return None
        sigma = self.sigma_steps * self.value_step / float(self.machine.price_per_h)
        return BEST_PER_H, BEST_PER_H - self.value_step / sigma

    def machines_for(self, rows_per_s: float, used: float) -> int:
        """How many machines have the cores for so many rows, at a utilisation."""
        return max(1, math.ceil(rows_per_s * self.cost_s / used / self.machine.power - 1e-9))

    def peak(self) -> float:
        return max(self.rate(step / 1_000) for step in range(1_001))

    def mean(self) -> float:
        return sum(self.rate((step + 0.5) / 1_000) for step in range(1_000)) / 1_000

    def documents(self, source: str) -> Iterator[tuple[Flow, dict[str, Any]]]:
        """The dataflows as documents."""
        for flow in self.flows:
            yield flow, self._document(flow, source)

    def _document(self, flow: Flow, source: str) -> dict[str, Any]:
        work = "headgate_benchmarks.adapt.sinks"
        ways = [
            {
                "name": way.name,
                "type": "python",
                "value": way.value,
                "cost_s": way.seconds,
                "selectivity": 1.0,
                "config": {
                    "function": f"{work}.{self.function}",
                    "options": {"seconds": way.seconds, "way": way.name},
                },
            }
            for way in self.ways
        ]
        level: dict[str, Any] = {"latency_max_s": self.latency_max_s}
        if self.break_even is not None:
            best, worst = self.break_even
            level |= {"break_even_at_best_per_h": round(best, 6), "break_even_at_worst_per_h": round(worst, 6)}
        read = {"path": source, "columns": "id long, way string", "format": "json"}
        tasks = [
            {"id": "read", "type": "read_files", "config": read},
            {"id": "score", "alternates": ways, "inputs": ["read"]},
            {
                "id": "out",
                "type": "write_call",
                "config": {"function": f"{work}.noted_{flow.name}"},
                "inputs": ["score"],
            },
        ]
        # Who joins has no past to catch up with: that would be another world.
        start = {"start": "now"} if flow.joins else {}
        return {"name": flow.name, "owner": f"team-{flow.name}", **start, "service_level": level, "tasks": tasks}

    def promise(self, flow: Flow) -> dict[str, Any]:
        """What was agreed for a dataflow, as the judge reads it."""
        promise: dict[str, Any] = {
            "sinks": {flow.name: {"of": 1, "is": 0}},
            "tasks": self.tasks,
            "values": {"score": {way.name: way.value for way in self.ways}},
            "throughput_min": 0.8,
            "throughput_tolerance": 0.05,
            "latency_max_s": self.latency_max_s,
        }
        if self.break_even is not None:
            names = ("break_even_at_best_per_h", "break_even_at_worst_per_h")
            promise |= dict(zip(names, (round(cost, 6) for cost in self.break_even), strict=True))
        return promise


def due_times(scenario: Scenario, span_s: float, seed: int, every_s: float = 0.25) -> Iterator[tuple[float, int]]:
    """How many rows come at which second; the same for every policy."""
    draw, owed, at = random.Random(f"{scenario.name} {seed}"), 0.0, 0.0
    while at < span_s:
        factor = 1 + draw.uniform(-scenario.noise, scenario.noise) if scenario.noise else 1.0
        owed += scenario.rate(at / span_s) * factor * every_s
        yield at, int(owed)
        owed -= int(owed)
        at += every_s


def _step(passed: float) -> float:
    return 40.0 if passed < 0.2 else 160.0 if passed < 0.55 else 60.0


def _wave(passed: float) -> float:
    """One and a half periods: 240 s of 360."""
    return 90.0 - 60.0 * math.cos(2 * math.pi * passed * 1.5)


def _cpu(passed: float) -> float:
    return 20.0 if passed < 0.2 else 100.0 if passed < 0.55 else 40.0


ONE = (Alternate("best", 0.020, 1.0),)
TWO = (Alternate("best", 0.020, 1.0), Alternate("quick", 0.008, 0.7))

SCENARIOS = {
    each.name: each
    for each in (
        Scenario("step", "how fast it converges after a jump", _step, ONE, steps_at=(0.2, 0.55)),
        Scenario("wave", "machines are cheap beside value: nobody can gain", _wave, TWO, noise=0.2),
        Scenario("wave-dear", "a machine costs more than a step of value", _wave, TWO, sigma_steps=1.5, noise=0.2),
        Scenario(
            "cpu", "cores that compute, on throttled machines", _cpu, (Alternate("best", 0.005, 1.0),), CRUMB, "compute"
        ),
        Scenario(
            "owners",
            "three teams share a task and its alternate",
            lambda passed: 60.0 if passed < 0.3 else 130.0,
            TWO,
            flows=(Flow("a"), Flow("b"), Flow("c", joins=0.5)),
        ),
        Scenario(
            "trouble",
            "a machine dies, none can be had, the engine is killed",
            lambda passed: 100.0 if passed < 0.7 else 60.0,
            ONE,
            faults=(Fault("machine", 0.2), Fault("refuse", 0.4), Fault("engine", 0.6)),
        ),
    )
}
