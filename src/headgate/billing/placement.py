"""The machines of a deployment and the tasks on them: usage before anything is measured."""

from __future__ import annotations

from headgate.billing.usage import Prices, VmUsage, WorkerUsage
from headgate.model.names import DataflowName, Signature
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies import QueryGroup, Units

__all__ = ["machines"]


def machines(deployment: Units, running: RunningSet, prices: Prices) -> tuple[VmUsage, ...]:
    """Place the units of a deployment as SHARE's experiments do: a worker holds tasks of one unit, dealt round-robin.

    Paused tasks and proxies take up room, but nobody is billed for them: a worker with nothing else is idle.
    """
    alone = {number: name for name, number in deployment.of_dataflow.items()}
    workers = [
        worker
        for number, unit in deployment.groups.items()
        for worker in _workers(unit, running, alone.get(number), prices.tasks_per_worker)
    ]
    size = prices.workers_per_vm
    return tuple(
        VmUsage(f"vm-{n // size}", prices.price_per_h, tuple(workers[n : n + size]))
        for n in range(0, len(workers), size)
    )


def _workers(unit: QueryGroup, running: RunningSet, only: DataflowName | None, packing: int) -> list[WorkerUsage]:
    count = -(-unit.size // packing)
    dealt = [*sorted(unit.tasks), *(Signature("") for _ in unit.proxies)]
    return [
        WorkerUsage({t: (only,) if only else tuple(running.users(t)) for t in dealt[n::count] if t in unit.active})
        for n in range(count)
    ]
