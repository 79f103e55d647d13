"""Random dynamic dataflows: layers of tasks with alternates, for planners that are to be measured on more than one."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np

from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Port, Ports, Task

__all__ = ["random_dataflow", "random_rates"]


def random_dataflow(
    seed: int, tasks: int, alternates: int, rate_per_s: float, width: int = 10, sparser: float = 0.125
) -> Dataflow:
    """Layers of ``width`` tasks, each reading one or two of the layer before.

    A better alternate costs more. Alternates of a task put out the same number of messages, as in the papers'
    dataflows, but for a share ``sparser`` of the tasks (one in eight, as in Linear Road), whose last alternate puts out
    half to all of it. Break-even costs are what the dataflow costs with the best alternates, and half of that.
    """
    rng = np.random.default_rng([seed, tasks, alternates])
    layers = [range(begin, min(begin + width, tasks)) for begin in range(0, tasks, width)]
    edges = [
        (int(source), target)
        for before, layer in pairwise(layers)
        for target in layer
        for source in rng.choice(before, size=min(len(before), int(rng.integers(1, 3))), replace=False)
    ]
    readers = np.bincount([source for source, _ in edges], minlength=tasks)
    made = [_task(rng, place, alternates, int(readers[place]), sparser) for place in range(tasks)]
    streams = tuple(
        Stream(TaskId(f"t{source}"), PortName("out"), TaskId(f"t{target}"), PortName("in")) for source, target in edges
    )
    sources = sorted(set(range(tasks)) - {target for _, target in edges})
    rates = np.zeros(tasks)
    rates[sources] = rate_per_s / len(sources)
    for source, target in sorted(edges):
        rates[target] += rates[source] * (made[source].alternates[0].selectivity or 1.0)
    power = sum(rates[place] * (task.alternates[0].cost_s or 0.0) for place, task in enumerate(made))
    best = Decimal(f"{max(power * 0.06, 0.01):.4f}")
    level = ServiceLevel(break_even_at_best_per_h=best, break_even_at_worst_per_h=best / 2)
    return Dataflow(DataflowName(f"random_{tasks}x{alternates}"), tuple(made), streams, service_level=level)


def _task(rng: np.random.Generator, place: int, alternates: int, readers: int, sparser: float) -> Task:
    cost_s = rng.uniform(0.02, 0.2)
    values = np.sort(rng.uniform(0.5, 1.0, alternates))[::-1]
    costs = np.sort(rng.uniform(0.3, 1.0, alternates))[::-1]
    # What several read is not to become more and more from layer to layer.
    selectivity = np.full(alternates, rng.uniform(0.8, 1.2) / max(readers, 1))
    if alternates > 1 and rng.random() < sparser:
        selectivity[-1] *= rng.uniform(0.5, 1.0)
    ways = tuple(
        Alternate(
            f"way{way + 1}",
            "opaque",
            Config({"label": f"t{place}-{way + 1}"}),
            round(float(values[way] / values[0]), 4),
            round(float(cost_s * costs[way] / costs[0]), 6),
            round(float(selectivity[way]), 6),
        )
        for way in range(alternates)
    )
    return Task(TaskId(f"t{place}"), ways, ports=Ports((Port(PortName("in")),), (Port(PortName("out")),)))


def random_rates(dataflow: Dataflow, rate_per_s: float) -> dict[str, float]:
    """The same rate for every source, so much together."""
    fed = {stream.target for stream in dataflow.streams}
    sources = [str(task.id) for task in dataflow.tasks if task.id not in fed]
    return {source: rate_per_s / len(sources) for source in sources}
