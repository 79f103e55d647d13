"""Settings in which fragments share pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.capacity.sharing import Sharing
from headgate.model.capacity import FragmentLoad, Pool, StageLoad
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator
from tests.simulation.worlds import dataflow, setting


def fragment(name: str, *tasks: str, partitions: int | None = None, pool: str = "spark", **more: Any) -> FragmentLoad:
    return FragmentLoad(name, pool, tuple(StageLoad((task,), partitions) for task in tasks or (name,)), **more)


def pooled(
    tasks: Mapping[str, tuple[float, float]],
    streams: Sequence[tuple[str, str]],
    rate_per_s: float,
    fragments: Sequence[FragmentLoad],
    epoch_s: float = 0.0,
    **more: Any,
) -> Setting:
    names = dict.fromkeys(each.pool for each in fragments)
    sharing = Sharing(tuple(fragments), tuple(Pool(name, (), epoch_s) for name in names))
    return setting(dataflow(tasks, streams), rate_per_s, sharing=sharing, **more)


def started(made: Setting, cores: int | Mapping[str, int], vm_class: str = "small") -> Simulator:
    """A simulator whose pools have so many cores, each on a machine of its own."""
    simulator = Simulator(made)
    by_pool = dict.fromkeys(simulator.columns, cores) if isinstance(cores, int) else cores
    machines = [Machine(vm_class, {pool: 1}) for pool, count in by_pool.items() for _ in range(count)]
    simulator.deploy(Deployment(tuple(machines)))
    return simulator
