"""Repacking of machines whose billing period ends onto smaller ones: DYN, Alg. 2, line 11."""

from __future__ import annotations

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import throughput
from headgate.adaptation.outlook import usual_share
from headgate.model.arrays import Ints
from headgate.planning.packing import cheapest_bins

__all__ = ["repack_due"]


def repack_due(now: ClusterView) -> None:
    """Put the instances of machines with free cores onto the cheapest machines that hold them.

    Only machines whose billing period ends before the next decision: until then they are paid for. New ones have cores
    that are rated at least as fast. Nothing is moved where throughput would fall short while they start.
    """
    for power in sorted({each.core_power for each in now.cloud.classes}):
        held = slice(0, now.held)
        rated = np.array([each.core_power for each in now.cloud.classes])[now.kind[held]]
        used = now.placed[held].sum(axis=1)
        due = (now.left_s[held] < now.period_s) & (used > 0) & (used < now.cores[held]) & (rated == power)
        if due.any():
            _repacked(now, np.flatnonzero(due), power)


def _repacked(now: ClusterView, rows: Ints, power: float) -> None:
    classes = now.cloud.classes
    sequence = np.repeat(np.arange(now.shape.tasks), now.placed[rows].sum(axis=0))
    bins = cheapest_bins(now.cloud, len(sequence), power)
    price = sum(classes[kind].price_per_h * count for kind, _, count in bins)
    if price >= sum(classes[kind].price_per_h for kind in now.kind[rows].tolist()):
        return
    before = (now.kind, now.speed, now.placed.copy(), now.left_s)
    usual, first = usual_share(now), len(now.kind)
    now.placed[rows] = 0
    for kind, cores, count in bins:
        vm_class = classes[kind]
        starting = 1.0 - min(vm_class.boot_s / now.period_s, 1.0)
        row = len(now.kind)
        now.open(kind, count, vm_class.core_power * usual * starting)
        for task in sequence[: cores * count].tolist():
            row += int(now.placed[row].sum() == cores)
            now.placed[row, task] += 1
        sequence = sequence[cores * count :]
    if throughput(now) < now.level.throughput_min:
        now.kind, now.speed, now.placed, now.left_s = before
        return
    now.speed[first:] = [classes[kind].core_power for kind in now.kind[first:].tolist()]
