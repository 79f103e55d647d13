"""VM classes, clouds and their bills."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import BadValue, InputError
from headgate.model.cluster.catalogues import CATALOGUES, catalogue
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.vm_class import HOURLY, BillingPeriod, Cloud, VmClass

GOOD = VmClass("v", 2, 1.0, 100.0, Decimal("0.1"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"price_per_h": Decimal(0)}, "price of 0"),
        ({"price_per_h": Decimal(-1)}, "price of -1"),
        ({"price_per_h": Decimal("nan")}, "price of NaN"),
        ({"cores": 0}, "too small for anything"),
        ({"core_power": 0.0}, "too small for anything"),
        ({"core_power": float("nan")}, "too small for anything"),
        ({"bandwidth_mbit_per_s": 0.0}, "no message could reach it"),
        ({"boot_s": -1.0}, "boot_s"),
        ({"interruptions_per_h": float("inf")}, "interruptions_per_h"),
    ],
)
def test_what_no_machine_can_be_is_told(fields: dict[str, object], message: str) -> None:
    from dataclasses import replace

    with pytest.raises(BadValue, match=message):
        replace(GOOD, **fields)  # type: ignore[arg-type]


@given(st.integers(1, 10**6), st.sampled_from([1, 60, 3_600]), st.integers(0, 7_200))
def test_what_is_paid_covers_what_is_held_and_no_whole_period_more(held_s: int, period_s: int, least_s: int) -> None:
    periods = BillingPeriod(period_s, least_s).periods(held_s)
    assert periods == -(-max(held_s, least_s) // period_s)


@given(st.lists(st.floats(0.001, 500.0), min_size=1, max_size=200))
def test_sums_of_seconds_do_not_make_an_hour_more(parts: list[float]) -> None:
    scale = 3_600 / sum(parts)
    assert HOURLY.periods(sum(part * scale for part in parts)) == 1


def test_the_catalogues_have_the_papers_prices() -> None:
    prices = {each.name: each.price_per_h for each in catalogue("ec2-2013").classes}
    assert prices == {
        "m1.small": Decimal("0.06"),
        "m1.medium": Decimal("0.12"),
        "m1.large": Decimal("0.24"),
        "m1.xlarge": Decimal("0.48"),
    }
    assert catalogue("floe-sim").vm_class("m3.2xlarge").power == 26.0
    assert catalogue("ec2-2013").largest.name == "m1.xlarge"
    assert all(cloud.classes for cloud in CATALOGUES.values())
    with pytest.raises(InputError, match="did you mean 'ec2-2013'"):
        catalogue("ec2-2031")


def test_clouds_and_deployments_are_checked() -> None:
    with pytest.raises(BadValue, match="two VM classes of one name"):
        Cloud("c", (GOOD, GOOD))
    with pytest.raises(BadValue, match="no VM class"):
        Cloud("c", ())
    cloud = Cloud("c", (GOOD,))
    with pytest.raises(BadValue, match="no VM class 'w'"):
        Deployment((Machine("w", {"a": 1}),)).check(cloud)
    with pytest.raises(BadValue, match="gives away 3 cores"):
        Deployment((Machine("v", {"a": 2, "b": 1}),)).check(cloud)
    with pytest.raises(BadValue, match="less than one core"):
        Machine("v", {"a": 0})
