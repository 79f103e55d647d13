"""SHARE's experiment, simulated: dataflows come and go, and a strategy decides what runs, on how many workers.

A step of a trace submits or withdraws one dataflow, once a minute. Workers hold tasks of one unit, eight each, placed
round-robin; each worker is a machine of one core. How long an operation takes is drawn from distributions with the
figures that the paper gives for Storm.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from statistics import fmean

from headgate.billing.attribution import attribute
from headgate.billing.placement import machines
from headgate.billing.usage import Interval, Prices
from headgate.model.dataflow import Dataflow
from headgate.model.strategy import StrategyName
from headgate.sharing.change import Operation
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies import GroupSteps, Units, deploy
from headgate_benchmarks.share.collections import Collection

__all__ = [
    "TRACES",
    "OperationTimes",
    "Run",
    "Sample",
    "Step",
    "Trace",
    "random_walk",
    "sequential",
    "simulate",
    "storm",
]

START = datetime(2019, 1, 1)
STEP_S = 60

Draw = Callable[[random.Random], float]


@dataclass(frozen=True, slots=True)
class OperationTimes:
    """How long it takes, in seconds, to launch a unit, to stop one, and to send running tasks a message."""

    launch_s: Draw
    stop_s: Draw
    control_s: float = 0.2

    def sample(self, steps: GroupSteps, draw: random.Random) -> float:
        """The time of an operation: units are stopped and launched one after the other, then tasks get messages."""
        total = sum(self.stop_s(draw) for _ in steps.stopped) + sum(self.launch_s(draw) for _ in steps.launched)
        messages = steps.paused or steps.resumed or steps.joined or steps.left
        return total + (self.control_s if messages else 0.0)


def storm() -> OperationTimes:
    """The times that SHARE measured on Storm (section 7.3.3).

    Launching took 30 to 849 s, 40.4 s in the median and 64.5 s on average: here 30 s plus a log-normal time of median
    10.4 s and mean 34.5 s, so ``sigma = sqrt(2 ln(34.5/10.4)) = 1.549``, cut at 849 s. Stopping took up to 12.9 s,
    9.4 s in the median: here a uniform time around that.
    """
    sigma = math.sqrt(2 * math.log(34.5 / 10.4))
    return OperationTimes(
        launch_s=lambda draw: min(849.0, 30.0 + draw.lognormvariate(math.log(10.4), sigma)),
        stop_s=lambda draw: draw.uniform(5.9, 12.9),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a trace."""

    operation: Operation
    dataflow: Dataflow


@dataclass(frozen=True, slots=True)
class Trace:
    """Operations in order."""

    name: str
    steps: tuple[Step, ...]
    first: int = 0
    last: int | None = None
    """From where to where it is looked at: all of it, or the walk."""


def sequential(collection: Collection, draw: random.Random, name: str = "SEQ") -> Trace:
    """Submit all dataflows, then withdraw all, each time in random order (SEQ of SHARE)."""
    flows = list(collection.dataflows)
    first, last = draw.sample(flows, len(flows)), draw.sample(flows, len(flows))
    steps = [Step(Operation.SUBMIT, flow) for flow in first] + [Step(Operation.WITHDRAW, flow) for flow in last]
    return Trace(name, tuple(steps))


def random_walk(collection: Collection, draw: random.Random, name: str = "RW", length: int = 100) -> Trace:
    """Fill to two thirds, then submit or withdraw at random a hundred times, then drain (RW1 and RW2 of SHARE)."""
    waiting = draw.sample(list(collection.dataflows), len(collection.dataflows))
    there: list[Dataflow] = []
    steps: list[Step] = []

    def submit() -> None:
        there.append(waiting.pop(draw.randrange(len(waiting))))
        steps.append(Step(Operation.SUBMIT, there[-1]))

    def withdraw() -> None:
        waiting.append(there.pop(draw.randrange(len(there))))
        steps.append(Step(Operation.WITHDRAW, waiting[-1]))

    for _ in range(collection.initial):
        submit()
    for _ in range(length):
        adds = draw.random() < 0.5
        (submit if waiting and (adds or not there) else withdraw)()
    while there:
        withdraw()
    return Trace(name, tuple(steps), collection.initial, collection.initial + length)


TRACES: dict[str, Callable[[Collection, random.Random], Trace]] = {
    "SEQ": lambda collection, draw: sequential(collection, draw, "SEQ"),
    "RW1": lambda collection, draw: random_walk(collection, draw, "RW1"),
    "RW2": lambda collection, draw: random_walk(collection, draw, "RW2"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What is so after a step, until the next."""

    submitted_tasks: int
    active_tasks: int
    workers: int
    operation_s: float
    cost: Fraction
    """What all workers cost for the minute."""

    idle: Fraction
    """The part of it that went for workers with nothing but paused tasks and proxies."""

    @property
    def cost_per_task(self) -> float:
        """What is billed, over the tasks that were submitted."""
        return float(self.cost - self.idle) / max(self.submitted_tasks, 1)


@dataclass(frozen=True, slots=True)
class Run:
    """A trace under a strategy."""

    strategy: StrategyName
    trace: Trace
    samples: tuple[Sample, ...]

    @property
    def walk(self) -> tuple[Sample, ...]:
        return self.samples[self.trace.first : self.trace.last]

    @property
    def cost(self) -> Fraction:
        return sum((sample.cost for sample in self.walk), Fraction())

    @property
    def mean_operation_s(self) -> float:
        return fmean(sample.operation_s for sample in self.walk)


def simulate(
    trace: Trace,
    strategy: StrategyName,
    draw: random.Random,
    times: OperationTimes | None = None,
    prices: Prices | None = None,
) -> Run:
    """Run a trace under a strategy; the same ``draw`` state gives the same run."""
    times, prices = times or storm(), prices or Prices(Decimal("0.10"))
    running, deployment = RunningSet(), Units()
    samples = []
    for number, step in enumerate(trace.steps):
        if step.operation is Operation.SUBMIT:
            running, change = running.submit(step.dataflow)
        else:
            running, change = running.withdraw(step.dataflow.name)
        deployment, steps = deploy(strategy, deployment, change, running)
        interval = Interval(START + timedelta(seconds=STEP_S * number), STEP_S, machines(deployment, running, prices))
        samples.append(
            Sample(
                submitted_tasks=sum(len(each.signatures) for each in running.submitted.as_dict().values()),
                active_tasks=deployment.active,
                workers=deployment.workers(prices.tasks_per_worker),
                operation_s=times.sample(steps, draw),
                cost=interval.cost,
                idle=attribute([interval]).idle,
            )
        )
    return Run(strategy, trace, tuple(samples))
