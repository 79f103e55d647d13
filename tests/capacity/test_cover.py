"""The cheapest cover is the cheapest, and epochs are as long as they must be."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.capacity.cover import cheapest_cover
from headgate.capacity.epochs import epoch_length, usable_power
from headgate.model.capacity import CoreShare, Pool
from headgate.model.cluster.vm_class import VmClass
from tests.capacity.pools import fragment

classes = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from([0.5, 1.0, 1.5]), st.integers(1, 40)), min_size=1, max_size=3
)


@settings(deadline=None)
@given(classes, st.floats(0.1, 8.0))
def test_no_choice_of_machines_covers_a_demand_for_less(chosen: list[tuple[int, float, int]], power: float) -> None:
    kinds = [
        VmClass(f"c{n}", cores, speed, 100, Decimal(price) / 100) for n, (cores, speed, price) in enumerate(chosen)
    ]
    powers = [each.cores * each.core_power for each in kinds]
    cover = cheapest_cover(kinds, power)
    counts = [cover.get(each.name, 0) for each in kinds]
    assert sum(count * each for count, each in zip(counts, powers, strict=True)) >= power - 1e-9
    paid = sum(count * each.price_per_h for count, each in zip(counts, kinds, strict=True))
    every = product(*(range(int(power / each) + 2) for each in powers))
    least = min(
        sum(count * each.price_per_h for count, each in zip(tried, kinds, strict=True))
        for tried in every
        if sum(count * each for count, each in zip(tried, powers, strict=True)) >= power - 1e-9
    )
    assert paid == least


@given(st.integers(1, 12), st.floats(0.1, 0.8), st.floats(0.01, 0.5), st.integers(1, 24))
def test_epochs_are_as_long_as_they_must_be(cores: int, busy: float, fixed_s: float, partitions: int) -> None:
    pool = Pool("spark", (CoreShare("a", cores, 1.0),))
    loads = [fragment("x", partitions=partitions, fixed_s=fixed_s, task_s=0.01)]
    seconds = epoch_length(pool, loads, busy * cores)
    assert 0.9 * usable_power(pool, loads, seconds) >= busy * cores * (1 - 1e-6)
    assert 0.9 * usable_power(pool, loads, 0.99 * seconds) < busy * cores
    assert epoch_length(pool, loads, float(cores)) == inf
    assert usable_power(pool, loads, 2 * seconds) > usable_power(pool, loads, seconds)
    assert usable_power(pool, [], 0.0) == pytest.approx(cores)
