"""Processors for micro-batches: equal to trying everything, and answers for what cannot be had."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from headgate.errors import BadValue, Infeasible
from headgate.queueing.batch_sizing import assign_batches, min_batches
from headgate.queueing.microbatch import BatchFragment, MicroBatches, Stage, predict_batches

SPARE = 6


def small_batches(seed: int) -> MicroBatches:
    """One or two fragments of one or two stages, with limits, prices, loops and filters here and there."""
    rng = np.random.default_rng(seed)
    rate = float(rng.uniform(2, 30))
    fragments = []
    for name in "fg"[: int(rng.integers(1, 3))]:
        stages = []
        for number in range(int(rng.integers(1, 3))):
            least = int(rng.choice([1, 1, 2]))
            stages.append(
                Stage(
                    f"{name}{number}",
                    float(rng.uniform(0.2, 1.2)) / rate,
                    float(rng.choice([0.0, 0.5, 1.0, 3.0])),
                    float(rng.choice([1.0, 2.0, 0.5])),
                    start_s=float(rng.choice([0.0, 0.02])),
                    task_s=float(rng.choice([0.0, 0.002, 0.02])),
                    uneven=float(rng.choice([0.0, 1.0])),
                    processors_min=least,
                    processors_max=None if rng.random() < 0.8 else least + 2,
                    price=float(rng.choice([1.0, 2.5])),
                )
            )
        passes = float(rng.choice([1.0, 1.0, 1.3, 0.6]))
        fragments.append(BatchFragment(name, tuple(stages), 0.05, passes, 0.02, float(rng.choice([0.01, 0.1]))))
    return MicroBatches(rate, tuple(fragments), float(rng.choice([0.5, 1.0, 2.0])))


def compared(seed: int, percentile: float | None) -> int:
    """Compare both problems with trying everything; how many of them there was anything to compare."""
    batches = small_batches(seed)
    rng = np.random.default_rng(seed)
    ranges = [
        range(s.processors_min, min(s.processors_min + SPARE, s.processors_max or 99) + 1) for s in batches.stages
    ]
    grid = np.array([each for each in product(*ranges) if sum(each) - sum(r[0] for r in ranges) <= SPARE])
    latency = np.full(len(grid), np.inf)
    for place, each in enumerate(grid):
        result = predict_batches(batches, [int(k) for k in each])
        if all(interval == batches.trigger_s for interval in result.intervals_s):
            latency[place] = result.mean_s if percentile is None else result.percentile_s(percentile)
    processors = grid.sum(axis=1)
    given = int(processors.min() + rng.integers(0, SPARE + 1))
    best = latency[processors <= given].min()
    if not np.isfinite(best):
        with pytest.raises(Infeasible):
            assign_batches(batches, given, percentile)
        return 0
    sizing = assign_batches(batches, given, percentile)
    assert sizing.exact
    assert sizing.processors <= given
    reached = sizing.prediction.mean_s if percentile is None else sizing.prediction.percentile_s(percentile)
    assert reached == pytest.approx(best, rel=1e-9), seed
    target = float(rng.choice(latency[np.isfinite(latency)])) * (1 + 1e-6)
    same_price = MicroBatches(
        batches.rate_per_s,
        tuple(replace(f, stages=tuple(replace(s, price=1.0) for s in f.stages)) for f in batches.fragments),
        batches.trigger_s,
    )
    for flow in (same_price, batches):
        prices = np.array([stage.price for stage in flow.stages])
        cheapest = (grid @ prices)[latency <= target].min()
        if cheapest >= (grid @ prices).min() + (SPARE + 1) * prices.min():
            continue  # something outside the grid may be cheaper
        fewest = min_batches(flow, target, percentile)
        reached = fewest.prediction.mean_s if percentile is None else fewest.prediction.percentile_s(percentile)
        assert reached <= target * (1 + 1e-9)
        assert fewest.cost == pytest.approx(cheapest, rel=1e-9), (seed, prices)
    return 1


@pytest.mark.slow
@pytest.mark.parametrize("percentile", [None, 0.95])
def test_both_problems_equal_trying_everything_on_two_thousand_flows(percentile: float | None) -> None:
    assert sum(compared(seed, percentile) for seed in range(2_000)) > 1_000


@pytest.mark.parametrize("percentile", [None, 0.95])
def test_both_problems_equal_trying_everything(percentile: float | None) -> None:
    assert sum(compared(seed, percentile) for seed in range(60)) > 30


FLOW = MicroBatches(10.0, (BatchFragment("main", (Stage("slow", 0.2), Stage("quick", 0.05)), fixed_s=0.1),), 1.0)


def test_more_processors_than_help_are_left_over() -> None:
    costly = replace(FLOW, fragments=(replace(FLOW.fragments[0], stages=(Stage("slow", 0.2, task_s=0.02),)),))
    assert assign_batches(costly, 50).processors < 20


def test_a_free_trigger_is_chosen_too_and_beats_those_around_it() -> None:
    free = assign_batches(replace(FLOW, trigger_s=0.0), 12)
    for trigger in (free.trigger_s * 1.2, free.trigger_s * 2):
        assert assign_batches(replace(FLOW, trigger_s=trigger), 12).prediction.mean_s > free.prediction.mean_s
    with pytest.raises(Infeasible):
        assign_batches(replace(FLOW, trigger_s=free.trigger_s * 0.9), 12)
    again = min_batches(replace(FLOW, trigger_s=0.0), free.prediction.mean_s * 1.001)
    assert again.processors <= 12


def test_too_few_processors_are_told_with_how_many_it_takes() -> None:
    with pytest.raises(Infeasible, match=r"needs \d+ processors to finish batches within 1 s, 3 given") as caught:
        assign_batches(FLOW, 3)
    needed = caught.value.parameters["needed"]
    assert isinstance(needed, int)
    assert assign_batches(FLOW, needed).processors <= needed
    with pytest.raises(Infeasible):
        assign_batches(FLOW, needed - 1)


def test_a_latency_below_what_waiting_for_the_trigger_takes_cannot_be_reached() -> None:
    with pytest.raises(Infeasible) as caught:
        min_batches(FLOW, 0.6)
    assert caught.value.condition == "LATENCY_NOT_REACHABLE"
    best = caught.value.parameters["best_s"]
    assert isinstance(best, float)
    assert best > 0.6


def test_fixed_costs_longer_than_the_trigger_ask_for_a_longer_one() -> None:
    with pytest.raises(Infeasible, match="take a longer trigger"):
        assign_batches(replace(FLOW, trigger_s=0.09), 1_000)


@pytest.mark.parametrize("given", [0, -3])
def test_no_processors_are_refused(given: int) -> None:
    with pytest.raises(BadValue):
        assign_batches(FLOW, given)
