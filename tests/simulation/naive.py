"""The same model written plainly, a message count at a time: what the compiled intervals are compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from headgate.model.cluster.deployment import Deployment
from headgate.model.graph import Graph
from headgate.simulation.setting import Setting


def omega_and_queues(
    setting: Setting, deployment: Deployment, rates: Mapping[str, list[float]]
) -> tuple[list[float], list[dict[str, float]]]:
    """Relative throughput and queues of each interval, for steady machines that are ready from the start."""
    graph, dt = Graph(setting.dataflow), setting.interval_s
    ways = {task.id: task.alternates[0] for task in setting.dataflow.tasks}
    for task, name in deployment.alternates.items():
        ways[graph.tasks[task].id] = next(way for way in graph.tasks[task].alternates if way.name == name)  # type: ignore[index]
    classes = {each.name: each for each in setting.cloud.classes}
    power: dict[str, float] = defaultdict(float)
    where: dict[str, dict[int, float]] = defaultdict(dict)
    for number, machine in enumerate(deployment.machines):
        for task, cores in machine.cores.items():
            power[task] += cores * classes[machine.vm_class].core_power
            where[task][number] = cores * classes[machine.vm_class].core_power
    narrow = {
        number: classes[machine.vm_class].bandwidth_mbit_per_s * 1e6 / 8 * dt / setting.message_bytes
        for number, machine in enumerate(deployment.machines)
    }
    queue: dict[str, float] = defaultdict(float)
    waiting: dict[tuple[str, str], float] = defaultdict(float)
    omegas, queues = [], []
    for step in range(setting.intervals):
        arrives: dict[str, float] = {task: rates[task][step] * dt if task in rates else 0.0 for task in graph.tasks}
        could = {task: arrives[task] + (queue[task] if setting.counts_queues else 0.0) for task in graph.tasks}
        ratios = []
        for task in graph.order():
            way = ways[task]
            assert way.cost_s is not None
            assert way.selectivity is not None
            have = queue[task] + arrives[task]
            done = min(have, power[task] * dt / way.cost_s)
            queue[task] = have - done
            made, possible = done * way.selectivity, could[task] * way.selectivity
            for stream in graph.consumers[task]:
                edge = (stream.source, stream.target)
                want = waiting[edge] + made
                could[stream.target] += possible + (waiting[edge] if setting.counts_queues else 0.0)
                through = want
                if power[task] and power[stream.target]:
                    through = 0.0
                    for v, mine in where[task].items():
                        for w, its in where[stream.target].items():
                            part = want * mine / power[task] * its / power[stream.target]
                            through += part if v == w else min(part, narrow[v], narrow[w])
                waiting[edge] = max(want - through, 0.0)
                arrives[stream.target] += min(through, want)
            if not graph.consumers[task]:
                ratios.append(min(done / could[task], 1.0) if could[task] > 0 else 1.0)
        omegas.append(sum(ratios) / len(ratios))
        queues.append(dict(queue))
    return omegas, queues
