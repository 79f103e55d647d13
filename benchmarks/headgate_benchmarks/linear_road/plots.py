"""The picture of ``headgate bench linearroad``: how long toll notifications took while expressways were added."""

from __future__ import annotations

from pathlib import Path

from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]


def plot(measured: Measured, folder: Path) -> list[Path]:
    """Draw the worst response of each second, of the ramp and of the run that was held."""
    prepare_plots(folder)
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    held = f"{measured.figures['expressways']:.0f}"
    runs = {"expressways are added": (measured.samples["ramp"], "#e07b39")}
    if held in measured.samples["holds"]:
        runs[f"{held} from the start"] = (measured.samples["holds"][held], "#1b6ca8")
    for label, (run, colour) in runs.items():
        axis.plot(*zip(*run["responses"], strict=True), label=label, color=colour)
    axis.axhline(5, color="#a33", linestyle="--", linewidth=1)
    axis.annotate("deadline", (0.995, 5), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="#a33")
    at_s = measured.figures["switched_at_s"]
    if at_s >= 0:
        axis.axvline(at_s, color="#888", linestyle=":", linewidth=1)
        axis.annotate("alternates switched", (at_s, 0), xytext=(3, 6), textcoords="offset points", color="#666")
    axis.set_xlabel("seconds since the first report")
    axis.set_ylabel("worst response of a toll notification, s")
    axis.set_ylim(0, 1.4 * max(5.0, *(took for run, _ in runs.values() for _, took in run["responses"])))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="upper left")
    path = folder / "linear_road.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return [path]
