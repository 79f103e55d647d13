"""Profiles of tasks that outlive the engine that measured them.

A profile is kept by what it is of: the type, the options and the columns that come in. So tasks that do the same share
it, whatever is before them and whichever dataflow they belong to, and a dataflow of tomorrow begins with what is known
today. The newest :data:`MOST` are kept, in one small file that is written anew when one has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from headgate.model.cluster.observation import TaskProfile
from headgate.store.files import read_json, write_json

__all__ = ["ProfileStore"]

MOST = 2_000

_FORM = TypeAdapter(dict[str, TaskProfile])


class ProfileStore:
    """The profiles in a file, for the reference core; one writer."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _FORM.validate_python(read_json(file) or {})

    def of(self, key: str) -> TaskProfile | None:
        """The profile of a task, by what it does on which columns; none if it was never measured."""
        return self._known.get(key)

    def keep(self, profiles: Mapping[str, TaskProfile]) -> None:
        """Keep what was measured; an ``OSError`` keeps it in memory."""
        changed = {key: profile for key, profile in profiles.items() if self._known.get(key) != profile}
        if not changed:
            return
        for key in changed:
            self._known.pop(key, None)  # the newest last
        self._known = dict([*self._known.items(), *changed.items()][-MOST:])
        write_json(self._file, {key: asdict(profile) for key, profile in self._known.items()})
