"""More machines for a pool that cannot keep up, fewer where there is more than is needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headgate.adaptation.policy import Rejected
from headgate.adaptation.pooled.draft import Draft
from headgate.capacity.cover import cheapest_cover
from headgate.capacity.pooled import PoolLimits
from headgate.model.arrays import Floats

__all__ = ["add_power", "grow", "repack_due", "shrink"]

ROUNDS = 12
"""Covers that are tried: a slow machine can make a stage slower, so one may not be enough."""

MOST = 64
"""Machines that are added one by one for a fragment whose stages need more cores than the pool's demand."""


def add_power(draft: Draft, pool: int, missing: float) -> bool:
    """Acquire the machines that add so much usable power at least cost; returns whether there were any."""
    classes = draft.seen.terms.cloud.classes
    usual = draft.usual
    gains = {each.name: draft.gain(pool, each.cores, each.power * usual) for each in classes}
    useful = [replace(each, core_power=gains[each.name] / each.cores) for each in classes if gains[each.name] > 1e-9]
    if missing <= 0 or not useful or not draft.may_acquire:
        return False
    for name, count in cheapest_cover(useful, missing).items():
        draft.new[pool, draft.seen.terms.cloud.place(name)] += count
    return True


def grow(draft: Draft, margin: float = 0.0) -> bool:
    """Add machines until pools and fragments keep up with ``margin`` more than what is asked; whether they do then."""
    for _ in range(ROUNDS):
        limits = draft.limits()
        missing = _useful_demand(draft, limits, margin) - limits.usable
        short = np.flatnonzero(missing > 1e-9)
        if not len(short):
            break
        added = [add_power(draft, int(pool), float(missing[pool])) for pool in short]
        if not any(added):
            draft.rejected.append(Rejected("more machines", "they cannot be acquired here"))
            return False
    limits = draft.limits()
    if limits.keeps_up(margin):
        return True
    return _for_fragments(draft, margin)


def _useful_demand(draft: Draft, limits: PoolLimits, margin: float) -> Floats:
    """What pools are asked for, of fragments with few partitions no more than these can use."""
    demand = np.zeros(len(limits.demand))
    for g, load in enumerate(draft.graph.loads):
        places = [draft.seen.shape.place(stage.tasks[0]) for stage in load.stages]
        resizable = any(draft.may_resize(place, 1) for place in places)
        few = not resizable and all(stage.partitions is not None for stage in load.stages)
        asked = float(limits.work[g]) * (1 + margin)
        demand[draft.graph.pool_of[g]] += min(asked, float(limits.cap[g])) if few else asked
    return demand


def _for_fragments(draft: Draft, margin: float) -> bool:
    """Cores for a fragment whose cap is too low, as long as they raise it."""
    draft.fit_partitions()
    for _ in range(MOST):
        limits = draft.limits()
        held = limits.held_up(margin)
        if not len(held):
            return limits.keeps_up(margin)
        g = int(held[0])
        pool, before = int(draft.graph.pool_of[g]), draft.new.copy()
        if not add_power(draft, pool, float(limits.work[g] * (1 + margin) - limits.cap[g])):
            break
        if draft.limits().cap[g] <= limits.cap[g] * (1 + 1e-6):
            draft.new[:] = before
            break
    name = draft.graph.loads[g].id
    reason = f"it needs {limits.work[g]:.3g} cores and can use {limits.cap[g]:.3g}: it has too few partitions"
    draft.rejected.append(Rejected(f"more machines for fragment '{name}'", reason))
    return False


def shrink(draft: Draft, margin: float = 0.0, most: Floats | None = None) -> int:
    """Release machines whose paid time ends while all keeps up, those of least weight first; returns how many.

    The weight is that of Eq. 10 of DYN without its factor of instances, which nobody has in a shared pool: what is
    left of the paid time, times power for money. ``most`` is the usable power by pool that may go.
    """
    if not draft.may_release:
        return 0
    machines, gone = draft.seen.machines, 0
    weight = machines.left_s * machines.speed * machines.cores.sum(axis=1) / draft.prices[machines.kind]
    left = None if most is None else most.copy()
    pools = draft.pool_of
    for row in np.argsort(weight, kind="stable").tolist():
        pool = int(pools[row])
        if not draft.due[row] or not draft.kept[row] or draft.machines_of(pool) <= 1:
            continue
        gain = draft.gain(
            pool, float(machines.cores[row, pool]), float(machines.cores[row, pool] * machines.speed[row])
        )
        if left is not None and gain > left[pool]:
            continue
        draft.kept[row] = False
        if not draft.keeps_up(margin):
            draft.kept[row] = True
            continue
        gone += 1
        if left is not None:
            left[pool] -= gain
    return gone


def repack_due(draft: Draft, margin: float) -> int:
    """Replace machines whose paid time ends by others that cost less and will do; returns how many go."""
    machines, before = draft.seen.machines, (draft.kept.copy(), draft.new.copy())
    due = draft.due & draft.kept & (machines.starts_s <= 0)
    if not due.any() or not draft.may_release or not draft.may_acquire or not draft.keeps_up(margin):
        return 0
    cost = draft.cost_per_h
    draft.kept &= ~due
    ready = grow(draft, margin)
    started = zip(draft.seen.terms.cloud.classes, draft.new.sum(axis=0), strict=True)
    boots = max((each.boot_s for each, count in started if count), default=0.0)
    if ready and draft.cost_per_h < cost * (1 - 1e-9) and boots < 0.25 * draft.seen.terms.interval_s:
        return int(due.sum())
    draft.kept, draft.new = before
    return 0
