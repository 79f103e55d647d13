"""Attacks one after the other beside honest dataflows, on one engine: what came through, and what neighbours felt."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.access.principal import AccessRole, Principal
from headgate.access.quota import Quota
from headgate.access.rules import TenantRules
from headgate.errors import HeadgateError
from headgate.service.run import spark_end
from headgate.service.serve import ServedEngine
from headgate.service.submit import submit, withdraw
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.on_spark import drop, keeping_house, on_spark
from headgate_benchmarks.study import Measured, Progress
from headgate_benchmarks.tenants.attacks import COLUMNS, Attack, attacks

__all__ = ["TENANTS"]

HONEST = {"a": "v > 0", "b": "v <= 0", "c": "id % 3 = 0", "d": "length(k) > 0"}
KEEPS: dict[str, Callable[[int], bool]] = {
    "a": lambda n: n % 7 > 3,
    "b": lambda n: n % 7 <= 3,
    "c": lambda n: n % 3 == 0,
    "d": lambda n: n >= 0,
}
"""The same as functions of a row's number, which the engine does not use."""

ROWS = 50
MALLORY = Principal("mallory", AccessRole.SUBMITTER, frozenset({"mallory"}), "benchmark")
HOLDER = Principal("honest", AccessRole.SUBMITTER, frozenset({"honest"}), "benchmark")


@dataclass(frozen=True, slots=True)
class Sizes:
    quiet: int = 60
    """Files that come before the attacks."""

    every: int = 1
    """Each so manieth attack that runs gets files beside it."""

    patience_s: float = 120.0


class _Tenants:
    """An engine with honest dataflows, whose rows are counted by files that came out."""

    def __init__(self, spark: Any, folder: Path, sizes: Sizes) -> None:
        from headgate.runtime.engine.engine import Engine
        from headgate.tasks.registry import default_registry

        self.folder, self.sizes, self.files = folder, sizes, 0
        (folder / "in").mkdir()
        rules = TenantRules(
            secrets={"HONEST": frozenset({"honest"})},
            allow={
                "read": (str(folder / "in"),),
                "write": (str(folder / "honest"), str(folder / "mallory")),
                "modules": ("headgate_benchmarks.tenants.hostile_functions",),
            },
            quotas={"mallory": Quota(dataflows=20, tasks=200)},
        )
        os.environ["HEADGATE_SECRET_HONEST"] = SECRET
        os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET
        self.engine = Engine(folder / "state", spark=spark, trigger_s=0.2)
        self.registry = default_registry()
        self.served = ServedEngine(self.engine, self.registry, rules=rules)

    def submit_honest(self) -> None:
        documents = []
        for name, where in HONEST.items():
            source = {"id": "in", "type": "read_files", "config": {"path": str(self.folder / "in"), "columns": COLUMNS}}
            kept = {"id": "kept", "type": "filter", "config": {"where": where}, "inputs": ["in"]}
            config = {"path": str(self.folder / "honest" / name)}
            out = {"id": "out", "type": "write_files", "config": config, "inputs": ["kept"]}
            documents.append({"name": name, "owner": "honest", "tasks": [source, kept, out]})
        submit(self.served.acting_for(HOLDER), documents, self.registry)

    def row_round(self) -> float:
        """Let rows in, and wait until each honest dataflow has put out its own; returns how long that took."""
        numbers = range(self.files * ROWS, (self.files + 1) * ROWS)
        rows = ({"id": n, "k": f"aaaaaaaaaaaaaaaaaaaaaaaa{n}", "v": n % 7 - 3} for n in numbers)
        self.files += 1
        began = time.monotonic()
        drop(self.folder / "in", self.files, "".join(json.dumps(row) + "\n" for row in rows))
        while any(count < wanted for count, wanted in self._progress()):
            if time.monotonic() > began + self.sizes.patience_s:
                break
            time.sleep(0.02)
        return time.monotonic() - began

    def _progress(self) -> list[tuple[int, int]]:
        return [(sum(self.out(name).values()), sum(self.wanted(name).values())) for name in HONEST]

    def out(self, name: str) -> Counter[int]:
        made: Counter[int] = Counter()
        for file in (self.folder / "honest" / name).glob("*.json"):
            made.update(json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines())
        return made

    def wanted(self, name: str) -> Counter[int]:
        return Counter(n for n in range(self.files * ROWS) if KEEPS[name](n))

    def attack(self, attack: Attack) -> str:
        """Submit an attack; returns how it was refused, or ``ran``."""
        engine = self.served.acting_for(MALLORY)
        try:
            submit(engine, [attack.document], self.registry, attack.replace)
        except HeadgateError as error:
            return error.condition
        return "ran"

    def withdraw(self, attack: Attack) -> None:
        with suppress(HeadgateError):
            withdraw(self.served.acting_for(MALLORY), [str(attack.document["name"])])

    def leaks(self) -> int:
        """How often a secret is in what a hostile dataflow has put out, or in the state."""
        files = [file for file in (self.folder / "state").rglob("*") if file.is_file()]
        in_files = sum(SECRET.encode() in file.read_bytes() for file in files)
        return in_files + sum(SECRET in str(row) for row in self.engine.memory.rows("mallory"))


SECRET = "tr0ut-in-the-m1lk"


def _run(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    del seed
    with on_spark(memory="2g") as (spark, folder):
        tenants = _Tenants(spark, folder, sizes)
        with keeping_house(tenants.engine):
            tenants.submit_honest()
            for _ in range(max(sizes.quiet // 4, 3)):
                tenants.row_round()
            progress("without attacks")
            quiet = [tenants.row_round() for _ in range(sizes.quiet)]
            outcomes, beside, deaths = _attacked(tenants, progress, sizes)
        exact = all(tenants.out(name) == tenants.wanted(name) for name in HONEST)
        wrong = _unexpected(folder, outcomes)
        figures = {
            "attacks": len(outcomes),
            "refused": sum(outcome != "ran" for _, outcome in outcomes),
            "breaches": len(wrong) + tenants.leaks() + (folder / "breach").exists(),
            "honest_exact": int(exact),
            "neighbour_p99": _p99(beside) / _p99(quiet),
            "neighbour_p50": sorted(beside)[len(beside) // 2] / sorted(quiet)[len(quiet) // 2],
            "engine_deaths": deaths,
        }
        with suppress(Exception):
            tenants.engine.stop()
    samples = {"quiet_s": quiet, "beside_s": beside, "outcomes": dict(outcomes), "unexpected": wrong}
    return Measured(figures, samples)


def _attacked(tenants: _Tenants, progress: Progress, sizes: Sizes) -> tuple[list[tuple[str, str]], list[float], int]:
    outcomes, beside, running, deaths = list[tuple[str, str]](), list[float](), 0, 0
    for attack in attacks(tenants.folder):
        progress(attack.name)
        outcomes.append((attack.name, tenants.attack(attack)))
        if outcomes[-1][1] != "ran":
            continue
        running += 1
        if running % sizes.every == 0:
            beside.append(tenants.row_round())
        tenants.withdraw(attack)
        if spark_end() is not None:
            deaths += 1
            break
    beside += [tenants.row_round() for _ in range(3)]
    return outcomes, beside, deaths


def _unexpected(folder: Path, outcomes: Iterable[tuple[str, str]]) -> list[str]:
    """Attacks that were accepted and should not have been."""
    runs = {attack.name: attack.runs for attack in attacks(folder)}
    return [name for name, outcome in outcomes if outcome == "ran" and not runs[name]]


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[min(int(len(seconds) * 0.99), len(seconds) - 1)]


TENANTS = Benchmark(
    "tenants",
    "Attacks of a hostile submitter beside honest dataflows: breaches, deaths, what neighbours feel.",
    {"attacks": _run},
    Sizes(),
    Sizes(8, 4),
    "attacks refused breaches honest_exact neighbour_p99 neighbour_p50 engine_deaths",
)
