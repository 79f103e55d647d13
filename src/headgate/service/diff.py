"""What two dataflows have in common."""

from __future__ import annotations

from headgate.model.dataflow import Dataflow
from headgate.model.table import Table, TableColumn
from headgate.sharing.overlap import overlap

__all__ = ["diff_tables"]

_TASKS = tuple(TableColumn(*pair) for pair in (("a", "task of A"), ("b", "task of B"), ("sharing", "sharing")))
_COUNTS = ("equivalent", "only_a", "only_b")


def diff_tables(
    first: Dataflow, second: Dataflow, first_name: str = "A", second_name: str = "B"
) -> tuple[Table, Table]:
    """Equivalent tasks and those that only one dataflow has, and how much of the second runs already in the first."""
    common = overlap(first, second)
    rows: list[dict[str, object]] = [{"a": a, "b": b, "sharing": "equivalent"} for a, b in common.equivalent]
    rows += [{"a": None, "b": task, "sharing": "only in B"} for task in common.only_second]
    rows += [{"a": task, "b": None, "sharing": "only in A"} for task in common.only_first]
    counts = {
        "equivalent": len(common.equivalent),
        "only_a": len(common.only_first),
        "only_b": len(common.only_second),
        "shared": common.shared,
    }
    columns = (
        *(TableColumn(name, name.replace("_", " ")) for name in _COUNTS),
        TableColumn("shared", "shared", form=".0%"),
    )
    note = f"A is {first_name}, B is {second_name}: {common.shared:.0%} of B runs already when A does."
    return Table("Tasks", _TASKS, tuple(rows)), Table("Overlap", columns, (counts,), (note,))
