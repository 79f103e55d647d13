"""The figures that a plan or a simulation rests on, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headgate.errors import InputError, unknown
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.table import Table, TableColumn
from headgate.planning.known_figures import AlternateFigures, Figure, known_figures
from headgate.planning.measured_figures import Measured
from headgate.tasks.registry import Registry

__all__ = ["AlternateFigures", "figures_of", "figures_tables"]

_FIGURES = (
    TableColumn("task", "task"),
    TableColumn("alternate", "alternate"),
    TableColumn("cost_us", "cost", "us/row", ",.6g", of=lambda each: each.cost_s.value * 1e6),
    TableColumn("cost_from", "cost is", of=lambda each: each.cost_s.origin.value),
    TableColumn("selectivity", "out per in", form=".4g", of=lambda each: each.selectivity.value),
    TableColumn("selectivity_from", "out per in is", of=lambda each: each.selectivity.origin.value),
)


def figures_of(
    dataflow: Dataflow,
    registry: Registry,
    costs: Sequence[str] = (),
    measured: Mapping[tuple[str, str], Measured] | None = None,
    stored: Mapping[tuple[str, str], Measured] | None = None,
) -> tuple[AlternateFigures, ...]:
    """What is known of every alternate: costs as an option gives them come first, then what was ``measured``."""
    figures = {(each.task, each.alternate): each for each in known_figures(dataflow, registry, measured, stored)}
    for text in costs:
        for key, cost_s in _given(text, dataflow).items():
            one = Figure(1.0, Origin.DEFAULT)
            known = figures.get(key) or AlternateFigures(key[0], key[1], one, one)
            figures[key] = replace(known, cost_s=Figure(cost_s, Origin.GIVEN))
    return tuple(figures.values())


def _given(text: str, dataflow: Dataflow) -> dict[tuple[TaskId, str], float]:
    """The cost of a task's alternates, or of one of them, from ``TASK=SECONDS`` or ``TASK/ALTERNATE=SECONDS``."""
    name, _, number = text.rpartition("=")
    task_name, _, way = name.partition("/")
    try:
        cost_s = float(number)
    except ValueError:
        cost_s = -1.0
    if not (name and 0 <= cost_s < float("inf")):
        message = f"--cost {text[:60]!r} is neither TASK=SECONDS, such as parse=0.002, nor TASK/ALTERNATE=SECONDS"
        raise InputError("BAD_COST", message)
    task = next((task for task in dataflow.tasks if task.id == task_name), None)
    if task is None:
        known = [str(task.id) for task in dataflow.tasks]
        raise unknown("UNKNOWN_TASK", f"--cost names '{task_name[:60]}', which is no task", task_name, known)
    names = [each.name for each in task.alternates]
    if way and way not in names:
        raise unknown("UNKNOWN_ALTERNATE", f"task '{task.id}' has no alternate '{way[:60]}'", way, names)
    return {(task.id, each): cost_s for each in names if way in ("", each)}


def figures_tables(figures: Sequence[AlternateFigures], in_full: bool) -> list[Table]:
    """Costs and selectivities, each with its origin; where the dataflow declares all costs, only ``in_full``."""
    if not in_full and all(each.cost_s.origin is Origin.DECLARED for each in figures):
        return []
    typical = sum(each.cost_s.origin is Origin.DEFAULT for each in figures)
    notes = []
    if typical:
        of = f"{typical} of {len(figures)} costs are" if typical > 1 else f"1 of {len(figures)} costs is"
        remedy = "run the dataflow and use --state, declare cost_s, or give --cost TASK=SECONDS"
        notes.append(f"{of} the default of the task type, an order of magnitude. For better ones {remedy}.")
    return [Table.of("Figures", _FIGURES, figures, *notes)]
