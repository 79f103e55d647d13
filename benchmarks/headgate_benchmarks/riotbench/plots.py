"""The pictures of ``headgate bench apps``."""

from __future__ import annotations

from pathlib import Path

from headgate_benchmarks.measured import Measured, prepare_plots

__all__ = ["plot"]

SYSTEMS = {"headgate": "Headgate", "pyspark": "PySpark", "flink": "Flink SQL", "bytewax": "bytewax"}
COLOURS = {"headgate": "#1b6ca8", "pyspark": "#9aa5b1", "flink": "#9aa5b1", "bytewax": "#9aa5b1"}


def plot(measured: Measured, folder: Path) -> list[Path]:
    """CPU seconds per million events of each application, system by system."""
    prepare_plots(folder)
    from matplotlib.figure import Figure

    apps = [app for app in ("etl", "stats") if app in measured.samples]
    figure = Figure(figsize=(4.5 * len(apps), 3.2), layout="constrained")
    for axes, app in zip(figure.subplots(1, len(apps), squeeze=False)[0], apps, strict=True):
        systems = [system for system in SYSTEMS if system in measured.samples[app]]
        values = [measured.figures[f"{app}_cpu_s_per_million_{system}"] for system in systems]
        bars = axes.barh([SYSTEMS[s] for s in systems], values, color=[COLOURS[s] for s in systems])
        axes.bar_label(bars, [f"{value:,.1f}" for value in values], padding=3)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.18 * max(values))
        axes.set_xlabel("CPU seconds per million events, beyond start-up")
        axes.set_title(f"RIoTBench {app.upper()}", loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    path = folder / "apps_cpu.svg"
    figure.savefig(path)
    return [path]
