"""Guards around tasks that are SQL expressions: a row for which they raise becomes a dead letter, the others pass.

Catalyst's ``TryEval`` returns null for what raises. Around a struct that holds the task's row it distinguishes three
cases in one evaluation: the struct is null where the task raised, its only field is null where the task let no row
pass, and otherwise that field is the row.

A guard costs a little, so a task has none until it raises. It stays up while bad rows keep coming, or a record in a
hundred would fail a job in every epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.tasks.sql_text import TRY

__all__ = ["AS_JSON", "DEFAULT_BUDGET_S", "ActiveGuards", "GuardSettings", "guard_column"]

DEFAULT_BUDGET_S = 60.0
"""How long a task may take for a micro-batch if neither it nor the engine says."""

FIRST_WATCH, LONGEST_WATCH = 100, 100_000
"""After how many epochs without a bad row a guard is removed: at first, and at most."""

OPAQUE = "spark_partition_id() >= 0"
"""Always true, but the optimiser does not know: otherwise it would move common expressions out of the guard."""


AS_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)
"""With nulls and microseconds, so that a row can be read back as it was."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The tasks that have a guard, and the default time budget."""

    up: frozenset[str] = frozenset()
    budget_s: float = DEFAULT_BUDGET_S


def guard_column(value: str, whole: str, parent: str) -> Column:
    """The column ``ok``, null where ``value`` raises, else a struct with it as ``v``, and the ``whole`` row beside.

    Null where ``parent`` is; a parent ``r0`` is every row.
    """
    tried = F.expr(f"{TRY}(named_struct('v', case when {OPAQUE} then {value} end))")
    column = F.struct(tried.alias("ok"), F.expr(whole).alias("whole"))
    return column if parent == "r0" else F.when(F.expr(f"{parent} is not null"), column)


@dataclass(slots=True)
class _Up:
    clean: int
    watch: int


@dataclass(slots=True)
class ActiveGuards:
    """Which tasks have a guard, and for how long."""

    _up: dict[str, _Up] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> frozenset[str]:
        return frozenset(self._up)

    def put_up(self, task: str) -> None:
        """Guard a task, for twice as long as the last time."""
        watch = min(2 * self._last.get(task, FIRST_WATCH // 2), LONGEST_WATCH)
        self._last[task] = watch
        self._up[task] = _Up(0, watch)

    def epoch(self, bad: Collection[str], is_gone: Callable[[str], bool] = lambda _: False) -> None:
        """Note an epoch in which these tasks had bad rows; those that had none for long enough lose their guard.

        >>> guards = ActiveGuards()
        >>> guards.put_up("t")
        >>> for _ in range(99):
        ...     guards.epoch([])
        >>> guards.epoch(["t"])
        >>> for _ in range(99):
        ...     guards.epoch([])
        >>> sorted(guards.tasks)
        ['t']
        >>> guards.epoch([])
        >>> sorted(guards.tasks)
        []
        """
        for task, up in list(self._up.items()):
            up.clean = 0 if task in bad else up.clean + 1
            if up.clean >= up.watch or is_gone(task):
                del self._up[task]
