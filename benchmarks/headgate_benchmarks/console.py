"""``headgate bench console``: the console with 1,000 dataflows of ten tasks each, of twenty teams.

The running set, the journal and a history of observations are real; nothing runs. Requests go through the whole
application, over a socket. With a Chromium on this machine, pages are opened too: until what they show can be used.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx

from headgate.access.principal import AccessRole, Principal
from headgate.api.application import application
from headgate.api.network import listening
from headgate.api.server import serving
from headgate.billing.journal import BilledMachine, Usage, UsageJournal
from headgate.billing.usage import Customer
from headgate.documents import parse
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
    TaskProfile,
)
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.service.console.hourly import users_of_tasks
from headgate.service.engine import JournaledEngine
from headgate.service.serve import ServedEngine
from headgate.sharing.shared_set import SharedSet
from headgate.store.entries import SnapshotPublished
from headgate.store.journal import Journal, create_journal
from headgate.store.observations import ObservationHistory
from headgate.tasks.registry import default_registry
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress

__all__ = ["CONSOLE", "ConsoleSizes"]

REGISTRY = default_registry()
TEAMS, EVERY_S, PAGES, SPREAD_S = 20, 5.0, 20, 0.3
REQUESTS_PER_S, STREAMS, SENDERS = 200, 100, 16
ASKED = ("/status", "/engine", "/graph/rates?select=flow0001", "/me", "/dataflows/flow0002", "/overview")
"""What programs and pages ask for, in turn."""
FIGURES = (
    "dataflows tasks first_overview_s first_overview_cpu_s overview_s graph_selection_s graph_whole_s rates_s "
    "cores_of_20_pages load_p50_s load_p99_s load_per_s load_more_files load_more_mb"
)


@dataclass(frozen=True, slots=True)
class ConsoleSizes:
    dataflows: int = 1_000
    intervals: int = 12
    rounds: int = 15
    load_s: float = 60.0


def run_console(seed: int, progress: Progress, sizes: ConsoleSizes) -> Measured:
    """Fill a state directory, serve it, and ask for what pages ask for."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        progress(f"{sizes.dataflows:,} dataflows of ten tasks are submitted")
        engine = _NothingRuns(folder, _filled(sizes.dataflows, random.Random(seed)))
        progress(f"{sizes.intervals} intervals are written")
        engine.measure(sizes.intervals)
        with _served(engine) as (url, token):
            figures, samples = _asked(url, token, sizes, progress)
            if (chromium := shutil.which("chromium")) is not None:
                progress("pages are opened")
                figures |= _opened(url, token, chromium)
    figures |= {"dataflows": float(sizes.dataflows), "tasks": float(len(engine.shared.running.tasks))}
    return Measured(figures, {"seconds": samples})


def _filled(count: int, draw: random.Random) -> SharedSet:
    shared = SharedSet(REGISTRY, semantic=False)
    for number in range(count):
        shared, _ = shared.submit(parse(_text(number, draw), "yaml", REGISTRY).dataflow)
    return shared


def _text(number: int, draw: random.Random) -> str:
    """A source of fifty, a filter of twenty kinds, seven steps and a sink of its own."""
    columns = "id string, v double, w double, k bigint"
    works = [
        f"type: read_files, config: {{path: /in/{draw.randrange(50)}, columns: '{columns}'}}",
        f"type: filter, config: {{where: k = {draw.randrange(20)}}}",
        *(f"type: derive, config: {{columns: {{x{n}: v * {draw.random():.6f}}}}}" for n in range(7)),
        f"type: write_files, config: {{path: /out/{number}}}",
    ]
    lines = [f"name: flow{number:04}", f"owner: team{number % TEAMS:02}", "tasks:", f"  - {{id: t0, {works[0]}}}"]
    for (before, _), (at, work) in pairwise(enumerate(works)):
        lines.append(f"  - {{id: t{at}, {work}, inputs: [t{before}]}}")
    return "\n".join(lines)


class _NothingRuns:
    """What the console asks of an engine."""

    def __init__(self, folder: Path, shared: SharedSet) -> None:
        self.folder, self.shared = folder, shared
        (folder / "version").write_text("3", encoding="utf-8")
        create_journal(folder / "journal")
        self.journal = Journal(folder / "journal")
        self.journal.append(SnapshotPublished(1, {}))
        running = shared.running
        customers = [Customer(f.name, f.owner, 10) for f in (one.written for one in running.submitted.values())]
        machine = BilledMachine("local", Decimal("4.00"), dict(users_of_tasks(running, ())))
        UsageJournal(self.journal).changed(int(time.time()), Usage((machine,), tuple(customers)))
        self._statuses = [
            DataflowStatus(str(name), str(one.written.owner), "running", "", 10, 3, 1_000)
            for name, one in running.submitted.items()
        ]

    def about(self) -> dict[str, Any]:
        return {"state": str(self.folder), "process": 1, "folder": "/", "strategy": "hot", "snapshot": 1}

    def status(self) -> tuple[Sequence[DataflowStatus], Sequence[FragmentStatus]]:
        return self._statuses, ()

    def alternates(self, name: str) -> Mapping[str, object]:
        del name
        return {}

    @property
    def dataflows(self) -> Sequence[object]:
        return [one.written for one in self.shared.running.submitted.values()]

    def measure(self, intervals: int) -> None:
        """Write a history that ends now."""
        history, seen, now = ObservationHistory(self.folder / "observations"), _observation(self.shared), time.time()
        for number in range(intervals):
            history.append(replace(seen, ended=now - EVERY_S * (intervals - 1 - number)))


def _observation(shared: SharedSet) -> Observation:
    running, profile = shared.running, TaskProfile(100, 1e-5, 1e-5, 0.0, 1, None)
    tasks, sinks, sources, fragments = [], [], [], []
    for signature, used in running.tasks.items():
        flows = tuple(sorted(map(str, used.users)))
        name = f"{flows[0]}.{used.users[next(iter(used.users))]}"
        if used.running.task.type == "write_files":
            sinks.append(SinkObservation(signature, name, flows, 500, Sojourn(0.5, 0.4, 1.0, 2.0)))
        else:
            tasks.append(
                TaskObservation(signature, name, used.running.task.type, "way", flows, None, 500, 500, 0, profile)
            )
        if not used.running.feeds:
            sources.append(SourceObservation(signature, name, flows, 500, 500.0, 10.0))
            fragments.append(FragmentObservation(name, "source", (signature,), 5, 500, 10, 3.0, 0.5, 0.5, 1.5, 0.5))
    return Observation(0.0, EVERY_S, tuple(tasks), tuple(sinks), tuple(fragments), sources=tuple(sources))


@contextmanager
def _served(engine: _NothingRuns) -> Iterator[tuple[str, str]]:
    served = ServedEngine(cast(JournaledEngine, engine), REGISTRY)
    admin = Principal("bench", AccessRole.ADMIN)
    token = str(served.tokens.create(admin, "bench", AccessRole.ADMIN, (), 3_600.0)["token"])
    with listening("127.0.0.1:0") as network, serving(engine.folder, application(served), network=(network,)):
        yield network.url, token


def _asked(
    url: str, token: str, sizes: ConsoleSizes, progress: Progress
) -> tuple[dict[str, float], dict[str, list[float]]]:
    samples: dict[str, list[float]] = {"overview": [], "graph_selection": [], "graph_whole": [], "rates": []}
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=120.0) as client:
        ask = partial(_seconds, client)
        began = time.process_time()
        first = ask("/overview")
        first_cpu = time.process_time() - began
        progress("the past is read")
        time.sleep(sizes.intervals * 4.0 if sizes.dataflows > 100 else 0.0)
        progress(f"{sizes.rounds} times each of four requests")
        for turn in range(sizes.rounds):
            samples["overview"].append(ask("/overview"))
            # A selection that nobody has asked for: its graph is laid out anew.
            samples["graph_selection"].append(ask(f"/graph?select=flow{turn:04},flow{turn + 1:04}"))
            samples["graph_whole"].append(ask("/graph"))
            samples["rates"].append(ask("/graph/rates"))
        began = time.process_time()
        for _ in range(PAGES):  # all hear of an interval at once, and each asks within a third of a second
            ask("/overview")
            time.sleep(SPREAD_S / PAGES)
        spent = time.process_time() - began
        progress(f"{REQUESTS_PER_S} requests a second for {sizes.load_s:.0f} s beside {STREAMS} streams of events")
        load, taken = _loaded(url, token, sizes.load_s)
        samples["load"] = taken
    figures = {f"{name}_s": statistics.median(taken) for name, taken in samples.items()}
    # The first of the whole graph is laid out, the others are remembered.
    figures |= {"graph_whole_s": max(samples["graph_whole"]), "first_overview_s": first}
    figures["first_overview_cpu_s"] = first_cpu
    return {**figures, **load, "cores_of_20_pages": spent / EVERY_S}, samples


def _loaded(url: str, token: str, seconds: float) -> tuple[dict[str, float], list[float]]:
    """Requests at a steady pace beside streams of events: how long each takes from when it was due."""
    headers = {"Authorization": f"Bearer {token}"}
    due, taken, lock = iter(range(int(REQUESTS_PER_S * seconds))), [], threading.Lock()
    with ExitStack() as stack, ThreadPoolExecutor(SENDERS) as pool:
        limits = httpx.Limits(max_connections=STREAMS + SENDERS)
        client = stack.enter_context(httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=60.0, limits=limits))
        for path in ASKED:  # what is made once is not part of it
            client.get(path).raise_for_status()
        for _ in range(STREAMS):
            stack.enter_context(client.stream("GET", "/events"))
        files, memory, began = _open_files(), _memory_mb(), time.perf_counter()

        def send() -> None:
            while True:
                with lock:
                    number = next(due, None)
                if number is None:
                    return
                at = began + number / REQUESTS_PER_S
                time.sleep(max(at - time.perf_counter(), 0.0))
                client.get(ASKED[number % len(ASKED)]).raise_for_status()
                taken.append(time.perf_counter() - at)

        for sent in [pool.submit(send) for _ in range(SENDERS)]:
            sent.result()
        spent = time.perf_counter() - began
        figures = {"load_more_files": _open_files() - files, "load_more_mb": _memory_mb() - memory}
    ordered = sorted(taken)
    p50, p99 = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
    return {**figures, "load_p50_s": p50, "load_p99_s": p99, "load_per_s": len(ordered) / spent}, taken


def _open_files() -> float:
    return float(len(list(Path("/proc/self/fd").iterdir())))


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _seconds(client: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    response = client.get(path)
    response.raise_for_status()
    return time.perf_counter() - began


def _opened(url: str, token: str, chromium: str) -> dict[str, float]:
    """How long until pages can be used, each in a new tab: rows or boxes are there and the page answers."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return {}
    pages = {
        "page_overview_s": ("/overview", "tbody tr a"),
        "page_selection_s": ("/graph?select=flow0010", ".node"),
        "page_whole_s": ("/graph", ".node"),
    }
    figures = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = browser.new_context()
        context.request.post(f"{url}/v1/session", data={"token": token})
        for name, (address, shown) in pages.items():
            taken = []
            for _ in range(3):
                page = context.new_page()
                began = time.perf_counter()
                page.goto(f"{url}{address}", wait_until="commit")
                page.wait_for_selector(shown)
                page.evaluate("1")
                taken.append(time.perf_counter() - began)
                page.close()
            figures[name] = statistics.median(taken)
        browser.close()
    return figures


CONSOLE: Benchmark[ConsoleSizes] = Benchmark(
    "console",
    "The console with 1,000 dataflows and 10,000 tasks: requests, pages and the service's CPU",
    {"console": run_console},
    ConsoleSizes(),
    ConsoleSizes(dataflows=20, intervals=3, rounds=2, load_s=2.0),
    FIGURES,
)
