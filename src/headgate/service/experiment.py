"""An experiment: a grid of simulations, each cell of which is run by itself, once, wherever there is room."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from headgate.adaptation.catalogue import policy_named
from headgate.documents import read_located
from headgate.documents.check.pydantic_faults import model_of
from headgate.documents.experiment_document import ExperimentDocument
from headgate.errors import HeadgateError, InputError, InvalidDataflow, os_reason
from headgate.model.table import Table, TableColumn
from headgate.report.experiments import draw_experiment
from headgate.report.page import html_page
from headgate.report.render import render
from headgate.service.simulate import SimulationRequest, run_policies, setting_of
from headgate.simulation.run import Run, Summary
from headgate.tasks.registry import Registry, default_registry

__all__ = [
    "COLUMNS",
    "Cell",
    "Experiment",
    "experiment_page",
    "experiment_table",
    "grouped",
    "load_experiment",
    "run_cell",
    "run_experiment",
]

_SERIES = ("omega", "gamma", "mu", "theta", "backlog", "cores", "input_per_s", "output_per_s")
_NAMES = ("dataflow", "rates", "variability", "policy")
COLUMNS = ", ".join(
    [
        "key string",
        *(f"{name} string" for name in _NAMES),
        "seed bigint",
        "replications bigint",
        "interval_s double",
        *(f"{name} double" for name in Summary.__dataclass_fields__),
        "took_s double",
        *(f"{name}_series array<double>" for name in _SERIES),
    ]
)
"""A cell's result, as Spark writes columns; series are means over the replications, a value for each interval."""


_FIGURES = (
    ("omega", "Ω", ".3f"),
    ("within", "in time", ".1%"),
    ("gamma", "Γ", ".3f"),
    ("cost", "cost", ",.2f"),
    ("theta", "Θ", ".3f"),
    ("core_hours", "", ""),
    ("changes_per_day", "", ""),
    ("backlog", "", ""),
)
_ERRORS = {"omega_error": "± Ω", "cost_error": "± cost"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation of the grid. Its key is a hash of all that its result depends on."""

    key: str
    named: Mapping[str, str]
    request: SimulationRequest
    policy: str

    def as_text(self) -> str:
        return _CELL.dump_json(self).decode()


_CELL = TypeAdapter(Cell)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A name, and the cells in the order of the grid."""

    name: str
    cells: tuple[Cell, ...]


def load_experiment(path: Path, registry: Registry | None = None) -> Experiment:
    """Read an experiment and everything that it names; reports all faults before anything runs."""
    located = read_located(path, ("yaml", "json"))
    faults = list(located.faults)
    document = model_of(ExperimentDocument, located.value, located, faults)
    if faults or document is None:
        raise InvalidDataflow(faults)
    cells = []
    common = {name: getattr(document, name) for name in ExperimentDocument.OF_EACH_CELL}
    grid = product(document.dataflows, document.rates, document.variability, document.seed_list, document.policies)
    digests: dict[Path, str] = {}
    for flow, rates, variability, seed, policy in grid:
        file = path.parent / flow
        traces = path.parent / variability
        request = SimulationRequest(
            file.resolve(),
            document.rates[rates],
            variability=str(traces.resolve()) if traces.exists() else variability,
            seed=seed,
            **common,
        )
        if file not in digests:
            try:
                digests[file] = hashlib.sha256(file.read_bytes()).hexdigest()
            except OSError as error:
                raise InputError("UNREADABLE_FILE", f"cannot read {file}: {os_reason(error)}") from None
        named = dict(zip(_NAMES, (Path(flow).stem, rates, Path(variability).name, policy), strict=True))
        cells.append(Cell(_key(request, policy, digests[file]), named, request, policy))
    _check(cells, registry or default_registry())
    return Experiment(document.name or path.stem, tuple(cells))


def _key(request: SimulationRequest, policy: str, digest: str) -> str:
    facts = {name: str(getattr(request, name)) for name in SimulationRequest.__dataclass_fields__ if name != "dataflow"}
    text = json.dumps([facts, policy, digest], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _check(cells: Sequence[Cell], registry: Registry) -> None:
    """Make every setting once: a wrong one is reported here, not by a worker an hour later."""
    seen = set()
    for cell in cells:
        world = (cell.request.dataflow, cell.request.rates, cell.request.variability)
        if world not in seen:
            setting = setting_of(cell.request, registry)
            setting.external(setting.shape())
            seen.add(world)
        policy_named(cell.policy)


def run_cell(text: str) -> dict[str, Any]:
    """Run one cell; a failure is raised with the cell's names."""
    cell = _CELL.validate_json(text)
    began = time.perf_counter()
    try:
        setting = setting_of(cell.request, default_registry())
        (run,) = run_policies(setting, [cell.policy])
    except HeadgateError as error:
        message = f"{', '.join(cell.named.values())}, seed {cell.request.seed}: {error.message}"
        raise InputError("CELL_FAILED", message) from None
    totals = run.totals()
    return {
        "key": cell.key,
        **cell.named,
        "seed": cell.request.seed,
        "replications": cell.request.replications,
        "interval_s": cell.request.interval_s,
        **{name: None if totals[name] is None else float(totals[name]) for name in Summary.__dataclass_fields__},
        "took_s": time.perf_counter() - began,
        **{f"{name}_series": _series(run, name) for name in _SERIES},
    }


def _series(run: Run, name: str) -> list[float] | None:
    values = run.queues.sum(axis=2) if name == "backlog" else getattr(run, name)
    return None if values is None else np.asarray(values).mean(axis=1).tolist()


def grouped(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, and half the width of their 95 % confidence intervals, one row for each group."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in _NAMES)].append(row)
    means = []
    for names, members in groups.items():
        mean: dict[str, Any] = {**dict(zip(_NAMES, names, strict=True)), "seeds": len(members)}
        for name, *_ in _FIGURES:
            values = [each[name] for each in members if each[name] is not None]
            mean[name] = float(np.mean(values)) if values else None
            several = len(values) > 1
            mean[f"{name}_error"] = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if several else 0.0
        means.append(mean)
    return means


def experiment_table(groups: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each group: means over its seeds, with half the width of their 95 % intervals."""
    columns = [TableColumn(name, name) for name in (*_NAMES, "seeds")]
    for key, title, form in _FIGURES:
        error = f"{key}_error"
        columns += [TableColumn(key, title, form=form), TableColumn(error, _ERRORS.get(error, ""), form=form)]
    note = "Means over the seeds; ± is half the width of their 95 % confidence interval."
    return Table("Groups", tuple(columns), tuple(groups), (note,))


def run_experiment(
    grid: Experiment, master: str, folder: Path, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Run the cells that have no result yet as Spark jobs; returns the results of all, in the order of the grid."""
    from headgate.runtime.batch.experiment_job import read_results, run_waves
    from headgate.runtime.spark_internals.session import open_session

    results = folder.resolve() / "results"  # Spark's process may have another working directory
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("CANNOT_WRITE", f"cannot write {folder}: {os_reason(error)}") from None
    spark = open_session(master, log=folder / "spark.log")
    run_waves(spark, [(cell.key, cell.as_text()) for cell in grid.cells], run_cell, COLUMNS, results, progress)
    order = {cell.key: place for place, cell in enumerate(grid.cells)}
    return sorted(read_results(spark, results, order), key=lambda row: order[row["key"]])


def experiment_page(name: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """The table and the picture as one page of HTML; without Matplotlib there is no picture."""
    sections: list[tuple[str, str | bytes]] = [("Results", render([experiment_table(groups)], "html"))]
    with suppress(ModuleNotFoundError):
        sections.insert(0, ("Throughput and cost", draw_experiment(groups, ".svg")))
    return html_page(f"Experiment {name}", sections)
