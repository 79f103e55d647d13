"""An engine is killed at each write of a decision, whatever it decides, and the next one brings it to its end.

The engine and its journal are real, and what ends it is a signal. Machines are lines in a file. What must be there in
the end follows from what was decided, and is computed here.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
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
    document_of,
)
from headgate.model.names import Signature
from headgate.sharing.deduplicate import deduplicate
from headgate.store.decision_entries import DecisionEnded, DecisionMade, DecisionVerified
from headgate.store.durable_steps import MOMENTS
from headgate.store.journal import read_journal
from tests.judge.processes import WarmStarts
from tests.processes import PATIENCE_S
from tests.runtime.deciding_engine import flows
from tests.runtime.small import json_rows, put

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.own_spark]

WRITES = ("decision", "step", "machine", "decision-ended")
"""The durable steps that a decision comes to; a plan snapshot is one write with the step that it is."""


@dataclass
class Wanted:
    """What is to be, from what was decided; the one who decides is not asked."""

    smooth: str = "best"
    partitions: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    machines: Counter[str] = field(default_factory=Counter)
    bought: int = 0

    def do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case SwitchAlternate(_, alternate):
                    self.smooth = alternate
                case SetPartitions(_, int(count)):
                    self.partitions["smooth"] = count
                case SetRateLimit(_, rows):
                    self.limits = {} if rows is None else {"read": round(rows * 0.2)}
                case Pause(name):
                    self.paused.add(name)
                case Resume(name):
                    self.paused.discard(name)
                case AcquireMachine(vm_class):
                    self.machines[vm_class] += 1
                    self.bought += 1
                case ReleaseMachine(machine):
                    self.machines[machine.split("-")[0]] -= 1


class Engine:
    """An engine that is killed and started again, and what is to be of it."""

    def __init__(self, folder: Path, starts: WarmStarts) -> None:
        self.folder, self._starts, self.wanted = folder, starts, Wanted()
        self.scripts = self.rows = self.kills = 0
        self._process: psutil.Process | None = None
        made = deduplicate(flows(folder)[0])
        self.names = {str(task): Signature(signature) for task, signature in made.signatures.items()}

    def start(self) -> None:
        (self.folder / "facts.json").unlink(missing_ok=True)
        self._process = self._starts.start([str(self.folder)], self.folder)
        self._wait(lambda: bool(self.facts()), "an engine")

    def alive(self) -> bool:
        assert self._process is not None
        with suppress(psutil.Error):
            return self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
        return False

    def facts(self) -> dict[str, Any]:
        with suppress(FileNotFoundError):
            facts: dict[str, Any] = json.loads((self.folder / "facts.json").read_text(encoding="utf-8"))
            return facts
        return {}

    def feed(self) -> None:
        put(self.folder / "in", f"{self.rows:06d}", ({"id": self.rows + n, "v": 1.0} for n in range(5)))
        self.rows += 5

    def decide(self, actions: Sequence[Action], aim: str | None) -> bool:
        """Let it decide, be killed at ``aim``, and come to what is wanted; whether it came to ``aim``."""
        self._starts.aim.unlink(missing_ok=True)
        ended = None if aim is None else self._aim(aim)
        self.feed()
        self.scripts += 1
        script = {"number": self.scripts, "actions": [document_of(action) for action in actions]}
        hidden = self.folder / ".script"
        hidden.write_text(json.dumps(script), encoding="utf-8")
        hidden.rename(self.folder / "script.json")
        self.wanted.do(actions)
        self._wait(lambda: self._has_come_to(ended) or self.is_done(), f"decision {self.scripts}, aimed at {aim}")
        if ended is None or not ended.exists():
            assert self.alive(), f"the engine has ended by itself\n{self._log()}"
            return False
        ended.unlink()
        self.kills += 1
        self._starts.after_kill()
        self.start()
        self._wait(self.is_done, f"what decision {self.scripts} is to come to, after a kill at {aim}")
        return True

    def _has_come_to(self, ended: Path | None) -> bool:
        return (ended is not None and ended.exists()) or not self.alive()

    def _aim(self, aim: str) -> Path:
        at, name, _ = aim.split()
        self._starts.aim.write_text(aim, encoding="utf-8")
        return Path(f"{self._starts.aim}.{at}.{name}.ended")

    def is_done(self) -> bool:
        """Whether the script was decided, compared with what came of it, and nothing is under way."""
        journal = self.folder / "state" / "journal"
        made = [entry for _, entry in read_journal(journal, DecisionMade)]
        numbers = [each.number for each in made if each.decision["rule"] == f"script {self.scripts}"]
        assert len(numbers) <= 1, "it was decided twice"
        ended = {entry.number for _, entry in read_journal(journal, DecisionEnded)}
        verified = {entry.number: entry.at for _, entry in read_journal(journal, DecisionVerified)}
        if not numbers or numbers[0] not in ended & verified.keys():
            return False
        facts = self.facts()
        return bool(facts.get("at", 0.0) > verified[numbers[0]] + 0.2 and facts["under_way"] == 0)

    def check(self) -> None:
        """That all is as it was decided."""
        facts, wanted = self.facts(), self.wanted
        assert facts["failure"] == ""
        if "town" not in wanted.paused:
            assert facts["active"] == {"smooth": wanted.smooth}
        assert facts["partitions"] == wanted.partitions
        assert facts["limits"] == wanted.limits
        assert set(facts["paused"]) == wanted.paused
        events = [json.loads(line) for line in self._record() if line.strip()]
        bought = {event["machine"]: event for event in events if event["event"] == "acquired"}
        gone = {event["machine"] for event in events if event["event"] in ("draining", "released", "lost")}
        assert (
            Counter(each["vm_class"]["name"] for name, each in bought.items() if name not in gone) == +wanted.machines
        )
        keys = Counter(event["key"] for event in bought.values())
        assert len(keys) == wanted.bought == len(bought), "a machine was acquired twice for one step, or not at all"

    def _record(self) -> list[str]:
        file = self.folder / "acquisitions.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line for line in lines if _is_json(line)]

    def machine(self) -> str:
        """The name of the newest machine."""
        return str(json.loads([line for line in self._record() if '"acquired"' in line][-1])["machine"])

    def _wait(self, reached: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < until, f"waited {PATIENCE_S:g} s in vain for {what}\n{self._log()}"
            time.sleep(0.05)

    def _log(self) -> str:
        return f"{self.facts()}\n{(self.folder / 'log').read_text(errors='replace')[-3000:]}"


def _is_json(line: str) -> bool:
    with suppress(json.JSONDecodeError):
        return isinstance(json.loads(line), dict)
    return False


def _switch(engine: Engine) -> tuple[Action, ...]:
    other = "quick" if engine.wanted.smooth == "best" else "best"
    return (SwitchAlternate(engine.names["smooth"], other),)


def _partitions(engine: Engine) -> tuple[Action, ...]:
    return (SetPartitions(engine.names["smooth"], 3 + engine.scripts % 2),)


def _limit(engine: Engine) -> tuple[Action, ...]:
    return (SetRateLimit(engine.names["read"], None if engine.wanted.limits else 500.0),)


def _pause(engine: Engine) -> tuple[Action, ...]:
    return (Resume("town") if engine.wanted.paused else Pause("town"),)


def _release(engine: Engine) -> tuple[Action, ...]:
    engine.decide((AcquireMachine("small"),), None)
    return (ReleaseMachine(engine.machine()),)


KINDS: dict[str, Callable[[Engine], tuple[Action, ...]]] = {
    "switch": _switch,
    "partitions": _partitions,
    "limit": _limit,
    "pause and resume": _pause,
    "acquire": lambda _: (AcquireMachine("small"), AcquireMachine("large")),
    "release": _release,
    "grow": lambda engine: (AcquireMachine("large"), *_partitions(engine), *_switch(engine)),
    "swap": lambda engine: (AcquireMachine("large"), *_switch(engine), *_release(engine)),
}


@pytest.fixture(scope="module")
def starts() -> Iterator[WarmStarts]:
    made = WarmStarts("tests.runtime.deciding_engine")
    yield made
    made.close()


@pytest.fixture
def engine(tmp_path: Path, starts: WarmStarts) -> Iterator[Engine]:
    made = Engine(tmp_path, starts)
    made.feed()
    made.start()
    yield made
    starts.aim.unlink(missing_ok=True)
    starts.after_kill()


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_each_write(engine: Engine, kind: str) -> None:
    for write in WRITES:
        count, reached = 1, True
        while reached:
            for moment in MOMENTS:
                reached = engine.decide(KINDS[kind](engine), f"{moment} {write} {count}")
                engine.check()
                if not reached:
                    break
            count += 1
    assert engine.kills >= 12
    _check_rows(engine)


@pytest.mark.timeout(900)
def test_killed_between_a_machine_and_its_answer(engine: Engine) -> None:
    """The provider has heard a request, and nobody wrote down that it did."""
    assert engine.decide(KINDS["grow"](engine), "after machine 1")
    engine.check()
    _check_rows(engine)


def _check_rows(engine: Engine) -> None:
    """That each row came out once, of the dataflow that was never paused; and none twice of the other."""
    rows = list(range(engine.rows))
    engine._wait(lambda: len(json_rows(engine.folder / "out" / "side")) >= len(rows), "all rows")
    assert sorted(row["id"] for row in json_rows(engine.folder / "out" / "side")) == rows
    town = Counter(row["id"] for row in json_rows(engine.folder / "out" / "town"))
    assert set(town.values()) <= {1}
