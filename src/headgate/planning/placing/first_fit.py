"""Bin-centric first-fit decreasing: fill one machine at a time with what saves most, and fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from headgate.errors import Infeasible
from headgate.model.arrays import Ints
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.placing.placement import Bin, PackingProblem

__all__ = ["FirstFit"]

SLACK = 1e-9

Filled = list[tuple[Bin, Ints]]


@dataclass(frozen=True, slots=True)
class FirstFit:
    r"""P-DEPLOY's packing (Alg. 1).

    Of the instances that fit on the open machine the one of highest priority is placed,

    .. math:: p = a_r s - a_c (C - r_{cpu})^2 - a_m (M - r_{mem})^2

    with all sizes relative to the machine; :math:`s` is the CPU that its neighbours and itself save there (Eq. 5),
    :math:`r` what is left, :math:`a_c` and :math:`a_m` are mean demands. When none fits, the next machine is opened.

    Ours: machines that are there are filled first, an instance that is on one stays; of several classes the one is
    opened on which a unit of demand costs least, in the end every new machine becomes the cheapest class that holds
    what is on it, and packings on one class only are tried beside.

    Reference: P-DEPLOY, section 5.3.2, Eq. 5, 6; a_r is 1 there (Table 4).
    """

    saving_weight: float = 1.0
    """a_r."""

    name: str = "first-fit"

    def pack(self, problem: PackingProblem) -> Filled:
        """Raises :class:`Infeasible` where an instance fits on no machine, or there are too few."""
        ways = [problem.classes, *([each] for each in problem.classes)] if len(problem.classes) > 1 else [[]]
        answers = []
        refused: Infeasible | None = None
        for classes in ways:
            try:
                answers.append(self._packed(problem, tuple(classes) or problem.classes))
            except Infeasible as error:
                refused = refused or error
        if not answers:
            assert refused is not None
            raise refused
        return min(answers, key=lambda filled: (_price(filled), len(filled)))

    def _packed(self, problem: PackingProblem, classes: Sequence[VmClass]) -> Filled:
        items = problem.items
        opened = problem.open_bins()
        filled: Filled = [(one, _relieved(problem, one)) for one in opened]
        left = items.count.copy()
        for _, on in filled:
            left -= on
        filled = [(one, self._fill(problem, one, on, left)) for one, on in filled]
        while left.any():
            if problem.machines_max is not None and len(filled) >= problem.machines_max:
                raise _too_few(problem, left)
            filled.append(self._open(problem, classes, len(filled) + 1, left))
        return [(_cheapest(problem, one, on), on) for one, on in filled]

    def _open(self, problem: PackingProblem, classes: Sequence[VmClass], number: int, left: Ints) -> tuple[Bin, Ints]:
        """The next machine, filled; ``left`` loses what is on it."""
        best: tuple[Bin, Ints] | None = None
        names = {site.name for site in problem.there}
        while f"m{number}" in names:
            number += 1
        for kind in classes:
            one = problem.new_bin(kind, number)
            on = self._fill(problem, one, np.zeros_like(left), left.copy())
            if on.any() and (best is None or _per_demand(problem, one, on) < _per_demand(problem, *best) - SLACK):
                best = one, on
        if best is None:
            raise _does_not_fit(problem, left)
        left -= best[1]
        return best

    def _fill(self, problem: PackingProblem, one: Bin, on: Ints, left: Ints) -> Ints:
        """Place instances on a machine until none fits; ``left`` loses them."""
        items = problem.items
        on = on.copy()
        total = max(int(items.count.sum()), 1)
        size = one.kind.power * problem.fill
        memory_size = one.memory if np.isfinite(one.memory) and one.memory > 0 else np.inf
        mean_cpu = float(items.count @ items.largest) / total / size
        mean_memory = float(items.count @ items.memory) / total / memory_size
        used, used_memory = items.cpu_of(on), items.memory_of(on)
        while left.any():
            own, grown = items.growth(on)
            fits = (
                (left > 0)
                & (used + grown <= one.cpu + SLACK)
                & (used_memory + items.memory <= one.memory * (1 + SLACK) + SLACK)
            )
            if not fits.any():
                break
            saved = items.largest - grown
            priority = self.saving_weight * saved / size - mean_cpu * ((own - (one.cpu - used)) / size) ** 2
            if mean_memory > 0:
                priority -= mean_memory * ((items.memory - (one.memory - used_memory)) / memory_size) ** 2
            chosen = int(np.argmax(np.where(fits, priority, -np.inf)))
            on[chosen] += 1
            left[chosen] -= 1
            used, used_memory = items.cpu_of(on), used_memory + float(items.memory[chosen])
        return on


def _relieved(problem: PackingProblem, one: Bin) -> Ints:
    """What stays on a machine that is there: as long as it is too full, the largest instance goes."""
    on = np.array(one.kept, dtype=np.int64)
    while on.any() and not problem.fits(one, on):
        each = np.where(on > 0, problem.items.cpu_by_operator(on) / np.maximum(on, 1), -np.inf)
        if problem.items.memory_of(on) > one.memory:
            each = np.where(on > 0, problem.items.memory, -np.inf)
        on[int(np.argmax(each))] -= 1
    return on


def _price(filled: Filled) -> Decimal:
    return sum((one.kind.price_per_h for one, _ in filled), Decimal())


def _per_demand(problem: PackingProblem, one: Bin, on: Ints) -> float:
    """What a core of demand costs on a machine, and what it saves counts as demand."""
    cores = float(on @ problem.items.largest) / problem.fill
    return float(one.kind.price_per_h) / max(cores, SLACK)


def _cheapest(problem: PackingProblem, one: Bin, on: Ints) -> Bin:
    """The cheapest class that holds what is on a new machine."""
    if any(one.name == site.name for site in problem.there):
        return one
    number = int(one.name[1:])
    bins = [problem.new_bin(kind, number) for kind in problem.classes]
    return min([one, *(each for each in bins if problem.fits(each, on))], key=lambda each: each.kind.price_per_h)


def _too_few(problem: PackingProblem, left: Ints) -> Infeasible:
    names = [f"{count} of '{name}'" for name, count in zip(problem.items.names, left.tolist(), strict=True) if count]
    message = f"{problem.machines_max} machines do not hold all instances; left over: {', '.join(names[:6])}"
    return Infeasible("NO_MACHINES", f"{message}; allow more machines, or a lower rate")


def _does_not_fit(problem: PackingProblem, left: Ints) -> Infeasible:
    items = problem.items
    name, cores, memory = max(
        (
            (items.names[place], float(items.largest[place]), float(items.memory[place]))
            for place in np.flatnonzero(left)
        ),
        key=lambda each: (each[1], each[2]),
    )
    largest = max(problem.classes, key=lambda each: each.power)
    message = f"an instance of '{name}' needs {cores:.3g} reference cores and {memory / 2**20:,.0f} MiB"
    room = f"{largest.power * problem.fill:.3g} cores of machine class '{largest.name}' may be used"
    return Infeasible("TOO_LARGE", f"{message}, and {room}; use a larger class, or a lower rate")
