"""The picture of ``headgate bench nexmark``: what each query costs, beside the other systems."""

from __future__ import annotations

from pathlib import Path

from headgate_benchmarks.measured import Measured, prepare_plots
from headgate_benchmarks.nexmark.flows import QUERIES

__all__ = ["plot"]

SYSTEMS = {
    "headgate": ("Headgate", "#1b6ca8"),
    "pyspark": ("PySpark by hand", "#b8b8b8"),
    "flink": ("Flink SQL", "#e07b39"),
}
HEIGHTS = {"cpu_s_per_million": "CPU seconds for a million events", "events_per_s": "events a second"}


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw CPU and events a second of all queries and systems into one file."""
    prepare_plots(folder)
    import matplotlib.pyplot as plt

    there = [name for name in SYSTEMS if any(f"{q}_events_per_s_{name}" in measured.figures for q in QUERIES)]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    width = 0.8 / max(len(there), 1)
    for axis, (height, told) in zip(axes, HEIGHTS.items(), strict=True):
        for number, name in enumerate(there):
            found = {place: measured.figures.get(f"{query}_{height}_{name}") for place, query in enumerate(QUERIES)}
            at = {place: value for place, value in found.items() if value is not None}
            label, colour = SYSTEMS[name]
            shifted = [place + (number - (len(there) - 1) / 2) * width for place in at]
            axis.bar(shifted, list(at.values()), width, label=label, color=colour)
        axis.set_ylabel(told)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    axes[0].legend(frameon=False)
    axes[1].set_xticks(range(len(QUERIES)), list(QUERIES))
    figure.suptitle("Nexmark beyond start-up, one machine; where there is no bar, a system cannot do the query")
    path = folder / "nexmark.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return [path]
