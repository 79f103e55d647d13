"""The answers to requests, so that a request that is sent twice is carried out once.

An answer may be written just before the change that it describes becomes durable. It then names the plan snapshot of
that change and counts only if the state directory has reached that snapshot: whenever the process is killed, either
both are there or neither.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate.store.files import append_line, write_text

__all__ = ["RecordedAnswer", "RequestLog"]

KEPT_S = 24 * 3600.0
MOST = 10_000


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What a request was answered."""

    request: str
    """The id that the client chose."""

    fingerprint: str
    """Of what was asked for: the same id with another request is a mistake."""

    status: int
    body: Mapping[str, Any]
    snapshot: int = 0
    """The plan snapshot that carries out the request; 0 if the answer does not depend on one."""

    at: float = 0.0


class RequestLog:
    """Answers by request id, in one file; those of the last day are kept."""

    def __init__(self, file: Path, snapshot: int) -> None:
        """Read the file; ``snapshot`` is the newest durable plan snapshot."""
        self._file = file
        oldest = time.time() - KEPT_S
        answers = {one.request: one for one in _read(file) if one.snapshot <= snapshot and one.at >= oldest}
        self._answers = dict(list(answers.items())[-MOST:])
        self._rewrite()

    def find(self, request: str) -> RecordedAnswer | None:
        """The answer to a request, if it was answered."""
        return self._answers.get(request)

    def record(self, request: str, fingerprint: str, status: int, body: Mapping[str, Any], snapshot: int = 0) -> None:
        """Keep an answer; it is durable when this returns."""
        answer = RecordedAnswer(request, fingerprint, status, body, snapshot, time.time())
        self._answers.pop(request, None)
        self._answers[request] = answer
        if len(self._answers) > 2 * MOST:
            self._answers = dict(list(self._answers.items())[-MOST:])
            self._rewrite()
            return
        append_line(self._file, json.dumps(asdict(answer)), "answer")

    def forget(self, request: str) -> None:
        """Drop an answer whose change was not made after all."""
        if self._answers.pop(request, None) is not None:
            self._rewrite()

    def _rewrite(self) -> None:
        write_text(
            self._file, "".join(json.dumps(asdict(answer)) + "\n" for answer in self._answers.values()), "answers"
        )


def _read(file: Path) -> list[RecordedAnswer]:
    answers = []
    for line in file.read_bytes().splitlines() if file.exists() else ():
        try:
            answers.append(RecordedAnswer(**json.loads(line)))
        except (ValueError, TypeError):  # a line that was cut short
            continue
    return answers
