"""Packings against Eq. 3 recomputed, brute force, and each other."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest

from headgate.errors import Infeasible
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.placing.items import InstanceItems
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.packers import PACKERS, make_packer
from headgate.planning.placing.parallelism import Bound, Parallelism
from headgate.planning.placing.placement import PackingProblem, Site, moves
from tests.planning.placing.eq3 import Instance, Small, partitions, random_small

ONE = VmClass("one", 1, 1.0, 1_000.0, Decimal("0.10"), memory_bytes=1)
"""A machine of one core; memory of random problems is in parts of it."""

TWO = VmClass("two", 2, 1.0, 1_000.0, Decimal("0.17"), memory_bytes=2)


def _problem(
    small: Small, classes: Sequence[VmClass] = (ONE,), there: tuple[Site, ...] = ()
) -> tuple[PackingProblem, OperatorLoads]:
    loads = OperatorLoads.of(list(small.streams), small.profiles(), small.rates)
    parallelism = [Parallelism(name, small.copies[name], Bound.CPU, Bound.CPU, {}) for name in loads.names]
    return PackingProblem(InstanceItems.of(loads, parallelism, 1.0), tuple(classes), there=there), loads


def _on(site: Site) -> list[Instance]:
    return [(name, number) for name, count in site.instances.items() for number in range(count)]


def _checked(small: Small, sites: Sequence[Site], classes: Sequence[VmClass]) -> None:
    """Every instance is somewhere once, no machine is overloaded, and what is predicted is what Eq. 3 says."""
    assert {name: sum(site.instances.get(name, 0) for site in sites) for name in small.names} == dict(small.copies)
    kinds = {each.name: each for each in classes}
    for site in sites:
        assert small.fits(_on(site), kinds[site.vm_class]), (site, small)
        cpu, memory = small.machine(_on(site))
        assert site.cpu == pytest.approx(cpu, abs=1e-9)
        assert site.memory_bytes == pytest.approx(memory, abs=1e-9)


@pytest.mark.parametrize("packer", [name for name in PACKERS if name != "exact"])
def test_no_machine_is_overloaded_by_eq_3(packer: str) -> None:
    draw = random.Random(7)
    packed, refused = 0, []
    for turn in range(150):
        small = random_small(draw, operators=6, most=5, batches=turn % 2 == 1)
        classes = (ONE, TWO) if turn % 3 == 0 else (ONE,)
        problem, loads = _problem(small, classes)
        fits_alone = all(small.fits([one], ONE) or small.fits([one], classes[-1]) for one in small.instances)
        try:
            placement = make_packer(packer).place(problem, loads)
        except Infeasible as error:
            refused.append((error.condition, fits_alone))
            continue
        packed += 1
        _checked(small, placement.sites, classes)
        prices = {each.name: each.price_per_h for each in classes}
        assert placement.price_per_h == sum(prices[site.vm_class] for site in placement.sites)
    assert packed > 60
    assert {condition for condition, _ in refused} <= {"TOO_LARGE", "NO_MACHINES"}
    assert packer != "first-fit" or not any(fits_alone for _, fits_alone in refused)


@pytest.mark.parametrize("batches", [False, True])
def test_savings_are_a_brute_force_recount(batches: bool) -> None:
    draw = random.Random(11)
    for _ in range(200):
        small = random_small(draw, operators=5, most=4, batches=batches)
        problem, _ = _problem(small)
        items, names = problem.items, problem.items.names
        on = [one for one in small.instances if draw.random() < 0.5]
        counts = np.array([sum(one[0] == name for one in on) for name in names])
        assert items.cpu_of(counts) == pytest.approx(small.machine(on)[0], abs=1e-9)
        own, grown = items.growth(counts)
        for place, name in enumerate(names):
            more = (name, 99)
            together = small.machine([*on, more])[0]
            assert grown[place] == pytest.approx(together - small.machine(on)[0], abs=1e-9)
            assert own[place] == pytest.approx(small.cpu(more, [*on, more]), abs=1e-9)


def _fewest(small: Small, kind: VmClass) -> int:
    return min((len(way) for way in partitions(small.instances) if all(small.fits(on, kind) for on in way)), default=0)


def test_exact_is_exhaustive_search_on_500_small_problems() -> None:
    draw = random.Random(3)
    above = 0
    for turn in range(500):
        small = random_small(draw, operators=3, most=2, batches=turn % 2 == 1)
        fewest = _fewest(small, ONE)
        problem, loads = _problem(small)
        if not fewest:
            with pytest.raises(Infeasible):
                make_packer("exact").place(problem, loads)
            continue
        exact = make_packer("exact").place(problem, loads)
        _checked(small, exact.sites, (ONE,))
        assert exact.machines == fewest, small
        assert exact.bound == pytest.approx(0.10 * fewest)
        greedy = make_packer("first-fit").place(problem, loads)
        assert greedy.machines >= fewest
        above += greedy.machines > fewest
    assert above <= 25, "first-fit is rarely above the optimum on problems this small"


def test_exact_finds_the_cheapest_mix_of_classes() -> None:
    draw = random.Random(5)
    for _ in range(60):
        small = random_small(draw, operators=3, most=2)
        problem, loads = _problem(small, (ONE, TWO))

        def price(on: list[Instance], small: Small = small) -> float:
            return min((float(k.price_per_h) for k in (ONE, TWO) if small.fits(on, k)), default=9e9)

        cheapest = min(sum(map(price, way)) for way in partitions(small.instances))
        exact = make_packer("exact").place(problem, loads)
        _checked(small, exact.sites, (ONE, TWO))
        assert float(exact.price_per_h) == pytest.approx(cheapest, abs=1e-6)
        assert make_packer("first-fit").place(problem, loads).price_per_h >= exact.price_per_h


def test_instances_stay_where_they_are_and_room_is_used_first() -> None:
    draw = random.Random(9)
    for turn in range(100):
        small = random_small(draw, operators=5, most=3, batches=turn % 2 == 1)
        problem, loads = _problem(small)
        first = make_packer("first-fit").place(problem, loads)
        again, _ = _problem(small, there=first.sites)
        same = make_packer("first-fit").place(again, loads)
        assert moves(first.sites, same.sites) == 0
        assert same.sites == first.sites
        others = tuple(Site(f"old{place}", "one", {}, others_cpu=0.3, others_memory_bytes=0.2) for place in range(2))
        beside, _ = _problem(small, there=others)
        placed = make_packer("first-fit").place(beside, loads)
        new = [site for site in placed.sites if not site.name.startswith("old")]
        assert len(new) <= first.machines
        for site in placed.sites:
            cpu, memory = small.machine(_on(site))
            assert cpu + site.others_cpu <= 1 + 1e-7
            assert memory + site.others_memory_bytes <= 1 + 1e-7


def test_a_thousand_instances_on_two_hundred_machines_take_seconds() -> None:
    draw = random.Random(2)
    names = [f"o{number}" for number in range(25)]
    streams = dict.fromkeys(itertools.pairwise(names), 1.0)
    copies = dict.fromkeys(names, 40)
    c_p = {name: draw.uniform(0.1, 0.3) / 250 for name in names}
    small = Small(
        streams, c_p, dict.fromkeys(names, 5e-5), dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0), copies,
        {"o0": 10_000.0},
    )  # fmt: skip
    problem, loads = _problem(small)
    began = time.process_time()
    placement = make_packer("first-fit").place(problem, loads)
    assert time.process_time() - began < 5.0
    assert 170 <= placement.machines <= 240
    assert sum(sum(site.instances.values()) for site in placement.sites) == 1_000
    for site in placement.sites:
        assert small.fits(_on(site), ONE)


def test_an_instance_that_fits_nowhere_is_named() -> None:
    small = Small({}, {"big": 0.02}, {"big": 0.0}, {"big": 0.0}, {"big": 0.0}, {"big": 1}, {"big": 100.0})
    problem, loads = _problem(small)
    with pytest.raises(Infeasible, match="an instance of 'big' needs 2 reference cores"):
        make_packer("first-fit").place(problem, loads)
