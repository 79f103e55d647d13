"""The checkpoint of a streaming query, as Spark lays it out: which micro-batches it has begun and committed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from headgate.store.files import damaged, read_json, write_text

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
        return [int(offset[key]) for offset in self._offsets(epoch) if key in offset]

    def whole_offset(self, epoch: int, key: str) -> dict[str, Any] | None:
        """The first offset of an epoch that has a key, with all that its source wrote into it."""
        return next((offset for offset in self._offsets(epoch) if key in offset), None)

    def _offsets(self, epoch: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.offsets_text(epoch).splitlines() if line.startswith("{")]

    def offsets_text(self, epoch: int) -> str:
        """The offsets of an epoch as Spark has stored them; nothing if it has not begun."""
        file = self.folder / "offsets" / str(epoch)
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def restore(self, epoch: int, offsets: str) -> None:
        """Put back the offsets of an epoch if a power loss has taken them: Spark does not sync its files."""
        file = self.folder / "offsets" / str(epoch)
        if self.offsets_text(epoch) != offsets:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            write_text(file, offsets)

    def clear_false_start(self) -> None:
        """Remove what Spark left when it was killed before its first epoch: it would not start over that.

        Raises :class:`InputError` if what Spark would read is damaged.
        """
        if not self.folder.is_dir():
            return
        last = _last_number(self.folder / "offsets")
        if last is None:
            shutil.rmtree(self.folder)
            return
        if "id" not in (read_json(self.folder / "metadata") or {}):
            raise damaged(self.folder / "metadata")
        committed = self.last_committed()
        for file in (f"offsets/{last}", f"offsets/{last - 1}", f"commits/{committed}"):
            _check(self.folder / file)


def _check(file: Path) -> None:
    """Raise unless a file of Spark's log, if it is there, is a version and lines of JSON."""
    if file.exists():
        try:
            version, *lines = file.read_text(encoding="utf-8").splitlines()
            if not re.fullmatch(r"v\d+", version) or not all(line == "-" or json.loads(line) for line in lines):
                raise damaged(file)
        except ValueError:
            raise damaged(file) from None


def _last_number(folder: Path) -> int | None:
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=None)
