"""What Prometheus reads: the last interval as gauges, and sums over all intervals as counters."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate import __version__
from headgate.model.cluster.observation import Observation
from headgate.service.engine import JournaledEngine
from headgate.service.tally import OTHER, Tally
from headgate.store.decision_entries import DecisionEnded, DecisionOutcome, DecisionVerified
from headgate.store.observations import ObservationHistory

__all__ = ["EngineMetrics"]

REQUEST_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
PERCENTILES = {"50": "p50_s", "95": "p95_s", "99": "p99_s"}

Sample = tuple[Sequence[str], float | None]


class EngineMetrics:
    """The metrics of a served engine. They are counted when somebody asks for them."""

    def __init__(self, engine: JournaledEngine, state: Path) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "headgate_http_request_duration_seconds",
            "How long requests took, by route and status.",
            ["method", "route", "status"],
            buckets=REQUEST_BUCKETS_S,
            registry=self._registry,
        )
        self._registry.register(_EngineCollector(engine, state))
        self._lock = threading.Lock()

    def note_request(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request."""
        known = method if method in METHODS else OTHER
        self._requests.labels(known, route or "none", str(status)).observe(seconds)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        with self._lock:  # counting for two at a time would count twice
            return bytes(generate_latest(self._registry))


class _EngineCollector(Collector):
    def __init__(self, engine: JournaledEngine, state: Path) -> None:
        self._engine, self._state = engine, state
        self._history = ObservationHistory(state / "observations")
        self._tally = Tally(until=time.time())

    def describe(self) -> Iterable[Metric]:
        return ()  # nothing is counted before somebody asks

    def collect(self) -> Iterator[Metric]:
        flows, fragments = self._engine.status()
        self._tally.add(self._history.read(self._tally.until))
        self._tally.add_dead({flow.name: flow.rows_dead for flow in flows})
        about = self._engine.about()
        yield _gauge("headgate_build_info", "The version that runs.", ("version",), [((__version__,), 1)])
        yield _gauge("headgate_plan_snapshot_number", "The newest plan snapshot.", (), [((), about["snapshot"])])
        states = Counter(str(flow.state) for flow in flows)
        running = [((state,), states[state]) for state in ("running", "paused", "throttled", "degraded")]
        yield _gauge("headgate_dataflows", "Dataflows by state.", ("state",), running)
        failed = sum(one.failure is not None for one in fragments)
        yield _gauge("headgate_fragments", "Fragments.", (), [((), len(fragments))])
        yield _gauge("headgate_fragments_failed", "Fragments that have failed.", (), [((), failed)])
        yield from self._store()
        yield from self._decisions()
        yield from self._counters()
        last = self._history.last()
        if last is not None:
            yield from _interval(last, self._tally)

    def _store(self) -> Iterator[Metric]:
        free = shutil.disk_usage(self._state).free
        yield _gauge("headgate_state_directory_free_bytes", "Free room for the state directory.", (), [((), free)])
        journal = self._engine.journal
        yield _gauge("headgate_journal_size_bytes", "Size of the journal.", (), [((), journal.size)])
        yield _counter("headgate_journal_appends", "Appends to the journal.", (), {(): float(journal.position)})

    def _decisions(self) -> Iterator[Metric]:
        counts: Counter[tuple[str]] = Counter()
        for entry in self._engine.journal.every(DecisionEnded):
            counts[entry.outcome.value,] += 1
        # The journal forgets decisions after a time, so this is a gauge.
        outcomes = [((one.value,), counts[one.value,]) for one in DecisionOutcome]
        yield _gauge("headgate_known_decisions", "Decisions that are known, by outcome.", ("outcome",), outcomes)
        last = self._engine.journal.latest(DecisionVerified)
        errors: list[Sample] = [] if last is None else [((), last.error)]
        text = "How far off the last prediction that was verified was, as a share."
        yield _gauge("headgate_prediction_error_ratio", text, (), errors)

    def _counters(self) -> Iterator[Metric]:
        sums = self._tally
        yield _counter("headgate_source_rows", "Rows that epochs have taken.", ("source",), sums.source_rows)
        yield _counter("headgate_sink_rows", "Rows that reached sinks.", ("sink",), sums.sink_rows)
        yield _counter("headgate_task_rows", "Rows into tasks.", ("task",), sums.task_rows)
        yield _counter("headgate_task_errors", "Rows for which tasks raised.", ("task",), sums.task_errors)
        yield _counter("headgate_epochs", "Epochs, by kind of fragment.", ("kind",), sums.epochs)
        phases = ("kind", "phase")
        yield _counter("headgate_epoch_seconds", "Time of epochs, by phase.", phases, sums.epoch_seconds)
        text, outcomes = "Time in which service levels were met or missed.", ("dataflow", "team", "outcome")
        yield _counter("headgate_service_level_seconds", text, outcomes, sums.level_seconds)
        yield _counter("headgate_dead_letters", "Rows that became dead letters.", ("dataflow",), sums.dead_letters)


def _interval(seen: Observation, names: Tally) -> Iterator[Metric]:
    """What the last interval says."""
    ended = [((), seen.ended)]
    yield _gauge("headgate_last_observation_timestamp_seconds", "When the last interval ended.", (), ended)
    waiting = [((names.task(one.name),), one.rows_waiting) for one in seen.sources]
    yield _gauge("headgate_source_waiting_rows", "Rows that wait at a source.", ("source",), waiting)
    sojourns = [
        ((names.task(sink.name), percentile), getattr(sink.sojourn, field))
        for sink in seen.sinks
        if sink.sojourn is not None
        for percentile, field in PERCENTILES.items()
    ]
    yield _gauge("headgate_sojourn_seconds", "From an event's arrival to its sink.", ("sink", "percentile"), sojourns)
    yield from _figures(seen, names)
    rows = [machine for machine in seen.machines if not machine.is_gone]
    machines = Counter((machine.state.value, machine.vm_class or "unknown") for machine in rows)
    yield _gauge("headgate_machines", "Machines.", ("state", "vm_class"), list(machines.items()))
    cores = [((), sum(machine.cores for machine in rows if machine.works))]
    yield _gauge("headgate_cores", "Cores of machines at work.", (), cores)
    busy = [((), sum(machine.cores * (machine.busy or 0.0) for machine in rows if machine.works))]
    yield _gauge("headgate_busy_cores", "Cores that are at work.", (), busy)


def _figures(seen: Observation, names: Tally) -> Iterator[Metric]:
    known = [(names.flow(flow.name), flow.owner, flow.figures) for flow in seen.dataflows if flow.figures is not None]
    labels = ("dataflow", "team")
    for name, text, field in (
        ("headgate_relative_throughput_ratio", "Share of the rows there that reached the sinks.", "omega"),
        ("headgate_kept_up_ratio", "Rows taken over rows that came.", "kept_up"),
        ("headgate_value_ratio", "Relative value of the active alternates.", "gamma"),
        ("headgate_cost_per_hour", "What a dataflow pays for machines, for an hour.", "cost_per_h"),
        ("headgate_profit_ratio", "Profit of a dataflow.", "theta"),
    ):
        yield _gauge(name, text, labels, [((flow, owner), getattr(figures, field)) for flow, owner, figures in known])

    budgets = [
        ((names.flow(flow.name), flow.owner), None if (most := flow.level.budget_per_h) is None else float(most))
        for flow in seen.dataflows
    ]
    yield _gauge("headgate_budget_per_hour", "What a dataflow may cost, for an hour.", labels, budgets)


def _gauge(name: str, text: str, labels: Sequence[str], samples: Iterable[Sample]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in _summed(samples).items():
        family.add_metric(list(values), value)
    return family


def _counter(name: str, text: str, labels: Sequence[str], sums: Mapping[tuple[str, ...], float]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in sums.items():
        family.add_metric(list(values), value)
    return family


def _summed(samples: Iterable[Sample]) -> dict[tuple[str, ...], float]:
    """Samples by labels: those of names that share a label are added; what is not known is left out."""
    summed: dict[tuple[str, ...], float] = {}
    for values, value in samples:
        if value is not None:
            summed[tuple(values)] = summed.get(tuple(values), 0.0) + float(value)
    return summed
