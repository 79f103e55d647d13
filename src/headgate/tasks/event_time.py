"""Task types over event time: windows and joins of streams. What they do is imported when they run."""

from __future__ import annotations

from collections.abc import Callable

from headgate.model.task_type import STEP, State, TaskType, joining
from headgate.model.work import ChainWork
from headgate.tasks.windows import EventTimeWindow, Join

__all__ = ["TYPES"]


def _window() -> ChainWork:
    from headgate.tasks.chains.window_work import WINDOW_WORK

    return WINDOW_WORK


def _join() -> ChainWork:
    from headgate.tasks.chains.join_work import JOIN_WORK

    return JOIN_WORK


def _later(work: Callable[[], ChainWork]) -> ChainWork:
    """The same work, imported when it is first asked for something: options are read without Arrow."""
    return ChainWork(
        lambda options, names: work().before(options, names),
        lambda options, schemas: work().start(options, schemas),
        lambda options: work().keys(options),
        lambda options: work().times(options),
        lambda options: work().late_by(options),
    )


TYPES = (
    TaskType("window", EventTimeWindow, STEP, State.CHAINED, work=_later(_window)),
    TaskType("join", Join, joining(2), State.CHAINED, work=_later(_join)),
)
