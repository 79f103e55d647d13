"""All policies by name: what each deploys first, and what decides afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from headgate.adaptation.look_ahead import PolicySettings, Replication, predictor_of, receding_core
from headgate.adaptation.outlook import Predictor, PresentOnly
from headgate.adaptation.policies.averages import Averaged, RecentMean
from headgate.adaptation.policies.baselines import CpuThresholds, Ds2, UtilisationTarget
from headgate.adaptation.policies.exact import Optimal
from headgate.adaptation.policies.genetic import Evolved
from headgate.adaptation.policies.lookahead import LookAhead
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.policy import Policy
from headgate.errors import Infeasible, InputError, unknown
from headgate.model.cluster.deployment import Deployment
from headgate.planning.deployment_for_rates import steady_deployment
from headgate.planning.plan import Plan
from headgate.planning.planners import make_planner
from headgate.planning.problem import Problem
from headgate.planning.world import World

__all__ = ["POLICIES", "PolicyEntry", "policy_named", "sized_for"]

ENTRY_POINT_GROUP = "headgate.policies"

MakeCore = Callable[[Replication, PolicySettings], Core]


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy: its first deployment, and what decides for each replication; none if static."""

    summary: str
    deployment: Callable[[World], Deployment]
    core: MakeCore | None = None
    pooled: Callable[[PolicySettings], Policy] | None = None
    """Of an installed package, what decides where tasks share cores; ours are in ``adaptation.pooled.catalogue``."""


def sized_for(world: World, rates: Mapping[str, float], headroom: float = 1.0) -> Deployment:
    """A deployment of the first alternates that keeps up with given rates on machines that perform as rated."""
    shape = world.shape()
    load = shape.rates(rates) * shape.cost_s[:, 0]
    demand = {str(name): float(work) for name, work in zip(shape.names, load, strict=True)}
    return steady_deployment(world.dataflow, world.cloud, demand, headroom)


def _mean(world: World) -> Deployment:
    return sized_for(world, world.mean_rates())


def _peak(world: World) -> Deployment:
    return sized_for(world, world.peak_rates(), 1.25)


def _shared_only(world: World) -> Deployment:
    """No deployment: where tasks own cores, nobody measures latencies."""
    message = f"policy 'drs' sizes a pool of shared cores, and the tasks of '{world.dataflow.name}' own theirs"
    raise InputError("SHARED_ONLY", f"{message}; simulate a shared pool with --shared")


def _planned(planner: str) -> Callable[[World], Deployment]:
    """The plan of a planner for the mean rates."""

    def deployment(world: World) -> Deployment:
        problem = Problem.of(
            world.dataflow, world.cloud, world.mean_rates(), world.message_bytes, world.costs, world.shares
        )
        plan = make_planner(planner, 10.0).plan(problem)
        if not isinstance(plan, Plan):
            raise Infeasible(plan.condition, f"policy '{planner}' has no first deployment: {plan.sentence}")
        return plan.deployment

    return deployment


def _fixed(core: Core) -> MakeCore:
    return lambda *_: core


def _reactive(centralised: bool) -> MakeCore:
    return lambda _, chosen: Reactive(centralised, chosen.alternates_every, chosen.resources_every)


def _averaged(model: str, predictor: Callable[[Replication, PolicySettings], Predictor] = predictor_of) -> MakeCore:
    reactive = _reactive(centralised=True)
    return lambda replication, chosen: Averaged(model, predictor(replication, chosen), reactive(replication, chosen))


_CE = _planned("ce")

POLICIES: Mapping[str, PolicyEntry] = {
    "static": PolicyEntry("deployed once, for the mean rates", _mean),
    "static-peak": PolicyEntry("deployed once, for a quarter more than the peak rates", _peak),
    "threshold": PolicyEntry(
        "cores follow the utilisation of each task", _mean, _fixed(UtilisationTarget(0.7, 0.5, 0.85, "threshold"))
    ),
    "ce": PolicyEntry("DYN's centralised heuristic at runtime (Alg. 2)", _CE, _reactive(centralised=True)),
    "sh": PolicyEntry("DYN's sharded heuristic at runtime", _planned("sh"), _reactive(centralised=False)),
    "ga": PolicyEntry(
        "DYN's genetic algorithm, run again every half hour", _planned("ga"), lambda r, _: Evolved(r.world.dataflow)
    ),
    "exact": PolicyEntry(
        "the optimum after every interval, with the cost of changes",
        _planned("exact"),
        lambda r, _: Optimal(r.world.dataflow),
    ),
    "ds2": PolicyEntry("DS2: the parallelism that the sources' rates need", _mean, _fixed(Ds2())),
    "flink": PolicyEntry(
        "a utilisation target for each task, as Flink's autoscaler", _mean, _fixed(UtilisationTarget())
    ),
    "cpu": PolicyEntry("more of all above 70 % CPU, less below 30 %", _mean, _fixed(CpuThresholds())),
    "drs": PolicyEntry("DRS: the fewest cores of a pool that meet a latency; where tasks share cores", _shared_only),
    "lookahead": PolicyEntry(
        "PLAN-AHEAD's Alg. 1: plans for where throughput will leave its band",
        _CE,
        lambda replication, chosen: LookAhead(
            predictor_of(replication, chosen), _reactive(centralised=True)(replication, chosen)
        ),
    ),
    "receding": PolicyEntry(
        "a program over the forecast for the rest of the period, of which one step is applied", _CE, receding_core
    ),
    "caf": PolicyEntry(
        "ce on the last observation (PLAN-AHEAD's averaging models)", _CE, _averaged("caf", lambda *_: PresentOnly())
    ),
    "waaf": PolicyEntry(
        "ce on the mean of the last intervals", _CE, _averaged("waaf", lambda _, chosen: RecentMean(chosen.window))
    ),
    "wpa": PolicyEntry("ce on the mean of the forecast", _CE, _averaged("wpa")),
    "wpo": PolicyEntry("ce on the most favourable of the forecast", _CE, _averaged("wpo")),
    "wpp": PolicyEntry("ce on the least favourable of the forecast", _CE, _averaged("wpp")),
}

RENAMED_POLICIES = {"lookahead-plain": "lookahead"}


def policy_named(name: str) -> PolicyEntry:
    """A policy of ours, or of an installed package: an entry point of the group ``headgate.policies``."""
    if name in POLICIES:
        return POLICIES[name]
    if name in RENAMED_POLICIES:
        raise InputError("RENAMED_POLICY", f"policy '{name}' is now '{RENAMED_POLICIES[name]}'")
    offered = {each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in offered:
        raise unknown("UNKNOWN_POLICY", f"unknown policy {name[:60]!r}", name, [*POLICIES, *offered])
    value = offered[name].value
    try:
        entry = offered[name].load()
    except Exception as error:
        raise InputError("BAD_POLICY", f"policy '{name}' cannot be loaded from '{value}': {error!r}") from error
    if not isinstance(entry, PolicyEntry):
        message = f"policy '{name}' at '{value}' is of type {type(entry).__name__}"
        raise InputError("BAD_POLICY", f"{message}; expected a headgate.adaptation.catalogue.PolicyEntry")
    return entry
