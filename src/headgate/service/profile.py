"""Profiles of operators: from a file or an engine's recordings, as tables, as a file, and as a plot."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.errors import InputError, os_reason
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.observation import Observation
from headgate.model.dataflow import Dataflow
from headgate.model.table import Table, TableColumn
from headgate.planning.known_figures import Figure
from headgate.planning.placing.known_profiles import (
    GivenProfile,
    known_profiles,
    measured_operators,
)
from headgate.planning.placing.profiles import FIELDS, OperatorProfile
from headgate.service.load import load
from headgate.sharing.signature import sign
from headgate.store.observations import history_of
from headgate.tasks.registry import Registry

__all__ = [
    "Costs",
    "costs_by_rate",
    "costs_of_recordings",
    "profile_document",
    "profile_tables",
    "profiles_of_file",
    "read_profiles",
    "recorded_profiles",
    "write_profiles",
]

Costs = Mapping[str, Sequence[tuple[float, float]]]
"""Rows per second and CPU seconds of a row, by task, one for each interval in which it was measured."""


class _ProfileEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    alternate: str | None = None
    version: int = 1
    origins: Mapping[str, str] = Field(default_factory=dict, description="Where figures came from; not read.")
    cpu_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    transfer_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    sojourn_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    memory_bytes: float | None = Field(None, ge=0, allow_inf_nan=False)
    instance_bytes: float | None = Field(None, ge=0, allow_inf_nan=False)
    row_bytes: float | None = Field(None, ge=0, allow_inf_nan=False)
    batch_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    selectivity: Mapping[str, float] = Field(default_factory=dict)
    instances_max: int | None = Field(None, ge=1)

    def given(self) -> GivenProfile:
        figures = {name: value for name in FIELDS if (value := getattr(self, name)) is not None}
        return GivenProfile(figures, self.selectivity, self.instances_max)


class _ProfilesDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: Sequence[_ProfileEntry]


def read_profiles(path: Path) -> dict[str, GivenProfile]:
    """Profiles that somebody wrote, or ``headgate profile --out`` did: YAML or JSON; faults name their place."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        document = _ProfilesDocument.model_validate(content)
    except OSError as error:
        raise InputError("UNREADABLE_FILE", f"cannot read {path}: {os_reason(error)}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(
            "BAD_PROFILE", f"{path} is neither YAML nor JSON: {' '.join(str(error).split())[:200]}"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "document"
        form = "profiles: [{task: parse, cpu_s: 0.001}, ...]"
        raise InputError("BAD_PROFILE", f"{path}: {place}: {first['msg']}; expected {form}") from None
    given = {each.task: each.given() for each in document.profiles}
    if len(given) < len(document.profiles):
        raise InputError("BAD_PROFILE", f"{path} has two profiles of one task")
    return given


def profile_document(profiles: Mapping[str, OperatorProfile]) -> dict[str, Any]:
    """The profiles as a file that ``--profiles`` reads."""
    return {
        "profiles": [
            {
                "task": one.task,
                "alternate": one.alternate,
                "version": one.version,
                **{name: getattr(one, name).value for name in FIELDS},
                **({"selectivity": {name: figure.value for name, figure in one.outputs}} if one.outputs else {}),
                **({"instances_max": one.instances_max} if one.instances_max else {}),
                "origins": {name: getattr(one, name).origin.value for name in FIELDS},
            }
            for one in profiles.values()
        ]
    }


def profiles_of_file(
    path: Path, registry: Registry, state: Path | None = None, given: Mapping[str, GivenProfile] | None = None
) -> tuple[Dataflow, dict[str, OperatorProfile]]:
    """A dataflow and its profiles, with what an engine has measured of its tasks where it has."""
    dataflow = load(path, registry).dataflow
    measured = None
    if state is not None and (state / "observations").exists():
        measured = measured_operators(list(history_of(state).read()), dataflow, sign(dataflow))
    return dataflow, known_profiles(dataflow, registry, measured, given)


def recorded_profiles(name: str, state: Path) -> dict[str, OperatorProfile]:
    """The profiles of a dataflow that an engine runs or ran, from its recordings alone."""
    seen = [each for each in history_of(state).read() if any(name in task.dataflows for task in each.tasks)]
    if not seen:
        raise InputError(
            "UNKNOWN_DATAFLOW",
            f"'{name[:60]}' is neither a file nor a dataflow of which {state} has recordings; name a .yaml, .json, "
            ".xml or .py file, or give --state",
        )
    profiles: dict[str, OperatorProfile] = {}
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in seen:
        for task in each.tasks:
            if name in task.dataflows:
                rows[task.name][0] += task.rows_in
                rows[task.name][1] += task.rows_out
    latest = seen[-1]
    costs = {(cost.task, cost.alternate): cost for one in seen for cost in one.costs}
    measured = {task.task: task.profile for one in seen for task in one.tasks if task.profile is not None}
    names = {task.task: task.name for task in latest.tasks_and_sinks}
    for task in latest.tasks:
        cost = costs.get((task.task, task.alternate))
        if name not in task.dataflows or cost is None:
            continue
        readers = [names[one.task] for one in latest.tasks_and_sinks if task.task in one.inputs]
        came, left = rows[task.name]
        out = Figure(left / came, Origin.MEASURED) if came else Figure(1.0, Origin.DEFAULT)
        one = OperatorProfile(
            task.name,
            task.alternate,
            Figure(cost.cpu_s, cost.origin),
            Figure(cost.cpu_s + cost.wait_s, cost.origin),
            selectivity=dict.fromkeys(readers, out),
        )
        if (profile := measured.get(task.task)) is not None:
            one = replace(
                one,
                transfer_s=Figure(profile.transfer_s_per_row, Origin.MEASURED),
                instance_bytes=Figure(float(profile.memory_bytes), Origin.MEASURED),
            )
        profiles[task.name] = one
    return profiles


def costs_by_rate(observations: Sequence[Observation], tasks: Sequence[str] | None = None) -> Costs:
    """What a row cost while so many came, from every interval in which both are known."""
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in observations:
        for task in each.tasks:
            if task.profile is not None and task.rows_in and (tasks is None or task.name in tasks):
                points[task.name].append((each.rate_in_per_s(task), task.profile.cpu_s_per_row))
    return points


def costs_of_recordings(state: Path, tasks: Sequence[str]) -> Costs:
    """The same from an engine's recordings; raises :class:`InputError` where none of the tasks was measured."""
    costs = costs_by_rate(list(history_of(state).read()), tasks)
    if not costs:
        message = f"{state} has no interval in which the cost of these tasks was measured, so there is nothing to draw"
        raise InputError("NO_PROFILES", f"{message}; let an engine run them for some minutes")
    return costs


_MICRO = 1e6
_SHOWN = (
    ("cpu_s", "CPU", "µs", _MICRO),
    ("sojourn_s", "time", "µs", _MICRO),
    ("transfer_s", "transfer", "µs", _MICRO),
    ("memory_bytes", "memory", "KiB", 1 / 1024),
    ("instance_bytes", "instance", "MiB", 2**-20),
    ("row_bytes", "row", "bytes", 1.0),
    ("batch_s", "batch", "ms", 1e3),
)


def profile_tables(profiles: Mapping[str, OperatorProfile]) -> list[Table]:
    """The profiles, and where each figure comes from."""
    columns = (
        TableColumn("task", "task"),
        *(TableColumn(key, title, unit, ",.6g") for key, title, unit, _ in _SHOWN),
        TableColumn("selectivity", "rows out"),
        TableColumn("version", "version"),
    )
    rows = []
    for one in profiles.values():
        figures = {key: getattr(one, key).value * factor for key, _, _, factor in _SHOWN}
        out = ", ".join(f"{name} {figure.value:.4g}" for name, figure in one.outputs)
        rows.append({"task": one.task, **figures, "selectivity": out or None, "version": one.version})
    notes = (
        "Of a row: CPU on the reference core, time that it holds an instance, transfer between machines on each side.",
        "memory: of an instance for each row/s; instance: of an instance without rows; batch: CPU of a micro-batch.",
    )
    origins = (
        TableColumn("task", "task"),
        *(TableColumn(key, title) for key, title, _, _ in _SHOWN),
        TableColumn("selectivity", "rows out"),
    )
    origin_rows = [
        {
            "task": one.task,
            **{key: getattr(one, key).origin.value for key, *_ in _SHOWN},
            "selectivity": ", ".join(sorted({figure.origin.value for _, figure in one.outputs})) or None,
        }
        for one in profiles.values()
    ]
    return [Table("Profiles", columns, tuple(rows), notes), Table("Origins", origins, tuple(origin_rows))]


def write_profiles(profiles: Mapping[str, OperatorProfile]) -> str:
    """The text of a file of profiles."""
    return json.dumps(profile_document(profiles), indent=2) + "\n"
