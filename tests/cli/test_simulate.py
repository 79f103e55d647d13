"""``headgate simulate``: answers, pictures, pages, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import re
import shutil
import time
import tracemalloc
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.cli.simulate import simulate
from headgate.documents import write
from headgate.service.memory import needed_bytes
from headgate.service.simulate import SimulationRequest, run_policies, setting_of
from headgate.simulation.rates import Steps
from headgate.simulation.simulator import Simulator
from headgate.tasks.registry import default_registry
from tests.cli.terminal import headgate
from tests.simulation.simulated_cluster import SimulatedCluster
from tests.simulation.worlds import dataflow, each_alone, setting, write_observations

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "simulation"
ROAD = EXAMPLES / "linear_road.yaml"
RATES = ("--rate", "random-walk:50", "--rate", "weather=0.5")
CLOUD = """\
name: ours
billing: minute
classes:
  - {name: only, cores: 8, core_power: 2, price_per_h: 0.4, boot_s: 20}
"""


def test_policies_are_compared_in_one_world() -> None:
    ran = headgate("simulate", ROAD, *RATES, "--hours", "3", "--policy", "static", "--policy", "threshold")
    assert ran.status == 0, ran.err
    assert "linear_road" in ran.out
    assert "ec2-2013" in ran.out
    document = headgate(
        "simulate", ROAD, *RATES, "--hours", "3", "--policy", "static", "--policy", "threshold", "--variability", "ec2",
        "--json",
    ).json  # fmt: skip
    static, threshold = document["policies"]
    assert threshold["omega"] > 0.85 > static["omega"]
    assert threshold["cost"] > static["cost"]
    again = headgate("simulate", ROAD, *RATES, "--hours", "3", "--variability", "ec2", "--json").json
    assert again["policies"] == [static]


def test_pictures_and_pages_are_whole_in_themselves(tmp_path: Path) -> None:
    ran = headgate(
        "simulate", ROAD, *RATES, "--hours", "1", "--replications", "3",
        "--plot", tmp_path / "run.svg", "--report", tmp_path / "run.html",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert (tmp_path / "run.svg").read_text().count("<svg") == 1
    page = (tmp_path / "run.html").read_text()
    assert "linear_road, simulated" in page
    assert "<svg" in page
    assert not re.search(r'(src|href)="https?://', page)
    assert headgate("simulate", ROAD, *RATES, "--plot", tmp_path / "run.svg").status == 2


def test_a_cloud_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(CLOUD)
    facts = headgate("simulate", ROAD, *RATES, "--cloud", tmp_path / "ours.yaml", "--hours", "0.5", "--json").json
    assert facts["setting"][0]["cloud"] == "ours"
    cost = facts["policies"][0]["cost"]
    assert cost == pytest.approx(round(cost / 0.2) * 0.2)  # half an hour of whole machines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no rate is given for source 'weather', 'reports'"),
        (("--rate", "reports=50"), "no rate is given for source 'weather'"),
        (("--rate", "50", "--rate", "report=50"), "did you mean 'reports'?"),
        (("--rate", "random-wlak:50"), "unknown kind of rate 'random-wlak'"),
        (("--rate", "random-walk:fifty"), "'fifty' in a rate of kind random-walk is not a number"),
        (("--rate", "constant:-5"), "rate_per_s is -5"),
        (("--rate", "sinusoid:75"), "sinusoid lacks a number"),
        (("--rate", "steps:0=1,5"), "step '5' has no rate"),
        (("--rate", "recorded:none.csv"), "cannot read"),
        ((*RATES, "--policy", "statik"), "did you mean 'static'?"),
        ((*RATES, "--cloud", "ec2-201"), "did you mean 'ec2-2013'?"),
        ((*RATES, "--cloud", "none.yaml"), "none.yaml"),
        ((*RATES, "--variability", "ec3"), "unknown variability 'ec3'"),
        ((*RATES, "--interval", "2 weeks"), "not a span of time"),
        ((*RATES, "--hours", "0"), "0 intervals"),
        ((*RATES, "--plot", "x.gif"), "expected .svg, .png or .pdf"),
        ((*RATES, "--unit", "bananas", "--variability", str(EXAMPLES)), "unknown unit 'bananas'"),
        ((*RATES, "--replay", "none.jsonl"), "cannot read none.jsonl"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(arguments: tuple[str, ...], told: str) -> None:
    ran = headgate("simulate", ROAD, *arguments)
    assert ran.status == 2
    assert told in ran.err
    assert "internal error" not in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{name: v, cores: 4, price_per_h: 0}", "price of 0"),
        ("{name: v, cores: 0, price_per_h: 1}", "too small for anything"),
        ("{name: v, cores: 4, price_per_h: 1, bandwidth_mbit_per_s: 0}", "no message could reach it"),
        ("{name: v, cores: 4}", "price_per_h"),
        ("{name: v, cores: 4, price_per_h: 1, boots_s: 3}", "did you mean 'boot_s'"),
    ],
)
def test_clouds_that_cannot_be_are_told_with_their_line(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(f"classes:\n  - {{name: good, cores: 1, price_per_h: 1}}\n  - {line}\n")
    ran = headgate("simulate", ROAD, *RATES, "--cloud", path)
    assert ran.status == 2
    assert told in ran.err
    assert "cloud.yaml:3" in ran.err


def test_a_dataflow_without_costs_is_simulated_with_those_of_its_task_types() -> None:
    city = EXAMPLES.parent / "city" / "alarms.yaml"
    ran = headgate("simulate", city, "--rate", "5", "--hours", "0.1", "--cost", "smooth/kalman=0.001", "--json")
    assert ran.status == 0, ran.err
    origins = {(row["task"], row["alternate"]): (row["cost_us"], row["cost_from"]) for row in ran.json["figures"]}
    assert origins["smooth", "kalman"] == (1_000.0, "given")
    assert {origin for key, (_, origin) in origins.items() if key != ("smooth", "kalman")} == {"default"}


def test_what_nothing_is_known_of_is_asked_for_by_name(tmp_path: Path) -> None:
    tasks = "{id: one, type: opaque, ports: {outputs: [out]}}, {id: two, type: opaque, inputs: [one]}"
    (tmp_path / "flow.yaml").write_text(f"tasks: [{tasks}]")
    ran = headgate("simulate", tmp_path / "flow.yaml", "--rate", "5")
    assert ran.status == 2
    assert ran.err.count("has no cost_s") == 2
    assert "task 'two'" in ran.err
    given = ("--cost", "one=0.1", "--cost", "two=0.2", "--hours", "0.1")
    assert headgate("simulate", tmp_path / "flow.yaml", "--rate", "5", *given).status == 0


def test_yesterday_can_be_tried_with_another_policy(tmp_path: Path) -> None:
    flow = dataflow({"a": (0.01, 1.0), "b": (0.02, 1.0)}, [("a", "b")])
    (tmp_path / "flow.yaml").write_text(write(flow, "yaml"))
    world = setting(flow, 0.0, rates={"a": Steps(((0.0, 50.0), (1_200.0, 260.0), (2_400.0, 60.0)))}, interval_s=60.0)
    simulator = Simulator(world)
    simulator.deploy(each_alone({"a": 2, "b": 3}))
    cluster = SimulatedCluster(simulator)
    seen = []
    while not simulator.over:
        simulator.advance()
        seen.append(cluster.observe())
    write_observations(tmp_path / "seen.jsonl", seen)
    arguments = ("simulate", tmp_path / "flow.yaml", "--replay", tmp_path / "seen.jsonl", "--policy", "threshold")
    facts = headgate(*arguments, "--json").json
    assert facts["live_run"][0]["spark_gap"] <= 0.15
    assert facts["setting"][0]["hours"] == pytest.approx(0.5)
    assert facts["policies"][0]["omega"] > 0.8
    assert "throughput" in headgate(*arguments).out


def test_recorded_rates_are_found_beside_the_dataflow(tmp_path: Path) -> None:
    shutil.copy(ROAD, tmp_path / "road.yaml")
    (tmp_path / "day.csv").write_text("t_s,messages\n0,3000\n60,6000\n120,3000\n")
    facts = headgate("simulate", tmp_path / "road.yaml", "--rate", "recorded:day.csv", "--hours", "1", "--json")
    assert facts.status == 0, facts.err
    (tmp_path / "day.csv").write_text("t_s,messages\n0,3000\n60,6000\n300,3000\n")
    ran = headgate("simulate", tmp_path / "road.yaml", "--rate", "recorded:day.csv")
    assert "day.csv:4: 240 s after the row before, where others are 60 s apart" in ran.err


def test_policies_look_ahead_and_say_why() -> None:
    asked = ("simulate", ROAD, *RATES, "--hours", "2", "--interval", "5min", "--policy", "lookahead", "--explain")
    ran = headgate(*asked, "--horizon", "20min", "--forecaster", "oracle")
    assert ran.status == 0, ran.err
    assert re.search(r"lookahead +\d\.\d\d  relative throughput would leave", ran.out)
    facts = headgate(*asked, "--policy", "caf", "--forecaster", "holt", "--json").json
    assert [row["policy"] for row in facts["policies"]] == ["lookahead", "caf"]
    assert facts["policies"][0]["in_band"] <= 1
    assert all(each["reason"] for each in facts["reasons"])


def test_sight_that_cannot_be_is_told() -> None:
    asked = ("simulate", ROAD, *RATES, "--hours", "1", "--policy", "lookahead")
    for option, value, told in (
        ("--forecaster", "hold", "did you mean 'holt'?"),
        ("--forecaster", "oracle:x", "oracle:ERROR:BIAS"),
        ("--horizon", "10s", "look at least one interval ahead"),
        ("--horizon", "soon", "--horizon"),
    ):
        ran = headgate(*asked, option, value)
        assert ran.status == 2
        assert told in ran.err, ran.err


def test_the_examples_of_the_help_run(tmp_path: Path) -> None:
    """Those of the reference page too, which is made from it."""
    examples = re.findall(r"\[bold\]headgate (.*?)\[/bold\]", simulate.__doc__ or "", re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        words = [{"road.yaml": ROAD, "road.svg": tmp_path / "road.svg"}.get(word, word) for word in example.split()]
        ran = headgate(*words, "--hours", "1")
        assert ran.status == 0, ran.err


def test_programs_get_the_series_and_the_ledger_of_every_policy() -> None:
    ran = headgate("simulate", ROAD, *RATES, "--hours", "3", "--policy", "static", "--policy", "threshold", "--json")
    for policy, series in zip(ran.json["policies"], ran.json["series"], strict=True):
        assert policy["policy"] == series["policy"]
        assert {len(values) for name, values in series.items() if name != "policy"} == {90}
        assert sum(series["omega"]) / 90 == pytest.approx(policy["omega"])
        assert series["mu"][-1] == pytest.approx(policy["cost"])
        assert series["theta"][-1] == pytest.approx(policy["theta"])
        paid = [each for each in ran.json["ledger"] if each["policy"] == policy["policy"]]
        assert sum(Decimal(each["cost"]) for each in paid) == pytest.approx(Decimal(policy["cost"]))
        assert all(each["acquired_s"] <= each["released_s"] <= 3 * 3_600 for each in paid)


def test_explain_lists_the_plan_step_by_step() -> None:
    world = (*RATES, "--hours", "2", "--interval", "5min", "--policy", "lookahead", "--forecaster", "oracle")
    ran = headgate("simulate", ROAD, *world, "--explain", "--json")
    decided = {round(row["hours"] * 12) for row in ran.json["plans"]}
    assert decided <= set(range(1, 24))
    assert any(row["in_s"] > 0 for row in ran.json["plans"])
    later = [f"{row['task']} {row['change']}" for row in ran.json["plans"] if row["in_s"]]
    people = headgate("simulate", ROAD, *world, "--explain").out
    assert all(text.split()[0] in people for text in later)
    assert "decided at (h)" in people


def test_what_does_not_fit_into_memory_is_refused_beforehand() -> None:
    began = time.perf_counter()
    ran = headgate("simulate", ROAD, "--rate", "1e12")
    assert ran.status == 2
    assert re.search(r"about [\d,]+ machines and 360 intervals needs [\d,.]+ GB of memory, and [\d.]+ GB are", ran.err)
    assert time.perf_counter() - began < 10
    many = headgate("simulate", ROAD, *RATES, "--replications", "1000000")
    assert many.status == 2, many.err


def test_the_estimate_of_memory_is_near_what_is_used() -> None:
    request = SimulationRequest(ROAD, ("constant:60000",), hours=1.0)
    world = setting_of(request, default_registry())
    run_policies(setting_of(replace(request, rates=("constant:10",)), default_registry()), ["static"])
    tracemalloc.start()
    try:
        runs = run_policies(world, ["static"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(runs[0].booked) > 20_000
    assert 0.2 < peak / needed_bytes(world)[1] < 2.0
