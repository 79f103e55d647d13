"""The micro-batch model against micro-batches simulated one by one."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import BadValue
from headgate.queueing.microbatch import (
    BatchFragment,
    MicroBatches,
    Stage,
    predict_batches,
    stage_s,
    sustainable_rate_per_s,
)
from tests.queueing.batch_simulation import simulate_batches

MATCH = Stage("match", 0.08, 0.7, 1.0, 0.02, 0.001)
FLOW = MicroBatches(20.0, (BatchFragment("main", (MATCH, Stage("write", 0.01, 0.0)), fixed_s=0.15, hop_s=0.05),), 1.0)


def _random(seed: int) -> tuple[MicroBatches, list[int]]:
    rng = np.random.default_rng(seed)
    rate = float(rng.uniform(5, 60))
    stages, allocation = [], []
    for number in range(int(rng.integers(1, 4))):
        k, copies = int(rng.integers(1, 13)), float(rng.choice([1, 1, 2]))
        service = k * float(rng.uniform(0.05, 0.25)) / rate / copies
        scv, uneven = float(rng.choice([0, 0.3, 1, 2])), float(rng.choice([0, 0, 1]))
        stages.append(Stage(f"s{number}", service, scv, copies, 0.02, 0.001, uneven))
        allocation.append(k)
    fragment = BatchFragment("f", tuple(stages), float(rng.uniform(0.05, 0.2)), hop_s=0.05)
    return MicroBatches(rate, (fragment,), float(rng.choice([0, 0.5, 1, 2]))), allocation


def test_predicted_sojourns_are_those_of_simulated_batches() -> None:
    errors, tails = [], []
    for seed in range(30):
        flow, allocation = _random(seed)
        predicted = predict_batches(flow, allocation)
        seen = simulate_batches(flow, allocation, 6_000, seed)[1_000:]
        errors.append(abs(predicted.mean_s / seen.mean() - 1))
        tails.append(abs(predicted.percentile_s(0.95) / np.quantile(seen, 0.95) - 1))
    assert np.median(errors) < 0.04
    assert max(errors) < 0.15
    assert np.median(tails) < 0.06


def test_a_loop_makes_some_rows_go_round_again() -> None:
    once = predict_batches(FLOW, [6, 1])
    fragment = FLOW.fragments[0]
    again = predict_batches(
        MicroBatches(16.0, (BatchFragment("main", fragment.stages, 0.15, 1.25, 0.05),), 1.0), [6, 1]
    )
    assert again.mean_s == pytest.approx(1.25 * once.mean_s, rel=1e-6)
    assert again.variance_s2 > 1.25 * once.variance_s2


def test_the_sustainable_rate_is_where_batches_just_fit() -> None:
    rate = sustainable_rate_per_s(FLOW, [4, 1])
    below, above = (MicroBatches(rate * factor, FLOW.fragments, 1.0) for factor in (0.999, 1.001))
    assert predict_batches(below, [4, 1]).intervals_s[0] == 1.0
    assert predict_batches(above, [4, 1]).intervals_s[0] > 1.0
    capacity = sustainable_rate_per_s(FLOW, [4, 1], 0.0)
    # Once fixed costs do not count: 4 processors at 0.08 s and then one at 0.01 s, one after the other.
    assert capacity == pytest.approx(1 / (0.08 / 4 + 0.01), rel=0.02)
    assert predict_batches(MicroBatches(capacity * 1.01, FLOW.fragments, 1.0), [4, 1]).mean_s == np.inf
    assert sustainable_rate_per_s(MicroBatches(1.0, FLOW.fragments, 0.1), [4, 1]) == 0.0


def test_more_partitions_than_tuples_do_not_help() -> None:
    times = stage_s(Stage("few", 1.0, 1.0), np.arange(1, 40), 5.0)
    assert times[10:].std() < 0.05
    assert times[0] > times[10]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Stage("a", -0.1),
        lambda: Stage("a", float("nan")),
        lambda: Stage("a", 0.1, processors_min=3, processors_max=2),
        lambda: MicroBatches(0.0, FLOW.fragments, 1.0),
        lambda: MicroBatches(float("nan"), FLOW.fragments, 1.0),
        lambda: MicroBatches(1.0, FLOW.fragments, -1.0),
        lambda: predict_batches(FLOW, [1]),
    ],
)
def test_nonsense_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadValue):
        make()
