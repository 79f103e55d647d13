"""The controller: what it does under load, what it writes down, and what is left when it is killed anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    Pause,
    ReleaseMachine,
    Resume,
    SetPartitions,
    SetRateLimit,
    SwitchAlternate,
)
from headgate.adaptation.controller.choice import ControlSettings, PolicyChoice, PolicyMode
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.records import decided_again, decision_document, recorded_decisions
from headgate.adaptation.policies.pooled_target import PooledTarget
from headgate.adaptation.policy import Capabilities, Decision, Memory, Prediction, Reason, Terms
from headgate.adaptation.window import Window
from headgate.machines.provider import AcquiredMachine
from headgate.model.cluster.vm_class import VmClass
from headgate.store.decision_entries import DecisionEnded, DecisionMade, DecisionOutcome, PolicyChosen, StepChanged
from headgate.store.journal import Journal
from tests.adaptation.controller.world import READ, SMOOTH, World
from tests.machines.fake_provider import FakeProvider

QUICK = GuardRails(cooldown_s=0.0, shrink_after_s=0.0, floor_s=0.0)


@dataclass(frozen=True, slots=True)
class Scripted:
    """Decides the same actions once, at its first turn."""

    actions: tuple[Action, ...]
    prediction: Prediction | None = None
    name: str = "any"
    version: int = 1

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        del terms, capabilities
        return Memory(self.name, self.version, {"turn": 0})

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        del seen
        turn = memory.values["turn"]
        after = Memory(self.name, self.version, {"turn": turn + 1})
        if turn:
            return Decision(), after
        return Decision(self.actions, Reason("script", ("it is time",)), self.prediction), after


ACTIONS: dict[str, tuple[Action, ...]] = {
    "cheaper": (SwitchAlternate(SMOOTH, "quick"),),
    "partitions": (SetPartitions(SMOOTH, 4),),
    "limit": (SetRateLimit(READ, 20.0),),
    "pause": (Pause("town"),),
    "resume": (Resume("town"),),
    "acquire": (AcquireMachine("small"), AcquireMachine("large")),
    "release": (ReleaseMachine("small-2"),),
    "grow": (AcquireMachine("large"), SetPartitions(SMOOTH, 8), SwitchAlternate(SMOOTH, "quick")),
    "swap": (AcquireMachine("large"), SwitchAlternate(SMOOTH, "quick"), ReleaseMachine("small-1")),
}


class KilledHere(BaseException):
    """The process has ended."""


@dataclass
class Killer:
    """Ends the process at the n-th of its moments."""

    at: int
    passed: int = 0

    def moment(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            raise KilledHere


class KillingJournal(Journal):
    """Ends the process before or after it has appended."""

    killer: Killer

    def append(self, *entries: Any, durable: bool = True) -> int:
        self.killer.moment()
        position = super().append(*entries, durable=durable)
        self.killer.moment()
        return position


@dataclass
class KillingProvider:
    """Ends the process before or after a request is heard."""

    inner: FakeProvider
    killer: Killer

    def classes(self) -> tuple[VmClass, ...]:
        return self.inner.classes()

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        self.killer.moment()
        machine = self.inner.acquire(vm_class, key)
        self.killer.moment()
        return machine

    def release(self, machine: str) -> None:
        self.killer.moment()
        self.inner.release(machine)
        self.killer.moment()

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        return self.inner.list(gone=gone)


def undisturbed(folder: Path, actions: tuple[Action, ...]) -> World:
    world = World(folder, lambda _: Scripted(actions), rails=QUICK, begins_with=3)
    world.pass_time(240.0)
    return world


def killed_at(folder: Path, actions: tuple[Action, ...], moment: int) -> tuple[World, bool]:
    """A world in which the process is killed at a moment and starts again; and whether it came to that."""
    world = World(folder, lambda _: Scripted(actions), rails=QUICK, begins_with=3)
    killer = Killer(moment)
    world.journal.close()
    journal = KillingJournal(folder / "journal")
    journal.killer = killer
    world.journal, world.provider = journal, KillingProvider(world.fake, killer)
    world.start()
    try:
        world.pass_time(240.0)
    except KilledHere:
        world.provider = world.fake
        world.restart()
        world.pass_time(240.0)
        return world, True
    return world, False


@pytest.mark.parametrize("kind", ACTIONS)
def test_killed_at_any_moment_it_comes_to_the_same(tmp_path: Path, kind: str) -> None:
    """Before and after each write and each request: the same state, no machine twice, none forgotten."""
    whole = undisturbed(tmp_path / "whole", ACTIONS[kind])
    expected = whole.outcome()
    bought = sum(isinstance(action, AcquireMachine) for action in ACTIONS[kind])
    moment, killed = 1, True
    while killed:
        world, killed = killed_at(tmp_path / str(moment), ACTIONS[kind], moment)
        assert world.outcome() == expected, f"killed at moment {moment}"
        keys = [machine.key for machine in world.fake.list(gone=True) if machine.key is not None]
        assert len(keys) == len(set(keys)) == bought
        assert list(world.controller.under_way) == []
        assert all(record.ended is not None for record in recorded_decisions(world.journal))
        world.journal.close()
        moment += 1
    assert moment > 4


def test_what_was_seen_while_a_fragment_began_does_not_count(tmp_path: Path) -> None:
    """Its first epochs load code and start processes, however many of them are in one observation."""
    world = World(tmp_path, live_policy)
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO))
    world.pass_time(10.0)
    assert world.controller.thought is None
    world.pass_time(5.0)
    assert world.controller.thought is not None


@dataclass(frozen=True, slots=True)
class Buyer:
    """Wants one machine more at every turn."""

    name: str = "any"
    version: int = 1

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        del terms, capabilities
        return Memory(self.name, self.version)

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        del seen
        return Decision((AcquireMachine("large"),), Reason("more")), memory


def test_the_cool_down_begins_with_a_machine_that_is_still_waited_for(tmp_path: Path) -> None:
    """A newer decision takes the place of one that waits; what that one has done counts all the same."""
    rails = GuardRails(cooldown_s=100.0, shrink_after_s=0.0, floor_s=0.0)
    world = World(tmp_path, lambda _: Buyer(), rails=rails, settings=ControlSettings(5.0, 60.0))
    world.pass_time(90.0)
    assert world.machines() == ["large", "small"]
    world.restart()
    world.pass_time(10.0)
    assert world.machines() == ["large", "small"]
    world.pass_time(60.0)
    assert world.machines() == ["large", "large", "small"]


def test_a_decision_that_waited_too_long_is_abandoned(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: Scripted(ACTIONS["acquire"]), rails=QUICK)
    for _ in world.run(200.0):
        if world.controller.under_way:
            break
    assert [record.number for record in world.controller.under_way] == [1]
    world.now += 3_600.0
    world.restart()
    world.pass_time(200.0)
    ended = world.journal.latest(DecisionEnded, "1")
    assert ended is not None
    assert (ended.outcome, ended.reason) == (
        DecisionOutcome.ABANDONED,
        "it was made too long ago, and nothing of it was done",
    )
    assert world.machines() == ["small"]


def rush(now: float) -> float:
    """Rows a second: 50, and 500 from the 20th to the 60th minute."""
    return 500.0 if 2_200 <= now < 4_600 else 50.0


def test_load_comes_and_goes(tmp_path: Path) -> None:
    """Up: the cheaper alternate at once, machines, the better one again. Down: machines go. Rows are all done."""
    rails = GuardRails(floor_s=600.0)
    world = World(tmp_path, live_policy, rate=rush, rails=rails)
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO, rails))
    seen: list[tuple[float, str, int]] = []
    for now in world.run(9_000.0):
        state, machines = world.outcome()
        if not seen or seen[-1][1:] != (state["active"], len(machines)):
            seen.append((now, state["active"], len(machines)))
    ways = [active for _, active, _ in seen]
    assert ways[0] == "best"
    assert "quick" in ways
    assert ways[-1] == "best"
    assert next(now for now, active, _ in seen if active == "quick") < 2_200 + 30
    in_rush = [count for now, _, count in seen if 2_600 < now < 4_600]
    assert max(in_rush) >= 2
    assert world.machines() == ["small"]
    assert world.cluster.waiting < 1
    assert len(seen) < 20


def test_every_decision_can_be_made_again_from_its_record(tmp_path: Path) -> None:
    world = World(tmp_path, live_policy, rate=rush)
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO, GuardRails(floor_s=600.0)))
    world.pass_time(6_000.0)
    world.restart()
    records = list(recorded_decisions(world.journal))
    assert len(records) >= 3
    for record in records:
        again = decided_again(record, world.journal, PooledTarget())
        assert decision_document(again) == record.made.decision


@pytest.mark.parametrize(
    ("mode", "policy"),
    [(PolicyMode.OFF, "threshold"), *((PolicyMode.RECOMMEND, name) for name in ("threshold", "ce", "ds2"))],
)
def test_what_is_not_auto_changes_nothing(tmp_path: Path, mode: PolicyMode, policy: str) -> None:
    """What runs, every request to the provider and every step that was written down: as under off."""
    world = World(tmp_path, live_policy, rate=rush, mode=mode)
    world.controller.choose(world.now, PolicyChoice(policy, mode))
    before = world.outcome()
    asked = list(world.fake.asked)
    world.pass_time(4_800.0)
    assert world.outcome() == before
    assert world.fake.asked == asked
    assert list(world.journal.every(StepChanged)) == []
    records = list(recorded_decisions(world.journal))
    assert bool(records) is (mode is PolicyMode.RECOMMEND)
    assert {record.ended.outcome for record in records if record.ended and record.made.guarded["actions"]} <= {
        DecisionOutcome.RECOMMENDED
    }


def test_the_choice_outlives_the_process(tmp_path: Path) -> None:
    world = World(tmp_path, live_policy, mode=PolicyMode.OFF)
    chosen = PolicyChoice("threshold", PolicyMode.RECOMMEND, GuardRails(machines_max=7), "ana")
    world.controller.choose(world.now, chosen)
    world.restart()
    assert world.controller.choice == chosen


def test_a_policy_that_predicts_badly_decides_no_longer(tmp_path: Path) -> None:
    @dataclass(frozen=True, slots=True)
    class Boaster:
        name: str
        version: int = 1

        def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
            del terms, capabilities
            return Memory(self.name, 1)

        def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
            other = "quick" if seen.active[seen.shape.place("smooth")] == 0 else "best"
            actions = (SwitchAlternate(SMOOTH, other),)
            return Decision(actions, Reason("boast"), Prediction(seen.ended_s, omega=0.2)), memory

    rails = GuardRails(cooldown_s=0.0, shrink_after_s=0.0, reversals=100)
    world = World(tmp_path, Boaster, rails=rails)
    world.controller.choose(world.now, PolicyChoice("boaster", PolicyMode.AUTO, rails))
    world.pass_time(1_500.0)
    chosen = world.journal.latest(PolicyChosen)
    assert chosen is not None
    assert (chosen.policy, chosen.mode, chosen.by) == ("any", "recommend", "controller")
    assert "off by more than 30% 3 times in a row" in chosen.reason


@dataclass
class Judge:
    """Looks at machines and at nothing else."""

    world: World
    most: int
    budget: float
    seen: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        every = self.world.fake.list(gone=True)
        keys = Counter(machine.key for machine in every if machine.key is not None)
        assert not keys or max(keys.values()) == 1, "a machine was acquired twice for one step"
        alive = [machine for machine in every if not machine.is_gone]
        assert len(alive) <= self.most + 1  # one that drains may still be there
        assert sum(float(machine.vm_class.price_per_h) for machine in alive) <= self.budget + 0.2
        asked = [m.acquired_at for m in every if m.key is not None and m.acquired_at > self.world.now - 3_600]
        assert len(asked) <= 12 + 3 + 3, "more changes than guard rails allow"


def random_ticks(folder: Path, ticks: int, seed: int, load: Callable[[float], float]) -> World:
    rails = GuardRails(machines_max=6, floor_s=600.0)
    world = World(folder, live_policy, rate=load)
    world.fake = FakeProvider(folder, lambda: world.now, refuses=0.2, forgets=0.2, loses=0.002, delays=0.05, seed=seed)
    world.provider = world.fake
    world.restart()
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO, rails))
    judge = Judge(world, 6, 6 * 0.2)
    for number, _ in enumerate(world.run(ticks * 5.0)):
        judge.look()
        if number % 997 == 500:
            world.restart()
    return world


def calm_down(world: World) -> None:
    world.fake = FakeProvider(world.folder, lambda: world.now)
    world.provider, world.rate = world.fake, lambda _: 20.0
    world.restart()
    world.controller.choose(world.now, world.controller.choice)
    world.pass_time(2 * 3_600.0, 15.0)
    assert list(world.controller.under_way) == []
    assert len(world.machines()) == 1
    assert world.cluster.waiting < 1


def waves(now: float) -> float:
    return 40.0 + 400.0 * (int(now) // 1_500 % 2) + 100.0 * (int(now) // 700 % 3)


def test_a_provider_that_loses_delays_and_refuses(tmp_path: Path) -> None:
    calm_down(random_ticks(tmp_path, 500, 1, waves))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_ticks(tmp_path: Path) -> None:
    calm_down(random_ticks(tmp_path, 10_000, 2, waves))


def _made(journal: Journal) -> Sequence[DecisionMade]:
    return [record.made for record in recorded_decisions(journal)]


def test_a_lost_machine_is_replaced_at_once(tmp_path: Path) -> None:
    rails = GuardRails(shrink_after_s=10_000.0)
    world = World(tmp_path, live_policy, rate=lambda _: 150.0, rails=rails, begins_with=3)
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO, rails))
    world.pass_time(300.0)
    assert _made(world.journal) == []
    for name in ("small-2", "small-3"):
        world.fake.lose(name)
    lost_at = world.now
    world.pass_time(60.0)
    assert _made(world.journal)[0].at - lost_at <= 15.0
    assert len(world.machines()) >= 2
