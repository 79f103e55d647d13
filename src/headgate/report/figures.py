"""What all of Matplotlib's pictures have in common."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from headgate.errors import InputError

__all__ = ["SHADES", "check_ending", "figure_bytes"]

SHADES = ("#12466b", "#c2410c", "#4d7c0f", "#7c3aed", "#0e7490", "#a16207", "#be185d", "#475569")


def check_ending(ending: str) -> None:
    """Raise unless a picture can be written into a file of that ending."""
    if ending not in (".svg", ".png"):
        raise InputError("UNKNOWN_PICTURE", f"a picture whose name ends in {ending[:20]!r}; expected .svg or .png")


def figure_bytes(draw: Callable[[Any], None], ending: str, inches: tuple[float, float]) -> bytes:
    """Draw into a figure and write it as SVG or PNG, the same bytes every time."""
    check_ending(ending)
    # Matplotlib takes longer to load than everything else together.
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "headgate", "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        file = io.BytesIO()
        figure.savefig(file, format=ending[1:], metadata={"Date": None} if ending == ".svg" else None, dpi=110)
    return file.getvalue()
