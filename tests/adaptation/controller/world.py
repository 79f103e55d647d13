"""A world for controllers: one dataflow whose load follows a function of time, machines of a fake provider, a journal.

What runs is in the journal's snapshots and what machines there are in the provider's record, as with an engine: a
controller can be killed at any moment and another one take over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.adaptation.actions import Action, Pause, Resume, SetPartitions, SetRateLimit, SwitchAlternate
from headgate.adaptation.controller.choice import ControlSettings, PolicyChoice, PolicyMode
from headgate.adaptation.controller.controller import Controller
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.plant import Costed
from headgate.adaptation.policy import Capabilities, Policy, Terms
from headgate.documents import parse
from headgate.errors import InputError
from headgate.machines.provider import Provider
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow, MachineState
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
)
from headgate.model.cluster.vm_class import PER_MINUTE, Cloud
from headgate.model.names import Signature
from headgate.store.entries import Entry, SnapshotPublished
from headgate.store.journal import Journal, create_journal
from tests.machines.fake_provider import FakeProvider

FLOW = parse(
    """
name: town
tasks:
  - {id: read, type: opaque, ports: {outputs: [out]}}
  - id: smooth
    alternates:
      - {name: best, type: opaque, cost_s: 0.010, value: 1.0}
      - {name: quick, type: opaque, cost_s: 0.004, value: 0.7}
    inputs: [read]
  - {id: page, type: opaque, inputs: [smooth]}
""",
    "yaml",
).dataflow
READ, SMOOTH, PAGE = Signature("read"), Signature("smooth"), Signature("page")
SIGNATURES = {task.id: Signature(str(task.id)) for task in FLOW.tasks}
COSTS = {"best": 0.010, "quick": 0.004}
OBSERVED_S = 5.0
EFFICIENCY = 0.95

Rate = Callable[[float], float]


@dataclass
class FakeCluster:
    """An engine that a controller works on."""

    journal: Journal
    provider: Provider
    clock: Callable[[], float]
    rate: Rate
    waiting: float = 0.0
    in_one_piece: bool = False
    """Whether the source's rows stay in one partition until somebody cuts the task behind it."""

    _observed: float = -1.0

    def state(self) -> dict[str, Any]:
        """What the last snapshot says."""
        last = self.journal.latest(SnapshotPublished)
        return dict(last.snapshot) if last is not None else {"active": "best", "partitions": None, "paused": False}

    def observations(self) -> Sequence[Observation]:
        now = self.clock()
        if self._observed < 0:
            self._observed = now
        if now - self._observed < OBSERVED_S:
            return []
        seconds, self._observed = now - self._observed, now
        return [self._observation(now, seconds)]

    def terms(self, costed: Costed) -> tuple[Terms, Capabilities] | None:
        del costed
        cloud = Cloud("fake", self.provider.classes(), PER_MINUTE)
        kinds = {"switch_alternate", "set_partitions", "set_rate_limit", "pause", "resume"}
        kinds |= {"acquire_machine", "release_machine"}
        terms = Terms(FLOW, SIGNATURES, cloud, 60.0, 60, levels={"town": FLOW.service_level}, owners=_OWNERS)
        can = Capabilities(("spark",), frozenset(kinds), switchable=frozenset({SMOOTH}), resizable=frozenset({SMOOTH}))
        return terms, can

    def publish(self, actions: Sequence[Action], by: str, reason: str, done: Callable[[int], Sequence[Entry]]) -> None:
        assert by.startswith("policy ")
        assert reason.startswith("decision ")
        state = self.state()
        for action in actions:
            match action:
                case SwitchAlternate(_, alternate):
                    if alternate not in COSTS:
                        raise InputError("UNKNOWN_ALTERNATE", f"there is no alternate '{alternate}'")
                    state["active"] = alternate
                case SetPartitions(_, partitions):
                    state["partitions"] = partitions
                case SetRateLimit(_, rows):
                    state["limit"] = rows
                case Pause():
                    state["paused"] = True
                case Resume():
                    state["paused"] = False
                case _:
                    raise InputError("ACTION_REFUSED", f"cannot do {action}")
        last = self.journal.latest(SnapshotPublished)
        number = 1 if last is None else last.number + 1
        self.journal.append(*done(number), SnapshotPublished(number, state))

    def _observation(self, now: float, seconds: float) -> Observation:
        rows = [self._row(machine) for machine in self.provider.list()]
        cores = sum(row.cores for row in rows if row.works)
        parts = (self.state()["partitions"] or 1) if self.in_one_piece else None
        power = EFFICIENCY * (cores if parts is None else parts * cores / max(-(-parts // cores) * cores, 1))
        active = self.state()["active"]
        came = self.rate(now) * seconds
        there = self.waiting + came
        done = min(there, power * seconds / COSTS[active])
        self.waiting = there - done
        count = round(done)
        sojourn = Sojourn(*(4 * [0.5 + self.waiting / max(done / seconds, 1.0)]))
        users = ("town",)
        costs = tuple(AlternateCost(SMOOTH, name, cost, Origin.MEASURED) for name, cost in COSTS.items())
        free = tuple(AlternateCost(each, str(each), 0.0, Origin.GIVEN) for each in (READ, PAGE))
        return Observation(
            now,
            seconds,
            (
                TaskObservation(READ, "read", "opaque", "opaque", users, None, count, count),
                TaskObservation(SMOOTH, "smooth", "opaque", active, users, None, count, count, inputs=(READ,)),
            ),
            (SinkObservation(PAGE, "page", users, count, sojourn, (SMOOTH,)),),
            (
                FragmentObservation(
                    "f",
                    "source",
                    (READ, SMOOTH, PAGE),
                    10,
                    count,
                    round(self.waiting),
                    seconds,
                    0.1,
                    0.0,
                    seconds - 0.2,
                    0.1,
                    rows_arrived=came,
                    work_s=done * COSTS[active],
                    parts=parts,
                ),
            ),
            MachineObservations.of(rows),
            (SourceObservation(READ, "read", users, count, came, self.waiting),),
            costs=(*costs, *free),
        )

    def _row(self, machine: Any) -> MachineRow:
        return MachineRow(
            machine.name,
            machine.vm_class.name,
            machine.state,
            machine.vm_class.cores,
            speed=1.0,
            asked=machine.acquired_at,
            ready=machine.ready_at,
            price_per_h=machine.vm_class.price_per_h,
            key=machine.key,
            pool="spark",
            workers=1 if machine.state is MachineState.READY else 0,
        )


_OWNERS = {"town": ("read", "smooth", "page")}


@dataclass
class World:
    """All of it, and the controller that is alive."""

    folder: Path
    make_policy: Callable[[str], Policy]
    rate: Rate = lambda _now: 50.0
    mode: PolicyMode = PolicyMode.AUTO
    rails: GuardRails = field(default_factory=GuardRails)
    settings: ControlSettings = field(default_factory=lambda: ControlSettings(60.0, 60.0))
    provider: Provider | None = None
    """A healthy one if none is given."""

    fallback: str = "any"
    in_one_piece: bool = False
    begins_with: int = 1
    now: float = 1_000.0
    controller: Controller = field(init=False)
    cluster: FakeCluster = field(init=False)
    journal: Journal = field(init=False)
    fake: FakeProvider = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fake = FakeProvider(self.folder, lambda: self.now)
        for _ in range(self.begins_with):
            self.fake.acquire("small")
        self.provider = self.provider or self.fake
        self.now += 10.0
        self.provider.list()
        create_journal(self.folder / "journal")
        self.journal = Journal(self.folder / "journal")
        self.start()

    def start(self) -> None:
        """A controller takes over what is there."""
        assert self.provider is not None
        waiting = self.cluster.waiting if hasattr(self, "cluster") else 0.0
        self.cluster = FakeCluster(self.journal, self.provider, lambda: self.now, self.rate, waiting, self.in_one_piece)
        choice = PolicyChoice("any", self.mode, self.rails)
        self.controller = Controller(
            self.cluster, self.provider, self.journal, self.settings, self.make_policy, self.fallback, choice, "e1"
        )

    def restart(self) -> None:
        """As after a kill: only what is on the disk is left."""
        self.journal.close()
        self.journal = Journal(self.folder / "journal")
        self.start()

    def run(self, seconds: float, step_s: float = 5.0) -> Iterator[float]:
        """Let time pass, a tick at a time."""
        until = self.now + seconds
        while self.now < until:
            self.now += step_s
            self.controller.tick(self.now)
            yield self.now

    def pass_time(self, seconds: float, step_s: float = 5.0) -> None:
        for _ in self.run(seconds, step_s):
            pass

    def machines(self) -> list[str]:
        """The classes of machines that work or start."""
        alive = (MachineState.STARTING, MachineState.READY)
        return sorted(machine.vm_class.name for machine in self.fake.list() if machine.state in alive)

    def outcome(self) -> tuple[dict[str, Any], list[str]]:
        """What runs, and on which machines."""
        return self.cluster.state(), self.machines()

    def cost_per_h(self) -> Decimal:
        return sum((each.vm_class.price_per_h for each in self.fake.list()), Decimal(0))
