"""Observations as lines of JSON, one for each interval: what a live run records and a simulation replays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from headgate.errors import InputError, os_reason
from headgate.model.cluster.observation import Observation

__all__ = ["read_observations", "to_line", "write_observations"]


def to_line(observation: Observation) -> str:
    """One observation as one line.

    >>> to_line(Observation(60.0, 60.0))
    '{"ended": 60.0, "seconds": 60.0, "tasks": [], "sinks": [], "fragments": [], "workers": []}'
    """
    return json.dumps(asdict(observation), allow_nan=True)


def write_observations(path: Path, observations: Iterable[Observation]) -> None:
    """Write observations to a file, a line each."""
    path.write_text("".join(f"{to_line(each)}\n" for each in observations), encoding="utf-8")


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Read observations; raises :class:`InputError` with the number of an invalid or unsorted line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError("BAD_OBSERVATIONS", f"cannot read {path}: {reason}") from None
    reader: TypeAdapter[Observation] = TypeAdapter(Observation)
    observations: list[Observation] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
            seen = reader.validate_python(value)
        except (ValueError, ValidationError) as error:
            reason = _first(error)
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


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        detail = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, detail['loc']))}: {detail['msg'].lower()}"
    return str(error)[:120]
