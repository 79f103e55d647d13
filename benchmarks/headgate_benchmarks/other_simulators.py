"""The same line of queues in SimPy and in Ciw, to measure against: both collect the sojourn of every tuple."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["ciw_line", "simpy_line"]


def simpy_line(stages: int, servers: int, rate: float, tuples: int, seed: int) -> tuple[int, float]:
    """Visits and mean sojourn of an M/M/k line in SimPy; the first sixth of the tuples warms up."""
    import simpy

    rng = random.Random(seed)
    env = simpy.Environment()
    line = [simpy.Resource(env, servers) for _ in range(stages)]
    sojourns: list[float] = []

    def through(number: int) -> Iterator[Any]:
        arrived = env.now
        for stage in line:
            with stage.request() as turn:
                yield turn
                yield env.timeout(rng.expovariate(1.0))
        if number >= tuples // 6:
            sojourns.append(env.now - arrived)

    def source() -> Iterator[Any]:
        for number in range(tuples):
            env.process(through(number))  # type: ignore[arg-type]
            yield env.timeout(rng.expovariate(rate))

    env.process(source())  # type: ignore[arg-type]
    env.run()
    return stages * tuples, sum(sojourns) / len(sojourns)


def ciw_line(stages: int, servers: int, rate: float, tuples: int, seed: int) -> tuple[int, float]:
    """The same in Ciw, whose records of every visit are added up."""
    import ciw

    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate), *(None for _ in range(stages - 1))],
        service_distributions=[ciw.dists.Exponential(1.0) for _ in range(stages)],
        number_of_servers=[servers] * stages,
        routing=[[1.0 if j == i + 1 else 0.0 for j in range(stages)] for i in range(stages)],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(tuples)
    spent: dict[int, float] = {}
    visits = 0
    for record in simulation.get_all_records():
        visits += 1
        spent[record.id_number] = spent.get(record.id_number, 0.0) + record.exit_date - record.arrival_date
    kept = [time for number, time in spent.items() if tuples // 6 < number <= tuples]
    return visits, sum(kept) / len(kept)
