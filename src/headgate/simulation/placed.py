"""A simulated cloud on which placed instances run: what a plan did not know shows there.

Rows are a fluid with random arrivals; each instance is one thread that its rows hold, and the threads of a machine
share its CPU. On top of what profiles account for there are the costs that P-DEPLOY's model leaves out (section 7.2):
acknowledgements and the system in proportion to rows, switching between more runnable threads than cores, surges of
operators with windows; rows of keyed operators that are divided unevenly; and machines that die.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from headgate.adaptation.deploying.readings import OperatorReading, Readings
from headgate.errors import BadValue
from headgate.model.arrays import Floats, Ints
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.planning.known_figures import Figure
from headgate.planning.placing.deployment_plan import DeploymentPlan
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.profiles import OperatorProfile
from headgate.simulation.placed_kernel import run_placed

__all__ = ["PlacedWorld", "WorldFacts", "drawn_truth"]

SWITCHING = 0.1
"""P-DEPLOY's observation 2: on two cores 2 instances had 1.35 times the throughput of 8, and 1.69 times that of 16.
With a loss of 0.1 for each runnable thread a core has too many it is 1.3 and 1.7."""


@dataclass(frozen=True, slots=True)
class WorldFacts:
    """What is true of a simulated cloud beside the costs of operators."""

    overhead: float = 0.15
    """CPU that a row costs in addition, relative to what its operator takes for it."""

    switching: float = SWITCHING
    surges: Mapping[str, float] = field(default_factory=dict)
    """For a second in every ten, a row costs so many times as much in an operator."""

    shares: Mapping[str, float] = field(default_factory=dict)
    """How many times its share the first instance of an operator gets."""

    offered: float = 1.0
    """What the profiling stream delivers of the target's rate."""

    sampling_error: float = 0.02
    """Standard error of measured costs."""

    dies_in: tuple[int, ...] = ()
    """Runs in which a machine dies, from 1."""

    step_s: float = 0.01
    settle_s: float = 20.0
    reading_s: float = 3.0
    readings: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        if self.overhead < 0 or self.switching < 0 or not self.offered > 0:
            raise BadValue(
                "a simulated cloud has a negative overhead or a source without rows", "numbers of at least 0"
            )


def drawn_truth(profiles: Mapping[str, OperatorProfile], error: float, seed: int) -> dict[str, OperatorProfile]:
    """True costs of operators whose profiles are off by a factor between 1/(1 + error) and 1 + error."""
    rng = np.random.default_rng(seed)

    def off(figure: Figure, factor: float) -> Figure:
        return Figure(figure.value * factor, Origin.GIVEN)

    truth = {}
    for name, one in profiles.items():
        cpu, transfer = np.exp(rng.uniform(-1, 1, 2) * np.log1p(error)).tolist()
        wait = max(one.sojourn_s.value - one.cpu_s.value, 0.0)
        truth[name] = replace(
            one,
            cpu_s=off(one.cpu_s, cpu),
            transfer_s=off(one.transfer_s, transfer),
            sojourn_s=Figure(one.cpu_s.value * cpu + wait, Origin.GIVEN),
        )
    return truth


class PlacedWorld:
    """Deploys plans in the simulated cloud, as :class:`~headgate.adaptation.deploying.readings.DeployWorld`."""

    def __init__(self, truth: Mapping[str, OperatorProfile], cloud: Cloud, facts: WorldFacts | None = None) -> None:
        self.truth, self.cloud, self.facts = truth, cloud, facts or WorldFacts()
        self.runs = 0

    def run(self, plan: DeploymentPlan) -> Readings:
        """A settled run of the plan, measured."""
        self.runs += 1
        rng = np.random.default_rng((self.facts.seed, self.runs))
        run = _Run(plan, self._true_loads(plan), self.cloud, self.facts)
        dies = plan.placement.sites[-1].name if self.runs in self.facts.dies_in else None
        return run.measured(rng, dies)

    def sustained_per_s(self, plan: DeploymentPlan) -> float:
        """The highest rate of all sources that the plan keeps up with, to 1 %."""
        low, high = 0.0, 4.0
        loads = self._true_loads(plan)
        rate = float(plan.loads.outside_per_s.sum())
        while high - low > 0.01:
            factor = (low + high) / 2
            facts = replace(self.facts, offered=factor, readings=3)
            seen = _Run(plan, loads, self.cloud, facts).measured(np.random.default_rng(self.facts.seed), None)
            kept = seen.mean_throughput_per_s >= 0.98 * factor * rate
            low, high = (factor, high) if kept else (low, factor)
        return low * rate

    def _true_loads(self, plan: DeploymentPlan) -> OperatorLoads:
        loads = plan.loads
        names = loads.names
        streams = [(names[a], names[b]) for a, b in zip(loads.source, loads.target, strict=True)]
        given = zip(names, loads.outside_per_s.tolist(), strict=True)
        fed = set(loads.target.tolist())
        rates = {name: rate for place, (name, rate) in enumerate(given) if place not in fed}
        return OperatorLoads.of(streams, {name: self.truth[name] for name in names}, rates)


@dataclass(frozen=True, slots=True, eq=False)
class _Passed:
    """By instance: rows per second, share of time held, rows waiting; by machine: cores; and rows offered."""

    done: Floats
    held: Floats
    waiting: Floats
    busy: Floats
    offered: float


class _Run:
    """One plan's instances as arrays."""

    def __init__(self, plan: DeploymentPlan, loads: OperatorLoads, cloud: Cloud, facts: WorldFacts) -> None:
        if loads.names != plan.loads.names:
            raise BadValue("the simulated cloud has other operators than the plan", "profiles of the same dataflow")
        self.plan, self.loads, self.cloud, self.facts = plan, loads, cloud, facts
        sites = plan.placement.sites
        on = [plan.counts(site) for site in sites]
        self.operator: Ints = np.concatenate([np.repeat(np.arange(len(each)), each) for each in on])
        self.site: Ints = np.repeat(np.arange(len(sites)), [int(each.sum()) for each in on])
        kinds = [plan.classes[site.vm_class] for site in sites]
        self.power = np.array([kind.power - site.others_cpu for kind, site in zip(kinds, sites, strict=True)])
        self.cores = np.array([float(kind.cores) for kind in kinds])
        self.fixed = np.array([plan.items.batch_of(each) for each in on])
        self.share = self._shares()
        self.cpu_s = self._cpu_of_a_row(on)
        self.held_s = self._held_of_a_row(kinds)

    def _shares(self) -> Floats:
        share = 1.0 / self.plan.items.count[self.operator]
        for name, times in self.facts.shares.items():
            if name in self.loads.names:
                places = np.flatnonzero(self.operator == self.loads.names.index(name))
                first = min(times / len(places), 1.0)
                if len(places) > 1:
                    share[places] = (1 - first) / (len(places) - 1)
                    share[places[0]] = first
        return np.asarray(share)

    def _cpu_of_a_row(self, on: list[Ints]) -> Floats:
        """Core-seconds of a row in each instance: its work, its streams to other machines, and the overhead (Eq. 1)."""
        loads, count = self.loads, self.plan.items.count
        c_p, c_t = loads.values("cpu_s"), loads.values("transfer_s")
        cpu = c_p[self.operator].copy()
        rows = np.maximum(loads.in_per_s, 1e-12)
        for a, b, stream in zip(loads.source, loads.target, loads.stream_per_s, strict=True):
            for me, other in ((a, b), (b, a)):
                mine = self.operator == me
                here = np.array([each[other] for each in on])[self.site[mine]] / count[other]
                cpu[mine] += stream / rows[me] * (1 - here) * c_t[me]
        return np.asarray(cpu * (1 + self.facts.overhead))

    def _held_of_a_row(self, kinds: Sequence[VmClass]) -> Floats:
        """Seconds of an instance's thread for a row; sending and receiving is done beside."""
        power = np.array([kind.core_power for kind in kinds])[self.site]
        cpu, sojourn = self.loads.values("cpu_s"), self.loads.values("sojourn_s")
        waits = np.maximum(sojourn - cpu, 0.0)[self.operator]
        return np.asarray(cpu[self.operator] * (1 + self.facts.overhead) / power + waits)

    def measured(self, rng: np.random.Generator, dies: str | None) -> Readings:
        facts, loads = self.facts, self.loads
        state = (np.zeros(len(self.operator)), np.zeros(len(loads.names)))
        places = np.array([loads.stream_per_s[e] / max(loads.in_per_s[a], 1e-12) for e, a in enumerate(loads.source)])
        advance = partial(
            run_placed,
            facts.step_s,
            instances=(self.operator, self.site, self.cpu_s, self.held_s, self.share),
            machines=(self.power, self.fixed, self.cores, facts.switching),
            streams=(loads.source, loads.target, places),
            state=state,
        )
        if dies is not None:
            self.power[[site.name for site in self.plan.placement.sites].index(dies)] = 0.0
        self._pass(advance, rng, facts.settle_s)
        before = state[0].copy()
        parts = [self._pass(advance, rng, facts.reading_s) for _ in range(facts.readings)]
        return self._readings(parts, (state[0] - before) / (facts.readings * facts.reading_s), rng, dies)

    def _pass(self, advance: Callable[..., None], rng: np.random.Generator, seconds: float) -> _Passed:
        facts, loads = self.facts, self.loads
        steps = max(1, round(seconds / facts.step_s))
        mean = loads.outside_per_s * facts.offered * facts.step_s
        arriving = rng.poisson(mean, (steps, len(mean))).astype(np.float64)
        # The generator keeps its rate: what is random is when rows come, not how many.
        arriving *= mean * steps / np.maximum(arriving.sum(axis=0), 1e-12)
        surges = np.ones((steps, len(mean)))
        at = np.arange(steps) * facts.step_s % 10.0 < 1.0
        for name, times in facts.surges.items():
            if name in loads.names:
                surges[at, loads.names.index(name)] = times
        count = len(self.operator)
        seen = (*(np.zeros(count) for _ in range(4)), np.zeros(len(self.power)))
        advance(arriving=arriving, surges=surges, seen=seen)
        done, _, held, waiting, busy = seen
        return _Passed(done / seconds, held / seconds, waiting / steps, busy / seconds, arriving.sum() / seconds)

    def _by_operator(self, values: Floats) -> Floats:
        return np.bincount(self.operator, weights=values, minlength=len(self.loads.names)).astype(np.float64)

    def _readings(
        self, parts: Sequence[_Passed], growth: Floats, rng: np.random.Generator, dies: str | None
    ) -> Readings:
        loads, names, by_operator = self.loads, self.loads.names, self._by_operator
        operators = len(names)
        rate = float(loads.outside_per_s.sum())
        sinks = [place for place in range(operators) if place not in set(loads.source.tolist())]
        throughput, latency = [], []
        for part in parts:
            rows = by_operator(part.done)
            throughput.append(rate * min(rows[place] / max(loads.in_per_s[place], 1e-12) for place in sinks))
            waits = by_operator(part.waiting) / np.maximum(rows, 1e-9)
            seconds, _ = loads.longest_path(waits + self._slowest_s(), self.cloud.latency_s)
            latency.append(seconds + self.plan.trigger_s / 2)
        held = np.mean([part.held for part in parts], axis=0)
        busy = np.mean([part.busy for part in parts], axis=0)
        rows = by_operator(np.mean([part.done for part in parts], axis=0))
        grown = by_operator(growth)
        error = 1 + rng.normal(0, self.facts.sampling_error, operators)
        c_p, sojourn = loads.values("cpu_s"), loads.values("sojourn_s")
        reading = {}
        for place, name in enumerate(names):
            mine = self.operator == place
            share = self.share[mine]
            reading[name] = OperatorReading(
                float(rows[place]),
                float(c_p[place] * error[place]),
                float(max(sojourn[place] - c_p[place], 0.0)),
                float(held[mine].max()),
                float(held[mine].mean()),
                float(grown[place]),
                float(share.max() / share.mean()),
            )
        sites = [site.name for site in self.plan.placement.sites]
        return Readings(
            tuple(map(float, throughput)),
            tuple(map(float, latency)),
            float(np.mean([part.offered for part in parts])),
            float(grown.sum()),
            reading,
            dict(zip(sites, busy.tolist(), strict=True)),
            () if dies is None else (dies,),
        )

    def _slowest_s(self) -> Floats:
        slowest = np.zeros(len(self.loads.names))
        np.maximum.at(slowest, self.operator, self.held_s)
        return slowest
