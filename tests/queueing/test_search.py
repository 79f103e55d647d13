"""The parts of the optimisers: the heap, the frontier, the search by percentile."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.queueing import frontier, greedy, quantile_search
from headgate.queueing.frontier import choose
from headgate.queueing.mmk import wait_mean
from headgate.queueing.percentile import gamma_percentile, gamma_percentile_floor
from headgate.queueing.quantile_search import QuantileProblem, cheapest_within, least_quantile

LOADS = st.lists(st.floats(0.05, 30), min_size=1, max_size=6)


@given(LOADS, st.integers(0, 40))
def test_the_heap_tells_the_cost_of_what_it_allocates(loads: list[float], spare: int) -> None:
    least = [int(load) + 1 for load in loads]
    k, cost = greedy.allocate_erlang(loads, [1.0] * len(loads), least, [10**6] * len(loads), sum(least) + spare, 0.0)
    assert sum(k) <= sum(least) + spare
    exact = sum(load * float(wait_mean(n, load, 1.0)) for load, n in zip(loads, k, strict=True))
    assert cost == pytest.approx(exact, rel=1e-6, abs=1e-9)


@given(LOADS, st.integers(1, 30))
def test_the_heap_goes_on_where_it_stopped(loads: list[float], spare: int) -> None:
    least, most = [int(load) + 1 for load in loads], [10**6] * len(loads)
    weight = [1.0] * len(loads)
    fewer, _ = greedy.allocate_erlang(loads, weight, least, most, sum(least) + spare - 1, 0.0)
    more, cost = greedy.allocate_erlang(loads, weight, least, most, sum(least) + spare, 0.0)
    assert all(b >= a for a, b in zip(fewer, more, strict=True))
    # Asked for the cost of the larger one, it stops there and not later.
    again, _ = greedy.allocate_erlang(loads, weight, least, most, 10**4, cost * (1 + 1e-12))
    assert sum(again) <= sum(more)


def test_the_compiled_heap_is_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    loads = [float(load) for load in rng.uniform(0.1, 40, 50)]
    arguments = (loads, [1.0] * 50, [int(load) + 1 for load in loads], [60] * 50, 2_000, 0.0)
    plain = greedy.allocate_erlang(*arguments)
    monkeypatch.setattr(greedy, "COMPILED_FROM", 0)
    assert greedy.allocate_erlang(*arguments)[0] == plain[0]


LISTS = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=5), min_size=1, max_size=5
)


@given(LISTS, st.integers(0, 60))
def test_the_frontier_is_as_good_as_trying_everything(lists: list[list[tuple[int, int]]], limit: int) -> None:
    values = [np.array([x for x, _ in each], dtype=float) for each in lists]
    weights = [np.array([y for _, y in each], dtype=float) for each in lists]
    allowed = [sum(x for x, _ in each) for each in product(*lists) if sum(y for _, y in each) <= limit]
    choice = choose(values, weights, limit)
    if not allowed:
        assert choice is None
    else:
        assert choice is not None
        assert choice.gap == 0
        assert (choice.value, choice.weight <= limit) == (min(allowed), True)
        assert sum(x[j] for x, j in zip(values, choice.picks, strict=True)) == choice.value


def test_a_search_cut_short_says_how_much_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values = [rng.uniform(0, 1, 30) for _ in range(12)]
    weights = [rng.uniform(0, 1, 30) for _ in range(12)]
    exact = choose(values, weights, 1.7)
    monkeypatch.setattr(frontier, "MOST_STATES", 10)
    cut = choose(values, weights, 1.7)
    assert exact is not None
    assert cut is not None
    assert exact.gap == 0
    assert cut.weight <= 1.7
    assert cut.value - cut.gap <= exact.value <= cut.value


def _problem(seed: int) -> QuantileProblem:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    lengths = rng.integers(1, 6, count)
    means = [np.sort(rng.uniform(0.1, 2, n))[::-1] for n in lengths]
    root = rng.normal(size=(count, count)) * 0.5
    return QuantileProblem(
        [np.sort(rng.uniform(0, 3, n)) for n in lengths],
        means,
        [mean**2 * rng.uniform(0.2, 2) for mean in means],
        rng.uniform(0.5, 2, count),
        root @ root.T,
        lambda mean, variance: gamma_percentile(mean, variance, 0.99),
        lambda mean, variance: gamma_percentile_floor(mean, variance, 0.99) * (1 - 1e-6),
    )


@pytest.mark.parametrize("block", range(5))
def test_the_search_by_percentile_is_as_good_as_trying_everything(block: int) -> None:
    for seed in range(block * 40, block * 40 + 40):
        problem = _problem(seed)
        every = list(product(*(range(len(cost)) for cost in problem.costs)))
        values = np.array([problem.value(picks) for picks in every])
        costs = np.array([problem.cost(picks) for picks in every])
        budget = float(np.quantile(costs, 0.6))
        choice = least_quantile(problem, budget)
        best = values[costs <= budget].min()
        assert (np.inf if choice is None else choice.value) == pytest.approx(best), seed
        target = float(np.quantile(values, 0.4)) * (1 + 1e-9)
        cheapest = cheapest_within(problem, target)
        assert cheapest is not None
        assert cheapest.value <= target
        assert cheapest.weight == pytest.approx(costs[values <= target].min()), seed


def test_a_search_by_percentile_cut_short_is_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile_search, "MOST_STATES", 2)
    choice = least_quantile(_problem(8), 1e9)
    assert choice is not None
    assert choice.gap != 0
