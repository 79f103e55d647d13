"""Task types over event time: windows and joins of streams."""

from __future__ import annotations

from headgate.model.task_type import STEP, State, TaskType, joining
from headgate.tasks.chains.join_work import JOIN_WORK
from headgate.tasks.chains.window_work import WINDOW_WORK
from headgate.tasks.windows import EventTimeWindow, Join

__all__ = ["TYPES"]

TYPES = (
    TaskType("window", EventTimeWindow, STEP, State.CHAINED, work=WINDOW_WORK),
    TaskType("join", Join, joining(2), State.CHAINED, work=JOIN_WORK),
)
