"""The profiles of a dataflow's operators: given, measured, stored, declared, or the default of a task type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.errors import Fault, InputError, InvalidDataflow, unknown
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.observation import Observation, TaskProfile
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import Signature, TaskId
from headgate.model.task import Alternate
from headgate.planning.known_figures import Figure
from headgate.planning.measured_figures import measured_figures, measured_shares, observed_speed
from headgate.planning.placing.profiles import FIELDS, OperatorProfile
from headgate.tasks.registry import Registry

__all__ = ["GivenProfile", "MeasuredOperators", "known_profiles", "measured_operators"]

ROW_BYTES = 70.0
TRANSFER_S_PER_BYTE = 0.05e-6 / 70
"""CPU seconds: a million rows of 70 bytes written by one executor and read by another took 0.05 s."""

BATCH_S = 0.022
"""CPU seconds of a further task of a Spark job."""


@dataclass(frozen=True, slots=True)
class GivenProfile:
    """What somebody says of an operator; it comes before everything else."""

    figures: Mapping[str, float] = field(default_factory=dict)
    selectivity: Mapping[str, float] = field(default_factory=dict)
    instances_max: int | None = None


@dataclass(frozen=True, slots=True)
class MeasuredOperators:
    """What an engine has observed, by task and alternate, on the reference core."""

    costs: Mapping[tuple[str, str], AlternateCost] = field(default_factory=dict)
    profiles: Mapping[tuple[str, str], TaskProfile] = field(default_factory=dict)
    selectivity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Of the rows that a predicate lets pass, by source and target."""

    speed: float = 1.0


def measured_operators(
    observations: Sequence[Observation], dataflow: Dataflow, signatures: Mapping[TaskId, Signature]
) -> MeasuredOperators:
    """The latest costs and profiles of a dataflow's tasks; a later one knows the measurements before it."""
    named = {signature: str(name) for name, signature in signatures.items()}
    costs: dict[tuple[str, str], AlternateCost] = {}
    profiles: dict[tuple[str, str], TaskProfile] = {}
    for each in observations:
        for cost in each.costs:
            if cost.task in named and cost.origin.is_measured:
                costs[named[cost.task], cost.alternate] = cost
        for task in each.tasks:
            if task.task in named and task.profile is not None and task.profile.rows > 0:
                profiles[named[task.task], task.alternate] = task.profile
    counted = measured_figures(observations, signatures)
    selectivity = {key: one.selectivity for key, one in counted.items() if one.selectivity is not None}
    shares = measured_shares(observations, dataflow, signatures)
    return MeasuredOperators(costs, profiles, selectivity, shares, observed_speed(observations))


def known_profiles(
    dataflow: Dataflow,
    registry: Registry,
    measured: MeasuredOperators | None = None,
    given: Mapping[str, GivenProfile] | None = None,
) -> dict[str, OperatorProfile]:
    """The profile of each task with its best alternate; tasks of unknown cost are faults, all reported at once."""
    graph, seen, said = Graph(dataflow), measured or MeasuredOperators(), given or {}
    _check_given(graph, said)
    profiles, faults = {}, []
    for name in graph.order():
        way = max(graph.tasks[name].alternates, key=lambda each: each.value)
        readers = list(dict.fromkeys(str(stream.target) for stream in graph.consumers[name]))
        profile = _profile(str(name), way, readers, registry, seen, said.get(str(name), GivenProfile()))
        if profile is None:
            message = f"alternate '{way.name}' has no cost_s, so that nothing is known of the work it makes"
            expected = "cost_s, the core-seconds per message, beside its type, or cpu_s in a file for --profiles"
            faults.append(Fault("NO_COST", message, task=name, expected=expected))
        else:
            profiles[str(name)] = profile
    if faults:
        raise InvalidDataflow(faults)
    return profiles


def _check_given(graph: Graph, given: Mapping[str, GivenProfile]) -> None:
    names = [str(name) for name in graph.tasks]
    for name, one in given.items():
        if name not in names:
            raise unknown("UNKNOWN_TASK", f"a profile is given for '{name[:60]}', which is no task", name, names)
        readers = [str(stream.target) for stream in graph.consumers[TaskId(name)]]
        for reader in one.selectivity:
            if reader not in readers:
                message = f"the profile of '{name}' has a selectivity to '{reader[:60]}', which does not read it"
                raise unknown("UNKNOWN_TASK", message, reader, readers)
        for each in one.figures:
            if each not in FIELDS:
                raise InputError(
                    "BAD_PROFILE", f"the profile of '{name}' has '{each[:60]}'; there is {', '.join(FIELDS)}"
                )


def _profile(
    name: str, way: Alternate, readers: Sequence[str], registry: Registry, seen: MeasuredOperators, said: GivenProfile
) -> OperatorProfile | None:
    key = name, way.name
    kind, cost, profile = registry.get(way.type), seen.costs.get(key), seen.profiles.get(key)
    measured: dict[str, Figure] = {}
    if cost is not None:
        measured["cpu_s"] = Figure(cost.cpu_s, cost.origin)
        measured["sojourn_s"] = Figure(cost.cpu_s + cost.wait_s, cost.origin)
    if profile is not None:
        own_s = profile.cpu_s_per_row * seen.speed
        waits_s = max(profile.sojourn_s_per_row - profile.cpu_s_per_row, 0.0)
        measured.setdefault("cpu_s", Figure(own_s, Origin.MEASURED))
        measured.setdefault("sojourn_s", Figure(own_s + waits_s, Origin.MEASURED))
        measured["transfer_s"] = Figure(profile.transfer_s_per_row * seen.speed, Origin.MEASURED)
        measured["instance_bytes"] = Figure(float(profile.memory_bytes), Origin.MEASURED)
    figures = {each: Figure(value, Origin.GIVEN) for each, value in said.figures.items()}
    typical = None if kind is None else kind.typical_cost_s
    cpu = _first(figures.get("cpu_s"), measured.get("cpu_s"), _declared(way.cost_s), _default(typical))
    if cpu is None:
        return None
    row_bytes = _first(figures.get("row_bytes"), _default(ROW_BYTES))
    assert row_bytes is not None

    def known(field_name: str, default: float) -> Figure:
        return figures.get(field_name) or measured.get(field_name) or Figure(default, Origin.DEFAULT)

    # What is known of time counts only beside the CPU it was measured with.
    same = measured.get("sojourn_s") if cpu is measured.get("cpu_s") else None
    return OperatorProfile(
        name,
        way.name,
        cpu,
        figures.get("sojourn_s") or same or Figure(cpu.value, cpu.origin),
        known("transfer_s", row_bytes.value * TRANSFER_S_PER_BYTE),
        known("memory_bytes", 0.0),
        known("instance_bytes", 0.0),
        row_bytes,
        known("batch_s", BATCH_S),
        {reader: _selectivity(key, reader, way, seen, said) for reader in readers},
        said.instances_max,
    )


def _selectivity(
    key: tuple[str, str], reader: str, way: Alternate, seen: MeasuredOperators, said: GivenProfile
) -> Figure:
    if reader in said.selectivity:
        return Figure(said.selectivity[reader], Origin.GIVEN)
    share = seen.shares.get((key[0], reader), 1.0)
    if key in seen.selectivity:
        return Figure(seen.selectivity[key] * share, Origin.MEASURED)
    return _declared(way.selectivity) or Figure(1.0, Origin.DEFAULT)


def _declared(value: float | None) -> Figure | None:
    return None if value is None else Figure(value, Origin.DECLARED)


def _default(value: float | None) -> Figure | None:
    return None if value is None else Figure(value, Origin.DEFAULT)


def _first(*figures: Figure | None) -> Figure | None:
    return next((each for each in figures if each is not None), None)
