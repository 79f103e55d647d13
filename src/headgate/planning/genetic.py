"""DYN's genetic planner (GA), on pymoo: two strands, alternates and what runs on each machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.capacity.serve import propagate, rates_of
from headgate.model.arrays import Floats, Ints
from headgate.planning.estimate import estimate
from headgate.planning.explain import planned
from headgate.planning.growth import spread_out
from headgate.planning.layout import Layout
from headgate.planning.plan import Answer
from headgate.planning.problem import Problem
from headgate.queueing.compiled import compiled

__all__ = ["Genetic", "RunningDeployment"]


@dataclass(frozen=True, slots=True, eq=False)
class RunningDeployment:
    """What runs now: alternates by task, and the class of each machine with its cores by task."""

    active: Ints
    kind: Ints
    placed: Ints


@dataclass(frozen=True, slots=True)
class Genetic:
    r"""Evolves deployments. Fitness is :math:`\Theta - \alpha |\Omega - \hat\Omega| \cdot it` while short of it.

    At runtime :math:`\alpha' v \cdot it` is taken off as well, with v the share of what runs that would change, and the
    first machines are those that run: genes may empty them, but not change their class.

    The first strand has an alternate for each task, the second a gene for each possible machine: its class
    and the tasks on its cores; machines without tasks are not acquired. Parents are drawn by rank (roulette),
    genes by a random bit mask, the best 5 % stay, and mutation switches an alternate or adds or removes an instance.

    Reference: DYN, section 7. The paper gives neither size of the population nor rates of mutation; these are ours. The
    plan is the best that met the throughput; were there none, the fittest gets the cores that it lacks.
    """

    population: int = 100
    generations: int = 400
    time_limit_s: float = 60.0
    alpha: float = 1.0
    elite: float = 0.05
    seed: int = 1
    alpha_changes: float = 0.0005
    """What it costs in value to change everything, times the generation."""

    name: str = "ga"

    def plan(self, problem: Problem) -> Answer:
        began = time.perf_counter()
        from headgate.planning.genetic_operators import evolve

        strands = Strands(problem)
        best, generations = evolve(self, strands)
        active, layout = strands.read(best)
        estimated = estimate(problem, active, layout)
        if not estimated.meets(problem):
            layout, estimated = spread_out(problem, active, strands.with_all(active, layout))
        message = f"the best of {self.population} after {generations} generations"
        return planned(self.name, problem, active, layout, estimated, began, None, (message,))

    def redeployed(self, problem: Problem, running: RunningDeployment) -> RunningDeployment:
        """What should run instead: the first machines are those that run, others are new."""
        from headgate.planning.genetic_operators import evolve

        strands = Strands(problem, running)
        best, _ = evolve(self, strands)
        kind = strands.machine_genes(best[None])[0, :, 0]
        placed = strands.counts(best[None])[0]
        wanted = (np.arange(len(kind)) < len(running.kind)) | (placed.sum(axis=1) > 0)
        return RunningDeployment(best[: problem.tasks], kind[wanted], placed[wanted])


class Strands:
    """A deployment encoded as numbers: the alternates of the tasks, then a class and cores per machine."""

    def __init__(self, problem: Problem, running: RunningDeployment | None = None) -> None:
        self.problem, self.running = problem, running
        self.held = 0 if running is None else len(running.kind)
        classes = problem.cloud.classes
        self.cores = np.array([each.cores for each in classes], dtype=np.int64)
        self.power = np.array([each.core_power for each in classes])
        self.price = np.array([float(each.price_per_h) for each in classes])
        self.width = int(self.cores.max())
        largest = problem.cloud.largest
        needed = np.ceil(problem.needed_power(problem.best) / largest.core_power) + 1
        # The size is fixed by what there is to spend; half more than the best alternates need leaves room to search.
        self.machines = max(int(np.ceil(1.5 * needed.sum() / largest.cores)), self.held) + 2
        self.ways = np.array([len(names) for names in problem.shape.alternates], dtype=np.int64)
        self.size = problem.tasks + self.machines * (1 + self.width)

    def alternates(self, genes: Ints) -> Ints:
        return genes[:, : self.problem.tasks]

    def machine_genes(self, genes: Ints) -> Ints:
        """A view: by individual, machine, and class or core."""
        return genes[:, self.problem.tasks :].reshape(len(genes), self.machines, 1 + self.width)

    def first(self, count: int, rng: np.random.Generator) -> Ints:
        """Random individuals: any alternates, machines of any class, as many cores as the tasks may need."""
        problem = self.problem
        genes = np.full((count, self.size), -1, dtype=np.int64)
        self.alternates(genes)[:] = rng.integers(0, self.ways, size=(count, problem.tasks))
        machines = self.machine_genes(genes)
        share = self.cores / self.cores.sum()
        machines[:, :, 0] = rng.choice(len(self.cores), p=share, size=(count, self.machines))
        if self.running is not None:
            machines[:, : self.held, 0] = self.running.kind
        for individual in range(count):
            active = genes[individual, : problem.tasks]
            wanted = problem.needed_power(active) * problem.throughput_min * rng.uniform(0.8, 1.4)
            costly = problem.shape.cost_of(active) > 0
            counts = np.where(costly, np.maximum(np.ceil(wanted / self.power.max()), 1), 0).astype(np.int64)
            queue = rng.permutation(np.repeat(np.arange(problem.tasks), counts))
            slots = np.arange(self.width) < self.cores[machines[individual, :, 0]][:, None]
            places = np.argwhere(slots)[: len(queue)]
            machines[individual, places[:, 0], 1 + places[:, 1]] = queue[: len(places)]
        if self.running is not None:
            genes[0] = self._genes_of(self.running, machines[0, :, 0])
        return genes

    def _genes_of(self, running: RunningDeployment, kinds: Ints) -> Ints:
        """What runs now as an individual."""
        genes = np.full((1, self.size), -1, dtype=np.int64)
        self.alternates(genes)[0] = running.active
        machines = self.machine_genes(genes)[0]
        machines[:, 0] = kinds
        for machine, cores in zip(machines, running.placed, strict=False):
            tasks = np.repeat(np.arange(len(cores)), cores)
            machine[1 : 1 + len(tasks)] = tasks
        return np.asarray(genes[0])

    def score(self, genes: Ints) -> tuple[Floats, Floats]:
        """Theta and Omega of each."""
        problem, shape = self.problem, self.problem.shape
        theta, omega = np.zeros(len(genes)), np.zeros(len(genes))
        sigma = problem.sigma if problem.sigma > 0 else 1.0 / self._scale
        constant = problem.theta(0.0, 0.0) if problem.sigma > 0 else 0.0
        genes_of = (np.ascontiguousarray(self.alternates(genes)), np.ascontiguousarray(self.machine_genes(genes)))
        ways = (shape.cost_s, shape.selectivity, shape.value)
        rates = rates_of(shape, problem.best, problem.external)
        _score(genes_of, (self.cores, self.power, self.price), ways, rates, sigma, constant, theta, omega)
        return theta, omega

    def counts(self, genes: Ints) -> Ints:
        """Cores by individual, machine and task."""
        machines = self.machine_genes(genes)
        real = np.arange(self.width) < self.cores[machines[:, :, 0]][:, :, None]
        held = np.where(real, machines[:, :, 1:], -1)
        return np.asarray(np.stack([(held == task).sum(axis=2) for task in range(self.problem.tasks)], axis=2))

    def changes(self, genes: Ints) -> Floats:
        """How much is not as it runs now: the share of alternates switched, and of cores that come or go."""
        if self.running is None:
            return np.zeros(len(genes))
        counts = self.counts(genes)
        counts[:, : self.held] -= self.running.placed
        moved = np.abs(counts).sum(axis=(1, 2)) / max(int(self.running.placed.sum()), 1)
        return np.asarray(moved + (self.alternates(genes) != self.running.active).mean(axis=1))

    @property
    def _scale(self) -> float:
        price = (self.price / (self.cores * self.power)).min()
        return max(float(self.problem.needed_power(self.problem.best).sum() * price), float(price))

    def read(self, genes: Ints) -> tuple[Ints, Layout]:
        """Alternates and machines of one individual."""
        tasks = self.problem.tasks
        active = genes[:tasks].copy()
        machines = genes[tasks:].reshape(self.machines, 1 + self.width)
        counted: dict[tuple[int, ...], int] = {}
        for gene in machines:
            held = sorted(int(task) for task in gene[1 : 1 + self.cores[gene[0]]] if task >= 0)
            if held:
                key = (int(gene[0]), *held)
                counted[key] = counted.get(key, 0) + 1
        placed = np.zeros((len(counted), tasks), dtype=np.int64)
        for row, key in enumerate(counted):
            np.add.at(placed[row], list(key[1:]), 1)
        kinds = np.array([key[0] for key in counted], dtype=np.int64)
        return active, Layout(kinds, placed, np.array(list(counted.values()), dtype=np.int64))

    def with_all(self, active: Ints, layout: Layout) -> Layout:
        """The layout with an instance for each task that needs one and has none."""
        costly = self.problem.shape.cost_of(active) > 0
        missing = np.flatnonzero(costly & (layout.cores == 0))
        placed = np.zeros((len(missing), self.problem.tasks), dtype=np.int64)
        placed[np.arange(len(missing)), missing] = 1
        kind = self.problem.cloud.place(self.problem.cloud.largest.name)
        return layout.joined(Layout(np.full(len(missing), kind), placed, np.ones(len(missing), dtype=np.int64)))


@compiled
def _score(
    genes: Any, classes: Any, ways: Any, rates: Any, sigma: float, constant: float, theta: Any, omega: Any
) -> None:
    """Eq. 3, 4, 6, 7 and 8 for every individual; one task without cores makes throughput 0.

    Cost and selectivity in ``rates`` are overwritten with those of the individual's alternates.
    """
    alternates, machines = genes
    cores, core_power, price = classes
    cost_s, selectivity, value = ways
    cost, out = rates[0][0], rates[0][1]
    count, tasks = alternates.shape
    for one in range(count):
        spent = 0.0
        power = np.zeros(tasks)
        for m in range(machines.shape[1]):
            kind = machines[one, m, 0]
            used = False
            for c in range(cores[kind]):
                p = machines[one, m, 1 + c]
                if p >= 0:
                    power[p] += core_power[kind]
                    used = True
            if used:
                spent += price[kind]
        worth, bare = 0.0, 0
        for p in range(tasks):
            way = alternates[one, p]
            worth += value[p, way]
            cost[p], out[p] = cost_s[p, way], selectivity[p, way]
            if cost[p] > 0.0 and power[p] == 0.0:
                bare += 1
        omega[one] = propagate(rates, power) - bare
        theta[one] = constant + worth / tasks - sigma * spent
