"""Pictures of ``headgate bench sharing``, like SHARE's Figs. 7, 10, 12 and 13."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]

COLOURS = {
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


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw what was measured into a folder; raises :class:`InputError` where matplotlib is not installed."""
    prepare_plots(folder)
    pictures: dict[str, tuple[str, Callable[[Any, Series], None]]] = {
        "tasks": ("Tasks at work after each step (as Fig. 7)", _tasks),
        "workers": ("Workers allocated after each step (as Fig. 10; hot lies on replace-prune)", _workers),
        "operations": ("Time of an operation, mean marked (as Fig. 12)", _operations),
        "costs": (
            "US cents a minute; dotted: thousandths per submitted task (as Fig. 13; hot lies on replace-prune)",
            _costs,
        ),
    }
    drawn = []
    if any(key in measured.samples for key in TITLES):
        drawn = [_picture(measured, folder / f"sharing-{name}.png", *told) for name, told in pictures.items()]
    if "spark" in measured.samples:
        drawn.append(_on_spark(measured.samples["spark"], folder / "sharing-spark.png"))
    return drawn


def _on_spark(runs: Series, path: Path) -> Path:
    """CPU beside that of separate queries, and the time of every operation, for each strategy."""
    from matplotlib import pyplot

    names = list(runs)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 3.6))
    alone = runs["none"]["cpu_s"]
    bars = left.bar(names, [runs[name]["cpu_s"] / alone for name in names], color=[COLOURS[name] for name in names])
    left.bar_label(bars, fmt="%.2f", fontsize=8)
    left.set_title("CPU from the first submission to the last withdrawal, none = 1", fontsize=10)
    for place, name in enumerate(names):
        for times, mark in ((runs[name]["submit_s"], "o"), (runs[name]["withdraw_s"], "x")):
            spread = [place + 0.5 * (n / max(len(times) - 1, 1) - 0.5) for n in range(len(times))]
            right.plot(spread, times, mark, color=COLOURS[name], markersize=4, alpha=0.7)
        every = [*runs[name]["submit_s"], *runs[name]["withdraw_s"]]
        right.hlines(sum(every) / len(every), place - 0.3, place + 0.3, color="black")
    right.set_xticks(range(len(names)), names)
    right.set_ylim(bottom=0)
    right.set_title("seconds per operation (o submit, x withdraw; line: mean)", fontsize=10)
    for axes in (left, right):
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _picture(measured: Measured, path: Path, title: str, draw: Callable[[Any, Series], None]) -> Path:
    from matplotlib import pyplot

    collections = [key for key in TITLES if key in measured.samples]
    traces = list(measured.samples[collections[0]]["traces"])
    figure, grid = pyplot.subplots(
        len(collections), len(traces), figsize=(4.4 * len(traces), 2.7 * len(collections)), squeeze=False
    )
    for row, key in zip(grid, collections, strict=True):
        for axes, trace in zip(row, traces, strict=True):
            draw(axes, measured.samples[key]["traces"][trace])
            axes.set_title(f"{TITLES[key]}, {trace}", fontsize=9)
            axes.tick_params(labelsize=8)
            axes.spines[["top", "right"]].set_visible(False)
    handles, labels = grid[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, 0.03 if handles else 0, 1, 0.98))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _tasks(axes: Any, runs: Series) -> None:
    for name, label in (("none", "none"), ("hot", "every strategy that shares")):
        axes.plot(runs[name]["active_tasks"], color=COLOURS[name], label=label, linewidth=1.2)
    axes.set_ylim(bottom=0)
    _mark_walk(axes, runs)


def _workers(axes: Any, runs: Series) -> None:
    for name, series in runs.items():
        dashes = (0, (3, 2)) if name == "hot" else "solid"  # it lies on replace-prune
        axes.plot(series["workers"], color=COLOURS[name], label=name, linewidth=1.2, linestyle=dashes)
    axes.set_ylim(bottom=0)
    _mark_walk(axes, runs)


def _operations(axes: Any, runs: Series) -> None:
    times = [series["operation_s"][series["first"] : series["last"]] for series in runs.values()]
    drawn = axes.violinplot(
        [[min(value, 150.0) for value in many] for many in times], showmeans=False, showextrema=False
    )
    for body, name in zip(drawn["bodies"], runs, strict=True):
        body.set_facecolor(COLOURS[name])
        body.set_alpha(0.55)
    means = [sum(many) / len(many) for many in times]
    axes.hlines(means, [n + 0.7 for n in range(len(means))], [n + 1.3 for n in range(len(means))], color="black")
    for place, mean in enumerate(means, 1):
        axes.annotate(f"{mean:.1f} s", (place, mean), (0, 4), textcoords="offset points", fontsize=7, ha="center")
    axes.set_xticks(range(1, len(runs) + 1), [name.replace("replace-prune", "rep.-prune") for name in runs], fontsize=7)
    axes.set_ylim(0, 160)
    axes.set_ylabel("seconds (cut at 150)", fontsize=8)


def _costs(axes: Any, runs: Series) -> None:
    per_task = axes.twinx()
    for name in ("none", "replace-prune", "hot"):
        dashes = (0, (3, 2)) if name == "hot" else "solid"
        cents = [100 * cost for cost in runs[name]["cost"]]
        axes.plot(cents, color=COLOURS[name], label=name, linewidth=1.2, linestyle=dashes)
        if name != "hot":
            thousandths = [100_000 * cost or None for cost in runs[name]["cost_per_task"]]
            per_task.plot(thousandths, color=COLOURS[name], linestyle="dotted", linewidth=1)
    axes.set_ylim(bottom=0)
    per_task.set_ylim(0, 60)
    per_task.tick_params(labelsize=7)
    _mark_walk(axes, runs)


def _mark_walk(axes: Any, runs: Series) -> None:
    series = runs["hot"]
    if series["last"] is not None:
        axes.axvspan(series["first"], series["last"], color="#000000", alpha=0.05)
    axes.set_xlabel("step", fontsize=8)
