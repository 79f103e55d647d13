"""Charts of lines as SVG, and archives of them."""

import io
import zipfile
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["drawn", "stored"]


def drawn(lines, title):
    """A chart of several lines."""
    with rc_context({"svg.hashsalt": "headgate", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        for name, values in lines.items():
            axes.plot(np.arange(len(values)), values, label=name, linewidth=1.4)
        axes.set_ylabel("")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", linewidth=0.4, alpha=0.5)
        axes.set_title(title, loc="left")
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
        held = io.BytesIO()
        figure.savefig(held, format="svg", metadata={"Date": None})
        return held.getvalue()


def stored(charts, folder):
    """Put charts, title and picture each, into an archive that is named after the first, and return its path."""
    path = Path(folder) / f"{charts[0][0]}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for title, picture in charts:
            archive.writestr(title, picture)
    return str(path)
