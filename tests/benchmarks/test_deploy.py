"""``headgate bench deploy``: its observations and what it draws, on small targets."""

from __future__ import annotations

from pathlib import Path

from headgate_benchmarks.deploy.benchmark import DEPLOY


def test_packers_observations_and_pictures(tmp_path: Path) -> None:
    measured = DEPLOY.run(1, lambda _: None, smoke=True)
    figures = measured.figures
    assert figures["reached"] == figures["targets"]
    assert figures["above_exact_max"] <= 1
    assert figures["across_over_beside"] > 1.05
    assert 1.15 < figures["copies_2_over_8"] < figures["copies_2_over_16"]
    assert DEPLOY.plot is not None
    drawn = [path.name for path in DEPLOY.plot(measured, tmp_path)]
    wanted = ["fig10-11", "fig12", "observations", "table5"]
    assert drawn == [f"deploy-{name}.svg" for name in wanted]
