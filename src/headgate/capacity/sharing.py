"""Pools in which fragments share cores: who gets what in an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.capacity.epochs import startable
from headgate.capacity.filling import water_filling
from headgate.capacity.power import stage_power
from headgate.errors import InputError
from headgate.model.arrays import Shape
from headgate.model.capacity import FragmentLoad, Pool
from headgate.queueing.compiled import compiled

__all__ = ["NOT_SHARED", "Sharing", "limits_of", "shared_work"]

ROUNDS = 20
_NO = np.zeros(0, dtype=np.int64)
NOT_SHARED = (_NO, *(np.zeros(0) for _ in range(4)), _NO, _NO, _NO, np.zeros(0), np.zeros(0), _NO.astype(np.bool_))
"""What stands for :meth:`Sharing.arrays` where nothing is shared."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which fragments share which pools. Without it, each task is a fragment and has cores of its own."""

    fragments: tuple[FragmentLoad, ...]
    pools: tuple[Pool, ...]

    def __post_init__(self) -> None:
        known, wanted = [pool.name for pool in self.pools], {each.pool for each in self.fragments}
        odd = sorted(wanted ^ set(known)) or sorted(name for name in known if known.count(name) > 1)
        if odd:
            message = f"pool {', '.join(odd[:12])} is not there once, for some fragment"
            raise InputError("BAD_POOLS", f"{message}; pools are {', '.join(known) or 'none'}")

    @property
    def groups(self) -> list[tuple[str, ...]]:
        return [each.tasks for each in self.fragments]

    def arrays(self, shape: Shape) -> tuple[Any, ...]:
        """What :func:`shared_work` reads, in the order of the shape's fragments."""
        of_task = {task: load for load in self.fragments for task in load.tasks}
        loads = [of_task[str(shape.names[first])] for first in shape.fragments[:-1]]
        places = {pool.name: place for place, pool in enumerate(self.pools)}
        stages = [(load, stage) for load in loads for stage in load.stages]
        number = {task: place for place, (_, stage) in enumerate(stages) for task in stage.tasks}
        pool_of = np.array([places[load.pool] for load in loads], dtype=np.int64)
        return (
            pool_of,
            np.array([load.weight for load in loads]),
            np.array([load.fixed_s for load in loads]),
            np.array([load.task_s for load in loads]),
            np.array([load.trigger_s for load in loads]),
            np.array([number[str(name)] for name in shape.names], dtype=np.int64),
            np.cumsum([0, *(len(load.stages) for load in loads)], dtype=np.int64),
            np.array([stage.partitions or 0 for _, stage in stages], dtype=np.int64),
            np.array([pool.epoch_s for pool in self.pools]),
            np.array([np.nan if pool.used is None else pool.used for pool in self.pools]),
            _chained(shape, loads, pool_of),
        )


def _chained(shape: Shape, loads: Sequence[FragmentLoad], pool_of: Any) -> Any:
    """Whether all fragments of a pool feed each other, so that none of them can fill the others' last waves."""
    fragment = np.searchsorted(shape.fragments, np.arange(shape.tasks), side="right") - 1
    label = list(range(len(loads)))
    for source, target in zip(shape.stream_source, shape.stream_target, strict=True):
        one, other = label[fragment[source]], label[fragment[target]]
        if pool_of[fragment[source]] == pool_of[fragment[target]]:
            label = [one if each == other else each for each in label]
    members = [np.flatnonzero(pool_of == pool).tolist() for pool in range(int(pool_of.max()) + 1)]
    return np.array([len(each) > 1 and len({label[g] for g in each}) == 1 for each in members])


@compiled
def _caps(flow: Any, pools: Any, cores: Any, want: Any, factor: Any, cap: Any, usable: Any) -> None:
    """Write what fragments and pools can use, and what work is multiplied by for tails that nobody fills."""
    pool_of, _, fixed_s, task_s, trigger_s, stage_of, stages, partitions, epoch_s, used, chained = pools
    speeds, count = cores
    cost, fragment = flow[0], flow[6]
    work = np.zeros(len(partitions))
    for p in range(len(cost)):
        work[stage_of[p]] += cost[p] * want[p]
    idle = np.ones(len(epoch_s))
    for g in range(len(fragment) - 1):
        pool = pool_of[g]
        mine = speeds[pool, : count[pool]]
        every = max(epoch_s[pool], trigger_s[g]) if epoch_s[pool] > 0.0 else 0.0
        total, seconds, overhead, tasks = 0.0, 0.0, fixed_s[g], 0
        for s in range(stages[g], stages[g + 1]):
            parts = partitions[s] if partitions[s] > 0 else count[pool]
            factor[s] = 1.0
            if chained[pool] and parts > count[pool]:
                factor[s] = 1.0 + (count[pool] - 1) / (2.0 * parts)
            power = stage_power(partitions[s], mine)
            total += work[s]
            seconds += work[s] / power if power > 0.0 else np.inf
            overhead += np.ceil(parts / max(count[pool], 1)) * task_s[g]
            tasks += parts
        alone = total / seconds if total > 0.0 else mine.sum()
        cap[g] = startable(every, overhead, alone)
        if every > 0.0:
            idle[pool] *= min(fixed_s[g] / every, 1.0)
            usable[pool] -= tasks * task_s[g] / every
    for pool in range(len(epoch_s)):
        if epoch_s[pool] > 0.0:
            share = 1.0 - idle[pool] if np.isnan(used[pool]) else used[pool]
            usable[pool] += share * speeds[pool, : count[pool]].sum()
        else:
            usable[pool] = speeds[pool, : count[pool]].sum()


def limits_of(flow: Any, pools: Any, cores: Any, rates: Any) -> tuple[Any, Any, Any]:
    """What fragments can use, what pools can use, and what the work of stages is multiplied by, at given rates."""
    fragments, stages, count = len(flow[6]) - 1, len(pools[7]), len(pools[8])
    cap, usable, factor = np.zeros(fragments), np.zeros(count), np.ones(stages)
    _caps(flow, pools, cores, rates, factor, cap, usable)
    return cap, np.maximum(usable, 0.0), factor


@compiled
def _passed_on(begin: int, end: int, flow: Any, part: float, amount: Any, avail: Any) -> None:
    """Add to what readers have: ``part`` of what the tasks of a fragment make of ``amount``."""
    _, out, first, target, share, returns = flow[:6]
    for p in range(begin, end):
        for e in range(first[p], first[p + 1]):
            if not returns[e] and target[e] >= end:
                avail[target[e]] += part * amount[p] * out[p] * share[e]


@compiled
def _spread(begin: int, end: int, flow: Any, amount: Any) -> None:
    """Let what waits before the tasks of a fragment pass through all of them."""
    _, out, first, target, share, returns = flow[:6]
    for p in range(begin, end):
        for e in range(first[p], first[p + 1]):
            if not returns[e] and target[e] < end:
                amount[target[e]] += amount[p] * out[p] * share[e]


@compiled
def shared_work(
    flow: Any, pools: Any, cores: Any, arrived: Any, queue: Any, seconds: float, lost: Any, work: Any
) -> None:
    r"""Write the core-seconds that each fragment gets in an interval.

    In each round, fragments want what they could have if all before them did everything; what is left of a pool is
    shared (:func:`~headgate.capacity.filling.water_filling`), and they work in the order of the graph. Wants must be
    propagated: with wants of rows that are already there, leftovers go to the first fragment and the second piles up.

    ``cores`` is speeds by pool and how many there are, ``lost`` the core-seconds that a pool loses.
    """
    cost, fragment = flow[0], flow[6]
    pool_of, weight = pools[0], pools[1]
    stage_of, partitions, epoch_s = pools[5], pools[7], pools[8]
    tasks, fragments = len(cost), len(fragment) - 1
    avail, want, dear = queue + arrived, np.zeros(tasks), np.zeros(tasks)
    factor, cap, left = np.ones(len(partitions)), np.zeros(fragments), np.zeros(len(epoch_s))
    need, used = np.zeros(fragments), np.zeros(fragments)
    work[:fragments] = 0.0
    for turn in range(ROUNDS):
        want[:] = avail
        for g in range(fragments):
            _spread(fragment[g], fragment[g + 1], flow, want)
            _passed_on(fragment[g], fragment[g + 1], flow, 1.0, want, want)
        if turn == 0:
            _caps(flow, pools, cores, want, factor, cap, left)
            for pool in range(len(left)):
                left[pool] = max(left[pool] * seconds - lost[pool], 0.0)
            for p in range(tasks):
                dear[p] = cost[p] * factor[stage_of[p]]
        for g in range(fragments):
            need[g] = 0.0
            for p in range(fragment[g], fragment[g + 1]):
                need[g] += dear[p] * want[p]
            need[g] = min(need[g], cap[g] * seconds - used[g])
        spent = 0.0
        for pool in range(len(left)):
            shares = water_filling(left[pool], np.where(pool_of == pool, need, 0.0), weight)
            for g in range(fragments):
                need[g] = shares[g] if pool_of[g] == pool else need[g]
        for g in range(fragments):
            begin, end = fragment[g], fragment[g + 1]
            want[begin:end] = avail[begin:end]
            _spread(begin, end, flow, want)
            asked, plain = 0.0, 0.0
            for p in range(begin, end):
                asked += dear[p] * want[p]
                plain += cost[p] * want[p]
            part = 1.0 if asked <= need[g] else need[g] / asked
            _passed_on(begin, end, flow, part, want, avail)
            avail[begin:end] *= 1.0 - part
            used[g] += part * asked
            work[g] += part * plain
            left[pool_of[g]] -= part * asked
            spent += part * asked
        if spent <= 1e-9 * (left.sum() + used.sum()):
            break
