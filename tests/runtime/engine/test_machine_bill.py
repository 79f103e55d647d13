"""The bill of a provider's machines is what a judge makes of their life cycle and of what ran, to the last digit."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.errors import HeadgateError
from headgate.machines.provider import AcquiredMachine, MachineState
from headgate.model.cluster.observation import Observation
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine import upkeep
from headgate.runtime.engine.scaling import Scaling
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.upkeep import Upkeep
from headgate.service.bill import bill, bill_span
from tests.compiled import plan_of
from tests.judge.profit import Machine, machine_bill
from tests.machines.fake_provider import FakeProvider
from tests.runtime.small import files, flow, memory

BEGAN = 1_000_000


def machines_of(record: Path) -> list[Machine]:
    """As the provider's own record has them."""
    machines: dict[str, Machine] = {}
    for event in map(json.loads, record.read_text().splitlines()):
        if event["event"] == "acquired":
            kind = event["vm_class"]
            price = Fraction(kind["price_per_h"])
            machines[event["machine"]] = Machine(event["machine"], kind["cores"], price, event["at"])
        elif event["event"] == "released":
            machines[event["machine"]].gone = event["at"]
    return list(machines.values())


class Rig:
    """An engine's upkeep on a clock that the test moves, with a provider."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.now = float(BEGAN)
        patch.setattr(upkeep, "time", SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now))
        self.provider = FakeProvider(folder, lambda: self.now, drain_s=0.0)
        self.state, self.usage = folder / "state", list[tuple[float, list[list[str]]]]()
        self.plans: Any = SimpleNamespace()
        self.kept: Upkeep

    def start(self) -> None:
        """An engine begins with the state directory."""
        self.directory = StateDirectory(self.state)
        rest: Any = None
        scaling = Scaling(rest, self.provider)
        self.kept = Upkeep(self.directory, self.plans, rest, rest, Decimal("0.10"), scaling)

    def run(self, seconds: float, *flows: Dataflow) -> None:
        """Run these dataflows for a while, and note it as the outside sees it."""
        self.plans.current = plan_of(*flows)
        self.plans.snapshot = SimpleNamespace(dataflows=flows, signatures=(), levels={})
        users = [sorted(task.users) for task in self.plans.current.tasks.values()]
        self.usage.append((float(int(self.now)), users))
        self.kept.meter()
        self.later(seconds)

    def later(self, seconds: float) -> None:
        """Time passes, and the engine does now and then what it does."""
        self.now += seconds
        self.kept.observe(lambda: Observation(self.now, max(seconds, 1.0)))
        self.kept.meter()

    def end(self) -> None:
        self.usage.append((float(int(self.now)), []))
        self.kept.end(cast(Any, SimpleNamespace(save_totals=lambda _: None)))
        self.directory.close()


def test_money_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig, source = Rig(tmp_path, monkeypatch), {"id": "src", **files(tmp_path / "in")}
    a = flow("a", source, memory("a"))
    b = flow("b", source, {"type": "filter", "config": {"where": "id > 3"}}, memory("b"))
    rig.provider.acquire("small")
    rig.now += 7.25
    rig.start()
    rig.run(1_000.5, a)
    rig.provider.acquire("large")
    rig.run(500.25, a, b)
    rig.provider.release("small-1")
    assert rig.provider.list(gone=True)[0].state is MachineState.RELEASED
    rig.run(60.0, b)
    rig.end()
    rig.now += 100.0
    rig.start()
    rig.run(50.0, a)
    rig.end()
    for period_s in (1.0, 60.0, 3_600.0):
        drawn = bill(rig.state, bill_span(period_s=period_s))
        machines = machines_of(tmp_path / "acquisitions.jsonl")
        assert [machine.gone is None for machine in machines] == [False, True]
        ended = drawn.end.timestamp()
        assert ended == int(rig.now)
        whole, lines = machine_bill(machines, rig.usage, {"period_s": period_s, "least_s": 0}, ended)
        assert drawn.total == round(whole / Fraction(1, 10_000)) * Decimal("0.0001")
        assert drawn.total == sum((line.cost for line in drawn.lines), drawn.idle)
        for line in drawn.lines:
            assert abs(Fraction(line.cost) - lines[line.dataflow]) <= Fraction(1, 10_000), "but for the last digit"
    assert drawn.unused > Decimal("0.02"), "over half an hour at 0.05 is paid, and not used"


def test_a_provider_that_does_not_answer_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(tmp_path, monkeypatch)
    rig.start()

    def silent(*, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        raise HeadgateError("NO_ANSWER", f"the provider did not answer ({gone})")

    monkeypatch.setattr(rig.provider, "list", silent)
    rig.run(10.0, flow("a", {"id": "src", **files(tmp_path / "in")}, memory("a")))
    rig.end()
