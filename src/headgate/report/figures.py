"""What all of Matplotlib's pictures have in common."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from headgate.errors import InputError, missing_package

__all__ = ["SHADES", "check_picture", "figure_bytes"]

SHADES = ("#12466b", "#c2410c", "#4d7c0f", "#7c3aed", "#0e7490", "#a16207", "#be185d", "#475569")


LOOK: dict[Any, Any] = {
    "svg.hashsalt": "headgate",
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True},
    **{"axes.titlelocation": "left", "axes.titlesize": 10, "grid.alpha": 0.25},
    **{"legend.frameon": False, "legend.fontsize": 8},
}
"""The settings of Matplotlib in which all pictures differ from its own."""


def check_picture(ending: str = ".svg") -> None:
    """Raise unless pictures can be drawn here, into files of that ending; commands ask before their work starts."""
    if ending.lower() not in (".svg", ".png", ".pdf"):
        message = f"a picture whose name ends in {ending[:20]!r}; expected .svg, .png or .pdf"
        raise InputError("UNKNOWN_PICTURE", message)
    try:
        # It takes longer to load than everything else together.
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_package("NO_PLOTS", "drawing plots", "matplotlib", "plots") from None


def figure_bytes(draw: Callable[[Any], None], ending: str, inches: tuple[float, float]) -> bytes:
    """Draw into a figure and write it as SVG, PNG or PDF, the same bytes every time."""
    check_picture(ending)
    import matplotlib
    from matplotlib.figure import Figure

    form = ending[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        file = io.BytesIO()
        figure.savefig(file, format=form, metadata=undated, dpi=110)
    return file.getvalue()
