"""How well dataflows do, as a table: throughput, value, latency, cost and profit, beside what was agreed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from headgate.model.cluster.observation import Observation
from headgate.model.table import Table, TableColumn

__all__ = ["figures_table", "observed_figures"]

FIGURES = (
    TableColumn("dataflow", "dataflow"),
    TableColumn("omega", "through", form=".3f"),
    TableColumn("kept_up", "kept up", form=".2f"),
    TableColumn("gamma", "value", form=".3f"),
    TableColumn("mean_s", "latency", "s", ".2f"),
    TableColumn("p95_s", "p95", "s", ".2f"),
    TableColumn("cost_per_h", "cost/h", form=".4f"),
    TableColumn("theta", "profit", form="+.3f"),
    TableColumn("level", "level"),
)
"""The columns fit into 80 beside a name of some length."""

ALL = "all"

Answer = Mapping[str, Any]


def figures_table(figures: Mapping[str, Answer | None], together: Answer | None = None, span_s: float = 60.0) -> Table:
    """The figures of each dataflow, as JSON has them, and of all together; why any are missing is below."""
    rows = [_row(name, own) for name, own in figures.items()]
    if together is not None and len(rows) > 1:
        rows.append(_row(ALL, together))
    reasons = [f"{name}: {reason}." for name, own in figures.items() for reason in _missing(own)]
    return Table(f"Figures of the last {span_s:.0f} s", FIGURES, tuple(rows), tuple(dict.fromkeys(reasons)))


def observed_figures(seen: Observation) -> Table:
    """The figures of an observation."""
    flows = {flow.name: None if flow.figures is None else asdict(flow.figures) for flow in seen.dataflows}
    return figures_table(flows, None if seen.together is None else asdict(seen.together), seen.seconds)


def _row(name: str, own: Answer | None) -> dict[str, Any]:
    if own is None:
        return {"dataflow": name}
    within = own["within"]
    level = None if within is None else "met" if within else "missed"
    return {"dataflow": name, **own, **(own["sojourn"] or {}), "level": level}


def _missing(own: Answer | None) -> Iterable[str]:
    """Why figures are missing; that no profit was agreed upon needs no saying."""
    reasons = () if own is None else own["unknown"]
    return (reason for reason in reasons if not reason.startswith(("profit", "kept up: no row")))
