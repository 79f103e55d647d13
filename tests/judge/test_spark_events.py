"""The pooled simulator beside an event simulation of Spark's scheduling, on random pools."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.capacity.latency import EpochWork, epoch_seconds, sojourn_s
from headgate.capacity.power import stage_power
from headgate.simulation.rates import Constant
from headgate.simulation.simulator import Simulator
from tests.capacity.pools import fragment, pooled, started
from tests.judge import spark_events
from tests.judge.spark_events import EventFragment, simulate_events

POOLS = 200


@dataclass(frozen=True)
class _Case:
    """A pool of equal cores, its fragments, and which of them reads which."""

    cores: int
    epoch_s: float
    fragments: tuple[EventFragment, ...]


def _case(rng: np.random.Generator) -> _Case:
    cores, epoch_s = int(rng.integers(2, 13)), float(rng.choice([1.0, 2.0, 4.0]))
    count = int(rng.integers(1, 5))
    load = cores * rng.uniform(0.3, 2.0) * rng.dirichlet(np.full(count, 2.0))
    made = []
    for place in range(count):
        cost = float(rng.uniform(0.002, 0.02))
        waves = [0.5, 1.0, 1.0, 1.5, 2.0, 4.0]
        partitions = max(1, round(cores * float(rng.choice(waves))))
        reads = place - 1 if place and rng.random() < 0.3 else None
        rate = 0.0 if reads is not None else load[place] / cost
        fixed_s = float(rng.uniform(0.03, 0.15)) * epoch_s
        made.append(
            EventFragment(f"f{place}", [(cost, partitions)], rate, reads, fixed_s, 0.01, epoch_s, bucket_s=epoch_s)
        )
    return _Case(cores, epoch_s, tuple(made))


def _predicted(case: _Case) -> tuple[list[float], bool]:
    """Rows a second by fragment after two minutes, and whether anybody in the pool is backlogged."""
    loads = [
        fragment(each.name, partitions=each.stages[0][1], fixed_s=each.fixed_s, task_s=each.task_s)
        for each in case.fragments
    ]
    streams = [(f"f{each.reads}", each.name) for each in case.fragments if each.reads is not None]
    tasks = {each.name: (each.stages[0][0], 1.0) for each in case.fragments}
    made = pooled(tasks, streams, 1.0, loads, case.epoch_s, interval_s=10.0, intervals=12)
    rates = {each.name: Constant(each.arrives_per_s) for each in case.fragments if each.reads is None}
    simulator = started(replace(made, rates=rates), case.cores)
    simulator.advance(12)
    before = _place(simulator, simulator.queue[0])
    done = _place(simulator, simulator.last.done[0])
    return [done[each.name] / 10.0 for each in case.fragments], max(before.values()) > 1.0


def _place(simulator: Simulator, values: Any) -> dict[str, float]:
    return dict(zip(map(str, simulator.shape.names), values.tolist(), strict=True))


def _measured(case: _Case, limits: list[float] | None) -> list[float]:
    fragments = [replace(each) for each in case.fragments]
    for each, limit in zip(fragments, limits or [], strict=False):
        each.limit_per_s = limit
    warm, seconds = 20.0 * case.epoch_s, 120.0 * case.epoch_s
    simulate_events(fragments, [1.0] * case.cores, seconds, 0.0)
    at_end = [each.done for each in fragments]
    fragments = [replace(each, done=0.0, taken=0.0) for each in case.fragments]
    for each, limit in zip(fragments, limits or [], strict=False):
        each.limit_per_s = limit
    simulate_events(fragments, [1.0] * case.cores, warm, 0.0)
    return [(end - each.done) / (seconds - warm) for end, each in zip(at_end, fragments, strict=True)]


def test_with_looser_limits_no_pool_does_much_more_than_predicted() -> None:
    """Limits stop fragments at the prediction, so errors of the test above can hardly show the other way."""
    rng = np.random.default_rng(2_313)
    more = []
    for _ in range(POOLS // 2):
        case = _case(rng)
        predicted, backlogged = _predicted(case)
        if backlogged:
            costs = [each.stages[0][0] for each in case.fragments]
            measured = _measured(case, [1.25 * limit for limit in predicted])
            work = [sum(c * n for c, n in zip(costs, rows, strict=True)) for rows in (predicted, measured)]
            more.append(work[1] / work[0] - 1)
    print("more", len(more), np.percentile(more, [0, 10, 50, 90, 100]))
    assert np.percentile(more, 90) <= 0.15


@pytest.fixture(scope="module")
def errors() -> list[tuple[float, bool]]:
    """Predicted over measured rows a second, less 1, by fragment, and whether it is overloaded."""
    rng = np.random.default_rng(2_311)
    rows = []
    for _ in range(POOLS):
        case = _case(rng)
        predicted, backlogged = _predicted(case)
        measured = _measured(case, predicted if backlogged else None)
        for each, says, sees in zip(case.fragments, predicted, measured, strict=True):
            behind = each.reads is None and says < each.arrives_per_s * 0.999
            rows.append((says / max(sees, 1e-9) - 1, behind))
    return rows


def test_throughput_by_fragment_is_within_ten_percent(errors: list[tuple[float, bool]]) -> None:
    off = np.abs([error for error, _ in errors])
    behind = np.abs([error for error, overloaded in errors if overloaded])
    print(len(off), len(behind), np.percentile(off, [50, 90, 100]), np.percentile(behind, [50, 90, 100]))
    assert np.percentile(off, 90) <= 0.10


def _sojourns(case: _Case) -> tuple[list[float], list[float]]:
    """Predicted and measured seconds from a row's arrival to the end of its epoch, by fragment."""
    works = []
    for each in case.fragments:
        ((cost, parts),) = each.stages
        power = float(stage_power(parts, np.ones(case.cores)))
        works.append(EpochWork(each.arrives_per_s * cost, parts * each.task_s, power, each.fixed_s, each.trigger_s))
    predicted = [sojourn_s(seconds, case.epoch_s) for seconds in epoch_seconds(works, float(case.cores))]
    fragments = [replace(each) for each in case.fragments]
    simulate_events(fragments, [1.0] * case.cores, 60.0 * case.epoch_s, 10.0 * case.epoch_s)
    return predicted, [each.waited / each.counted for each in fragments]


def _worlds() -> Iterator[list[tuple[list[float], list[float]]]]:
    """Loads that use up to three quarters of the cores, each on many cores and in many partitions."""
    rng = np.random.default_rng(2_312)
    for _ in range(30):
        count = int(rng.integers(1, 5))
        costs, loads, fixed = (
            rng.uniform(0.004, 0.02, count),
            rng.uniform(0.3, 0.9, count),
            rng.uniform(0.05, 0.4, count),
        )
        cases = [
            _Case(
                cores,
                2.0,
                tuple(_steady(*each, cores * waves) for each in enumerate(zip(costs, loads, fixed, strict=True))),
            )
            for cores in (3, 4, 6, 8, 12)
            for waves in (1, 2, 4)
            if loads.sum() <= 0.75 * cores
        ]
        yield [_sojourns(case) for case in cases]


def _steady(number: int, about: tuple[float, float, float], partitions: int) -> EventFragment:
    cost, load, fixed_s = about
    return EventFragment(f"f{number}", [(cost, partitions)], load / cost, None, fixed_s, 0.01, 2.0)


def test_cores_and_partitions_are_ranked_by_latency_as_the_events_rank_them() -> None:
    correlations, off = [], []
    for pairs in _worlds():
        means = np.array([(np.mean(predicted), np.mean(measured)) for predicted, measured in pairs]).T
        ranks = [np.argsort(np.argsort(values)) for values in means]
        correlations.append(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
        off += [abs(a / b - 1) for predicted, measured in pairs for a, b in zip(predicted, measured, strict=True)]
    print("ranks", min(correlations), np.median(correlations), "off", np.percentile(off, [50, 90, 100]))
    assert min(correlations) >= 0.95
    assert np.median(off) <= 0.05


def test_the_judge_imports_nothing_of_headgate() -> None:
    tree = ast.parse(Path(spark_events.__file__).read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not [name for name in names if "headgate" in name or name.startswith("tests")]
