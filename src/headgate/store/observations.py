"""Observations as lines of JSON: the history in the state directory, and files that a simulation replays.

The history is a ring of files, which others may read while it grows.

A file holds one observation a line and is named after its first; when it has grown, the next begins, and the oldest
ones go when all of them together are too large. A line that was cut short by a crash is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from headgate.errors import InputError, os_reason
from headgate.model.cluster.observation import Observation

__all__ = ["ObservationHistory", "history_of", "observation_of", "observation_text", "read_observations"]

MOST_BYTES, FILE_BYTES = 64_000_000, 1_000_000
BLOCK_BYTES = 1 << 16

_FORM = TypeAdapter(Observation)


def observation_text(observation: Observation) -> str:
    """An observation as a line of JSON; what has its default is left out."""
    return _FORM.dump_json(observation, exclude_defaults=True).decode()


def observation_of(text: str) -> Observation:
    """The observation of a line."""
    return _FORM.validate_json(text)


class ObservationHistory:
    """Observations in the order in which they were made; one writer, any number of readers."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES, file_bytes: int = FILE_BYTES) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self.file_bytes = file_bytes
        self.listeners: list[Callable[[Observation], None]] = []
        """Who is handed every observation, too."""

    def append(self, observation: Observation) -> None:
        """Add the newest observation; the oldest may go."""
        for listener in self.listeners:
            listener(observation)
        self.folder.mkdir(parents=True, exist_ok=True)
        files = self._files()
        if not files or files[-1].stat().st_size >= self.file_bytes:
            # After what is there, should the clock have been set back meanwhile.
            number = max(int(observation.ended * 1_000), int(files[-1].stem) + 1 if files else 0)
            files.append(self.folder / f"{number:016d}.jsonl")
        text = _FORM.dump_json(observation, exclude_defaults=True)
        with files[-1].open("ab") as file:
            # A line that a crash has cut short must not take this one with it.
            file.write(b"\n" + text + b"\n")
        sizes = [file.stat().st_size for file in files]
        while len(files) > 1 and sum(sizes) > self.most_bytes:
            files.pop(0).unlink(missing_ok=True)
            sizes.pop(0)

    def read(self, since: float = 0.0) -> Iterator[Observation]:
        """The observations that ended after a moment, oldest first."""
        files = self._files()
        for file, following in zip(files, [*files[1:], *([None] if files else [])], strict=True):
            if following is not None and int(following.stem) / 1_000 <= since:
                continue
            for observation in _observations(file):
                if observation.ended > since:
                    yield observation

    @property
    def size(self) -> int:
        """In bytes; what goes meanwhile is not counted."""
        with suppress(FileNotFoundError):
            return sum(file.stat().st_size for file in self._files())
        return 0

    def last(self) -> Observation | None:
        """The newest observation, if there is one; no more than that is read."""
        for file in reversed(self._files()):
            for line in _lines_backwards(file):
                try:
                    return _FORM.validate_json(line)
                except ValidationError:
                    continue
        return None

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.jsonl")) if self.folder.is_dir() else []


def _observations(file: Path) -> Iterator[Observation]:
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:  # the ring has moved on
        return
    for line in lines:
        if line:
            try:
                yield _FORM.validate_json(line)
            except ValidationError:
                continue


def _lines_backwards(file: Path) -> Iterator[bytes]:
    """The whole lines of a file, the last first."""
    try:
        with file.open("rb") as lines:
            begin, rest = lines.seek(0, os.SEEK_END), b""
            while begin > 0:
                begin, end = max(begin - BLOCK_BYTES, 0), begin
                lines.seek(begin)
                rest, *whole = (lines.read(end - begin) + rest).split(b"\n")
                yield from filter(None, reversed(whole))
            yield from filter(None, [rest])
    except FileNotFoundError:  # the ring has moved on
        return


def history_of(state: Path) -> ObservationHistory:
    """The history in a state directory; raises :class:`InputError` where no engine has ever run."""
    if not (state / "version").exists():
        message = f"no engine has run with the state directory '{state}'; start one with headgate run --state {state}"
        raise InputError("NO_STATE", message)
    return ObservationHistory(state / "observations")


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Read observations; raises :class:`InputError` with the number of an invalid or unsorted line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError("BAD_OBSERVATIONS", f"cannot read {path}: {reason}") from None
    observations: list[Observation] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            seen = _FORM.validate_json(line)
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            reason = ": ".join([*filter(None, [".".join(map(str, detail["loc"]))]), detail["msg"].lower()])
            raise InputError("BAD_OBSERVATIONS", f"{path}:{number}: not an observation: {reason}") from None
        if observations and seen.ended <= observations[-1].ended:
            reason = (
                f"{path}:{number}: an interval that ended at {seen.ended:g} s after one of {observations[-1].ended:g} s"
            )
            raise InputError("BAD_OBSERVATIONS", f"{reason}; expected intervals in order")
        observations.append(seen)
    if not observations:
        raise InputError("BAD_OBSERVATIONS", f"{path} holds no observations; expected a line of JSON for each interval")
    return tuple(observations)
