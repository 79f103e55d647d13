"""Simulate a dataflow under policies: what would happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headgate.adaptation.look_ahead import PolicySettings
from headgate.documents.cloud_document import load_cloud
from headgate.errors import BadValue, InputError, missing_package
from headgate.model.cluster.catalogues import CATALOGUES, catalogue
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.trace_statistics import TraceUnit
from headgate.planning.known_figures import AlternateFigures, costs_of, with_best_alternates
from headgate.planning.objective import BreakEven
from headgate.service.figures import figures_of
from headgate.service.memory import check_memory
from headgate.service.shared_pool import SharedPool, graph_of, shared_setting
from headgate.simulation.policies import make_policy
from headgate.simulation.rate_text import read_rate
from headgate.simulation.rates import ArrivalRate
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate
from headgate.simulation.traces import Trace, coefficients, pool_of, read_csv_columns, trace_files, traces_of
from headgate.simulation.variability import GENERATORS, STEADY, TracePool
from headgate.tasks.registry import Registry

__all__ = [
    "PolicySettings",
    "SharedPool",
    "SimulationRequest",
    "cloud_of",
    "pool_named",
    "rates_of",
    "read_traces",
    "run_policies",
    "setting_of",
    "simulated_dataflow",
]


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """Options of a simulation, as they were written."""

    dataflow: Path
    rates: tuple[str, ...]
    hours: float = 12.0
    interval_s: float = 120.0
    cloud: str = "ec2-2013"
    variability: str = "none"
    metric: str | None = None
    unit: str = "share"
    replications: int = 1
    seed: int = 1
    message_bytes: float = 100.0
    deploy_s: float = 0.0
    switch_s: float = 0.0
    counts_queues: bool = True
    costs: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()
    """More dataflows, which share a pool with the first."""

    shared: SharedPool | None = None
    """The pool whose cores all tasks share; without it each has its own."""


def simulated_dataflow(request: SimulationRequest, registry: Registry) -> tuple[Dataflow, tuple[AlternateFigures, ...]]:
    """The dataflow, and what is known of its alternates; without break-even costs only the best ones are there."""
    if request.others and request.shared is None:
        raise InputError("BAD_SETTING", "several dataflows are simulated where they share cores; add --shared")
    dataflow = graph_of((request.dataflow, *request.others), registry).graph
    figures = figures_of(dataflow, registry, request.costs)
    if BreakEven.of(dataflow) is None:
        dataflow = with_best_alternates(dataflow, costs_of(figures))
    return dataflow, figures


def setting_of(request: SimulationRequest, registry: Registry) -> Setting:
    """Read and check everything; raises :class:`InputError`, or :class:`InvalidDataflow` with every fault."""
    dataflow, figures = simulated_dataflow(request, registry)
    intervals = request.hours * 3_600 / request.interval_s
    if not 1 <= intervals <= 10_000_000:
        message = f"{request.hours:g} hours in intervals of {request.interval_s:g} s"
        raise InputError("BAD_SETTING", f"{message} are {intervals:g} intervals; expected at least one")
    rates = rates_of(request.rates, [str(name) for name in Graph(dataflow).sources()], request.dataflow.parent)
    several = graph_of((request.dataflow, *request.others), registry)
    try:
        setting = Setting(
            dataflow,
            cloud_of(request.cloud, request.dataflow.parent),
            rates,
            round(intervals),
            request.interval_s,
            pool_named(request.variability, request.seed, request.metric, request.unit),
            request.replications,
            request.seed,
            request.message_bytes,
            request.deploy_s,
            request.switch_s,
            request.counts_queues,
            costs=costs_of(figures),
            owners=several.owners,
            levels=several.levels,
        )
    except BadValue as error:
        raise InputError("BAD_SETTING", error.sentence) from None
    return setting if request.shared is None else shared_setting(setting, registry, request.shared)


def rates_of(texts: Sequence[str], sources: Sequence[str], folder: Path | None = None) -> Mapping[str, ArrivalRate]:
    """Rates by source: ``SOURCE=RATE``, or a rate alone for all sources that have none of their own."""
    rates: dict[str, ArrivalRate] = {}
    for_all = None
    for text in texts:
        name, equals, rest = text.partition("=")
        own = bool(equals) and ":" not in name
        try:
            rate = read_rate(rest if own else text, folder)
        except BadValue as error:
            raise InputError("BAD_RATE", f"rate {text[:60]!r}: {error.sentence}") from None
        if own:
            rates[name.strip()] = rate
        else:
            for_all = rate
    if for_all is not None:
        rates = {source: rates.get(source, for_all) for source in sources} | rates
    return rates


def cloud_of(name: str, folder: Path | None = None) -> Cloud:
    """A cloud that comes along, or one from a file."""
    path = Path(name)
    if name not in CATALOGUES and path.suffix in (".yaml", ".yml", ".json"):
        return load_cloud(path if path.exists() or folder is None else folder / path)
    return catalogue(name)


def pool_named(name: str, seed: int, metric: str | None = None, unit: str = "share") -> TracePool:
    """Machines that are steady (``none``), vary as a generator makes them, or follow recorded traces."""
    if name == "none":
        return STEADY
    if name in GENERATORS:
        return GENERATORS[name].pool(seed)
    if unit not in list(TraceUnit):
        raise InputError("UNKNOWN_UNIT", f"unknown unit {unit[:60]!r}; there is {', '.join(TraceUnit)}")
    path = Path(name)
    if not path.exists():
        there = f"none, {', '.join(GENERATORS)}, or a file or folder of traces"
        raise InputError("UNKNOWN_VARIABILITY", f"unknown variability {name[:60]!r}; there is {there}")
    return pool_of(coefficients(read_traces(path, metric), TraceUnit(unit), str(path)), str(path))


def read_traces(path: Path, metric: str | None) -> list[Trace]:
    """The traces in a file or a folder of files: CSV, also gzipped, and parquet where it can be read."""
    return [each for file in trace_files(path) for each in traces_of(_columns(file), str(file), metric)]


def _columns(file: Path) -> Mapping[str, Sequence[object]]:
    if not file.name.endswith(".parquet"):
        return read_csv_columns(file)
    try:
        from headgate.runtime.io.tables import read_parquet_columns
    except ModuleNotFoundError as error:
        raise missing_package("NO_SPARK", "reading parquet", error, "spark") from None
    return read_parquet_columns(file)


def run_policies(
    setting: Setting,
    policies: Sequence[str],
    progress: Callable[[str, int, int], None] | None = None,
    ahead: PolicySettings | None = None,
) -> tuple[Run, ...]:
    """One run for each policy, in the same world."""
    check_memory(setting)
    made = [make_policy(name, setting, ahead) for name in policies]
    runs = []
    for name, policy in zip(policies, made, strict=True):
        report = None if progress is None else partial(progress, name)
        runs.append(replace(simulate(setting, policy, report), policy=name))
    return tuple(runs)
