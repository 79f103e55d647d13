"""Pictures of ``headgate bench sharing``, like SHARE's Figs. 7, 10, 12 and 13."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate_benchmarks.figures import dress, picture
from headgate_benchmarks.study import Measured

__all__ = ["plot"]

SHADES = {
    "none": "#555555",
    "incremental": "#d98c21",
    "replace": "#2f7fb8",
    "replace-prune": "#3a9a5b",
    "hot": "#c0392b",
}
TITLES = {
    "riotbench": "RIoTBench-like",
    "opmw": "OPMW-like",
    "real_wings": "Wings (real)",
    "real_riotbench": "RIoTBench (real)",
}

Series = Mapping[str, Mapping[str, Any]]
"""By strategy."""


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder."""
    drawn = []
    if "experiment" in measured.samples:
        worlds: dict[str, dict[str, dict[str, Any]]] = {}
        for row in measured.samples["experiment"]:
            by_trace = worlds.setdefault(row["collection"], {}).setdefault(row["trace"], {})
            by_trace[row["strategy"]] = row["series"]
        drawn = [_grid(folder / f"sharing-{name}.png", worlds, title, draw) for name, title, draw in PICTURES]
    if "spark" in measured.samples:
        runs = measured.samples["spark"]
        drawn.append(picture(folder / "sharing-spark.png", (9.6, 3.6), lambda figure: _on_spark(figure, runs)))
    return drawn


def _on_spark(figure: Any, runs: Series) -> None:
    """CPU beside that of separate queries, and the time of every operation, for each strategy."""
    left, right = figure.subplots(1, 2)
    names, separate = list(runs), runs["none"]["cpu_s"]
    drawn = left.bar(names, [runs[name]["cpu_s"] / separate for name in names], color=[SHADES[name] for name in names])
    left.bar_label(drawn, fmt="%.2f", fontsize=8)
    dress(left, "CPU from the first submission to the last withdrawal, none = 1")
    for place, name in enumerate(names):
        for times, mark in ((runs[name]["submit_s"], "o"), (runs[name]["withdraw_s"], "x")):
            spread = [place + 0.5 * (n / max(len(times) - 1, 1) - 0.5) for n in range(len(times))]
            right.plot(spread, times, mark, color=SHADES[name], markersize=4, alpha=0.7)
        every = [*runs[name]["submit_s"], *runs[name]["withdraw_s"]]
        right.hlines(sum(every) / len(every), place - 0.3, place + 0.3, color="black")
    right.set_xticks(range(len(names)), names)
    right.set_ylim(bottom=0)
    dress(right, "seconds per operation (o submit, x withdraw; line: mean)")


def _grid(path: Path, worlds: Mapping[str, Mapping[str, Series]], title: str, draw: Callable[..., None]) -> Path:
    """A panel for each collection and trace."""
    traces = list(next(iter(worlds.values())))

    def draw_all(figure: Any) -> None:
        grid = figure.subplots(len(worlds), len(traces), squeeze=False)
        for row, (key, by_trace) in zip(grid, worlds.items(), strict=True):
            for axes, trace in zip(row, traces, strict=True):
                draw(axes, by_trace[trace])
                axes.set_title(f"{TITLES.get(key, key)}, {trace}", fontsize=9)
                axes.tick_params(labelsize=8)
        handles, labels = grid[0][0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
        figure.suptitle(title, fontsize=11)

    return picture(path, (4.4 * len(traces), 2.7 * len(worlds)), draw_all)


def _over_steps(axes: Any, runs: Series, key: str, strategies: Mapping[str, str], factor: float = 1.0) -> None:
    for name, label in strategies.items():
        dashes = (0, (3, 2)) if name == "hot" else "solid"  # it lies on replace-prune
        values = [factor * each for each in runs[name][key]]
        axes.plot(values, color=SHADES[name], label=label, linewidth=1.2, linestyle=dashes)
    axes.set_ylim(bottom=0)
    series = runs["hot"]
    if series["last"] is not None:
        axes.axvspan(series["first"], series["last"], color="#000000", alpha=0.05)
    axes.set_xlabel("step", fontsize=8)


def _tasks(axes: Any, runs: Series) -> None:
    _over_steps(axes, runs, "active_tasks", {"none": "none", "hot": "every strategy that shares"})


def _workers(axes: Any, runs: Series) -> None:
    _over_steps(axes, runs, "workers", {name: name for name in runs})


def _operations(axes: Any, runs: Series) -> None:
    times = [series["operation_s"][series["first"] : series["last"]] for series in runs.values()]
    drawn = axes.violinplot([[min(each, 150.0) for each in many] for many in times], showextrema=False)
    for body, name in zip(drawn["bodies"], runs, strict=True):
        body.set_facecolor(SHADES[name])
        body.set_alpha(0.55)
    for place, mean in enumerate((sum(many) / len(many) for many in times), start=1):
        axes.hlines(mean, place - 0.3, place + 0.3, color="black")
        axes.annotate(f"{mean:.1f} s", (place, mean), (0, 4), textcoords="offset points", fontsize=7, ha="center")
    axes.set_xticks(range(1, len(runs) + 1), [name.replace("replace-prune", "rep.-prune") for name in runs], fontsize=7)
    axes.set_ylim(0, 160)
    axes.set_ylabel("seconds (cut at 150)", fontsize=8)


def _costs(axes: Any, runs: Series) -> None:
    _over_steps(axes, runs, "cost", {name: name for name in ("none", "replace-prune", "hot")}, 100.0)
    per_task = axes.twinx()
    for name in ("none", "replace-prune"):
        thousandths = [100_000 * cost or None for cost in runs[name]["cost_per_task"]]
        per_task.plot(thousandths, color=SHADES[name], linestyle="dotted", linewidth=1)
    per_task.set_ylim(0, 60)
    per_task.tick_params(labelsize=7)


PICTURES = (
    ("tasks", "Active tasks after each step (as Fig. 7)", _tasks),
    ("workers", "Workers allocated after each step (as Fig. 10; hot lies on replace-prune)", _workers),
    ("operations", "Time of an operation, mean marked (as Fig. 12)", _operations),
    (
        "costs",
        "US cents a minute; dotted: thousandths per submitted task (as Fig. 13; hot lies on replace-prune)",
        _costs,
    ),
)
