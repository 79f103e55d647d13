"""Deploy a dataflow to a target: plan, and run the loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from headgate.adaptation.deploying.correcting import Knowledge
from headgate.adaptation.deploying.loop import Attempt, Deploying, Outcome, run_to_target
from headgate.errors import BadValue, InputError
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.planning.placing.deployment_plan import (
    DeploymentPlan,
    DeployOptions,
    DeployTarget,
    plan_deployment,
)
from headgate.planning.placing.fusing import fused_operators
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.parallelism import InstanceLimits
from headgate.planning.placing.placement import Site
from headgate.planning.placing.profiles import OperatorProfile
from headgate.service.deploy_live import EngineDoor, LiveWorld
from headgate.service.deploy_readings import cloud_of_engine, epoch_s, fused_groups
from headgate.service.simulate import cloud_of, rates_of
from headgate.sharing.signature import sign
from headgate.simulation.placed import PlacedWorld, WorldFacts, drawn_truth
from headgate.store.observations import history_of

__all__ = [
    "Attempt",
    "DeployRequest",
    "Deploying",
    "DeploymentPlan",
    "Outcome",
    "deploying_of",
    "planned_only",
    "run_live",
    "run_simulated",
]


SEEN_S, BEFORE_ANY_S = 60.0, 1.0
"""How long back it is looked for micro-batches, and how often they come where there were none."""


@dataclass(frozen=True, slots=True)
class DeployRequest:
    """A target and options, as they were written."""

    rates: tuple[str, ...]
    latency_s: float
    budget: str | None = None
    machines_max: int | None = None
    catalogue: str = "p-deployer"
    packer: str = "first-fit"
    alpha: float = 0.1
    beta_mib: float = 512.0
    fill: float = 0.9
    saving_weight: float = 1.0
    trigger_s: float = 0.0
    time_limit_s: float = 60.0
    there: tuple[Site, ...] = ()
    instances: Mapping[str, int] = field(default_factory=dict)


def deploying_of(
    request: DeployRequest,
    dataflow: Dataflow,
    profiles: Mapping[str, OperatorProfile],
    folder: Path,
    cloud: Cloud | None = None,
) -> Deploying:
    """The loop before its first plan; faults of the request are sentences."""
    sources = [str(name) for name in Graph(dataflow).sources()]
    rates = {name: rate.peak_per_s for name, rate in rates_of(request.rates, sources, folder).items()}
    try:
        target = DeployTarget(rates, request.latency_s, _budget(request.budget), request.machines_max)
        limits = InstanceLimits(request.alpha, request.beta_mib * 2**20, request.fill)
        options = DeployOptions(
            limits,
            request.packer,
            request.saving_weight,
            request.trigger_s,
            request.time_limit_s,
            request.there,
            instances=request.instances,
        )
        deploying = Deploying(
            target,
            lambda known: OperatorLoads.of_dataflow(dataflow, known, rates),
            cloud or cloud_of(request.catalogue, folder),
            options,
            Knowledge(dict(profiles), fill=request.fill),
        )
        deploying.load(profiles)
    except BadValue as error:
        raise InputError("BAD_TARGET", error.sentence) from None
    return deploying


def _budget(text: str | None) -> Decimal | None:
    """``2.50/h``, or without the unit.

    >>> _budget("2.50/h")
    Decimal('2.50')
    """
    if text is None:
        return None
    try:
        amount = Decimal(text.strip().removesuffix("/h"))
    except ArithmeticError:
        amount = Decimal(-1)
    if not amount.is_finite() or amount <= 0:
        raise InputError("BAD_TARGET", f"--budget is {text[:60]!r}; expected an amount per hour, such as 2.50/h")
    return amount


def planned_only(deploying: Deploying) -> DeploymentPlan:
    """The first plan; raises :class:`~headgate.errors.Infeasible` where there is none."""
    known = deploying.knowledge.planned()
    return plan_deployment(deploying.load, known, deploying.target, deploying.cloud, deploying.options)


def run_live(
    door: EngineDoor,
    request: DeployRequest,
    dataflow: Dataflow,
    profiles: Mapping[str, OperatorProfile],
    folder: Path,
    state: Path,
    progress: Callable[[int, Attempt], None] | None = None,
) -> tuple[Deploying, Outcome, Mapping[str, str]]:
    """Run the loop on an engine that runs the dataflow; machines of its provider, whatever the catalogue.

    Whatever stops it, machines that it acquired and that its best plan does not need are released.
    """
    history = history_of(state)
    last = history.last()
    signatures = sign(dataflow)
    known = set() if last is None else {task.task for task in last.tasks_and_sinks}
    if last is None or not known >= set(signatures.values()):
        message = f"the engine of {state} does not run '{dataflow.name}' as the file has it"
        raise InputError("NOT_RUNNING", f"{message}; submit it with headgate submit, or deploy with --simulate")
    facts = door.machines()
    seen = [each for each in history.read(last.ended - SEEN_S) if each.seconds > 0]
    deploying = fused_deploying(
        deploying_of(request, dataflow, profiles, folder, cloud_of_engine(facts, [last])),
        dataflow,
        fused_groups(last, signatures),
        epoch_s(seen) or BEFORE_ANY_S,
    )
    if not facts["provider"]:
        deploying = replace(deploying, target=replace(deploying.target, machines_max=1))
    world = LiveWorld(door, dataflow, signatures, history.read, f"deploy/{time.time():.0f}")
    best = None
    try:
        outcome = run_to_target(deploying, world, progress)
        best = outcome.plan
    finally:
        world.settle(best)
    return deploying, outcome, world.not_enforced


def fused_deploying(
    deploying: Deploying, dataflow: Dataflow, groups: Mapping[str, Sequence[str]], every_s: float
) -> Deploying:
    """The loop over what an engine runs as one, with a micro-batch every so many seconds."""
    power = max(each.core_power for each in deploying.cloud.classes)
    streams = [(str(each.source), str(each.target)) for each in dataflow.streams]
    fused = fused_operators(streams, deploying.knowledge.profiles, groups, power)
    rates = deploying.target.rates
    return replace(
        deploying,
        load=lambda known: OperatorLoads.of(fused.streams, known, rates),
        knowledge=replace(deploying.knowledge, profiles=fused.profiles),
        options=replace(deploying.options, trigger_s=deploying.options.trigger_s or every_s),
    )


def run_simulated(
    deploying: Deploying,
    error: float,
    overhead: float,
    seed: int,
    progress: Callable[[int, Attempt], None] | None = None,
) -> Outcome:
    """Run the loop in a cloud in which costs are off by up to ``error`` from what is known of them."""
    truth = drawn_truth(deploying.knowledge.profiles, error, seed)
    world = PlacedWorld(truth, deploying.cloud, WorldFacts(overhead=overhead, seed=seed))
    return run_to_target(deploying, world, progress)
