"""Packing to the optimum by a mixed-integer program: the judge of the other packers, for some forty instances."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from headgate.errors import Infeasible
from headgate.model.arrays import Ints
from headgate.planning.placing.first_fit import FirstFit
from headgate.planning.placing.placement import Bin, PackingProblem
from headgate.planning.programs.linear import LinearProgram

__all__ = ["ExactPacking", "least_price"]

SLACK = 1e-9
INSTANCES_MAX = 500

Filled = list[tuple[Bin, Ints]]


def least_price(problem: PackingProblem) -> float:
    """No packing has a lower price: all streams within machines, machines filled to the brim, of the best class."""
    items = problem.items
    cpu, memory = float(items.count @ items.work), float(items.count @ items.memory)
    if len(problem.classes) == 1:
        (kind,) = problem.classes
        needed = max(1, ceil(cpu / (kind.power * problem.fill) - SLACK))
        if kind.memory_bytes:
            needed = max(needed, ceil(memory / kind.memory_bytes - SLACK))
        return float(kind.price_per_h) * needed
    by_cpu = cpu * min(float(each.price_per_h) / (each.power * problem.fill) for each in problem.classes)
    if not all(each.memory_bytes for each in problem.classes):
        return by_cpu
    return max(by_cpu, memory * min(float(each.price_per_h) / each.memory_bytes for each in problem.classes))


@dataclass(frozen=True, slots=True)
class ExactPacking:
    """Fewest machines, or of several classes the lowest price, with a proof or a bound.

    The program counts instances of each operator on each machine, in unary digits; what a pair saves is bounded by both
    counts. It starts from first-fit's packing and needs to be solved only where that is above :func:`least_price`.
    New machines only.
    """

    time_limit_s: float = 60.0
    name: str = "exact"

    def pack(self, problem: PackingProblem) -> tuple[Filled, float]:
        """The packing and the proven bound of its price."""
        if problem.there:
            message = "the exact packer packs new machines only; use first-fit for the room on machines that are there"
            raise Infeasible("NOT_EXACT", message)
        if (count := int(problem.items.count.sum())) > INSTANCES_MAX:
            raise Infeasible("NOT_EXACT", f"{count:,} instances are too many for the exact packer; use first-fit")
        began = time.monotonic()
        first = FirstFit().pack(problem)
        price = float(sum(one.kind.price_per_h for one, _ in first))
        bound = least_price(problem)
        if price <= bound * (1 + SLACK):
            return first, price
        better, bound = _solved(problem, price, bound, self.time_limit_s - (time.monotonic() - began))
        return better or first, bound


def _solved(problem: PackingProblem, price: float, bound: float, limit_s: float) -> tuple[Filled | None, float]:
    """A packing below a price if there is one, and the bound: the price itself where there is none."""
    items, program = problem.items, LinearProgram()
    slots = []
    for kind in problem.classes:
        most = min(floor(price / float(kind.price_per_h) + SLACK), int(items.count.sum()))
        slots += [kind] * most
    prices = np.array([float(kind.price_per_h) for kind in slots])
    used = program.columns(len(slots), objective=-prices, upper=1.0, whole=True)
    cheaper = price - _step(problem)
    program.row(bound - 1e-6, cheaper + 1e-6, dict(zip(used.tolist(), prices.tolist(), strict=True)))
    digits = [[program.columns(int(count), upper=1.0, whole=True) for count in items.count] for _ in slots]
    for operator, count in enumerate(items.count.tolist()):
        placed = np.concatenate([each[operator] for each in digits])
        program.row(count, count, dict.fromkeys(placed.tolist(), 1.0))
    for slot, kind in enumerate(slots):
        _machine(problem, program, digits[slot], int(used[slot]), kind.power * problem.fill, kind.memory_bytes)
        if slot and slots[slot - 1] is kind:  # machines of a class are alike: the first ones are used
            program.row(0.0, np.inf, {int(used[slot - 1]): 1.0, int(used[slot]): -1.0})
    answer = program.solved(max(limit_s, 0.1), tolerance=1e-9)
    if answer.infeasible:
        return None, price
    proven = max(bound, min(-answer.bound, price))
    if answer.objective is None:
        return None, proven
    filled: Filled = []
    for slot, kind in enumerate(slots):
        on = np.array([round(float(answer.values[each].sum())) for each in digits[slot]], dtype=np.int64)
        if on.any():
            filled.append((problem.new_bin(kind, len(filled) + 1), on))
    # What the solver rounds must not overload a machine.
    return (filled if all(problem.fits(one, on) for one, on in filled) else None), proven


def _step(problem: PackingProblem) -> float:
    """By how much prices differ at least."""
    prices = Counter(each.price_per_h for each in problem.classes)
    return float(min(prices)) * 0.999 if len(prices) == 1 else 1e-4


def _machine(
    problem: PackingProblem, program: LinearProgram, digits: list[Ints], used: int, cores: float, memory: int
) -> None:
    items = problem.items
    cpu = {used: -cores}
    held = {used: -float(memory)}
    for operator, columns in enumerate(digits):
        for more, less in zip(columns[1:].tolist(), columns[:-1].tolist(), strict=True):
            program.row(-np.inf, 0.0, {more: 1.0, less: -1.0})
        for column in columns.tolist():
            cpu[column] = float(items.largest[operator])
            held[column] = float(items.memory[operator])
            program.row(-np.inf, 0.0, {column: 1.0, used: -1.0})
    for a, b in zip(*np.nonzero(np.triu(items.saving)), strict=True):
        few, many = sorted((int(a), int(b)), key=lambda each: int(items.count[each]))
        for digit in digits[few].tolist():
            # pairs of one instance with all of the other operator's here
            pairs = int(program.columns(1, upper=float(items.count[many]))[0])
            program.row(-np.inf, 0.0, {pairs: 1.0, digit: -float(items.count[many])})
            program.row(-np.inf, 0.0, {pairs: 1.0} | dict.fromkeys(digits[many].tolist(), -1.0))
            cpu[pairs] = -float(items.saving[a, b])
    for operator in np.flatnonzero(items.batch * items.feeds.any(axis=1)).tolist():
        most = float(items.count[operator])
        free = int(program.columns(1, upper=most)[0])  # instances that run in the job of one that feeds them
        program.row(-np.inf, 0.0, {free: 1.0} | dict.fromkeys(digits[operator].tolist(), -1.0))
        feeding = [int(digits[before][0]) for before in np.flatnonzero(items.feeds[operator]).tolist()]
        program.row(-np.inf, 0.0, {free: 1.0} | dict.fromkeys(feeding, -most))
        cpu[free] = -float(items.batch[operator])
    program.row(-np.inf, 0.0, cpu)
    if memory:
        program.row(-np.inf, 0.0, held)
