"""Pictures of ``headgate bench deploy``: Figs. 10 to 12, Observations 1 and 2, Table 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate_benchmarks.figures import bars, dress, picture
from headgate_benchmarks.study import Measured, Row

__all__ = ["plot"]

SHADES = ("#12466b", "#475569", "#c2410c", "#e08a5b", "#a16207", "#94a3b8")


def plot(measured: Measured, folder: Path) -> list[Path]:
    """All pictures whose samples are there."""
    drawn = []
    for name, samples, inches, draw in (
        ("deploy-fig10-11.svg", "scaling", (11.0, 6.0), _boxes),
        ("deploy-fig12.svg", "targets", (10.0, 4.2), _machines),
        ("deploy-observations.svg", "observed", (10.0, 3.4), _observed),
        ("deploy-table5.svg", "scaling", (6.5, 3.4), _planning),
    ):
        if samples in measured.samples:
            drawn.append(picture(folder / name, inches, _drawing(draw, measured.samples[samples])))
    return drawn


def _drawing(draw: Callable[[Any, Sequence[Row]], None], rows: Sequence[Row]) -> Callable[[Any], None]:
    return lambda figure: draw(figure, rows)


def _cases(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(row["case"], []).append(row)
    return cases


def _boxes(figure: Any, rows: Sequence[Row]) -> None:
    """Throughput of each iteration, the target as a line."""
    cases = _cases(rows)
    wide = min(5, len(cases))
    panels = figure.subplots(-(-len(cases) // wide), wide, squeeze=False).ravel()
    for axes, (name, each) in zip(panels, cases.items(), strict=False):
        axes.boxplot([row["throughput"] for row in each], widths=0.5)
        axes.axhline(each[0]["rate"], color="#c2410c", linewidth=1, linestyle=":")
        axes.set_ylim(0, 1.15 * each[0]["rate"])
        axes.set_xticks(range(1, len(each) + 1), [f"{row['iteration']}\n{row['machines']} m" for row in each])
        dress(axes, name, "iteration, machines", "rows/s")
    for axes in panels[len(cases) :]:
        axes.set_visible(False)


def _machines(figure: Any, rows: Sequence[Row]) -> None:
    """Machines by packer, for every application and target."""
    axes = figure.subplots()
    groups = [f"{row['application']}\n{row['rate']:,.0f}/s" for row in rows]
    series = {name: [row["packed"].get(name) for row in rows] for name in ("first-fit", "exact", "metis")}
    series["metis, as printed"] = [row["metis_printed"] for row in rows]
    series |= {name: [row["packed"].get(name) for row in rows] for name in ("r-storm", "round-robin")}
    bars(axes, groups, series, SHADES)
    dress(axes, "machines for the same target", "", "machines", legend=6, at="upper left")
    axes.tick_params(axis="x", labelsize=7, rotation=45)


def _observed(figure: Any, rows: Sequence[Row]) -> None:
    load, across, copies = figure.subplots(1, 3)
    for number, task in enumerate(dict.fromkeys(row["task"] for row in rows if row["kind"] == "load")):
        mine = [row for row in rows if row.get("task") == task]
        x, y = [row["rate"] for row in mine], [100 * row["cpu"] for row in mine]
        load.plot(x, y, "o-", color=SHADES[number % len(SHADES)], label=task, markersize=3.5)
    dress(load, "Observation 1: load", "tweets/s", "CPU points", legend=1)
    shares = [row for row in rows if row["kind"] == "across"]
    across.plot([row["share"] for row in shares], [100 * row["cpu"] for row in shares], "o-", color=SHADES[0])
    dress(across, "Observation 1: rows from elsewhere", "share", "CPU points of all machines")
    counted = [row for row in rows if row["kind"] == "copies"]
    copies.bar([str(row["copies"]) for row in counted], [row["throughput"] for row in counted], color=SHADES[0])
    dress(copies, "Observation 2: parsers on two cores", "instances", "rows/s")


def _planning(figure: Any, rows: Sequence[Row]) -> None:
    axes = figure.subplots()
    for number, (name, each) in enumerate(_cases(rows).items()):
        x, y = [row["iteration"] for row in each], [1_000 * row["planning_s"] for row in each]
        axes.plot(x, y, "o-", color=SHADES[number % len(SHADES)], label=name, markersize=3.5)
    dress(axes, "Table 5: planning", "iteration", "ms", legend=2)
    axes.set_yscale("log")
