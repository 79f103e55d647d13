"""Recorded runs of the simulator: worlds, what was done to them, and every figure to the last bit.

Forty were drawn at random, with random actions; the others are what nine policies did. ``python -m
tests.simulation.golden`` writes the figures anew. That is a decision: a run that was recorded may only change where a
change is meant to change it.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from headgate.documents import parse
from headgate.model.arrays import Floats
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import BillingPeriod, Cloud, VmClass
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from headgate.simulation.variability import TracePool

FILE = Path(__file__).parent.parent / "golden" / "simulator.json.gz"


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


def renew() -> None:
    """Write what comes out now; worlds, and what was done to them, stay."""
    worlds = [{**world, "figures": figures(replayed(world))} for world in stored()]
    FILE.write_bytes(gzip.compress(json.dumps(worlds, separators=(",", ":")).encode("ascii"), 9, mtime=0))


if __name__ == "__main__":
    renew()
