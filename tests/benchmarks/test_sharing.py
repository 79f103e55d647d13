"""``headgate bench sharing`` on small sizes: the figures are there, and pictures are drawn from the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate_benchmarks import sharing
from headgate_benchmarks.share.collections import riotbench_like
from headgate_benchmarks.sharing_plots import plot


def test_figures_table_and_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sharing, "SIZES", (50, 200))
    monkeypatch.setattr(sharing, "ROUNDS", 1)
    monkeypatch.setattr(sharing, "BATCH", 5)
    monkeypatch.setattr(sharing, "SEMANTIC", 60)
    monkeypatch.setattr(sharing, "opmw_like", riotbench_like)
    monkeypatch.setenv("HEADGATE_SHARED_DATA", str(tmp_path / "none"))
    steps: list[str] = []
    measured = sharing.merging(1, steps.append)
    figures = measured.figures
    assert figures["merges_per_s"] > 0
    assert figures["growth"] > 0
    assert figures["semantic_reuses"] > 0
    assert 0.2 < figures["riotbench_rw1_task_reduction"] < 0.6
    assert figures["riotbench_rw1_hot_operation_s"] < figures["riotbench_rw1_none_operation_s"]
    assert figures["paper_riotbench_rw1_task_reduction"] == 0.45
    assert "replace-prune" in measured.table
    assert any("left out" in step for step in steps)
    pytest.importorskip("matplotlib")
    pictures = plot(measured, tmp_path / "plots")
    assert [path.name for path in pictures] == [
        f"sharing-{name}.png" for name in ("tasks", "workers", "operations", "costs")
    ]
    assert all(path.stat().st_size > 10_000 for path in pictures)


@pytest.mark.slow
def test_a_merge_costs_what_its_own_size_is() -> None:
    figures, _ = sharing._speed(1, lambda _: None)
    assert figures["merges_per_s"] >= 5_000
    assert figures["growth"] <= 1.5
