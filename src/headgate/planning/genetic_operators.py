"""The operators of the genetic planner, for pymoo."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem as PymooProblem
from pymoo.core.sampling import Sampling
from pymoo.core.selection import Selection
from pymoo.core.survival import Survival

from headgate.model.arrays import Ints

if TYPE_CHECKING:
    from headgate.planning.genetic import Genetic, Strands

__all__ = ["evolve"]

PATIENCE = 100
"""Generations without a better plan after which it ends."""


def evolve(setting: Genetic, strands: Strands) -> tuple[Ints, int]:
    """The best individual, and the number of generations."""
    deadline = time.perf_counter() + setting.time_limit_s
    algorithm = GA(
        pop_size=setting.population,
        sampling=_First(strands),
        selection=_ByRank(),
        crossover=_BitMask(strands),
        mutation=_SwitchAddRemove(strands),
        survival=_EliteAndYoung(setting, strands),
        eliminate_duplicates=False,
    )
    algorithm.setup(_Fitness(strands), termination=("n_gen", setting.generations), seed=setting.seed, verbose=False)
    best: Ints | None = None
    best_short, best_profit, best_changes = np.inf, -np.inf, 0.0
    since = 0
    while algorithm.has_next() and since < PATIENCE and time.perf_counter() < deadline:
        algorithm.next()
        profit, short = -algorithm.pop.get("F")[:, 0], np.maximum(algorithm.pop.get("G")[:, 0], 0.0)
        changes, weight = strands.changes(algorithm.pop.get("X")), setting.alpha_changes * int(algorithm.n_gen or 1)
        fitness = profit - weight * changes
        place = int(np.lexsort([-fitness, short])[0])
        since += 1
        # What it weighs to change something grows, for the best so far as well.
        if (-short[place], fitness[place]) > (-best_short, best_profit - weight * best_changes):
            best, since = algorithm.pop[place].get("X").copy(), 0
            best_short, best_profit, best_changes = float(short[place]), float(profit[place]), float(changes[place])
    assert best is not None
    return best, int(algorithm.n_gen or 0)


class _Fitness(PymooProblem):  # type: ignore[misc]
    def __init__(self, strands: Strands) -> None:
        super().__init__(
            n_var=strands.size, n_obj=1, n_ieq_constr=1, xl=-1, xu=max(strands.problem.tasks, 8), vtype=int
        )
        self.strands = strands

    def _evaluate(self, x: Ints, out: dict[str, Any], *_: Any, **__: Any) -> None:
        theta, omega = self.strands.score(x)
        out["F"] = -theta[:, None]
        out["G"] = (self.strands.problem.throughput_min - 1e-9 - omega)[:, None]


class _First(Sampling):  # type: ignore[misc]
    def __init__(self, strands: Strands) -> None:
        super().__init__()
        self.strands = strands

    def _do(self, _: Any, n_samples: int, *__: Any, random_state: Any = None, **___: Any) -> Ints:
        return self.strands.first(n_samples, random_state)


class _ByRank(Selection):  # type: ignore[misc]
    """Roulette by rank: the population is sorted by fitness, and the first is drawn most often."""

    def _do(
        self, _: Any, pop: Any, n_select: int, n_parents: int, *__: Any, random_state: Any = None, **___: Any
    ) -> Any:
        weight = np.arange(len(pop), 0, -1, dtype=np.float64)
        return random_state.choice(len(pop), size=(n_select, n_parents), p=weight / weight.sum())


class _BitMask(Crossover):  # type: ignore[misc]
    """Each gene, a task's alternate or a whole machine, from either parent by a random bit."""

    def __init__(self, strands: Strands) -> None:
        super().__init__(2, 1, prob=0.9)
        self.strands = strands

    def _do(self, _: Any, x: Ints, *__: Any, random_state: Any = None, **___: Any) -> Ints:
        strands, matings = self.strands, x.shape[1]
        bits = random_state.random((matings, strands.problem.tasks + strands.machines)) < 0.5
        tasks = strands.problem.tasks
        mask = np.concatenate([bits[:, :tasks], np.repeat(bits[:, tasks:], 1 + strands.width, axis=1)], axis=1)
        return np.asarray(np.where(mask, x[1], x[0])[None])


class _SwitchAddRemove(Mutation):  # type: ignore[misc]
    """Switches an alternate at random, and adds or removes an instance on some machines."""

    def __init__(self, strands: Strands) -> None:
        super().__init__(prob=1.0)
        self.strands = strands

    def _do(self, _: Any, x: Ints, *__: Any, random_state: Any = None, **___: Any) -> Ints:
        strands, genes = self.strands, x.copy()
        tasks = strands.problem.tasks
        switch = random_state.random((len(genes), tasks)) < 0.5 / tasks
        other = random_state.integers(0, strands.ways, size=(len(genes), tasks))
        alternates = strands.alternates(genes)
        alternates[switch] = other[switch]
        machines = genes[:, tasks:].reshape(len(genes), strands.machines, 1 + strands.width)
        # A few machines of each individual, however many it has.
        touched = np.argwhere(random_state.random(machines.shape[:2]) < 2.0 / strands.machines)
        cores = strands.cores[machines[touched[:, 0], touched[:, 1], 0]]
        core = 1 + (random_state.random(len(touched)) * cores).astype(np.int64)
        add = random_state.random(len(touched)) < 0.5
        drawn = random_state.integers(0, tasks, size=len(touched))
        machines[touched[:, 0], touched[:, 1], core] = np.where(add, drawn, -1)
        # What is not acquired may as well be of another class.
        bare = touched[(machines[touched[:, 0], touched[:, 1], 1:] < 0).all(axis=1) & (touched[:, 1] >= strands.held)]
        machines[bare[:, 0], bare[:, 1], 0] = random_state.integers(0, len(strands.cores), size=len(bare))
        genes[:, tasks:] = machines.reshape(len(genes), -1)
        return genes


class _EliteAndYoung(Survival):  # type: ignore[misc]
    """Keeps the best few of all and fills up with the best offspring; fitness is profit less growing penalties."""

    def __init__(self, setting: Genetic, strands: Strands) -> None:
        super().__init__(filter_infeasible=False)
        self.setting, self.strands = setting, strands

    def _do(self, _: Any, pop: Any, *__: Any, n_survive: int, algorithm: Any = None, **___: Any) -> Any:
        generation = int(algorithm.n_gen or 1)
        short = np.maximum(pop.get("G")[:, 0], 0.0)
        penalty = self.setting.alpha * short + self.setting.alpha_changes * self.strands.changes(pop.get("X"))
        fitness = -pop.get("F")[:, 0] - penalty * generation
        order = np.argsort(-fitness, kind="stable")
        old = len(pop) - n_survive
        if old <= 0:
            return pop[order[:n_survive]]
        best = order[: max(1, round(self.setting.elite * n_survive))]
        chosen = set(best.tolist())
        young = [place for place in order if place >= old and place not in chosen]
        kept = np.array([*best, *young][:n_survive])
        return pop[kept[np.argsort(-fitness[kept], kind="stable")]]
