"""A controller of an engine that is not there: a real one, over a fake cluster and a fake provider."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headgate.adaptation.controller.choice import PolicyChoice, PolicyMode
from headgate.adaptation.controller.live_policies import live_policy
from headgate.errors import unknown
from headgate.service.control import ControlLoop
from headgate.store.journal import Journal
from tests.adaptation.controller.world import World


class FakeScaledEngine:
    """Machines of a fake provider, and executors that are only a number."""

    def __init__(self, world: World, journal: Journal) -> None:
        self.world, self.journal = world, journal
        self.executors = 1
        self.scaling: Any = SimpleNamespace(
            provider=world.fake,
            executors=SimpleNamespace(list=lambda: [SimpleNamespace(id="0", host="h", cores=1)], target=None),
            check=self._check,
            acquire=world.fake.acquire,
        )

    def _check(self, acquired: list[str], released: list[str]) -> None:
        known = [each.name for each in self.world.fake.classes()]
        for name in acquired:
            if name not in known:
                raise unknown("UNKNOWN_VM_CLASS", f"no VM class '{name}' is known", name, known)
        assert not released

    def release(self, machine: str) -> None:
        self.world.fake.release(machine)

    def scale(self, executors: int) -> None:
        self.executors = executors


def fake_control(folder: Path) -> ControlLoop:
    """A controller that has lived through a rush, with its decisions in a journal of its own."""
    world = World(folder / "world", live_policy, rate=lambda now: 150.0 if now > 1_100 else 50.0)
    world.controller.choose(world.now, PolicyChoice("threshold", PolicyMode.AUTO))
    world.pass_time(400.0)
    return ControlLoop(FakeScaledEngine(world, world.journal), world.controller)
