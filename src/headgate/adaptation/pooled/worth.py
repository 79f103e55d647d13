"""What alternates are worth, and what money is worth in value, where several dataflows may share tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headgate.adaptation.policy import Terms
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.service_level import ServiceLevel

__all__ = ["Worth", "levels_of"]


def levels_of(terms: Terms) -> Mapping[str, ServiceLevel]:
    """Service levels by dataflow: one for each that is named, otherwise that of the graph."""
    return dict(terms.levels) or {terms.dataflow.name: terms.level}


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    r"""Value minus money: :math:`\sum_d \Gamma_d - \sigma \mu`.

    .. math:: \sigma = \sum_d \sigma_d share_d

    with the part of the bill that each dataflow has: a task's is divided among those that share it. Who names no
    break-even costs has no :math:`\sigma_d`, and so never gives value away for money.
    """

    weight: Floats
    """By task: what one unit of its alternate's value adds."""

    sigma: float
    """Value of a unit of money, of one hour."""

    @classmethod
    def of(cls, terms: Terms, shape: Shape) -> Worth:
        """As the service levels of some terms have it."""
        levels = levels_of(terms)
        members = {name: _members(terms, shape, name) for name in levels}
        users = np.zeros(shape.tasks)
        for places in members.values():
            users[places] += 1.0
        weight, sigma = np.zeros(shape.tasks), 0.0
        least = np.array([row[: len(ways)].min() for row, ways in zip(shape.value, shape.alternates, strict=True)])
        for name, level in levels.items():
            mine = members[name]
            weight[mine] += 1.0 / len(mine)
            best, worst = level.break_even_at_best_per_h, level.break_even_at_worst_per_h
            if best is not None and worst is not None:
                share = float((1.0 / users[mine]).sum()) / shape.tasks
                sigma += share * (1.0 - float(least[mine].mean())) / float(best - worst)
        return cls(weight, sigma)

    def value(self, shape: Shape, active: Ints) -> float:
        """Of given alternates."""
        return float(self.weight @ shape.value[np.arange(shape.tasks), active])


def _members(terms: Terms, shape: Shape, name: str) -> list[int]:
    mine = set(terms.owners.get(name, ()))
    return [place for place, task in enumerate(shape.names) if str(task) in mine] or list(range(shape.tasks))
