"""Random windows of a platform on which tasks share cores, as Spark's are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from headgate.adaptation.policy import Capabilities, Terms
from headgate.adaptation.window import MachineColumns, Window
from headgate.capacity.sharing import Sharing
from headgate.model.arrays import Shape
from headgate.model.capacity import FragmentLoad, Pool, StageLoad
from headgate.model.cluster.vm_class import HOURLY, PER_MINUTE, PER_SECOND, Cloud, VmClass
from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, Signature, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Port, Ports, Task
from headgate.sharing.signature import sign

SPARK = frozenset({"switch_alternate", "set_partitions", "acquire_machine", "release_machine", "set_epoch"})


def task(name: str, ways: list[tuple[str, float, float, float]], reads: bool) -> Task:
    """A task whose alternates have (name, value, cost_s, selectivity)."""
    alternates = tuple(
        Alternate(way, "opaque", Config({"label": f"{name}-{way}"}), value, cost, out) for way, value, cost, out in ways
    )
    ports = Ports((Port(PortName("in")),) if reads else (), (Port(PortName("out")),))
    return Task(TaskId(name), alternates, ports)


def graph(
    rng: np.random.Generator, most: int = 6, level: ServiceLevel | None = None, same_out: bool = False
) -> Dataflow:
    """A random graph; every task reads one or two before it, the first is a source."""
    count = int(rng.integers(1, most + 1))
    tasks, streams = [], []
    for place in range(count):
        out = float(rng.choice([1.0, 0.5, 2.0]))
        ways = []
        for way in range(int(rng.integers(1, 4))):
            selectivity = out if same_out or rng.random() < 0.8 else float(rng.choice([0.0, 1.0, 0.25]))
            ways.append(
                (f"w{way}", round(1.0 - 0.25 * way * rng.random(), 3), float(rng.uniform(1, 20)) / 1e3, selectivity)
            )
        sources = sorted(set(rng.integers(0, place, size=rng.integers(1, 3)).tolist())) if place else []
        tasks.append(task(f"t{place}", ways, bool(sources)))
        streams += [Stream(TaskId(f"t{s}"), PortName("out"), TaskId(f"t{place}"), PortName("in")) for s in sources]
    return Dataflow(DataflowName("random"), tuple(tasks), tuple(streams), service_level=level or ServiceLevel())


def sharing_of(rng: np.random.Generator, dataflow: Dataflow, pools: int = 1, all_cores: bool = False) -> Sharing:
    """Fragments of consecutive tasks."""
    names = [str(each.id) for each in dataflow.tasks]
    cuts = sorted({0, len(names), *rng.integers(0, len(names) + 1, size=2).tolist()})
    epoch_s = float(rng.choice([0.0, 1.0, 2.0]))
    loads = []
    for number, (begin, end) in enumerate(pairwise(cuts)):
        stages = tuple(
            StageLoad((name,), None if all_cores or rng.random() < 0.6 else int(rng.integers(1, 9)))
            for name in names[begin:end]
        )
        times = (0.2 * rng.random(), 0.02 * rng.random(), float(rng.choice([0.5, 1.0]))) if epoch_s else (0.0, 0.0, 0.0)
        loads.append(FragmentLoad(f"f{begin}", f"pool{number % pools}", stages, *times))
    used = sorted({load.pool for load in loads})
    return Sharing(tuple(loads), tuple(Pool(name, (), epoch_s) for name in used))


def cloud_of(rng: np.random.Generator, most: int = 3) -> Cloud:
    classes = tuple(
        VmClass(
            f"c{n}",
            int(rng.integers(1, 5)),
            float(rng.choice([0.5, 1.0, 2.0])),
            100.0,
            Decimal(int(rng.integers(5, 60))) / 100,
            float(rng.choice([0.0, 45.0, 200.0])),
        )
        for n in range(int(rng.integers(1, most + 1)))
    )
    return Cloud("random", classes, [HOURLY, PER_MINUTE, PER_SECOND][int(rng.integers(3))])


def level_of(rng: np.random.Generator) -> ServiceLevel:
    even: dict[str, Any] = {}
    if rng.random() < 0.7:
        even = {"break_even_at_best_per_h": Decimal("3.0"), "break_even_at_worst_per_h": Decimal("1.0")}
    if rng.random() < 0.2:
        even["budget_per_h"] = Decimal(int(rng.integers(20, 300))) / 100
    if rng.random() < 0.2:
        even["processors_max"] = int(rng.integers(4, 40))
    return ServiceLevel(0.8, 0.05, float(rng.choice([0.5, 3.0, 20.0])), **even)


@dataclass(frozen=True)
class Made:
    """What windows have in common."""

    terms: Terms
    capabilities: Capabilities
    shape: Shape
    sharing: Sharing


def made(rng: np.random.Generator) -> Made:
    dataflow, pools = graph(rng, level=level_of(rng)), int(rng.integers(1, 3))
    sharing = sharing_of(rng, dataflow, pools)
    shape = Shape.of(dataflow, fragments=sharing.groups)
    signatures = sign(dataflow)
    some = [signature for signature in signatures.values() if rng.random() < 0.7]
    kinds = SPARK if rng.random() < 0.8 else frozenset(kind for kind in SPARK if rng.random() < 0.6)
    names = tuple(pool.name for pool in sharing.pools)
    resizable = frozenset(each for each in signatures.values() if rng.random() < 0.5)
    capabilities = Capabilities(names, kinds, False, frozenset(some) if rng.random() < 0.7 else None, resizable)
    terms = Terms(
        dataflow, signatures, cloud_of(rng), float(rng.choice([30.0, 60.0, 120.0])), 100, bool(rng.random() < 0.7)
    )
    return Made(terms, capabilities, shape, sharing)


def window(rng: np.random.Generator, of: Made, ended_s: float = 1_000.0) -> Window:
    """What was measured, at random: machines of any age, rates from nothing to far too much."""
    terms, shape, pools = of.terms, of.shape, len(of.sharing.pools)
    count = int(rng.integers(0, 7))
    kind = rng.integers(0, len(terms.cloud.classes), size=count)
    cores = np.zeros((count, pools), dtype=np.int64)
    for row, each in enumerate(kind.tolist()):
        cores[row, int(rng.integers(pools))] = terms.cloud.classes[each].cores
    rated = np.array([each.core_power for each in terms.cloud.classes])
    starts = np.where(rng.random(count) < 0.2, rng.uniform(1, 100, count), 0.0)
    machines = MachineColumns(
        tuple(f"m{row}" for row in range(count)),
        kind.astype(np.int64),
        rated[kind] * rng.uniform(0.3, 1.0, count) if count else np.zeros(0),
        rng.uniform(0, terms.cloud.billing.period_s, count),
        starts,
        cores,
    )
    external, waiting = np.zeros(shape.tasks), np.zeros(shape.tasks)
    external[list(shape.sources)] = rng.choice([0.0, 5.0, 60.0, 900.0]) * rng.random()
    first = shape.fragments[:-1]
    waiting[first] = np.where(rng.random(len(first)) < 0.3, rng.uniform(0, 5_000, len(first)), 0.0)
    active = np.array([int(rng.integers(len(ways))) for ways in shape.alternates], dtype=np.int64)
    latency = {"random": float(rng.uniform(0.1, 30))} if rng.random() < 0.7 else {}
    return Window(
        terms,
        of.capabilities,
        ended_s,
        shape,
        active,
        external,
        waiting,
        float(rng.random()),
        machines,
        of.sharing,
        latency,
    )


def later(rng: np.random.Generator, seen: Window, of: Made) -> Window:
    """The window after one: other rates and machines, the same graph."""
    return replace(window(rng, of, seen.ended_s + of.terms.interval_s), active=seen.active)


def signature_of(seen: Window, name: str) -> Signature:
    return seen.terms.signatures[TaskId(name)]
