"""What is known of the work of each alternate, and where it comes from: given, measured, stored, declared, default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.model.cluster.alternate_cost import Origin
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.task import Alternate, Task
from headgate.planning.measured_figures import Measured
from headgate.tasks.registry import Registry

__all__ = ["AlternateFigures", "Figure", "costs_of", "known_figures", "with_best_alternates"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, and where it comes from."""

    value: float
    origin: Origin


@dataclass(frozen=True, slots=True)
class AlternateFigures:
    """Core-seconds of a row on the reference core, and rows out per row in, of an alternate of a task."""

    task: TaskId
    alternate: str
    cost_s: Figure
    selectivity: Figure


Key = tuple[str, str]
"""A task and its alternate."""


def known_figures(
    dataflow: Dataflow,
    registry: Registry,
    measured: Mapping[Key, Measured] | None = None,
    stored: Mapping[Key, Measured] | None = None,
) -> tuple[AlternateFigures, ...]:
    """The figures of every alternate: measured before stored, stored before declared, declared before default.

    An alternate that nothing is known of, such as one that only the simulator can run, is left out.

    >>> from headgate.documents import parse
    >>> from headgate.tasks.registry import default_registry
    >>> part = "{id: b, type: filter, config: {where: value > 0}, selectivity: 0.1, inputs: [a]}"
    >>> text = "tasks: [{id: a, type: rate}, " + part + "]"
    >>> flow = parse(text, "yaml").dataflow
    >>> figures = known_figures(flow, default_registry(), {("a", "rate"): Measured(2e-6)})
    >>> [(each.task, each.cost_s.origin.value, each.selectivity.origin.value) for each in figures]
    [('a', 'measured', 'default'), ('b', 'default', 'declared')]
    """
    figures = []
    for task in dataflow.tasks:
        for way in task.alternates:
            key = task.id, way.name
            kind = registry.get(way.type)
            sources = (
                (Origin.MEASURED, (measured or {}).get(key, Measured())),
                (Origin.STORED, (stored or {}).get(key, Measured())),
                (Origin.DECLARED, Measured(way.cost_s, way.selectivity)),
                (Origin.DEFAULT, Measured(None if kind is None else kind.typical_cost_s, 1.0)),
            )
            cost = _first((origin, each.cost_s) for origin, each in sources)
            share = _first((origin, each.selectivity) for origin, each in sources)
            if cost is not None and share is not None:
                figures.append(AlternateFigures(task.id, way.name, cost, share))
    return tuple(figures)


def _first(figures: Iterable[tuple[Origin, float | None]]) -> Figure | None:
    return next((Figure(value, origin) for origin, value in figures if value is not None), None)


def costs_of(figures: Iterable[AlternateFigures]) -> dict[Key, tuple[float, float]]:
    """(cost_s, selectivity) by task and alternate, as problems and simulations take them."""
    return {(each.task, each.alternate): (each.cost_s.value, each.selectivity.value) for each in figures}


def with_best_alternates(dataflow: Dataflow, costs: Mapping[Key, tuple[float, float]]) -> Dataflow:
    """The dataflow with the alternate of most value of each task, of several the one that costs least.

    Without break-even costs nothing says what value may be given away for.
    """

    def best(task: Task) -> Alternate:
        return max(task.alternates, key=lambda way: (way.value, -costs.get((task.id, way.name), (0.0, 1.0))[0]))

    return replace(dataflow, tasks=tuple(replace(task, alternates=(best(task),)) for task in dataflow.tasks))
