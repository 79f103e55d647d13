"""Fits the overhead of micro-batches to observed batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from headgate.queueing.fitting.fit import NotMeasured
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, batch_s

__all__ = ["BatchSample", "fit_costs"]


@dataclass(frozen=True, slots=True)
class BatchSample:
    """Batches of a fragment that ran under one allocation; all figures are means of a batch."""

    allocation: tuple[int, ...]
    batches: int
    rows: float
    outside_jobs_s: float
    """Planning and commit."""

    in_jobs_s: float
    """Scheduling and execution."""

    fragment: int = 0
    """The fragment's place in the flow: 0 is the source's."""


def fit_costs(flow: SparkFlow, samples: Sequence[BatchSample], hop_s: float = 0.0) -> BatchCosts:
    r"""Fit the costs of a batch, of each of its stages and of each partition.

    What a batch takes outside of Spark's jobs is its fixed cost. What its job takes beyond the service of its rows is
    divided by non-negative least squares, samples weighted by their batches:

    .. math:: d_j - \sum_i \bar s_i (c_i + \ldots) = I s_0 + s_1 \sum_i k_i

    ``hop_s`` is the wait of a topic's reader, which is a matter of its polling and not of batches.

    >>> from headgate.queueing.network import Network, Operator
    >>> quick = SparkFlow(Network((Operator("a", 1e6, arrival_rate_per_s=1.0),)), BatchCosts(0.0))
    >>> found = fit_costs(quick, [BatchSample((2,), 9, 1.0, 0.3, 0.12), BatchSample((10,), 9, 1.0, 0.3, 0.2)])
    >>> round(found.fixed_s, 3), round(found.stage_s, 3), round(found.task_s, 3)
    (0.3, 0.1, 0.01)
    """
    if not samples or not sum(sample.batches for sample in samples):
        raise NotMeasured("NOT_MEASURED", "no batch has been observed yet")
    free = replace(flow, costs=BatchCosts(0.0))
    weights = np.sqrt([float(sample.batches) for sample in samples])
    beyond, shape = [], []
    for sample in samples:
        fragment = free.fragments[sample.fragment]
        served = batch_s(free, fragment, np.array([sample.allocation]), np.array([sample.rows]))
        beyond.append(max(sample.in_jobs_s - float(served[0]), 0.0))
        partitions = sum(sample.allocation[place] for place, _ in fragment.stages)
        shape.append([float(len(fragment.stages)), float(partitions)])
    (stage_s, task_s), _ = nnls(np.array(shape) * weights[:, None], np.array(beyond) * weights)
    fixed = float(np.average([sample.outside_jobs_s for sample in samples], weights=weights**2))
    return BatchCosts(fixed, float(stage_s), float(task_s), hop_s)
