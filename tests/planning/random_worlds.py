"""Random small worlds for the bound of hindsight, with what is rare in clouds and dataflows among them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from headgate.model.cluster.vm_class import HOURLY, PER_MINUTE, PER_SECOND, BillingPeriod, Cloud, VmClass
from headgate.simulation.rates import Recorded
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from headgate.simulation.variability import TracePool
from tests.planning.instances import parse_dict

BILLING = (HOURLY, PER_MINUTE, PER_SECOND, BillingPeriod(1_200.0), BillingPeriod(1.0, 600.0))


def random_world(seed: int) -> Setting:
    """One to four tasks, 3 to 12 intervals; a third of the selectivities are 0, a fifth of the machines never boot."""
    rng = np.random.default_rng(seed)
    interval_s = float(rng.choice([60.0, 120.0, 600.0, 1_800.0, 7_200.0]))
    intervals = int(rng.integers(3, 13))
    horizon_s = interval_s * intervals
    boots_s = [0.0, 0.0, 97.0, interval_s * 1.5, 2 * horizon_s]
    classes = tuple(
        VmClass(
            name,
            cores,
            power,
            500,
            Decimal(price),
            boot_s=float(rng.choice(boots_s)),
            interruptions_per_h=float(rng.choice([0.0, 0.0, 0.5])),
        )
        for name, cores, power, price in (("small", 1, 1.0, "0.06"), ("large", 3, 2.0, "0.30"))
    )
    count = int(rng.integers(1, 5))
    best = float(rng.uniform(0.3, 4.0))
    flow = parse_dict(
        {
            "name": "random",
            "service_level": {
                "throughput_min": float(rng.choice([0.05, 0.3, 0.6, 0.8])),
                "break_even_at_best_per_h": best,
                "break_even_at_worst_per_h": best / 2,
            },
            "tasks": [_task(place, count, rng) for place in range(count)],
        }
    )
    speeds = rng.uniform(0.4, 1.0, (3, 20)) if rng.random() < 0.7 else np.ones((1, 1))
    rates = tuple((rng.uniform(0.0, 6.0, intervals) * (rng.random(intervals) < 0.9)).tolist())
    return Setting(
        flow,
        Cloud("random", classes, BILLING[int(rng.integers(len(BILLING)))]),
        {"t0": Recorded(rates, interval_s)},
        intervals,
        interval_s,
        TracePool(speeds, np.ones_like(speeds), np.ones_like(speeds), interval_s, "drawn"),
        seed=seed,
        counts_queues=bool(rng.integers(2)),
        warm=bool(rng.integers(2)),
    )


def _task(place: int, count: int, rng: np.random.Generator) -> dict[str, object]:
    ways = [
        {
            "name": f"way{way}",
            "type": "opaque",
            "config": {"label": f"{place}-{way}"},
            "value": 1.0 if way == 0 else float(rng.uniform(0.3, 1.0)),
            "cost_s": float(rng.choice([0.0, *rng.uniform(0.05, 1.2, 4)])),
            "selectivity": float(rng.choice([0.0, 0.5, 1.0, *rng.uniform(0.2, 1.5, 2)])),
        }
        for way in range(2 if place == count - 1 else int(rng.integers(1, 4)))
    ]
    if not place:
        return {"id": "t0", "alternates": ways, "ports": {"outputs": ["out"]}}
    ports = {"inputs": ["in"], "outputs": ["out"]}
    return {"id": f"t{place}", "alternates": ways, "ports": ports, "inputs": [f"t{rng.integers(place)}"]}


class Whim:
    """Acquires, places, switches and lets go as the dice fall; some machines only to get at the next one."""

    name = "whim"
    every: int | None = 1

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.draws, self.leaves = self.rng.random() < 0.3, 0.15 * self.rng.random()

    def begin(self, simulator: Simulator) -> None:
        for _ in range(int(self.rng.integers(1, 6))):
            self._acquire(simulator)
        self.decide(simulator)

    def _acquire(self, simulator: Simulator) -> None:
        slot = simulator.acquire(0, int(self.rng.integers(len(simulator.setting.cloud.classes))))
        if self.draws and self.rng.random() < 0.5:
            simulator.release(0, int(slot[0]))

    def decide(self, simulator: Simulator) -> None:
        rng, fleet = self.rng, simulator.fleet
        if rng.random() < 0.2:
            self._acquire(simulator)
        for task, ways in enumerate(simulator.shape.alternates):
            simulator.switch(0, task, int(rng.integers(len(ways))))
        for slot in fleet.working(0, simulator.now_s).tolist():
            if rng.random() < self.leaves:
                simulator.release(0, slot)
                continue
            left = simulator.setting.cloud.classes[int(fleet.kind[0, slot])].cores
            fleet.placed[0, slot] = 0
            for task in rng.permutation(simulator.shape.tasks).tolist():
                cores = int(rng.integers(left + 1))
                simulator.place(0, task, slot, cores)
                left -= cores
