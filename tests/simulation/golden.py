"""Recorded runs of the simulator: worlds, what was done to them, and every figure to the last bit.

    PYTHONPATH=src:. python -m tests.simulation.golden

writes ``tests/golden/simulator.json.gz`` anew from the simulator as it is. That is a decision: a run that was recorded
may only change where a change is meant to change it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from headgate.adaptation.look_ahead import LookAheadSettings
from headgate.documents import parse
from headgate.model.arrays import Floats
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import BillingPeriod, Cloud, VmClass
from headgate.simulation.policies import make_policy
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from headgate.simulation.variability import TracePool

FILE = Path(__file__).parent.parent / "golden" / "simulator.json.gz"
POLICIES = ("static", "sh", "ce", "ds2", "flink", "cpu", "exact", "lookahead", "receding")


@dataclass(frozen=True)
class Given:
    """Rates that are written down: replications × intervals."""

    values: Floats

    def series(self, rng: object, replications: int, intervals: int, interval_s: float) -> Floats:
        del rng, interval_s
        return self.values[:replications, :intervals]

    @property
    def mean_per_s(self) -> float:
        return float(self.values.mean())

    @property
    def peak_per_s(self) -> float:
        return float(self.values.max())


def setting_of(world: dict[str, Any]) -> Setting:
    classes = tuple(VmClass(each[0], each[1], each[2], each[3], Decimal(each[4]), *each[5:]) for each in world["cloud"])
    traces = np.array(world["traces"])
    shares = {(source, target): share for source, target, share in world["shares"]}
    return Setting(
        parse(json.dumps(world["dataflow"]), "json").dataflow,
        Cloud("golden", classes, BillingPeriod(*world["billing"])),
        {name: Given(np.array(values)) for name, values in world["rates"].items()},
        pool=TracePool(traces, traces[::-1].copy(), traces, 300.0),
        shares=shares,
        **world["options"],
    )


def _deployment(machines: list[list[Any]], alternates: dict[str, str]) -> Deployment:
    return Deployment(tuple(Machine(kind, cores) for kind, cores in machines), alternates)


def replayed(world: dict[str, Any]) -> Simulator:
    """The world after everything that was done to it."""
    simulator = Simulator(setting_of(world))
    for verb, *given in world["done"]:
        if verb == "deploy":
            simulator.deploy(_deployment(*given))
        else:
            getattr(simulator, verb)(*given)
    return simulator


def figures(simulator: Simulator) -> dict[str, list[Any]]:
    """All that a run leaves behind."""
    sim, last = simulator, simulator.last
    series = {"omega": sim.omega, "output": sim.output, "cores": sim.cores, "gamma": sim.gamma[:, -1], "mu": sim.mu}
    state = {"queue": sim.queue, "middle": sim.queues[:, sim.step // 2], "pending": sim.pending}
    sums = {"returning": sim.returning, "entered": sim.entered, "finished": sim.finished, "sent": sim.sent}
    latest = {"moved": last.moved, "capacity": last.capacity, "made": last.made}
    return {name: values.tolist() for name, values in (series | state | sums | latest).items()}


def stored() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt", encoding="ascii") as file:
        worlds: list[dict[str, Any]] = json.load(file)
    return worlds


# What follows records.


class _Recording(Simulator):
    """Writes down what is done to it."""

    def __init__(self, setting: Setting) -> None:
        self.done: list[list[Any]] = []
        super().__init__(setting)

    def advance(self, intervals: int = 1) -> None:
        self.done.append(["advance", intervals])
        super().advance(intervals)

    def deploy(self, deployment: Deployment) -> None:
        machines = [[each.vm_class, dict(each.cores)] for each in deployment.machines]
        self.done.append(["deploy", machines, dict(deployment.alternates)])
        super().deploy(deployment)

    def place(self, row: int, task: int, slot: int, cores: int) -> None:
        self.done.append(["place", row, task, slot, cores])
        super().place(row, task, slot, cores)

    def switch(self, row: int, task: int, alternate: int) -> None:
        self.done.append(["switch", row, task, alternate])
        super().switch(row, task, alternate)

    def acquire(self, row: int, kind: int, count: int = 1) -> Any:
        self.done.append(["acquire", row, kind, count])
        return super().acquire(row, kind, count)

    def release(self, row: int, slot: int) -> None:
        self.done.append(["release", row, slot])
        super().release(row, slot)


def _dataflow(rng: np.random.Generator, count: int, loops: bool) -> dict[str, Any]:
    def number(low: int, high: int) -> float:
        return int(rng.integers(low, high)) / 16

    tasks: list[dict[str, Any]] = []
    for place in range(count):
        ways = [
            {
                "name": f"way{way}",
                "type": "opaque",
                "config": {"label": f"{place}-{way}"},
                "value": (16 - 5 * way) / 16,
                "cost_s": number(1, 24) if rng.random() < 0.95 else 0.0,
                "selectivity": number(0, 32) if rng.random() < 0.85 else 0.0,
            }
            for way in range(int(rng.integers(1, 4)))
        ]
        before = sorted({int(each) for each in rng.integers(0, place, 2)}) if place and rng.random() < 0.85 else []
        ports = {"inputs": ["in"], "outputs": ["out"]} if before else {"outputs": ["out"]}
        task: dict[str, Any] = {"id": f"t{place}", "alternates": ways, "ports": ports}
        if before:
            task["inputs"] = [{"from": f"t{each}", "to": "in"} for each in before]
        if loops and before and rng.random() < 0.3:
            task["ports"]["inputs"].append("back")
            task["inputs"].append({"from": f"t{place}", "to": "back", "feedback": True})
        tasks.append(task)
    level = {"throughput_min": 0.8, "break_even_at_best_per_h": 4.0, "break_even_at_worst_per_h": 2.0}
    return {"name": "golden", "service_level": level, "tasks": tasks}


def _vm_class(rng: np.random.Generator, number: int) -> list[Any]:
    cores, power = int(rng.integers(1, 9)), int(rng.integers(4, 33)) / 16
    mbit, boot_s, shut_s = [0.001, 0.01, 100.0][rng.integers(3)], [0.0, 97.0, 400.0][rng.integers(3)], 20.0
    return [f"c{number}", cores, power, mbit, f"0.{number + 1}", boot_s, shut_s, float(rng.integers(2))]


def _world(rng: np.random.Generator, loops: bool = True) -> dict[str, Any]:
    flow = _dataflow(rng, int(rng.integers(1, 7)), loops)
    cloud = [_vm_class(rng, n) for n in range(int(rng.integers(1, 4)))]
    edges = [(each["from"], task["id"]) for task in flow["tasks"] for each in task.get("inputs", [])]
    shares = [[*edge, int(rng.integers(1, 9)) / 8] for edge in edges if edge[0] != edge[1] and rng.random() < 0.3]
    intervals = 40
    sources = [task["id"] for task in flow["tasks"] if "inputs" not in task]
    return {
        "dataflow": flow,
        "cloud": cloud,
        "shares": shares,
        "billing": [[3_600.0], [60.0], [1.0, 60.0]][rng.integers(3)],
        "traces": (rng.integers(10, 65, (4, 12)) / 64).tolist(),
        "rates": {name: (rng.integers(0, 80, (2, intervals)) / 8).tolist() for name in sources},
        "options": {
            "intervals": intervals,
            "interval_s": [60.0, 120.0, 250.0][rng.integers(3)],
            "replications": 2,
            "seed": int(rng.integers(1_000)),
            "deploy_s": float(rng.choice([0.0, 30.0])),
            "switch_s": float(rng.choice([0.0, 10.0])),
            "counts_queues": bool(rng.random() < 0.6),
            "warm": bool(rng.random() < 0.5),
        },
    }


def _at_random(rng: np.random.Generator, world: dict[str, Any]) -> _Recording:
    sim = _Recording(setting_of(world))
    while not sim.over:
        for row in range(2):
            for _ in range(int(rng.integers(0, 4))):
                slots = sim.fleet.working(row, sim.now_s)
                task = int(rng.integers(sim.shape.tasks))
                match int(rng.integers(5)):
                    case 0:
                        sim.acquire(row, int(rng.integers(len(world["cloud"]))), int(rng.integers(1, 3)))
                    case 1 if len(slots) > 4:
                        sim.release(row, int(rng.choice(slots)))
                    case 2:
                        sim.switch(row, task, int(rng.integers(len(sim.shape.alternates[task]))))
                    case _ if len(slots):
                        slot = int(rng.choice(slots))
                        free = int(sim.fleet.free_cores(row)[slot] + sim.fleet.placed[row, slot, task])
                        sim.place(row, task, slot, int(rng.integers(0, free + 1)))
        sim.advance(int(rng.integers(1, 4)))
    return sim


def _by_policy(name: str, world: dict[str, Any]) -> _Recording:
    setting = setting_of(world)
    policy = make_policy(name, setting, LookAheadSettings())
    sim = _Recording(setting)
    policy.begin(sim)
    while not sim.over:
        sim.advance(policy.every or 10)
        if policy.every is not None and not sim.over:
            policy.decide(sim)
    return sim


def _recorded() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(23)
    for _ in range(40):
        world = _world(rng)
        sim = _at_random(rng, world)
        yield {**world, "by": "chance", "done": sim.done, "figures": figures(sim)}
    for name in POLICIES:
        for _ in range(2):
            world = _world(rng, loops=False)
            sim = _by_policy(name, world)
            yield {**world, "by": name, "done": sim.done, "figures": figures(sim)}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    text = json.dumps(list(_recorded()), separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
