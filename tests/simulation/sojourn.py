"""How long messages take to a task, by Little's law: an estimate from the last interval's flows and queues."""

from __future__ import annotations

import numpy as np

from headgate.model.arrays import Floats
from headgate.simulation.simulator import Simulator

__all__ = ["sojourns"]


def sojourns(simulator: Simulator, row: int) -> Floats:
    r"""Mean seconds from a message's arrival at a source to the end of its work at each task.

    .. math:: D_k = q_k / d_k + c_k / \bar\pi_k + \sum_j f_{jk} (D_j + p_{jk} / f_{jk} + \ell_{jk}) / \sum_j f_{jk}

    with queue q, messages done a second d, cost c, mean power of the task's cores, flow f, messages p that wait for
    the network, and the latency between machines, for the share of the messages that leave their machine. Infinite
    where messages wait and none is done.
    """
    shape, last, fleet = simulator.shape, simulator.last, simulator.fleet
    interval_s = simulator.setting.interval_s
    count = int(fleet.slots[row])
    placed = fleet.placed[row, :count].astype(np.float64)
    speed = (fleet.power * simulator.speeds())[row, :count]
    power = placed * speed[:, None]
    total, cores = power.sum(axis=0), placed.sum(axis=0)
    moment = (fleet.offset[row, :count] + max(simulator.step - 1, 0)) % simulator.pool.latency.shape[1]
    slowness = 1 / simulator.pool.latency[fleet.trace[row, :count], moment]
    share = power / np.where(total > 0, total, 1.0)
    seconds = np.zeros(shape.tasks)
    weight = np.zeros(shape.tasks)
    done = last.done[row] / interval_s
    cost = shape.cost_of(simulator.active[row])
    streams = list(zip(shape.stream_source, shape.stream_target, shape.stream_returns, strict=True))
    for place in range(shape.tasks):
        if weight[place] > 0:
            seconds[place] /= weight[place]
        if simulator.queue[row, place] > 0:
            seconds[place] += simulator.queue[row, place] / done[place] if done[place] > 0 else np.inf
        if cores[place] > 0:
            seconds[place] += cost[place] * cores[place] / max(total[place], 1e-300)
        for e, (source, target, returns) in enumerate(streams):
            flow = last.moved[row, e] / interval_s
            if source != place or returns or flow <= 0:
                continue
            stays = float((share[:, source] * share[:, target]).sum())
            away = 0.5 * float((share[:, source] + share[:, target]) @ slowness) * (1 - stays)
            late_s = simulator.pending[row, e] / flow + simulator.setting.cloud.latency_s * away
            seconds[target] += flow * (seconds[place] + late_s)
            weight[target] += flow
    return seconds
