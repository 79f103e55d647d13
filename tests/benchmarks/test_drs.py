"""The pieces of ``headgate bench drs`` that need no Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from headgate.adaptation.actions import Action, SetPartitions
from headgate.model.cluster.observation import FragmentObservation, Observation, SinkObservation, Sojourn
from headgate.model.names import Signature
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow
from headgate_benchmarks.drs.benchmark import DRS
from headgate_benchmarks.drs.calibration import Sizes, network_of
from headgate_benchmarks.drs.compare import candidates, errors_of, figures_of
from headgate_benchmarks.drs.flows import LOOP_SHARE, SERVICE, chain, loop, record
from headgate_benchmarks.drs.live import hold
from headgate_benchmarks.drs.steps import reactions
from headgate_benchmarks.study import Measured

SIZES = Sizes()
KNOWN = {each.task: each.mean_s for each in SERVICE}


def test_recordings_have_the_rates_that_are_asked_for(tmp_path: Path) -> None:
    count = record(tmp_path / "r.json", [(6.0, 500.0), (18.0, 500.0)], seed=1)
    rows = [json.loads(line) for line in (tmp_path / "r.json").read_text().splitlines()]
    times = [row["t"] for row in rows]
    assert len(rows) == count
    assert times == sorted(times)
    assert sum(t < 500 for t in times) == pytest.approx(6 * 500, rel=0.1)
    assert sum(t >= 500 for t in times) == pytest.approx(18 * 500, rel=0.1)
    assert sum(row["rounds"] for row in rows) / count == pytest.approx(LOOP_SHARE / (1 - LOOP_SHARE), rel=0.1)
    record(tmp_path / "again.json", [(6.0, 500.0), (18.0, 500.0)], seed=1)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "r.json").read_text()


def test_the_dataflows_are_valid_and_the_loop_is_closed_by_feedback() -> None:
    assert [stream.feedback for stream in chain("c", Path("r.json")).streams] == [False] * 4
    assert sum(stream.feedback for stream in loop("l", Path("r.json")).streams) == 1


def test_candidates_begin_with_the_recommended_one_and_get_worse() -> None:
    flow = SparkFlow(network_of(KNOWN, 8.0), BatchCosts(0.5, 0.05, 0.01), 0.2)
    chosen = candidates(flow, 22, SIZES.worse)
    assert len(set(chosen)) == 6
    assert all(sum(allocation) == 22 for allocation in chosen[1:])
    means = predict_flow(flow, chosen).mean_s
    assert list(means) == sorted(means)
    assert means[-1] > 1.5 * means[0]


class FakeCluster:
    """A batch in every look, with sojourns that fall once processors were given."""

    def __init__(self) -> None:
        self.processors: dict[str, int | None] = {}
        self.looks = 0

    def observe(self) -> Observation:
        self.looks += 1
        mean = 9.0 if self.looks < 4 else 2.0
        sink = SinkObservation(Signature("s"), "f.s", ("f",), 10, Sojourn(mean, mean, mean, mean))
        fragment = FragmentObservation("source", "source", (), 1, 10, 0, 2.0, 0.3, 0.1, 1.5, 0.1)
        return Observation(0.0, 0.25, (), (sink,), (fragment,))

    def apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            assert isinstance(action, SetPartitions)
            self.processors[action.task] = action.partitions


def test_an_allocation_is_held_until_enough_batches_have_run() -> None:
    fake, slept = FakeCluster(), list[float]()
    tasks = {"a": Signature("a"), "b": Signature("b")}
    held = hold(fake, tasks, (3, 4), 2, 3, 60.0, clock=lambda: sum(slept), sleep=slept.append)
    assert fake.processors == {"a": 3, "b": 4}
    assert (held.first.batches, held.then.batches, held.then.rows_done) == (2, 3, 30)
    assert (held.first.mean_s, held.then.mean_s, held.cost_s) == (9.0, 2.0, 7.0)
    (sample,) = held.then.samples((3, 4))
    assert (sample.rows, sample.outside_jobs_s, sample.in_jobs_s) == pytest.approx((10.0, 0.4, 1.6))


def _rows(measured: list[float], predicted: list[float]) -> list[dict[str, object]]:
    return [
        {
            "allocation": f"{place}:1:1",
            "measured_s": seen,
            "turns_s": [0.98 * seen, 1.02 * seen],
            "predicted_s": by_model,
            "mmk_s": 0.4 + place / 100,
            "apply_s": [0.1, 0.1],
            "change_cost_s": [0.2, 0.4],
        }
        for place, (seen, by_model) in enumerate(zip(measured, predicted, strict=True))
    ]


def _window(number: int, before: int, after: int, measured: float) -> dict[str, object]:
    at = number * SIZES.window_s
    return {
        "at_s": at + 0.1,
        "rate_per_s": SIZES.rates[min(int((at - 1) // SIZES.step_s), 3)],
        "fitted_rate_per_s": 6.0,
        "allocation": [before, 1, 1],
        "decided": [after, 1, 1],
        "changed": before != after,
        "measured_s": measured,
        "rows": 50,
        "because": "",
    }


WINDOWS = [
    _window(1, 4, 4, 2.0),
    _window(4, 4, 4, 2.0),  # ends when the rate steps up
    _window(5, 4, 9, 4.0),
    _window(6, 9, 9, 2.0),
    _window(9, 9, 9, 1.0),
    _window(10, 9, 4, 1.0),
    _window(13, 4, 14, 5.0),
]


def test_figures_say_what_was_predicted_well_and_what_not() -> None:
    good = figures_of("chain", {"allocations": _rows([2, 2.2, 3, 4, 5, 6], [2.1, 2.3, 3.3, 4, 5.5, 7])})
    assert good["chain_rank_correlation"] == pytest.approx(1.0)
    assert good["chain_recommended_is_best"]
    assert good["chain_noise"] == pytest.approx(0.02)
    bad = figures_of("chain", {"allocations": _rows([3, 2.2, 2, 4, 5, 6], [2, 3, 4, 5, 6, 7])})
    assert not bad["chain_recommended_is_best"]
    assert bad["chain_rank_correlation"] < 0.8
    errors = errors_of(_rows([2.0, 4.0, 4.0], [2.2, 4.4, 8.0]))
    assert (errors["spark_error_p50"], errors["spark_error_max"]) == pytest.approx((0.1, 1.0))


def test_reactions_are_counted_in_windows_from_each_step() -> None:
    figures = reactions(WINDOWS, 3.0, SIZES)
    assert figures["steps_windows_to_change_each"] == "1:2:1"
    assert figures["steps_windows_to_change"] == 2
    assert figures["steps_changes"] == 3
    assert figures["steps_share_within"] == pytest.approx(5 / 7)


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = _rows([2, 2.2, 3, 4, 5, 6], [2, 2.3, 3.3, 4, 5.5, 7])
    compared = {"allocations": rows, "rate_per_s": 8.0}
    steps = {"windows": WINDOWS, "latency_max_s": 3.0}
    assert DRS.plot is not None
    drawn = DRS.plot(Measured({}, {"chain": compared, "loop": compared, "steps": steps}), tmp_path)
    assert [path.name for path in drawn] == ["drs-allocations.png", "drs-steps.png"]
    assert all(path.stat().st_size > 5_000 for path in drawn)
