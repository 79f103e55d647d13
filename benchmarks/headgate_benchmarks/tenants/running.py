"""Attacks one after the other beside honest dataflows, on one engine: what came through, and what neighbours felt."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from headgate.errors import HeadgateError
from headgate.model.table import Table
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress, columns
from headgate_benchmarks.tenants.attack import Attack, Expected, request
from headgate_benchmarks.tenants.attacks import dataflow_attacks
from headgate_benchmarks.tenants.neighbours import Neighbours
from headgate_benchmarks.tenants.program import SECRET, EngineProgram
from headgate_benchmarks.tenants.requests import HONEST_KEY, request_attacks

__all__ = ["TENANTS"]

LONGEST_S = 5.0
"""How long an answer may take; twice that where others use the machine."""

BREACH = b"BREACH"
"""What hostile functions write when they have got hold of something."""


@dataclass(frozen=True, slots=True)
class Sizes:
    quiet: int = 60
    """Rounds of the honest dataflows before the attacks."""

    every: int = 1
    """Each so manieth of the attacks that run."""

    rounds: int = 2
    """Rounds beside each attack that runs."""

    patience_s: float = 45.0


@dataclass(slots=True)
class Outcome:
    """What came of an attack."""

    attack: str
    status: int
    answer: str
    took_s: float
    breach: str = ""
    neighbours_s: float = 0.0
    deaths: int = 0


class _Siege:
    """An engine, its neighbours, and what came of each attack."""

    def __init__(self, folder: Path, sizes: Sizes, progress: Progress) -> None:
        self.engine, self.sizes, self.progress = EngineProgram(folder), sizes, progress
        self.neighbours = Neighbours(folder, sizes.patience_s)
        self.outcomes: list[Outcome] = []

    def settle(self) -> list[float]:
        """Submit the honest dataflows; how long rounds take without attacks."""
        body = {"dataflows": self.neighbours.documents()}
        answer = request("POST", "/dataflows", team="honest", key=HONEST_KEY, json=body)(self.engine)
        if answer.is_error:
            raise HeadgateError("FIGURES_MISSING", f"the honest dataflows were refused: {answer.text[:300]}")
        self.neighbours.begin()
        self.neighbours.await_rounds(6, time.monotonic() + self.sizes.patience_s)
        began = time.monotonic()
        self.neighbours.await_rounds(self.sizes.quiet, began + 10 * self.sizes.patience_s)
        took_s = self.neighbours.took_s(began, time.monotonic())
        if not took_s:
            raise HeadgateError("FIGURES_MISSING", "the honest dataflows put out nothing before the attacks")
        return took_s

    def attack(self, attack: Attack) -> bool:
        """Send an attack, and note what came of it; whether it runs."""
        began, deaths = time.monotonic(), self.engine.deaths()
        try:
            answer = attack.send(self.engine)
        except (httpx.HTTPError, OSError) as error:
            self.outcomes.append(Outcome(attack.name, 0, str(error)[:200], time.monotonic() - began))
            self._note_death(deaths)
            return False
        outcome = Outcome(attack.name, answer.status_code, answer.text[:300], time.monotonic() - began)
        self.outcomes.append(outcome)
        outcome.breach = self._breach(attack, answer, outcome.took_s)
        runs = attack.dataflow is not None and not answer.is_error
        if runs:
            self._run_beside(outcome)
            with suppress(httpx.HTTPError):
                request("POST", "/withdrawals", json={"dataflows": [attack.dataflow]})(self.engine)
        self._note_death(deaths)
        return runs

    def _note_death(self, before: int) -> None:
        last = self.outcomes[-1]
        last.deaths = self.engine.deaths() - before
        felt = f", {last.neighbours_s:.1f} s for neighbours" if last.neighbours_s else ""
        breach = f": BREACH, {last.breach}" if last.breach else ""
        self.progress(f"{last.attack}: {last.status} after {last.took_s:.1f} s{felt}{breach}")

    def _breach(self, attack: Attack, answer: httpx.Response, took_s: float) -> str:
        """Why an answer is a breach; empty if it is none."""
        if answer.status_code >= 500 and answer.status_code not in (501, 503):
            return f"answered {answer.status_code}"
        if "Traceback (most recent" in answer.text:
            return "answered with a traceback"
        if SECRET in answer.text:
            return "the secret is in the answer"
        if "'c0nfidential'" in answer.text:
            return "another team's document is in the answer"
        if attack.expected is Expected.REFUSED and not answer.is_error:
            return "was not refused"
        return f"took {took_s:.1f} s" if took_s > 2 * LONGEST_S else ""

    def _run_beside(self, outcome: Outcome) -> None:
        """Let the honest dataflows go on beside a hostile one."""
        began = time.monotonic()
        self.neighbours.await_rounds(self.sizes.rounds, began + self.sizes.patience_s)
        outcome.neighbours_s = max(self.neighbours.took_s(began, time.monotonic()), default=self.sizes.patience_s)
        if leaks := self.engine.leaks():
            outcome.breach = f"the secret is in {', '.join(leaks[:3])}"
        for file in (self.engine.folder / "mallory").rglob("*.json"):
            with suppress(FileNotFoundError):
                at = file.read_bytes().find(BREACH)
                if at >= 0:
                    outcome.breach = file.read_bytes()[at : at + 120].decode("utf-8", "replace")
        for place in (self.engine.folder / "breach", self.engine.state / "breach", Path("/tmp/headgate-breach")):
            if place.exists():
                outcome.breach = f"{place} was written"
                place.unlink()

    def starts_again(self) -> bool:
        """Whether the engine, killed and started by nobody's hand but the command, goes on with all honest work."""
        self.neighbours.end()
        self.engine.crash()
        self.engine.start()
        self.neighbours.round()
        until = time.monotonic() + self.sizes.patience_s
        while not self.neighbours.is_exact() and time.monotonic() < until:
            time.sleep(0.2)
        return self.neighbours.is_exact()


def _leave(number: int, frame: object) -> None:
    """End as on Ctrl-C, and the engine too."""
    del number, frame
    raise KeyboardInterrupt


def _run(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    del seed
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as place:
        folder = Path(place).resolve()
        siege = _Siege(folder, sizes, progress)
        try:
            siege.engine.start()
            progress("without attacks")
            quiet = siege.settle()
            began = time.monotonic()
            _besiege(siege, str(folder), sizes)
            beside = siege.neighbours.took_s(began, time.monotonic())
            started = siege.starts_again()
            return _measured(siege, quiet, beside, started)
        finally:
            siege.engine.kill()


def _besiege(siege: _Siege, folder: str, sizes: Sizes) -> None:
    runs = 0
    for attack in (*request_attacks(folder), *dataflow_attacks(folder)):
        if attack.expected is not Expected.REFUSED and attack.dataflow is not None:
            runs += 1
            if runs % sizes.every:
                continue
        siege.attack(attack)
    siege.neighbours.await_rounds(3, time.monotonic() + sizes.patience_s)


def _measured(siege: _Siege, quiet: Sequence[float], beside: Sequence[float], started: bool) -> Measured:
    outcomes = siege.outcomes
    if leaks := siege.engine.leaks():
        outcomes.append(Outcome("all of them", 0, "", 0.0, f"the secret is in {', '.join(leaks[:3])}"))
    breaches = [one for one in outcomes if one.breach]
    figures = {
        "attacks": len(outcomes),
        "refused": sum(one.status >= 400 for one in outcomes),
        "breaches": len(breaches),
        "honest_exact": int(siege.neighbours.is_exact()),
        "quiet_p50_s": _quantile(quiet, 0.5),
        "neighbour_p50": _quantile(beside, 0.5) / _quantile(quiet, 0.5),
        "neighbour_p99": _quantile(beside, 0.99) / _quantile(quiet, 0.99),
        "engine_deaths": siege.engine.deaths(),
        "deaths_per_attack": max(one.deaths for one in outcomes),
        "next_start": int(started),
        "tracebacks": len(siege.engine.tracebacks()),
    }
    slow = sorted(outcomes, key=lambda one: -one.neighbours_s)[:12]
    shown = columns(("attack", "attack"), ("breach", "breach"), ("neighbours_s", "neighbours", "s", ".1f"))
    rows = tuple(asdict(one) for one in [*breaches, *(one for one in slow if not one.breach)])
    samples = {
        "quiet_s": list(quiet),
        "beside_s": list(beside),
        "outcomes": [asdict(one) for one in outcomes],
        "ends": siege.engine.ends(),
        "tracebacks": siege.engine.tracebacks()[:20],
        "wrong": siege.neighbours.wrong(),
    }
    return Measured(figures, samples, (Table("Breaches, and what neighbours felt most", shown, rows),))


def _quantile(seconds: Sequence[float], part: float) -> float:
    return sorted(seconds)[min(int(len(seconds) * part), len(seconds) - 1)]


TENANTS = Benchmark(
    "tenants",
    "Attacks of a hostile submitter beside honest dataflows: breaches, deaths, what neighbours feel.",
    {"attacks": _run},
    Sizes(),
    Sizes(quiet=6, every=12, rounds=1, patience_s=30.0),
    promises="attacks refused breaches honest_exact quiet_p50_s neighbour_p99 neighbour_p50 engine_deaths next_start",
    own_cluster=True,
)
