"""The DRS decision: when to add, remove, move or keep, and that it says why."""

from __future__ import annotations

import pytest

from headgate.adaptation.policies.drs import DrsSettings, Estimates, Resize, ResizeDecision, decide
from headgate.errors import BadValue
from headgate.queueing.fitting.correction import Correction
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.predict import predict
from headgate.queueing.sizing import assign_processors, min_processors
from headgate.queueing.station import StationModel


def flow(rate: float = 6.0, **more: int) -> Network:
    return Network(
        (Operator("a", 4.0, arrival_rate_per_s=rate), Operator("b", 2.0, **more)),  # type: ignore[arg-type]
        (Route("a", "b"),),
    )


def decided(
    network: Network, allocation: tuple[int, ...], settings: DrsSettings, measured: float | None = None, **more: float
) -> ResizeDecision:
    correction = Correction(more.get("factor", 1.0), 5)
    last = more.get("last")
    return decide(Estimates(network, measured, correction), allocation, settings, 1_000.0, last)


BY_COUNT = DrsSettings(processors_max=8)
BY_LATENCY = DrsSettings(latency_max_s=1.0, latency_min_s=0.8)


def test_a_better_split_of_the_same_processors_is_taken() -> None:
    decision = decided(flow(), (4, 4), BY_COUNT)
    assert decision.change is Resize.REALLOCATE
    assert decision.allocation == assign_processors(flow(), 8, StationModel.GGK).allocation == (3, 5)
    assert "(4:4) -> (3:5)" in decision.reason
    assert decision.predicted_then_s < decision.predicted_now_s


def test_the_best_split_is_kept() -> None:
    decision = decided(flow(), (3, 5), BY_COUNT)
    assert (decision.change, decision.allocation) == (Resize.KEEP, (3, 5))
    assert "best split of 8" in decision.reason


def test_nothing_changes_soon_after_a_change() -> None:
    decision = decided(flow(), (4, 4), BY_COUNT, last=990.0)
    assert decision.change is Resize.KEEP
    assert "10 s ago and 60 s must lie between" in decision.reason
    assert decided(flow(), (4, 4), BY_COUNT, last=940.0).change is Resize.REALLOCATE


def test_a_change_must_be_worth_its_pause() -> None:
    gain = (
        6.0
        * (predict(flow(), (4, 4), StationModel.GGK).mean_s - predict(flow(), (3, 5), StationModel.GGK).mean_s)
        * 600.0
    )
    busiest = 6.0 / (5 * 2.0)
    break_even = (gain * 2 * (1 - busiest) / 6.0) ** 0.5
    cheap, dear = (DrsSettings(processors_max=8, pause_s=break_even * factor) for factor in (0.99, 1.01))
    assert decided(flow(), (4, 4), cheap).change is Resize.REALLOCATE
    kept = decided(flow(), (4, 4), dear)
    assert kept.change is Resize.KEEP
    assert "not worth it" in kept.reason


def test_what_cannot_keep_up_is_mended_whatever_the_pause() -> None:
    decision = decided(flow(), (5, 3), DrsSettings(processors_max=8, pause_s=1e6))
    assert (decision.change, decision.allocation) == (Resize.REALLOCATE, (3, 5))


def test_too_slow_gets_the_fewest_processors_that_will_do() -> None:
    wanted = min_processors(flow(7.5), 1.0, StationModel.GGK)
    decision = decided(flow(7.5), (2, 4), BY_LATENCY, measured=3.0)
    assert decision.change is Resize.ADD
    assert decision.allocation == wanted.allocation
    assert "is 3 s and may be 1 s: 6 -> " in decision.reason


def test_a_slow_dataflow_that_the_model_finds_quick_gets_one_more() -> None:
    decision = decided(flow(), (3, 5), BY_LATENCY, measured=1.2)
    assert (decision.change, sum(decision.allocation)) == (Resize.ADD, 9)


def test_what_was_learnt_counts() -> None:
    plain = decided(flow(), (3, 5), BY_LATENCY, measured=1.2)
    learnt = decided(flow(), (3, 5), BY_LATENCY, measured=1.2, factor=1.25)
    assert sum(learnt.allocation) > sum(plain.allocation)
    assert learnt.predicted_now_s == pytest.approx(1.25 * plain.predicted_now_s)


def test_too_quick_gives_processors_back_as_long_as_the_target_holds() -> None:
    decision = decided(flow(), (6, 9), BY_LATENCY, measured=0.76)
    assert decision.change is Resize.REMOVE
    assert sum(decision.allocation) == min_processors(flow(), 1.0, StationModel.GGK).processors
    assert decision.predicted_then_s <= 1.0
    assert "below 0.8 s" in decision.reason


def test_when_the_rate_falls_processors_are_given_back_before_the_latency_has_fallen() -> None:
    decision = decided(flow(), (6, 9), BY_LATENCY, measured=0.95)
    assert decision.change is Resize.REMOVE
    assert "is predicted to be 0.751 s at 6 tuples/s, below 0.8 s" in decision.reason


def test_between_the_bounds_only_the_split_may_change() -> None:
    decision = decided(flow(), (4, 4), BY_LATENCY, measured=0.9)
    assert (decision.change, decision.allocation) == (Resize.REALLOCATE, (3, 5))
    assert decided(flow(), (3, 5), BY_LATENCY, measured=0.9).change is Resize.KEEP


def test_what_will_not_keep_up_gets_more_before_it_is_too_slow() -> None:
    """The rate has risen; the latency that was measured is that of before."""
    decision = decided(flow(12.0), (3, 5), BY_LATENCY, measured=0.9)
    assert decision.change is Resize.ADD
    assert decision.allocation == min_processors(flow(12.0), 1.0, StationModel.GGK).allocation
    assert decision.reason.startswith("8 processors cannot keep up with 12 tuples/s: 8 -> ")


def test_without_a_measurement_nothing_is_decided() -> None:
    decision = decided(flow(), (4, 4), BY_LATENCY)
    assert (decision.change, decision.reason) == (Resize.KEEP, "no mean latency was measured yet")


def test_no_more_than_can_be_had_is_given_and_it_says_so() -> None:
    settings = DrsSettings(processors_max=8, latency_max_s=1.0)
    decision = decided(flow(11.0), (3, 4), settings, measured=9.0)
    assert (decision.change, sum(decision.allocation)) == (Resize.ADD, 8)
    assert "needs 9 processors, 8 given" in decision.reason
    assert decision.allocation == (3, 5)  # what keeps up with most of it: 10 tuples/s, where (2, 6) does with 8
    assert "keep up with 91% of it" in decision.reason
    assert decided(flow(11.0), (3, 5), settings, measured=9.0).change is Resize.INFEASIBLE
    assert decided(flow(11.0), (5, 3), settings, measured=9.0).change is Resize.REALLOCATE
    short = decided(flow(7.5), (2, 4), DrsSettings(processors_max=7, latency_max_s=0.9), measured=3.0)
    assert (short.change, sum(short.allocation)) == (Resize.ADD, 7)
    assert "though it needs" in short.reason


def test_an_infeasible_wish_changes_nothing_and_says_what_is_missing() -> None:
    decision = decided(flow(), (2, 2), DrsSettings(processors_max=4))
    assert (decision.change, decision.allocation) == (Resize.INFEASIBLE, (2, 2))
    assert "needs 6 processors, 4 given; 'b' alone needs 4" in decision.reason
    never = decided(flow(), (3, 5), DrsSettings(latency_max_s=0.5), measured=0.8)
    assert never.change is Resize.INFEASIBLE
    assert "cannot be reached" in never.reason


def test_percentiles_can_be_asked_for() -> None:
    settings = DrsSettings(latency_max_s=2.5, percentile=0.95, model=StationModel.MMK)
    decision = decided(flow(7.5), (2, 4), settings, measured=6.0)
    assert decision.change is Resize.ADD
    assert decision.predicted_then_s <= 2.5
    assert decision.reason.startswith("p95 latency is 6 s")


def test_rates_that_step_up_and_down_are_followed_within_one_decision() -> None:
    allocation: tuple[int, ...] = (2, 4)
    totals = []
    for rate in (6.0, 12.0, 6.0, 18.0):
        network = flow(rate)
        measured = min(predict(network, allocation, StationModel.GGK).mean_s, 99.0)
        decision = decided(network, allocation, BY_LATENCY, measured=measured)
        allocation = decision.allocation
        totals.append(sum(allocation))
        assert predict(network, allocation, StationModel.GGK).mean_s <= 1.0
    assert totals[0] < totals[1] < totals[3]
    assert totals[2] < totals[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: DrsSettings(),
        lambda: DrsSettings(latency_max_s=1.0, latency_min_s=1.0),
        lambda: DrsSettings(processors_max=3, pause_s=-1.0),
        lambda: DrsSettings(processors_max=3, horizon_s=float("nan")),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadValue):
        make()
