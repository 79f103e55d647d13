"""``headgate capacity``: plans side by side, reasons, pictures, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import headgate

ROAD = Path(__file__).resolve().parents[2] / "examples" / "simulation" / "linear_road.yaml"
RATES = ("--rate", "50", "--rate", "weather=0.5")


def test_one_plan_with_its_reasons() -> None:
    ran = headgate("capacity", ROAD, *RATES)
    assert ran.status == 0, ran.err
    assert "linear_road: 8 tasks on ec2-2013" in ran.out
    assert "'travel_time' uses 'tree', its best" in ran.out
    assert "for 3.36 USD an hour" in ran.out


def test_plans_stand_side_by_side(tmp_path: Path) -> None:
    picture, best = tmp_path / "plans.svg", tmp_path / "best.json"
    ran = headgate("capacity", ROAD, *RATES, "--compare", "--json", "--plot", picture, "--out", best)
    assert ran.status == 0, ran.err
    answers = {answer["algorithm"]: answer for answer in ran.json["answers"]}
    assert set(answers) == {"exact", "ga", "ce", "sh"}
    assert max(answer["theta"] for answer in answers.values()) == answers["exact"]["theta"]
    assert answers["exact"]["gap"] <= 0.001
    assert picture.read_text().count("<svg") == 1
    written = json.loads(best.read_text())
    assert written["alternates"] == {"congestion": "coarse", "travel_time": "tree"}
    cores = sum(machine["count"] * sum(machine["cores"].values()) for machine in written["machines"])
    assert cores == sum(written["cores"].values())
    assert headgate("capacity", ROAD, *RATES, "--out", best).status == 2


def test_options_come_before_the_service_level() -> None:
    easy = headgate("capacity", ROAD, *RATES, "--throughput", "0.5", "--json").json["answers"][0]
    asked = headgate("capacity", ROAD, *RATES, "--json").json["answers"][0]
    assert easy["cost_per_h"] < asked["cost_per_h"]
    walking = headgate("capacity", ROAD, "--rate", "random-walk:50", "--rate", "weather=0.5", "--peak", "--json")
    assert walking.json["rates"] == {"reports": 75.0, "weather": 0.5}
    large = headgate(
        "capacity", ROAD, "--rate", "reports=8000", "--rate", "weather=80", "--break-even", "800,400", "--json",
        "--algorithm", "exact", "--catalogue", "ec2-2024",
    ).json["answers"][0]  # fmt: skip
    assert large["gap"] <= 0.01


def test_what_cannot_be_had_is_an_answer() -> None:
    ran = headgate("capacity", ROAD, *RATES, "--budget", "2")
    assert ran.status == 2
    assert "costs 2.88 USD an hour at least, and the budget is 2 USD" in ran.err
    assert "a budget of 2.88 USD an hour would do" in ran.err
    told = headgate("capacity", ROAD, *RATES, "--cores", "12", "--json")
    assert told.status == 2
    assert told.json["answers"][0]["condition"] == "NO_CORES"
    assert [each["demand"] for each in told.json["answers"][0]["relaxations"]] == ["throughput", "rate", "cores"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--algorithm", "exat"), "unknown algorithm 'exat'; did you mean 'exact'?"),
        (("--break-even", "5"), "expected the cost per hour at best and at worst, such as 800,400"),
        (("--break-even", "5,6"), "break_even_at_worst_per_h 6 must be below break_even_at_best_per_h 5"),
        (("--budget", "much"), "--budget is 'much'; expected an amount per hour"),
        (("--throughput", "1.5"), "the least relative throughput is 1.5; expected above 0, at most 1"),
        (("--catalogue", "ec2-213"), "unknown cloud 'ec2-213'; did you mean 'ec2-2013'?"),
        (("--rate", "sensors=3"), "a rate is given for 'sensors', which is no source"),
        (("--plot", "plans.pdf"), "expected .svg or .png"),
        (("--message-bytes", "0"), "message_bytes is 0.0; expected bytes above 0"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(options: tuple[str, ...], told: str) -> None:
    ran = headgate("capacity", ROAD, *RATES, *options)
    assert ran.status == 2
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_a_rate_must_be_given() -> None:
    ran = headgate("capacity", ROAD, "--rate", "reports=50")
    assert ran.status == 2
    assert "no rate is given for source 'weather'; give one such as --rate weather=50" in ran.err
