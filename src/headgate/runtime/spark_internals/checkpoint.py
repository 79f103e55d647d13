"""The checkpoint of a streaming query, as Spark lays it out: which micro-batches it has begun and committed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

__all__ = ["Checkpoint"]


class Checkpoint:
    """Reads a query's checkpoint; the query may be running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def last_committed(self) -> int | None:
        """The last epoch that Spark has committed."""
        return _last_number(self.folder / "commits")

    def epoch_to_replay(self) -> int | None:
        """The epoch that Spark has begun and not committed, if there is one."""
        begun, committed = _last_number(self.folder / "offsets"), self.last_committed()
        return begun if begun is not None and (committed is None or begun > committed) else None

    def offsets(self, epoch: int, key: str) -> list[int]:
        """Up to where an epoch reads, for each source whose offsets have this key; none if it has not begun."""
        file = self.folder / "offsets" / str(epoch)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [int(json.loads(line)[key]) for line in lines if line.startswith(f'{{"{key}"')]

    def clear_false_start(self) -> None:
        """Remove what Spark left when it was killed before its first epoch: it would not start over that."""
        if self.folder.is_dir() and _last_number(self.folder / "offsets") is None:
            shutil.rmtree(self.folder)


def _last_number(folder: Path) -> int | None:
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=None)
