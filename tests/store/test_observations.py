"""The ring of observations: nothing lost but the oldest, whatever crashes and however others read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.machine_observations import MachineObservations
from headgate.model.cluster.observation import (
    DataflowObservation,
    Figures,
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
    TaskProfile,
)
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel
from headgate.store.observations import ObservationHistory, history_of

LEVEL = ServiceLevel(0.9, latency_max_s=2.0, budget_per_h=Decimal("1.50"))
FIGURES = Figures(0.98, 1.01, 0.85, 0.12, None, Sojourn(0.5, 0.4, 0.9, 1.1), within=True)


def observation(ended: float) -> Observation:
    """An observation with something of everything."""
    task, sink = Signature("a" * 40), Signature("b" * 40)
    profile = TaskProfile(1_000, 2e-6, 3e-6, 1e-6, 4_096, None)
    return Observation(
        ended,
        5.0,
        (TaskObservation(task, "flow.parse", "parse_json", "parse", ("flow", "other"), None, 500, 480, 3, profile),),
        (SinkObservation(sink, "flow.out", ("flow",), 480, Sojourn(0.5, 0.4, 0.9, 1.1)),),
        (FragmentObservation("source-1", "source", (task, sink), 9, 500, 20, 2.0, 0.5, 0.2, 1.0, 0.3),),
        MachineObservations(
            ("here",), ("small",), cores=(2,), speed=(0.97,), busy=(0.5,), price_per_h=(Decimal("0.05"),)
        ),
        (SourceObservation(task, "flow.parse", ("flow", "other"), 500, 512.0, 20.0, 4_000),),
        (DataflowObservation("flow", "ana", LEVEL, 0.7, figures=FIGURES),),
        (AlternateCost(task, "parse", 2e-6, Origin.MEASURED, 1e-6),),
        FIGURES,
    )


def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    history = ObservationHistory(tmp_path / "ring", file_bytes=2_000)
    made = [observation(1_000.0 + 5 * n) for n in range(20)]
    for one in made:
        history.append(one)
    assert len(list((tmp_path / "ring").iterdir())) > 3
    assert list(history.read()) == made
    assert list(history.read(since=1_050.0)) == [one for one in made if one.ended > 1_050.0]
    assert history.last() == made[-1]


def test_the_ring_stays_within_its_size_and_the_newest_stay(tmp_path: Path) -> None:
    history = ObservationHistory(tmp_path / "ring", most_bytes=20_000, file_bytes=4_000)
    for n in range(100):
        history.append(observation(float(n)))
        assert sum(file.stat().st_size for file in (tmp_path / "ring").iterdir()) <= 20_000
    kept = [one.ended for one in history.read()]
    assert kept == [float(n) for n in range(int(kept[0]), 100)]
    assert len(kept) > 4


@given(cut=st.integers(1, 400))
def test_a_line_cut_short_takes_no_other_with_it(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    history = ObservationHistory(tmp_path_factory.mktemp("ring"))
    history.append(observation(1.0))
    history.append(observation(2.0))
    (file,) = history.folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - min(cut, len(whole) // 2 - 1)])
    history.append(observation(3.0))
    ended = [one.ended for one in history.read()]
    assert ended in ([1.0, 3.0], [1.0, 2.0, 3.0])
    assert cut < 2 or ended == [1.0, 3.0]


def test_a_clock_that_was_set_back_loses_nothing(tmp_path: Path) -> None:
    history = ObservationHistory(tmp_path / "ring", file_bytes=100)
    for ended in (1_000.0, 500.0, 501.0):
        history.append(observation(ended))
    assert [one.ended for one in history.read()] == [1_000.0, 500.0, 501.0]


def test_where_no_engine_has_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no engine has run .*; start one with headgate run"):
        history_of(tmp_path)
