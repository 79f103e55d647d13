"""Fragments on Spark simulated batch by batch: a chain or loop of operators, rows dealt out as Spark deals them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.queueing.spark_flow import BatchCosts

Floats = npt.NDArray[np.float64]


def simulate_flow(
    rate: float,
    services: list[tuple[float, float]],
    back: float,
    costs: BatchCosts,
    allocation: list[int],
    rows: int,
    seed: int,
    trigger_s: float = 0.0,
) -> Floats:
    """Sojourns of rows through operators in a row; of the rows behind the second one, a share goes back to the first.

    The source's fragment takes what has come whenever it is free, but not before its trigger, the feedback's what was
    committed for it.
    """
    rng = np.random.default_rng(seed)
    arrived = np.cumsum(rng.exponential(1 / rate, rows))
    done = np.full(rows, np.nan)
    topic: list[tuple[float, int]] = []
    free, taken, due = [0.0, 0.0], 0, 0.0
    while taken < rows or topic:
        starts = [max(free[0], arrived[taken], due) if taken < rows else np.inf]
        starts.append(max(free[1], min(at for at, _ in topic)) if topic else np.inf)
        which = int(np.argmin(starts))
        now = starts[which]
        if which == 0:
            due = now + trigger_s
            end = int(np.searchsorted(arrived, now, "right"))
            batch = np.arange(taken, end)
            taken, dealers = end, [end - batch[0]]
        else:
            batch = np.array([row for at, row in topic if at <= now])
            topic = [(at, row) for at, row in topic if at > now]
            dealers = [1] * len(batch)
        now += costs.fixed_s + (costs.hop_s if which else 0.0)
        again = rng.random(len(batch)) < back
        for place, ((mean, scv), k) in enumerate(zip(services, allocation, strict=True)):
            count = len(batch) if place < 2 else int((~again).sum())
            if place == 2:
                # Those that go back have left their partition.
                dealers = list(np.bincount(rng.integers(0, allocation[1], count), minlength=allocation[1]))
            dealt = [(rng.integers(k) + np.arange(n)) % k for n in dealers]
            places = np.concatenate([np.zeros(0, dtype=np.int64), *dealt])
            load = np.bincount(places, rng.gamma(1 / scv, mean * scv, count), minlength=k)
            now += costs.stage_s + costs.task_s * k + float(load.max())
            dealers = list(np.bincount(places, minlength=k))
        done[batch[~again]] = now
        topic += [(now, int(row)) for row in batch[again]]
        free[which] = now
    return done - arrived
