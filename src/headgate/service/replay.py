"""Try another policy on what was recorded of a live run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headgate.errors import BadValue, InputError
from headgate.model.graph import Graph
from headgate.planning.known_figures import AlternateFigures, costs_of
from headgate.planning.measured_figures import measured_figures
from headgate.service.figures import figures_of
from headgate.service.load import load
from headgate.service.simulate import SimulationRequest, cloud_of, rates_of
from headgate.sharing.signature import sign
from headgate.simulation.replay import Gap, gap, observed_pool, observed_rates
from headgate.simulation.setting import Setting
from headgate.store.observations import read_observations
from headgate.tasks.registry import Registry

__all__ = ["replay_gap", "replayed_setting"]


def replayed_setting(
    request: SimulationRequest, path: Path, registry: Registry
) -> tuple[Setting, tuple[AlternateFigures, ...]]:
    """The world of a live run: its rates, what its tasks cost, how its machines performed.

    Given rates win over observed ones; what was not measured is as the file declares it, or the task type's default.
    The second value says where each cost comes from.
    """
    observations = read_observations(path)
    dataflow = load(request.dataflow, registry).dataflow
    signatures = sign(dataflow)
    sources = [str(name) for name in Graph(dataflow).sources()]
    given = rates_of(request.rates, [] if request.rates else sources, request.dataflow.parent)
    wanted = {name: signatures[name] for name in Graph(dataflow).sources() if str(name) not in given}
    observed = observed_rates(observations, {str(name): each for name, each in wanted.items()})
    figures = figures_of(dataflow, registry, request.costs, measured_figures(observations, signatures))
    pool = observed_pool(observations)
    every_s = next(iter(observed.values())).every_s if observed else request.interval_s
    span_s = sum(each.seconds for each in observations)
    try:
        setting = Setting(
            dataflow,
            cloud_of(request.cloud, request.dataflow.parent),
            {**given, **observed},
            max(1, round(span_s / every_s)),
            every_s,
            pool,
            request.replications,
            request.seed,
            costs=costs_of(figures),
        )
        return replace(setting, deploy_s=min(request.deploy_s, every_s)), figures
    except BadValue as error:
        raise InputError("BAD_SETTING", f"{error}; expected {error.expected}") from None


def replay_gap(dataflow: Path, path: Path, registry: Registry) -> Gap:
    """How far the simulator is from the live run, fragments as they were."""
    flow = load(dataflow, registry).dataflow
    signatures = sign(flow)
    streams = [(signatures[stream.source], signatures[stream.target]) for stream in flow.streams]
    return gap(read_observations(path), streams)
