"""The exact policy against a search through all alternates and machines, which shares no formula with it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np

from headgate.adaptation.policy import Capabilities, Terms
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.optimum import FREE, PooledOptimum
from headgate.adaptation.window import Window
from headgate.model.arrays import Shape
from headgate.sharing.signature import sign
from tests.adaptation.pooled import windows

MARGIN, NEW = 0.02, 2.0
PROBLEMS = 300
MOST_NEW = 5
SMALL = frozenset({"switch_alternate", "acquire_machine", "release_machine"})


def _small(seed: int) -> Window:
    """At most three tasks and two classes, one pool, machines for a handful of cores."""
    rng = np.random.default_rng([seed, 7])
    level = replace(windows.level_of(rng), latency_max_s=None, latency_min_s=None, processors_max=None)
    dataflow = windows.graph(rng, 3, level)
    sharing = windows.sharing_of(rng, dataflow, 1, all_cores=True)
    shape = Shape.of(dataflow, fragments=sharing.groups)
    cloud = windows.cloud_of(rng, 2)
    terms = Terms(dataflow, sign(dataflow), cloud, 60.0, 100, True)
    of = windows.Made(terms, Capabilities(("pool0",), SMALL), shape, sharing)
    seen = windows.window(rng, of)
    external, count = np.zeros(shape.tasks), min(len(seen.machines.names), 3)
    external[list(shape.sources)] = float(rng.choice([0.0, 20.0, 60.0, 150.0])) * rng.random()
    machines = replace(
        seen.machines,
        **{
            name: getattr(seen.machines, name)[:count]
            for name in ("names", "kind", "speed", "left_s", "starts_s", "cores")
        },
    )
    return replace(seen, external=external, waiting=np.zeros(shape.tasks), machines=machines)


def _load(seen: Window, active: tuple[int, ...]) -> dict[str, float]:
    """Reference cores that each fragment asks for: rows along the streams, by name."""
    shape, rate = seen.shape, dict.fromkeys(range(seen.shape.tasks), 0.0)
    for task in range(shape.tasks):
        rate[task] += float(seen.external[task])
        for stream in range(len(shape.stream_source)):
            if shape.stream_source[stream] == task:
                rate[int(shape.stream_target[stream])] += rate[task] * float(shape.selectivity[task, active[task]])
    home = {task: load.id for load in seen.sharing.fragments for task in load.tasks} if seen.sharing else {}
    asked: dict[str, float] = {}
    for task, name in enumerate(shape.names):
        asked[home[str(name)]] = asked.get(home[str(name)], 0.0) + rate[task] * float(shape.cost_s[task, active[task]])
    return asked


def _keeps_up(seen: Window, asked: dict[str, float], speeds: list[float]) -> bool:
    """The formulas of the design note: U = u Phi - sum h / I, cap = (1 - o / I) Phi."""
    assert seen.sharing is not None
    (pool,), power, cores = seen.sharing.pools, sum(speeds), len(speeds)
    if pool.epoch_s == 0:
        return sum(asked.values()) * (1 + MARGIN) <= power + 1e-9
    idle, started = 1.0, 0.0
    for load in seen.sharing.fragments:
        every = max(pool.epoch_s, load.trigger_s)
        idle *= min(load.fixed_s / every, 1.0)
        started += len(load.stages) * cores * load.task_s / every
        cap = power * max(1 - (load.fixed_s + len(load.stages) * load.task_s) / every, 0.0)
        if asked[load.id] * (1 + MARGIN) > cap + 1e-9:
            return False
    return sum(asked.values()) * (1 + MARGIN) <= (1 - idle) * power - started + 1e-9


def _best_by_search(seen: Window) -> float:
    """The objective of the best choice that keeps up; minus infinity where none does."""
    shape, cloud, machines = seen.shape, seen.terms.cloud, seen.machines
    level, tasks = seen.terms.level, shape.tasks
    price = [float(each.price_per_h) for each in cloud.classes]
    rated = [each.core_power for each in cloud.classes]
    works = [
        speed / rated[kind]
        for speed, kind, late in zip(machines.speed, machines.kind, machines.starts_s, strict=True)
        if late <= 0
    ]
    usual = sum(works) / len(works) if works else 1.0
    worst = sum(float(shape.value[t, : len(ways)].min()) for t, ways in enumerate(shape.alternates)) / tasks
    sigma = 0.0
    if level.break_even_at_best_per_h is not None and level.break_even_at_worst_per_h is not None:
        sigma = (1 - worst) / float(level.break_even_at_best_per_h - level.break_even_at_worst_per_h)
    sigma = sigma or 1e-6 / max(price)
    due = [left < 60.0 for left in machines.left_s]
    best = -inf
    choices = []
    for kept in product(*([False, True] if late else [True] for late in due)):
        for new in product(range(MOST_NEW + 1), repeat=len(price)):
            speeds = [
                s
                for s, k, cores in zip(machines.speed, kept, machines.cores[:, 0], strict=True)
                if k
                for _ in range(cores)
            ]
            speeds += [r * usual for r, n, c in zip(rated, new, cloud.classes, strict=True) for _ in range(n * c.cores)]
            held = [price[kind] for kind, k in zip(machines.kind, kept, strict=True) if k]
            weighs = sum(
                p * (1.0 if d else FREE)
                for p, d, k in zip([price[k] for k in machines.kind], due, kept, strict=True)
                if k
            )
            weighs += sum(n * p * (1 + NEW) for n, p in zip(new, price, strict=True))
            cost = sum(held) + sum(n * p for n, p in zip(new, price, strict=True))
            if speeds and (level.budget_per_h is None or cost <= float(level.budget_per_h) + 1e-9):
                choices.append((weighs, speeds))
    for active in product(*(range(len(ways)) for ways in shape.alternates)):
        asked = _load(seen, active)
        value = sum(float(shape.value[t, way]) for t, way in enumerate(active)) / tasks
        for weighs, speeds in choices:
            if value - sigma * weighs > best and _keeps_up(seen, asked, speeds):
                best = value - sigma * weighs
    return best


def test_it_is_the_best_of_all_alternates_and_machines() -> None:
    rule = PooledOptimum(margin=MARGIN, headroom=MARGIN, switch_gain=0.0, new_costs=NEW, time_limit_s=20.0)
    compared = 0
    for seed in range(PROBLEMS):
        seen = _small(seed)
        searched = _best_by_search(seen)
        draft = Draft.of(seen, 60.0)
        choice = rule.chosen(draft, MARGIN, fixed=False)
        assert choice is not None
        if searched == -inf:
            continue
        compared += 1
        assert choice.objective >= searched - 2e-6, seed
        acquired = choice.machines[len(choice.machines) - len(seen.terms.cloud.classes) :]
        if acquired.max() <= MOST_NEW and choice.objective > -1:
            assert choice.objective <= searched + 2e-6, seed
    assert compared > PROBLEMS * 0.8
