"""A service whose metrics are all there, without Spark: the real collector over a real history."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.model.cluster.machine_observations import MachineObservations, MachineRow
from headgate.model.cluster.observation import (
    DataflowObservation,
    Figures,
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
)
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel
from headgate.service.metrics import EngineMetrics
from headgate.store.decision_entries import DecisionVerified
from headgate.store.observations import ObservationHistory
from tests.api.fake import FakeEngine
from tests.api.in_process import InProcess
from tests.api.samples import document

SOJOURN = Sojourn(1.0, 0.5, 2.0, 3.0)
FIGURES = Figures(0.9, 1.0, 1.0, 0.05, 0.4, SOJOURN, within=True)


def interval(ended: float, rows: int = 100, within: bool = True, names: int = 1) -> Observation:
    """Five seconds of some dataflows."""
    level = ServiceLevel(budget_per_h=Decimal("0.25"))
    flows = [f"f{number}" for number in range(names)]
    figures = replace(FIGURES, within=within)
    tasks = [
        TaskObservation(Signature(f"t{name}"), f"{name}.t", "filter", "t", (name,), None, rows, rows, errors=1)
        for name in flows
    ]
    return Observation(
        ended,
        5.0,
        tuple(tasks),
        tuple(SinkObservation(Signature(f"w{name}"), f"{name}.w", (name,), rows, SOJOURN) for name in flows),
        (FragmentObservation("s", "source", (), 2, rows, 5, 1.0, 0.1, 0.1, 0.7, 0.1),),
        MachineObservations.of([MachineRow("local", busy=0.5, cores=2)]),
        tuple(SourceObservation(Signature(f"r{name}"), f"{name}.r", (name,), rows, rows, 7.0) for name in flows),
        tuple(DataflowObservation(name, "city", level, figures=figures) for name in flows),
    )


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    made = FakeEngine(tmp_path)
    client = InProcess(made)
    assert client("POST", "/dataflows", json={"dataflows": [document("f0", owner="city")]}).status_code == 200
    return made


@pytest.fixture
def lively(engine: FakeEngine, tmp_path: Path) -> EngineMetrics:
    """Metrics of an engine that has measured and answered."""
    engine.journal.append(DecisionVerified(1, 1.0, {}, {}, 0.2))
    metrics = EngineMetrics(engine, tmp_path)
    ObservationHistory(tmp_path / "observations").append(interval(time.time() + 1.0))
    metrics.note_request("GET", "/v1/status", 200, 0.01)
    return metrics
