"""What an aggregate is, for all groups at once: columns of rows in, columns of state, a column of results out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headgate.tasks.chains.grouping import Groups

__all__ = ["Aggregate", "Columns"]

Columns = Sequence[Any]
"""Arrow arrays of one length."""


class Aggregate(Protocol):
    """An aggregate for given types. Rows, and states to merge, come sorted by group, in order of arrival."""

    @property
    def state(self) -> Sequence[Any]:
        """The types of the columns of its state."""

    @property
    def result(self) -> Any:
        """The type of its results, as Spark SQL has it."""

    def begin(self, columns: Columns, sequence: Any, groups: Groups) -> Columns:
        """The state of each group of rows, from the arguments and the numbers of the rows in order of arrival."""

    def merge(self, columns: Columns, groups: Groups) -> Columns:
        """One state for each group of states."""

    def finish(self, columns: Columns) -> Any:
        """The result of each state."""
