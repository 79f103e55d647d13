"""The files that there are for a source task, whether or not it runs."""

from __future__ import annotations

from headgate.model.secret import MENTION
from headgate.model.task import Task
from headgate.runtime.file_source.listing import SourceFile, listing_of
from headgate.tasks.file_paths import absolute

__all__ = ["files_of", "oldest_ns"]


def files_of(task: Task) -> list[SourceFile]:
    """All files that a source has to read, read or not, in their order."""
    return listing_of(absolute(str(task.config["path"])), lambda _: False).files


def oldest_ns(task: Task) -> int | None:
    """When the oldest file of a source was modified; ``None`` for one without, and where a secret says where."""
    files = files_of(task) if task.type == "read_files" and MENTION not in task.config.text else []
    return files[0].modified_ns if files else None
