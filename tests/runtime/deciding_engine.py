"""An engine that decides by a script and is killed while it does: ``test_killed_while_deciding`` forks it.

``FOLDER/script.json`` has a number and actions: the policy decides them once, which the journal says. Machines are
lines in a file (:class:`tests.machines.fake_provider.FakeProvider`). What runs is in ``FOLDER/facts.json``.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.adaptation.actions import action_of
from headgate.adaptation.controller.choice import ControlSettings, PolicyChoice, PolicyMode
from headgate.adaptation.controller.controller import Controller
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.records import recorded_decisions
from headgate.adaptation.controller.windows import EpochGoal
from headgate.adaptation.policy import Capabilities, Decision, Memory, Prediction, Reason, Terms
from headgate.adaptation.window import Window
from headgate.documents import parse
from headgate.machines.provider import machine_class
from headgate.model.cluster.vm_class import BillingPeriod, VmClass
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine import upkeep
from headgate.runtime.engine.controlled import ControlledEngine, ScalingProvider
from headgate.runtime.engine.engine import Engine
from headgate.runtime.spark_internals.session import open_session
from headgate.service import control
from headgate.service.control import ControlLoop
from headgate.store.files import write_json
from headgate.store.journal import Journal
from tests.machines.fake_provider import LARGE, SMALL, FakeProvider

RAILS = GuardRails(cooldown_s=0.0, shrink_after_s=0.0, floor_s=0.0, changes_per_h=10**6, reversals=10**6, epochs_min=0)
"""None: what is decided is to be done."""

LOOK_S = 0.2
WINDOW_S = 600.0
"""Long enough that nothing is abandoned because an engine took its time to start."""


def flows(folder: Path) -> list[Dataflow]:
    """One of which everything can be changed, and one that goes on while the other is paused."""
    source = {"id": "read", "type": "read_files"}
    source["config"] = {"path": str(folder / "in"), "columns": "id long, v double"}  # type: ignore[assignment]
    ways = [
        {"name": name, "type": "derive", "config": {"columns": {"way": f"'{name}'"}}, "value": value, "cost_s": cost}
        for name, value, cost in (("best", 1.0, 0.010), ("quick", 0.7, 0.004))
    ]
    made = []
    for name, more in (("town", [{"id": "smooth", "alternates": ways, "inputs": ["read"]}]), ("side", [])):
        last = more[-1]["id"] if more else "read"
        out = {"type": "write_files", "config": {"path": str(folder / "out" / name)}, "inputs": [last]}
        tasks = [source, *more, {"id": "out", **out}]
        made.append(parse(json.dumps({"name": name, "tasks": tasks}), "json").dataflow)
    return made


class QuickMachines(FakeProvider):
    """Machines that are there at once."""

    def classes(self) -> tuple[VmClass, ...]:
        return tuple(
            machine_class(each.name, each.cores, each.memory_bytes, each.price_per_h, boot_s=0.1)
            for each in (SMALL, LARGE)
        )


@dataclass(frozen=True, slots=True)
class Script:
    """Decides what the file says, once."""

    file: Path
    journal: Journal
    name: str = "script"
    version: int = 1

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        del terms, capabilities
        return Memory(self.name, self.version)

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        if not self.file.exists():
            return Decision(), memory
        script = json.loads(self.file.read_text(encoding="utf-8"))
        rule = f"script {script['number']}"
        if any(each.made.decision["rule"] == rule for each in recorded_decisions(self.journal)):
            return Decision(), memory
        actions = tuple(action_of(each) for each in script["actions"])
        return Decision(actions, Reason(rule, ("it is time",)), Prediction(seen.ended_s)), memory


def facts_of(engine: Engine, loop: ControlLoop) -> dict[str, Any]:
    """What runs, and how far decisions are."""
    snapshot = engine.snapshot
    names = {str(signature): str(task) for name in snapshot.stored for task, signature in _tasks(engine, name)}
    choice = engine.alternates("town")
    return {
        "active": {str(task): way.alternate for task, way in choice.items() if len(way.alternates) > 1},
        "partitions": {names[task]: count for task, count in snapshot.partitions.items()},
        "limits": {names[task]: rows for task, rows in snapshot.limits.items()},
        "paused": sorted(snapshot.paused),
        "under_way": len(loop.controller.under_way),
        "failure": loop.failure,
        "at": time.time(),
    }


def _tasks(engine: Engine, name: str) -> Any:
    return engine.snapshot.submitted(name).signatures.items()  # type: ignore[arg-type]


def main() -> None:
    """Run until it is killed."""
    folder = Path(sys.argv[1])
    upkeep.OBSERVE_EVERY_S = 0.4
    control.TICK_S = 0.1
    spark = open_session("local[2]", {"spark.ui.enabled": "false"}, log=folder / "spark.log")
    provider = QuickMachines(folder, time.time, drain_s=0.1)
    with Engine(folder / "state", spark=spark, trigger_s=0.2, provider=provider) as engine:
        there = {flow.name for flow in engine.dataflows}
        for flow in flows(folder):
            if flow.name not in there:
                engine.submit(flow)
        controller = Controller(
            ControlledEngine(engine, 1.0, 0.2, BillingPeriod(0.5)),
            ScalingProvider(engine.scaling),
            engine.journal,
            ControlSettings(1.0, WINDOW_S, EpochGoal(0.2, 2.0)),
            lambda _: Script(folder / "script.json", engine.journal),
            "script",
            PolicyChoice("script", PolicyMode.AUTO, RAILS),
            "e1",
        )
        with ControlLoop(engine, controller) as loop:
            while True:
                engine.housekeep()
                write_json(folder / "facts.json", facts_of(engine, loop))
                time.sleep(LOOK_S)
