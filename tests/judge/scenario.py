"""The changes that a judged engine gets: dataflows of several owners that stay, and others that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.judge.flows import ALTERNATES, Flow
from tests.judge.rig import Rig

__all__ = ["KINDS", "Scenario"]

KINDS = ("submit", "withdraw", "replace", "switch", "pause", "partitions")
"""The kinds of changes; a strategy is chosen when an engine is made, and every kind is made under each."""

BASE = Flow("base", "ann", ("rows", "counts", "firsts", "windows"), "base")
ALTER = Flow("alter", "bob", ("alternate",), ALTERNATES[0])
RESTING = Flow("resting", "cid", ("rows", "counts"), "resting")
STRICT = Flow("strict", "fay", ("rows", "sifted"), "strict")
"""Its first sink refuses its rows now and then, and a task of the second raises for some."""

GUESTS = ("g0", "g1", "g2", "g3")


@dataclass(slots=True)
class Scenario:
    """Makes one change after the other, each of which the engine can make as things stand."""

    rig: Rig
    guests: dict[str, Flow] = field(default_factory=dict)
    """Those that were asked for last, by name."""

    lives: int = 0
    alternate: int = 0
    paused: bool = False
    parts: int | None = None

    def begin(self) -> None:
        """Start the engine, and submit what stays."""
        self.rig.start()
        assert self.rig.submit(BASE, ALTER, RESTING, STRICT)

    def ready(self, kind: str) -> None:
        """Bring about what a kind of change needs; the sink that refuses begins or ceases to."""
        self.rig.refuse(STRICT, "rows", self.rig.rnd.random() < 0.5)
        if kind in ("withdraw", "replace") and not self.guests:
            self.change("submit")
        elif kind == "submit" and len(self.guests) > 2:
            self.change("withdraw")

    def change(self, kind: str) -> bool:
        """Make a change of that kind; says whether it was answered."""
        rig = self.rig
        match kind:
            case "submit":
                free = [name for name in GUESTS if name not in self.guests]
                made = [self._guest(name) for name in rig.rnd.sample(free, min(len(free), rig.rnd.choice([1, 2])))]
                self.guests |= {flow.name: flow for flow in made}
                return rig.submit(*made)
            case "withdraw":
                gone = rig.rnd.sample(sorted(self.guests), rig.rnd.choice([1, len(self.guests)]))
                self.guests = {name: flow for name, flow in self.guests.items() if name not in gone}
                return rig.withdraw(*gone)
            case "replace":
                name = rig.rnd.choice(sorted(self.guests))
                self.lives += 1
                self.guests[name] = replace(self.guests[name], label=f"{name}.{self.lives}")
                return rig.submit(self.guests[name], update=True)
            case "switch":
                self.alternate = 1 - self.alternate
                return rig.switch("alter", "alternate", ALTERNATES[self.alternate])
            case "pause":
                self.paused = not self.paused
                return rig.pause("resting") if self.paused else rig.resume("resting", RESTING.label)
            case "partitions":
                self.parts = rig.rnd.choice([count for count in (None, 1, 2, 3) if count != self.parts])
                return rig.partitions("base", "clean", self.parts)
        raise ValueError(kind)

    def _guest(self, name: str) -> Flow:
        self.lives += 1
        owner, outputs = "dan" if name < "g2" else "eve", ("rows", "counts", "own")
        return Flow(name, owner, outputs, f"{name}.{self.lives}", "with base")
