"""How well dataflows do, as a table: throughput, value, latency, cost and profit, beside what was agreed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from headgate.model.cluster.observation import Observation
from headgate.model.service_level import ServiceLevel
from headgate.model.table import Table, TableColumn
from headgate.report.text import describe_service_level

__all__ = ["figures_table", "levels_table", "observed_figures"]

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

LEVELS = (
    TableColumn("dataflow", "dataflow"),
    TableColumn("share", "time met", form=".2%"),
    TableColumn("outside", "missed for"),
    TableColumn("left", "left this month"),
    TableColumn("agreed", "agreed"),
)

_LEVEL = TypeAdapter(ServiceLevel)

ALL = "all"

Answer = Mapping[str, Any]


def figures_table(figures: Mapping[str, Answer | None], together: Answer | None = None, span_s: float = 60.0) -> Table:
    """The figures of each dataflow, as JSON has them, and of all together; why any are missing is below."""
    rows = [_row(name, own) for name, own in figures.items()]
    if together is not None and len(rows) > 1:
        rows.append(_row(ALL, together))
    reasons = [f"{name}: {reason}." for name, own in figures.items() for reason in _missing(own)]
    return Table(f"Figures of the last {span_s:.0f} s", FIGURES, tuple(rows), tuple(dict.fromkeys(reasons)))


def levels_table(flows: Sequence[Answer]) -> Table:
    """For how long dataflows were as agreed, as the status has them, and what was agreed."""
    rows = [{"dataflow": flow["name"], **_level(flow["level"])} for flow in flows if flow.get("level")]
    return Table("Service levels", LEVELS, tuple(rows))


def _level(level: Answer) -> dict[str, Any]:
    agreed = describe_service_level(_LEVEL.validate_python(level["level"]))
    return {
        "share": level["share"],
        "outside": _span(level["outside_s"]),
        "left": _span(level["budget_left_s"]),
        "agreed": f"{agreed} (changed)" if level["changed"] else agreed,
    }


def _span(seconds: float) -> str:
    """A time in its largest unit.

    >>> _span(40.0), _span(-5_400.0), _span(26_784.0)
    ('40 s', '-1.5 h', '7.4 h')
    """
    size = abs(seconds)
    return (
        f"{seconds:.0f} s" if size < 60 else f"{seconds / 60:.0f} min" if size < 3_600 else f"{seconds / 3_600:.1f} h"
    )


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
