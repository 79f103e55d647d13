"""Arrival rates as text: ``random-walk:50``, ``sinusoid:peak=75,trough=2``, ``recorded:tweets.csv``."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.errors import BadValue, nearest, os_reason
from headgate.simulation.rates import ArrivalRate, Bootstrap, Bursts, Constant, RandomWalk, Recorded, Sinusoid, Steps

__all__ = ["KINDS", "read_rate", "read_series"]

KINDS: Mapping[str, type[Any]] = {
    "constant": Constant,
    "random-walk": RandomWalk,
    "sinusoid": Sinusoid,
    "steps": Steps,
    "bursts": Bursts,
    "recorded": Recorded,
    "bootstrap": Bootstrap,
}
_FROM_FILES = ("recorded", "bootstrap")


def read_rate(text: str, folder: Path | None = None) -> ArrivalRate:
    """Read a rate: its kind, a colon, and its numbers, in order or by name.

    Steps are pairs of seconds and rate. Recorded series are named by their file, which is looked for in ``folder``.

    >>> read_rate("random-walk:50,spread=0.3")
    RandomWalk(mean=50.0, spread=0.3, step=0.1)
    >>> read_rate("steps:0=10,3600=50")
    Steps(steps=((0.0, 10.0), (3600.0, 50.0)))
    >>> read_rate("12.5")
    Constant(rate_per_s=12.5)
    """
    kind, colon, given = text.partition(":")
    if not colon and _is_number(text):
        kind, given = "constant", text
    kind = kind.strip()
    if kind not in KINDS:
        wanted = f"one of {', '.join(KINDS)}, with numbers after a colon"
        raise BadValue(f"unknown kind of rate {kind[:60]!r}", wanted, nearest(kind, KINDS))
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if kind == "steps":
        return Steps(tuple((_number(kind, at), _number(kind, rate)) for at, rate in map(_pair, parts)))
    names = [each.name for each in fields(KINDS[kind])]
    if kind in _FROM_FILES:
        return _from_file(kind, parts, folder or Path())
    numbers: dict[str, float] = {}
    for place, part in enumerate(parts):
        name, equals, value = part.partition("=")
        if not equals:
            if place >= len(names):
                raise BadValue(f"{kind} has {len(parts)} numbers", f"at most {len(names)}: {', '.join(names)}")
            name, value = names[place], part
        if name not in names:
            raise BadValue(f"{kind} has no {name[:60]!r}", f"one of {', '.join(names)}", nearest(name, names))
        numbers[name] = _number(kind, value)
    return _made(KINDS[kind], numbers, kind)


def _made(make: Callable[..., Any], numbers: Mapping[str, Any], kind: str) -> ArrivalRate:
    try:
        made: ArrivalRate = make(**numbers)
    except TypeError:
        names = ", ".join(each.name for each in fields(KINDS[kind]))
        raise BadValue(f"{kind} lacks a number", f"{kind}: and {names}") from None
    return made


def _pair(part: str) -> tuple[str, str]:
    at, equals, rate = part.partition("=")
    if not equals:
        raise BadValue(f"step {part[:60]!r} has no rate", "seconds=rate, such as 3600=50")
    return at, rate


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(kind: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadValue(
            f"{text[:60]!r} in a rate of kind {kind} is not a number", "numbers, such as 50 or 0.5"
        ) from None


def _from_file(kind: str, parts: list[str], folder: Path) -> ArrivalRate:
    if not parts:
        raise BadValue(f"{kind} names no file", f"{kind}:FILE.csv")
    options = dict(part.split("=", 1) for part in parts[1:] if "=" in part)
    column = options.pop("column", None)
    values, every_s = read_series(folder / parts[0], column)
    numbers = {name: _number(kind, value) for name, value in options.items()}
    known = [each.name for each in fields(KINDS[kind])][2:]
    for name in numbers:
        if name not in known:
            raise BadValue(f"{kind} has no {name[:60]!r}", f"one of column, {', '.join(known)}", nearest(name, known))
    return _made(KINDS[kind], {"values_per_s": values, "every_s": every_s, **numbers}, kind)


def read_series(path: Path, column: str | None = None) -> tuple[tuple[float, ...], float]:
    """Rates and the seconds between them, from a CSV file (also gzipped) with a column ``t_s``.

    A column whose name ends in ``_per_s`` holds rates, any other counts messages since the row before. Without
    ``column``, the only one beside ``t_s`` is taken.
    """
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise BadValue(f"cannot read {path}: {os_reason(error)}") from None
    if not rows or "t_s" not in rows[0]:
        raise BadValue(f"{path} has no column t_s", "a header with t_s, in seconds, and a column of rates or counts")
    header = rows[0]
    others = [name for name in header if name != "t_s"]
    chosen = column or (others[0] if len(others) == 1 else None)
    if chosen not in others:
        message = f"{path} has no column {column!r}" if column else f"{path} has several columns"
        raise BadValue(message, f"column= and one of {', '.join(others[:12])}", nearest(column or "", others))
    times, values = [], []
    at_time, at_value = header.index("t_s"), header.index(chosen or "")
    for line, row in enumerate(rows[1:], start=2):
        try:
            times.append(float(row[at_time]))
            values.append(float(row[at_value]))
        except (ValueError, IndexError):
            raise BadValue(f"{path}:{line}: not numbers: {','.join(row)[:60]!r}", "a number in each column") from None
    return tuple(_rates(path, times, values, chosen or "")), _every_s(path, times)


def _every_s(path: Path, times: list[float]) -> float:
    if len(times) < 2:
        raise BadValue(f"{path} has {len(times)} rows", "at least two, so that the time between them is known")
    every_s = times[1] - times[0]
    for line, (before, after) in enumerate(pairwise(times), start=3):
        if after <= before:
            raise BadValue(f"{path}:{line}: time {after:g} s comes after {before:g} s", "rows in order of time")
        if abs(after - before - every_s) > 0.01 * every_s:
            message = f"{path}:{line}: {after - before:g} s after the row before, where others are {every_s:g} s apart"
            raise BadValue(message, "a series without gaps: fill in what is missing")
    return every_s


def _rates(path: Path, times: list[float], values: list[float], column: str) -> list[float]:
    every_s = _every_s(path, times)
    return values if column.endswith("_per_s") else [value / every_s for value in values]
