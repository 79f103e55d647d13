"""Micro-batches simulated batch by batch, with nothing of the model in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headgate.queueing.microbatch import MicroBatches

Floats = npt.NDArray[np.float64]


def simulate_batches(batches: MicroBatches, allocation: Sequence[int], rows: int, seed: int) -> Floats:
    """Sojourns of rows through all fragments, each once; gamma service times, tuples dealt out in turn or by chance."""
    rng = np.random.default_rng(seed)
    arrived = np.cumsum(rng.exponential(1 / batches.rate_per_s, rows))
    here, begin = arrived, 0
    for fragment in batches.fragments:
        ks = allocation[begin : begin + len(fragment.stages)]
        begin += len(fragment.stages)
        out = np.empty(rows)
        now, done = float(rng.uniform(0, max(batches.trigger_s, 1e-3))), 0
        while done < rows:
            last = int(np.searchsorted(here, now, side="right"))
            took = fragment.fixed_s
            for stage, k in zip(fragment.stages, ks, strict=True):
                count = rng.poisson((last - done) * (stage.tuples_per_row % 1)) + (last - done) * int(
                    stage.tuples_per_row
                )
                scv = stage.service_scv
                service = (
                    rng.gamma(1 / scv, stage.service_s * scv, count) if scv > 0 else np.full(count, stage.service_s)
                )
                dealt = np.arange(count) % k if stage.uneven == 0 else rng.integers(0, k, count)
                took += stage.start_s + stage.task_s * k + float(np.bincount(dealt, service, minlength=k).max())
            out[done:last] = now + took + fragment.hop_s
            done = last
            behind = now + took
            if batches.trigger_s > 0:
                now = max(now + batches.trigger_s, behind) if behind <= now + batches.trigger_s else behind
            else:
                now = max(behind, now + 1e-4)
        here = out
    return here - arrived
