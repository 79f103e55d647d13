"""What fused operators cost together, against rows that are sent through one by one."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from headgate.model.cluster.alternate_cost import Origin
from headgate.planning.known_figures import Figure
from headgate.planning.placing.fusing import fused_operators
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.profiles import OperatorProfile


def operator(name: str, cpu_s: float, wait_s: float = 0.0, **out: float) -> OperatorProfile:
    cpu, held = Figure(cpu_s, Origin.DECLARED), Figure(cpu_s + wait_s, Origin.DECLARED)
    return OperatorProfile(name, name, cpu, held, selectivity={to: Figure(n, Origin.DECLARED) for to, n in out.items()})


STAR = {
    "one": operator("one", 1e-4, before=2.0),
    "two": operator("two", 2e-4, centre=1.0),
    "before": operator("before", 3e-4, centre=3.0),
    "centre": operator("centre", 5e-4, left=1.0, right=2.0),
    "left": operator("left", 7e-4, kept=1.0),
    "right": operator("right", 1e-5, wait_s=0.01),
    "kept": operator("kept", 4e-4),
}
STREAMS = [("one", "before"), ("before", "centre"), ("two", "centre"), ("centre", "left"), ("centre", "right")]
STREAMS = [*STREAMS, ("left", "kept")]
GROUPS = {
    "one": ("one", "before", "centre", "left", "right"),
    "two": ("two", "centre", "left", "right"),
    "kept": ("kept",),
}


def visits(name: str) -> dict[str, float]:
    """How often a row that enters an operator makes each operator do something."""
    seen = defaultdict(float, {name: 1.0})
    for source, target in STREAMS:
        if source == name:
            for each, count in visits(target).items():
                seen[each] += count * STAR[name].selectivity_to(target)
    return seen


@pytest.mark.parametrize("power", [1.0, 0.25])
def test_a_row_costs_what_it_makes_all_members_do(power: float) -> None:
    fused = fused_operators(STREAMS, STAR, GROUPS, power)
    for root, members in GROUPS.items():
        seen = visits(root)
        expected = sum(
            seen[name] * (STAR[name].cpu_s.value + (STAR[name].sojourn_s.value - STAR[name].cpu_s.value) * power)
            for name in members
        )
        assert fused.profiles[root].cpu_s.value == pytest.approx(expected)
        assert fused.profiles[root].sojourn_s == fused.profiles[root].cpu_s, "a row that waits holds the core"
    assert sorted(fused.streams) == [("one", "kept"), ("two", "kept")]
    assert fused.profiles["one"].selectivity_to("kept") == visits("one")["kept"] == 6.0


def test_the_work_of_all_groups_is_the_work_of_all_operators() -> None:
    rates = {"one": 300.0, "two": 500.0}
    whole = OperatorLoads.of(STREAMS, STAR, rates)
    fused = fused_operators(STREAMS, STAR, GROUPS)
    groups = OperatorLoads.of(fused.streams, fused.profiles, rates)
    assert float(groups.in_per_s @ groups.values("cpu_s")) == pytest.approx(
        float(whole.in_per_s @ whole.values("sojourn_s"))
    )


def test_any_order_of_members_and_streams_gives_the_same() -> None:
    rnd = random.Random(4)
    streams = rnd.sample(STREAMS, len(STREAMS))
    groups = {root: (root, *rnd.sample(each[1:], len(each) - 1)) for root, each in GROUPS.items()}
    one, two = fused_operators(STREAMS, STAR, GROUPS), fused_operators(streams, STAR, groups)
    assert {root: each.cpu_s.value for root, each in one.profiles.items()} == pytest.approx(
        {root: each.cpu_s.value for root, each in two.profiles.items()}
    )
