"""The kinds of names, each with its own type so that two kinds cannot be swapped."""

from __future__ import annotations

import re
from typing import NewType

__all__ = ["NAME_PATTERN", "NAME_RULE", "DataflowName", "Owner", "PortName", "Signature", "TaskId", "is_name"]

TaskId = NewType("TaskId", str)
"""Names a task within its dataflow."""

DataflowName = NewType("DataflowName", str)
"""Names a dataflow within an engine."""

Owner = NewType("Owner", str)
"""Who submitted a dataflow, and pays for it."""

PortName = NewType("PortName", str)
"""Names an input or output of a task."""

Signature = NewType("Signature", str)
"""What a task computes, as a digest: equal for equivalent tasks, whatever they are called."""

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.@\-]{0,127}$"
NAME_RULE = "1 to 128 letters, digits, '_', '-', '.' or '@', not starting with a punctuation mark"

_is_name = re.compile(NAME_PATTERN.removesuffix("$") + r"\Z")


def is_name(text: str) -> bool:
    """Tell whether ``text`` may name a task, a port, a dataflow or an owner.

    >>> is_name("parse-1"), is_name("a:b"), is_name("")
    (True, False, False)
    """
    return _is_name.match(text) is not None
