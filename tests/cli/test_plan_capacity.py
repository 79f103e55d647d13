"""``headgate plan --rate``: plans beside each other, reasons, pictures, and sentences for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.service.plan_document import read_plan
from tests.cli.terminal import headgate

ROAD = Path(__file__).resolve().parents[2] / "examples" / "simulation" / "linear_road.yaml"
RATES = ("--rate", "50", "--rate", "weather=0.5")


def test_one_plan_with_its_reasons() -> None:
    ran = headgate("plan", ROAD, *RATES)
    assert ran.status == 0, ran.err
    assert "linear_road on ec2-2013" in ran.out
    assert "'travel_time' uses 'tree', its best" in ran.out
    assert "for 3.36 USD an hour" in ran.out


def test_plans_stand_side_by_side(tmp_path: Path) -> None:
    picture, best = tmp_path / "plans.svg", tmp_path / "best.json"
    ran = headgate("plan", ROAD, *RATES, "--compare", "--json", "--plot", picture, "--out", best)
    assert ran.status == 0, ran.err
    plans = {plan["algorithm"]: plan for plan in ran.json["plans"]}
    assert set(plans) == {"exact", "ga", "ce", "sh"}
    assert max(plan["theta"] for plan in plans.values()) == plans["exact"]["theta"]
    assert plans["exact"]["gap"] <= 0.001
    assert picture.read_text().count("<svg") == 1
    written = read_plan(best).capacity["linear_road"]
    assert written.alternates == {"congestion": "coarse", "travel_time": "tree"}
    cores = sum(machine["count"] * sum(machine["cores"].values()) for machine in written.machines)
    assert cores == sum(written.cores.values()) == plans["exact"]["cores"]
    assert headgate("plan", ROAD, *RATES, "--out", best).status == 2


def first_plan(*options: str) -> Any:
    return headgate("plan", ROAD, *options, "--json").json["plans"][0]


def test_options_override_the_service_level() -> None:
    assert first_plan(*RATES, "--throughput", "0.5")["cost_per_h"] < first_plan(*RATES)["cost_per_h"]
    walking = headgate("plan", ROAD, "--rate", "random-walk:50", "--rate", "weather=0.5", "--peak", "--algorithm", "sh")
    assert "reports 75/s" in walking.out
    large = first_plan(
        "--rate", "reports=8000", "--rate", "weather=80", "--break-even", "800,400", "--algorithm", "exact",
        "--catalogue", "ec2-2024",
    )  # fmt: skip
    assert large["gap"] <= 0.01


def test_latency_is_predicted_where_every_task_keeps_up() -> None:
    plan = first_plan(*RATES, "--throughput", "1", "--algorithm", "sh")
    assert 0 < plan["mean_s"] < plan["p95_s"]
    short = headgate("plan", ROAD, *RATES, "--algorithm", "sh", "--json").json
    assert short["plans"][0]["mean_s"] is None
    assert any("Latency has no bound" in note for note in short["notes"])
    assert max(row["busy"] for row in short["allocation"]) >= 1


def test_latency_is_that_of_the_queueing_model(tmp_path: Path) -> None:
    """One task with one core: M/M/1, the mean is 1 / (mu - lambda)."""
    path = tmp_path / "one.yaml"
    path.write_text(
        "name: one\nservice_level: {throughput_min: 1}\n"
        "tasks: [{id: a, type: opaque, cost_s: 0.5, ports: {outputs: [out]}}]\n"
    )
    document = headgate("plan", path, "--rate", "1.5", "--algorithm", "ce", "--json").json
    (allocation,), (machine,) = document["allocation"], document["machines"]
    assert (allocation["cores"], machine["vm_class"], allocation["busy"]) == (1, "m1.small", 0.75)
    assert document["plans"][0]["mean_s"] == pytest.approx(1 / (2 - 1.5))


def test_each_dataflow_has_the_rates_of_its_sources(tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = f"name: {name}\ntasks: [{{id: {name}, type: opaque, cost_s: 0.5, ports: {{outputs: [out]}}}}]\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    rates = ("--rate", "one=10", "--rate", "two=20")
    document = headgate("plan", tmp_path, *rates, "--algorithm", "ce", "--json").json
    assert [row["task"] for row in document["allocation"]] == ["one", "two"]
    assert document["allocation"][0]["cores"] < document["allocation"][1]["cores"]


def test_what_cannot_be_had_is_an_answer() -> None:
    ran = headgate("plan", ROAD, *RATES, "--budget", "2")
    assert ran.status == 2
    assert "costs 2.88 USD an hour at least, and the budget is 2 USD" in ran.err
    assert "a budget of 2.88 USD an hour is enough" in ran.err
    ran = headgate("plan", ROAD, *RATES, "--cores", "12")
    assert ran.status == 2
    assert "cores" in ran.err


def test_the_old_name_answers_with_the_new_one() -> None:
    ran = headgate("capacity", ROAD, *RATES)
    assert (ran.status, ran.out) == (2, "")
    assert "headgate plan" in ran.err


@pytest.mark.parametrize("text", ["", "[]", '{"dataflows": 3}', "not JSON"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_plan(path)
    assert refused.value.condition == "BAD_PLAN_FILE"


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
        (("--plot", "plans.gif"), "expected .svg, .png or .pdf"),
        (("--message-bytes", "0"), "message_bytes is 0.0; expected bytes above 0"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(options: tuple[str, ...], told: str) -> None:
    ran = headgate("plan", ROAD, *RATES, *options)
    assert ran.status == 2
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_a_rate_must_be_given() -> None:
    ran = headgate("plan", ROAD, "--rate", "reports=50")
    assert ran.status == 2
    assert "no rate is given for source 'weather'; give one such as --rate weather=50" in ran.err
