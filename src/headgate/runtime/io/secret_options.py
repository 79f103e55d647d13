"""The options of a source or sink with the values of its secrets, which stay out of what it raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.errors import InputError
from headgate.model.secret import MENTION, filled_in
from headgate.model.task_type import TaskConfig
from headgate.runtime.compile.plan import CompiledTask
from headgate.store.secrets import SECRETS

__all__ = ["used_options"]


@contextmanager
def used_options(task: CompiledTask) -> Iterator[TaskConfig]:
    """The options to use a task with; raises :class:`InputError` for a secret that has no value."""
    try:
        yield _filled(task)
    except InputError as error:
        raise InputError(error.condition, SECRETS.hidden(error.message), error.parameters) from None


def _filled(task: CompiledTask) -> TaskConfig:
    if MENTION not in task.alternate.config.text:
        return task.options
    return type(task.options).model_validate(_with_values(task.alternate.config.as_dict()))


def _with_values(value: Any) -> Any:
    if isinstance(value, str):
        return filled_in(value, SECRETS.value)
    if isinstance(value, dict):
        return {name: _with_values(item) for name, item in value.items()}
    return [_with_values(item) for item in value] if isinstance(value, list) else value
