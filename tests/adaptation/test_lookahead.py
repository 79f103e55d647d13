"""Looking ahead: one step of it is the reactive policy, more of it plans ahead, and without predictor it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.adaptation.catalogue import sized_for
from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.foresight import Foresight, Machines
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.outlook import Outlook, Predictor, PresentOnly
from headgate.adaptation.policies.averages import Averaged, RecentMean
from headgate.adaptation.policies.increments import IncrementPrices, scale_up
from headgate.adaptation.policies.lookahead import LookAhead, crossover, plan
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.trajectory import Trajectory
from headgate.errors import BadValue, InputError
from headgate.forecasting.autoregressive import Autoregressive
from headgate.forecasting.forecast import LEVELS, Forecast
from headgate.forecasting.guard import FROZEN
from headgate.forecasting.holt import Holt
from headgate.forecasting.naive import Naive
from headgate.forecasting.online import Settings
from headgate.model.arrays import Shape
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.simulation.policies import make_policy
from headgate.simulation.rates import ArrivalRate, Constant, RandomWalk
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate
from headgate_benchmarks.dynamic import linear_road, varying_setting
from tests.adaptation.placing import Placing
from tests.simulation.simulated_cluster import EachReplication

Floats = npt.NDArray[np.float64]
ROAD = linear_road(50.0)
SHAPE = Shape.of(ROAD)
SOURCES = SHAPE.sources
STEP_S = 300.0


def _cloud(boot_s: float = 0.0) -> Cloud:
    classes = (
        VmClass("one", 1, 1.0, 1000, Decimal("0.06"), boot_s),
        VmClass("two", 2, 2.0, 1000, Decimal("0.24"), boot_s),
    )
    return Cloud("small", classes)


def _situation(cores: dict[str, int], rate: float = 5.0, left_s: float = 3000.0, boot_s: float = 0.0) -> ClusterView:
    """Each task with cores of its own: machines of two cores with as many of one task as fit."""
    rows = []
    for task, count in cores.items():
        for first in range(0, count, 2):
            row = np.zeros(SHAPE.tasks, dtype=np.int64)
            row[SHAPE.place(task)] = min(2, count - first)
            rows.append(row)
    external = np.zeros(SHAPE.tasks)
    external[SHAPE.place("reports")], external[SHAPE.place("weather")] = rate, rate / 100
    return ClusterView(
        SHAPE,
        _cloud(boot_s),
        ROAD.service_level,
        STEP_S,
        0.8,
        external,
        np.zeros(SHAPE.tasks),
        np.zeros(SHAPE.tasks, dtype=np.int64),
        np.ones(len(rows), dtype=np.int64),
        np.full(len(rows), 2.0),
        np.array(rows),
        np.full(len(rows), left_s),
    )


def _all(count: int) -> dict[str, int]:
    return {str(name): count for name in SHAPE.names}


def _enough(rate: float, share: float = 1.0) -> dict[str, int]:
    """Cores with which every task keeps up with a share of a rate."""
    need = SHAPE.rates({"reports": rate, "weather": rate / 100}) * SHAPE.cost_s[:, 0] * share / 2.0
    return {str(name): max(1, int(np.ceil(each - 1e-9))) for name, each in zip(SHAPE.names, need, strict=True)}


@dataclass
class Seer:
    """Sees what it is told to: rates by step, as shares of what comes in now."""

    shares: list[float]
    trouble: str = ""

    def predict(self, now: ClusterView) -> Outlook:
        external = np.array([now.external * share for share in self.shares])
        return Outlook(external, np.tile(now.speed, (len(self.shares), 1)), 1.0, self.trouble)


# One step is the reactive policy.


@st.composite
def situations(draw: st.DrawFn) -> tuple[ClusterView, int]:
    """Any number of machines of two classes, filled and paid in any way, and a turn."""
    machines = draw(st.integers(1, 14))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, machines)
    cores = np.array([1, 2])[kind]
    placed = np.zeros((machines, SHAPE.tasks), dtype=np.int64)
    for row in range(machines):
        for _ in range(rng.integers(0, cores[row] + 1)):
            placed[row, rng.integers(0, SHAPE.tasks)] += 1
    now = _situation(_all(1), draw(st.floats(0.0, 40.0)))
    active = np.array([rng.integers(0, len(ways)) for ways in SHAPE.alternates])
    waiting = rng.uniform(0, 3, SHAPE.tasks) * draw(st.booleans())
    outlook = ClusterView(
        SHAPE,
        _cloud(97.0),
        ROAD.service_level,
        STEP_S,
        draw(st.floats(0.0, 1.0)),
        now.external,
        waiting,
        active,
        kind.astype(np.int64),
        np.array([1.0, 2.0])[kind] * rng.uniform(0.3, 1.0, machines),
        placed,
        rng.uniform(0, 3600, machines),
        tuple(f"vm-{number}" for number in range(machines)),
        rng.choice([0.0, 60.0], machines),
    )
    return outlook, draw(st.integers(1, 20))


def _same(one: ClusterView, other: ClusterView) -> bool:
    names = ("placed", "active", "kind")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def _copy(now: ClusterView) -> ClusterView:
    arrays = {name: getattr(now, name).copy() for name in ("external", "waiting", "active", "kind", "speed", "placed")}
    return replace(now, **arrays, left_s=now.left_s.copy(), reasons=[])


@given(situations(), st.sampled_from(["forecaster", "present", "seer"]))
@settings(max_examples=60, deadline=None)
def test_one_step_ahead_is_the_reactive_policy(given_: tuple[ClusterView, int], kind: str) -> None:
    now, turn = given_
    predictors: dict[str, Predictor] = {
        "forecaster": Foresight.of(1, SOURCES, Holt()),
        "present": PresentOnly(),
        "seer": Seer([1.0]),
    }
    predictor = predictors[kind]
    ahead, reactive = _copy(now), _copy(now)
    LookAhead(predictor).decide(ahead, turn)
    Reactive().decide(reactive, turn)
    assert _same(ahead, reactive)
    assert ahead.reasons == reactive.reasons


@given(situations())
@settings(max_examples=30, deadline=None)
def test_caf_is_the_reactive_policy(given_: tuple[ClusterView, int]) -> None:
    now, turn = given_
    model, reactive = _copy(now), _copy(now)
    Averaged("caf", PresentOnly()).decide(model, turn)
    Reactive().decide(reactive, turn)
    assert _same(model, reactive)


def _setting(hours: float = 3.0, seed: int = 1, counts_queues: bool = False) -> Setting:
    rates: dict[str, ArrivalRate] = {"reports": RandomWalk(50.0), "weather": Constant(0.5)}
    return replace(varying_setting(ROAD, rates, hours, STEP_S, seed), counts_queues=counts_queues)


@pytest.mark.parametrize("forecaster", ["holt", "oracle", "oracle:0.2:0.05"])
def test_one_step_ahead_does_what_ce_does_in_a_whole_world_action_for_action(forecaster: str) -> None:
    setting = _setting()
    ce = simulate(setting, make_policy("ce", setting))
    ahead = simulate(setting, make_policy("lookahead", setting, PolicySettings(forecaster, STEP_S)))
    assert ahead.decisions == ce.decisions
    assert len(ce.decisions) > 20
    assert np.array_equal(ahead.mu, ce.mu)


# Cross-overs.


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.5, 0.8), st.floats(0.8, 1.0))
def test_the_crossover_is_behind_the_farthest_step_that_holds(omegas: list[float], low: float, high: float) -> None:
    holds = [low <= float(np.mean(omegas[: upto + 1])) <= high for upto in range(len(omegas))]
    at = crossover(np.array(omegas), low, high)
    edges = [abs(float(np.mean(omegas[: k + 1])) - edge) < 1e-9 for k in range(len(omegas)) for edge in (low, high)]
    if any(edges):
        return
    if at is None:
        assert holds[-1]
    else:
        assert not any(holds[at:])
        assert at == 0 or holds[at - 1]


# Plans.


def _course(now: ClusterView, shares: list[float]) -> tuple[Trajectory, IncrementPrices]:
    trajectory = Trajectory(now, Seer(shares).predict(now))
    return trajectory, IncrementPrices.of(trajectory)


def test_what_is_needed_later_is_planned_and_not_done() -> None:
    now = _situation(_enough(20.0, 0.82), 20.0)
    before = now.placed.copy()
    trajectory, prices = _course(now, [1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    plan(trajectory, prices, 0.8, 0.9)
    assert trajectory.changes
    assert min(change.step for change in trajectory.changes) > 0
    assert trajectory.mean(3) >= 0.8 - 1e-9
    trajectory.enact()
    assert np.array_equal(now.placed, before), "nothing of it is for now"
    assert len(now.kind) == now.held


@pytest.mark.parametrize(("boot_s", "starts"), [(0.0, False), (299.0, False), (301.0, True), (900.0, True)])
def test_machines_start_as_long_before_they_are_needed_as_they_take_to_start(boot_s: float, starts: bool) -> None:
    """Twice as much comes two steps from now: a machine that takes more than a step must be asked for now."""
    now = _situation(_enough(20.0, 0.82), 20.0, boot_s=boot_s)
    trajectory, prices = _course(now, [1.0, 1.0, 3.0, 3.0, 3.0, 3.0])
    plan(trajectory, prices, 0.8, 0.9)
    opened = [change for change in trajectory.changes if change.machine >= now.held]
    assert opened, "more than the free cores are needed"
    lead = int(np.ceil(boot_s / STEP_S))
    first = min(change.step for change in opened)
    assert trajectory.started == [max(0, step - lead) for step in _steps_of_machines(trajectory)]
    trajectory.enact()
    assert (len(now.kind) > now.held) == (starts and first - lead <= 0)


def _steps_of_machines(trajectory: Trajectory) -> list[int]:
    first: dict[int, int] = {}
    for change in trajectory.changes:
        if change.machine >= trajectory.now.held:
            first.setdefault(change.machine, change.step)
    return [first[row] for row in sorted(first)]


def test_plans_that_were_not_enacted_cost_nothing_when_they_are_replaced() -> None:
    now = _situation(_enough(20.0, 0.82), 20.0)
    before = now.placed.copy()
    policy = LookAhead(Seer([1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0]))
    policy.decide(now, 1)
    assert "planned for later" in now.reasons[0]
    policy.predictor = Seer([1.0] * 8)
    policy.decide(now, 2)
    assert np.array_equal(now.placed, before)


def test_a_dear_machine_loses_against_a_cheaper_alternate_and_a_cheap_one_does_not() -> None:
    for price, switched in (("0.06", False), ("60", True)):
        now = _situation(_enough(5.0, 0.85), 5.0)
        now.cloud = Cloud("one", (VmClass("one", 1, 1.0, 1000, Decimal(price)), now.cloud.classes[1]))
        if price == "60":
            now.cloud = Cloud("one", tuple(replace(each, price_per_h=Decimal(price)) for each in now.cloud.classes))
        used = now.placed.sum(axis=1)
        now.placed[used == 1] *= 2  # no free cores
        trajectory, prices = _course(now, [3.0] * 12)  # an hour, for which a machine is paid
        plan(trajectory, prices, 0.8, 0.9)
        assert any(change.way >= 0 for change in trajectory.changes) == switched


def test_the_plan_is_a_value_that_lists_every_step() -> None:
    """Against what is in the trajectory: cores by task and step, alternates, and when new machines are started."""
    now = _situation(_enough(20.0, 0.82), 20.0, boot_s=450.0)
    trajectory, prices = _course(now, [1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 0.2, 0.2])
    plan(trajectory, prices, 0.8, 0.9)
    actions = trajectory.actions()
    assert [each.in_s for each in actions] == sorted(each.in_s for each in actions)
    for step in range(8):
        for place, name in enumerate(SHAPE.names):
            mine = [each for each in actions if (each.in_s, each.task) == (step * STEP_S, name)]
            cores = sum(int(each.change.split()[0]) for each in mine if each.machine)
            changes = [each for each in trajectory.changes if (each.step, each.task) == (step, place)]
            assert cores == sum(each.more for each in changes)
            ways = [SHAPE.alternates[place][each.way] for each in changes if each.way >= 0]
            assert [each.change for each in mine if not each.machine] == [f"to '{way}'" for way in ways[-1:]]
    started = {each.machine for each in actions if each.machine.startswith("new")}
    assert len(started) == len(trajectory.started)
    assert any("new two 1, started in 5 min" in name for name in started), "450 s before the fourth step of 300 s"


def test_the_policy_hands_out_its_whole_plan() -> None:
    now = _situation(_enough(20.0, 0.82), 20.0)
    LookAhead(Seer([1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0])).decide(now, 1)
    assert min(each.in_s for each in now.planned) == 3 * STEP_S
    assert len(now.kind) == now.held, "nothing of it is for now"


def test_a_new_machine_is_of_the_largest_class_and_costs_its_whole_price() -> None:
    """With a price between a core's and a machine's, an alternate is cheaper than the machine."""
    now = _situation(_enough(5.0, 0.85), 5.0)
    now.placed[now.placed.sum(axis=1) == 1] *= 2
    trajectory, prices = _course(now, [3.0] * 12)
    assert now.cloud.classes[prices.kind].name == "two"
    lost = prices.value(0.2, 1.0)
    per_machine = lost / prices.sigma
    for price, switched in ((per_machine * 1.1, True), (per_machine * 0.9, False)):
        now.cloud = Cloud("one", tuple(replace(each, price_per_h=Decimal(str(price))) for each in now.cloud.classes))
        trajectory, prices = _course(now, [3.0] * 12)
        trajectory.omegas()
        congestion = SHAPE.place("congestion")
        trajectory.power[:, congestion] *= 0.5
        assert int(np.argmin(trajectory.ratios(0))) == congestion
        assert scale_up(trajectory, prices, 0)
        assert (trajectory.changes[0].way >= 0) is switched


@pytest.mark.parametrize("left_s", [60.0, 3_000.0])
def test_machines_whose_hour_ends_are_repacked(left_s: float) -> None:
    """Line 30: what is left on a machine of two cores goes to one of a core as strong, if it must be paid again."""
    counts = list(_enough(20.0, 0.8).values())
    counts[0] += 1 - sum(counts) % 2
    now = _situation({"reports": sum(counts)}, 20.0, left_s=3_000.0)
    now.placed[:] = 0
    for place, task in enumerate(np.repeat(np.arange(SHAPE.tasks), counts).tolist()):
        now.placed[place // 2, task] += 1  # all machines are full but the last
    now.left_s[-1] = left_s
    now.cloud = Cloud("three", (*now.cloud.classes, VmClass("strong", 1, 2.0, 1000, Decimal("0.12"))))
    LookAhead(Seer([1.0, 1.0, 1.0])).decide(now, 1)
    assert now.placed.sum(axis=0).tolist() == counts
    assert [now.cloud.classes[kind].name for kind in now.kind[now.held :]] == (["strong"] if left_s == 60.0 else [])
    assert (now.held - 1 in now.to_release()) == (left_s == 60.0)


def test_cores_are_never_given_twice() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        now = _situation(_enough(8.0, 0.9), 8.0, left_s=float(rng.choice([100.0, 3000.0])))
        shares = rng.uniform(0.3, 2.5, 6).tolist()
        LookAhead(Seer(shares)).decide(now, 1)
        assert (now.placed.sum(axis=1) <= now.cores).all()
        assert (now.placed >= 0).all()
        assert (now.placed.sum(axis=0)[now.cost > 0] > 0).all()


# Averages.


def test_averaging_models_feed_the_reactive_policy() -> None:
    @dataclass
    class Noted:
        seen: list[tuple[float, float]] = field(default_factory=list)
        name: str = "noted"

        def decide(self, now: ClusterView, turn: int) -> None:
            self.seen.append((float(now.external[SHAPE.place("reports")]), float(now.speed[0])))

    for model, rate, speed in (("wpa", 10.0, 1.5), ("wpo", 5.0, 2.0), ("wpp", 15.0, 1.0)):
        now = _situation(_all(1), 10.0)
        core = Noted()
        message = Outlook(np.array([now.external * 0.5, now.external * 1.5]), np.array([now.speed, now.speed / 2]))

        class Told:
            def predict(self, now: ClusterView, message: Outlook = message) -> Outlook:
                return message

        Averaged(model, Told(), core).decide(now, 1)
        assert core.seen[0] == pytest.approx((rate, speed))


def test_waaf_is_the_mean_of_what_was_seen_lately() -> None:
    predictor = RecentMean(3)
    for rate in (4.0, 8.0, 12.0, 16.0):
        now = _situation(_all(1), rate)
        now.speed[:] = rate
        outlook = predictor.predict(now)
    assert outlook.external[:, SHAPE.place("reports")].mean() == pytest.approx(12.0)
    assert outlook.speed[0, 0] == pytest.approx(12.0)
    with pytest.raises(BadValue):
        RecentMean(0)


# Sight that fails.


class Faulty:
    """Forecasts what it saw last, until it is told to fail in one way or another."""

    name = "faulty"

    def __init__(self, series: int, fault: Callable[[], str]) -> None:
        self.series, self.fault = series, fault
        self.last = np.zeros(series)
        self.steps = 0

    def update(self, observations: npt.ArrayLike) -> None:
        seen = np.asarray(observations, dtype=np.float64).reshape(self.series, -1)
        self.last = seen[:, -1]
        self.steps += 1
        if self.fault() == "raises on update":
            raise RuntimeError("no model")

    def forecast(self, horizon: int) -> Forecast:
        match self.fault():
            case "raises":
                raise ValueError("singular matrix")
            case "nan":
                value = np.full(self.series, np.nan)
            case "negative":
                value = -self.last - 1.0
            case "frozen":
                value = np.full(self.series, 7.0)
            case _:
                value = self.last + 0.001 * self.steps
        mean = np.tile(value[:, None], (1, horizon))
        return Forecast(mean, np.repeat(mean[:, :, None], len(LEVELS), axis=2))


SENTENCES = {
    "raises": "raised ValueError: singular matrix",
    "raises on update": "raised RuntimeError: no model",
    "nan": "is not a finite number",
    "negative": "is negative",
    "frozen": "has not moved while the series did",
}


@pytest.mark.parametrize("fault", SENTENCES)
@pytest.mark.parametrize("policy", ["lookahead", "wpa"])
def test_a_forecaster_that_fails_is_noticed_and_the_reactive_policy_decides_until_it_recovers(
    fault: str, policy: str
) -> None:
    fails = False
    predictor = Foresight(
        4,
        SOURCES,
        lambda series: Faulty(series, lambda: fault if fails else ""),
        Machines(Naive(), Settings(horizon=4)),
    )
    core: Core = LookAhead(predictor) if policy == "lookahead" else Averaged(policy, predictor)

    def decided(turn: int) -> tuple[ClusterView, ClusterView]:
        now = _situation(_enough(6.0, 0.9), 5.0 + turn % 3)
        now.omega = 0.5
        other = _copy(now)
        core.decide(now, turn)
        Reactive().decide(other, turn)
        return now, other

    for turn in range(1, 4):
        sound, _ = decided(turn)
        assert not any("observations instead" in message for message in sound.reasons)
    fails = True
    message: list[str] = []
    for turn in range(4, 6 + 2 * FROZEN):
        now, reactive = decided(turn)
        message += [each for each in now.reasons if "observations instead" in each]
    assert len(message) == 1, "told once, not at every turn"
    assert SENTENCES[fault] in message[0]
    assert _same(now, reactive)
    fails = False
    again: list[str] = []
    for turn in range(40, 46):
        now, _ = decided(turn)
        again += [each for each in now.reasons if "valid again" in each]
    assert len(again) == 1


def test_machines_come_and_go_and_new_ones_are_expected_to_do_what_is_usual() -> None:
    machines = Machines(Autoregressive(), Settings(horizon=3))
    rng = np.random.default_rng(1)
    for turn in range(40):
        now = _situation(_enough(20.0, 0.9), 5.0)
        now.machine = tuple(f"vm-{turn // 4 + row}" for row in range(now.held))
        now.speed = 2.0 * rng.uniform(0.7, 0.9, now.held)
        machines.see(now)
        share, lost = machines.ahead(now, 3)
        assert share.shape == (now.held, 3)
        assert not lost
    assert ((share > 0.5) & (share < 1.1)).all()
    now.machine = (*now.machine[:-1], "vm-new")
    now.starts_s[-1] = 60.0
    now.speed[-1] = 2.0
    machines.see(now)
    share, _ = machines.ahead(now, 3)
    assert share[-1] == pytest.approx(now.speed[:-1].mean() / 2.0)


# In whole worlds.


def test_looking_ahead_runs_through_the_protocol_too() -> None:
    setting = _setting(1.5)
    made: list[Placing] = []

    def make() -> Placing:
        predictor = Foresight.of(4, SOURCES, Holt())
        deployment = sized_for(setting, setting.mean_rates())
        made.append(Placing(LookAhead(predictor), ROAD, setting.cloud, deployment, STEP_S, False))
        return made[-1]

    run = simulate(setting, EachReplication(make))
    assert run.summary().omega > 0.7
    assert made[0].name == "lookahead"


def test_what_waits_is_planned_for_where_it_counts() -> None:
    setting = _setting(4.0, counts_queues=True)
    seen = simulate(setting, make_policy("lookahead", setting, PolicySettings("oracle", 6 * STEP_S))).summary()
    assert seen.omega > 0.79
    now = _situation(_enough(20.0, 1.2), 20.0)
    now.counts_queues = True
    before = Trajectory(now, Seer([1.0] * 4).predict(now)).omegas().copy()
    now.waiting[SHAPE.place("congestion")] = 60.0
    behind = Trajectory(now, Seer([1.0] * 4).predict(now)).omegas()
    assert behind[0] < before[0]
    assert (np.diff(behind) > 0).all(), "with more power than comes in, what waits is worked off"


def test_replications_have_eyes_of_their_own() -> None:
    one = _setting(2.0)
    many = replace(one, replications=2)
    ahead = PolicySettings("holt", 4 * STEP_S)
    alone, together = (simulate(each, make_policy("lookahead", each, ahead)) for each in (one, many))
    assert np.array_equal(alone.omega[:, 0], together.omega[:, 0])
    assert not np.array_equal(together.omega[:, 0], together.omega[:, 1])


def test_what_is_decided_is_told() -> None:
    setting = _setting(2.0)
    for name in ("ce", "lookahead"):
        run = simulate(setting, make_policy(name, setting, PolicySettings("oracle", 4 * STEP_S)))
        assert run.reasons
        assert all(each.reason.startswith(("relative throughput", "no forecast")) for each in run.reasons)
        when = {each.at_s for each in run.reasons}
        changed = {each.at_s for each in run.decisions if each.replication is not None}
        assert changed - when <= {each for each in changed if each not in when}
        summary = run.summary()
        assert summary.in_band + summary.left_band / len(run.omega) == pytest.approx(1.0)
        assert summary.changes == sum(each.replication == 0 for each in run.decisions)


def test_the_name_of_the_paper_s_rule_is_lookahead_now() -> None:
    with pytest.raises(InputError, match="policy 'lookahead-plain' is now 'lookahead'"):
        make_policy("lookahead-plain", _setting(1.0))


@pytest.mark.parametrize(
    ("ahead", "message"),
    [
        (PolicySettings("olt"), "unknown forecaster 'olt'"),
        (PolicySettings("oracle:much"), "oracle:ERROR:BIAS"),
        (PolicySettings("oracle:2"), "error and bias"),
        (PolicySettings("holt-winters"), "needs a season"),
        (PolicySettings("holt", 10.0), "shorter than an interval"),
    ],
)
def test_settings_that_cannot_be_are_told_in_a_sentence(ahead: PolicySettings, message: str) -> None:
    setting = _setting(1.0)
    with pytest.raises(InputError, match=message):
        simulate(setting, make_policy("lookahead", setting, ahead))


def test_a_perfect_oracle_earns_more_than_what_was_observed_last() -> None:
    setting = _setting(6.0)
    caf = simulate(setting, make_policy("caf", setting)).summary()
    ahead = simulate(setting, make_policy("lookahead", setting, PolicySettings("oracle", 12 * STEP_S))).summary()
    assert isinstance(make_policy("caf", setting), Reshaped)
    assert caf.theta is not None
    assert ahead.theta is not None
    assert ahead.theta > caf.theta
    assert ahead.omega > 0.79
