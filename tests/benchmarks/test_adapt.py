"""The worlds of the benchmark of adaptation, and a short run of it on real workers, judged from raw files."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.adaptation.actions import AcquireMachine
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.windows import EpochGoal, window_of
from headgate.adaptation.joining import joined
from headgate.documents import parse
from headgate.model.cluster.observation import Observation
from headgate_benchmarks import BENCHMARKS
from headgate_benchmarks.adapt.benchmark import POLICIES
from headgate_benchmarks.adapt.judging import series
from headgate_benchmarks.adapt.live import Ran
from headgate_benchmarks.adapt.simulated import Railed
from headgate_benchmarks.adapt.worlds import SCENARIOS, due_times
from tests.adaptation.controller.world import World


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_world_is_the_same_for_every_policy_and_its_rows_are_those_of_its_rate(name: str) -> None:
    scenario = SCENARIOS[name]
    due = list(due_times(scenario, 360.0, 1))
    assert due == list(due_times(scenario, 360.0, 1))
    assert sum(count for _, count in due) == pytest.approx(360.0 * scenario.mean(), rel=0.05)
    for flow, document in scenario.documents("in"):
        level = parse(json.dumps(document), "json").dataflow.service_level
        assert (level.break_even_at_best_per_h is None) == (scenario.break_even is None)
        assert scenario.promise(flow)["latency_max_s"] == level.latency_max_s


def test_in_one_wave_value_is_worth_three_machines_and_in_the_other_less_than_one() -> None:
    for name, machines in (("wave", 3.0), ("wave-dear", 2 / 3)):
        scenario = SCENARIOS[name]
        assert scenario.break_even is not None
        best, worst = scenario.break_even
        # What a step of value may cost, by the slope between the two break-even points.
        assert (best - worst) / float(scenario.machine.price_per_h) == pytest.approx(machines)


def test_static_peers_have_machines_for_the_peak_and_for_the_mean() -> None:
    step = SCENARIOS["step"]
    assert (step.machines_for(step.peak(), 0.7), step.machines_for(step.mean(), 0.7)) == (3, 2)


def test_series_count_what_came_what_was_done_and_what_waits(tmp_path: Path) -> None:
    (tmp_path / "sinks").mkdir()
    began = time.time()
    came = [began + at for at in (0.5, 1.0, 6.0, 7.0)]
    (tmp_path / "generated.jsonl").write_text(
        "".join(json.dumps({"id": n, "at": at}) + "\n" for n, at in enumerate(came))
    )
    done = [json.dumps({"id": 0, "at": began + 2, "label": {"score": "quick"}}) + "\n"]
    (tmp_path / "sinks" / "a.jsonl").write_text("".join(done))
    held = [
        {"event": "acquired", "machine": "m", "at": began - 1, "vm_class": {}},
        {"event": "acquired", "machine": "n", "at": began + 6, "vm_class": {}},
        {"event": "released", "machine": "m", "at": began + 8},
    ]
    (tmp_path / "acquisitions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in held))
    seen = series(SCENARIOS["wave"], Ran(tmp_path, began, began + 10, 4, 0.0, 10.0, (0.0, 0.0)))
    assert seen["came_per_s"] == pytest.approx([0.4, 0.4])
    assert seen["done_per_s"] == pytest.approx([0.2, 0.0])
    assert (seen["waiting"], seen["machines"]) == ([1.0, 3.0], [1.0, 1.0])
    assert seen["gamma"] == pytest.approx([0.9, 0.9])


def test_parts_are_worlds_and_policies() -> None:
    assert set(BENCHMARKS["adapt"].parts) == {*SCENARIOS, *POLICIES}


def test_the_simulated_policy_is_the_live_one_within_its_guard_rails(tmp_path: Path) -> None:
    """Ten times what one machine can do: the policy wants many more at every turn, and the rails leave two in all."""
    world = World(tmp_path, live_policy, rate=lambda _: 1_000.0)
    observed: list[Observation] = []
    for _ in range(13):
        observed += world.cluster.observations()
        world.now += 5.0
    known = world.cluster.terms(())
    assert known is not None
    seen = window_of(*known, joined(observed), EpochGoal(0.5, 2.0))
    rails = GuardRails(machines_max=3, cooldown_s=30.0, floor_s=0.0)
    railed = Railed(live_policy("ce"), rails, 10.0)
    memory = railed.begin(seen.terms, seen.capabilities)
    counts = []
    for step in range(6):
        kept, memory = railed.decide(replace(seen, ended_s=10.0 * step), memory)
        counts.append(sum(isinstance(action, AcquireMachine) for action in kept.actions))
    assert counts[0] == 2
    assert counts[1:3] == [0, 0], "the cool-down"
    assert set(counts) <= {0, 2}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.own_spark
@pytest.mark.timeout(900)
def test_the_engines_figures_are_those_of_a_judge_that_reads_raw_files() -> None:
    """A policy decides on real workers; throughput, value and cost within 1 %, money to the last digit, no row lost."""
    figures = BENCHMARKS["adapt"].run(1, print, smoke=True).figures
    of = {key.removeprefix("step_threshold_"): value for key, value in figures.items()}
    assert of["rows"] > 100
    assert of["judge_error"] <= 0.01
    assert of["money_error"] == 0.0
    assert (of["lost"], of["doubled"], of["unexplained"]) == (0, 0, 0)
