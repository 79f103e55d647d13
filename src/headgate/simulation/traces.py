"""Recorded performance of machines: read, checked, and made into a pool that simulated machines follow.

A table is *long*, with columns ``vm`` and ``t_s`` and one for each metric, or *wide*, with ``t_s`` and a column for
each machine.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue, InputError, nearest, os_reason, unknown
from headgate.model.trace_statistics import TraceUnit
from headgate.simulation.variability import TracePool

__all__ = ["Trace", "coefficients", "pool_of", "read_csv_columns", "trace_files", "traces_of"]

Floats = npt.NDArray[np.float64]
Columns = Mapping[str, Sequence[object]]
SLOT_S = 300.0
GAP = 5.0
"""Times the usual time between two rows: what is longer is a gap."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One machine's metric over time."""

    vm: str
    t_s: Floats
    values: Floats


def trace_files(path: Path) -> list[Path]:
    """The CSV and parquet files of a folder, or the one file that is named."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError("NO_TRACES", f"there is no folder or file {path}; name one with traces as CSV or parquet")
    files = sorted(file for file in path.rglob("*") if file.name.endswith((".csv", ".csv.gz", ".parquet")))
    if not files:
        raise InputError("NO_TRACES", f"no traces in {path}: no file there ends in .csv, .csv.gz or .parquet")
    return files


def read_csv_columns(path: Path) -> dict[str, list[object]]:
    """The columns of a CSV file, also gzipped, as text."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise InputError("BAD_TRACE", f"cannot read {path}: {os_reason(error)}") from None
    if len(rows) < 2:
        raise InputError("BAD_TRACE", f"{path} has no rows; expected a header and a row for each measurement")
    width = len(rows[0])
    short = next((line for line, row in enumerate(rows, start=1) if len(row) != width), None)
    if short is not None:
        message = f"{path}:{short}: {len(rows[short - 1])} values where the header has {width} columns"
        raise InputError("BAD_TRACE", message)
    return {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}


def traces_of(columns: Columns, where: str, metric: str | None = None) -> tuple[Trace, ...]:
    """The traces of a table, by machine; raises :class:`InputError` with the row of an invalid value."""
    if "t_s" not in columns:
        near = nearest("t_s", list(columns))
        hint = f"; is it '{near}'?" if near else ""
        raise InputError("BAD_TRACE", f"{where} has no column t_s, the seconds of each measurement{hint}")
    times = _numbers(columns["t_s"], where, "t_s")
    if "vm" not in columns:
        return tuple(
            _trace(name, times, _numbers(values, where, name), where)
            for name, values in columns.items()
            if name != "t_s" and metric in (None, name)
        )
    metrics = [name for name in columns if name not in ("vm", "t_s")]
    chosen = metric or (metrics[0] if len(metrics) == 1 else None)
    if chosen not in metrics:
        problem = f"has no metric '{metric}'" if metric else "has several metrics"
        raise unknown("BAD_TRACE", f"{where} {problem}", metric or "", metrics)
    values = _numbers(columns[chosen or ""], where, chosen or "")
    names = np.array([str(vm) for vm in columns["vm"]])
    return tuple(_trace(vm, times[names == vm], values[names == vm], where) for vm in dict.fromkeys(names.tolist()))


def _numbers(values: Sequence[object], where: str, column: str) -> Floats:
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([_number(value) for value in values])
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        row = int(bad[0])
        message = f"{where}, row {row + 2}: {column} is {str(values[row])[:40]!r}"
        raise InputError("BAD_TRACE", f"{message}; expected a number, or no row where nothing was measured")
    return numbers


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _trace(vm: str, t_s: Floats, values: Floats, where: str) -> Trace:
    if len(t_s) < 2:
        raise InputError("BAD_TRACE", f"{where}: machine '{vm[:60]}' has one measurement; a trace needs two")
    steps = np.diff(t_s)
    if (steps <= 0).any():
        place = int(np.argmax(steps <= 0))
        message = f"{where}: machine '{vm[:60]}' is measured at {t_s[place + 1]:g} s after {t_s[place]:g} s"
        raise InputError("BAD_TRACE", f"{message}; sort the rows of each machine by time and leave doubles out")
    return Trace(vm, t_s, values)


def coefficients(traces: Sequence[Trace], unit: TraceUnit, where: str) -> tuple[Trace, ...]:
    """The same as shares of the rated performance; raises :class:`InputError` for values outside the unit's range."""
    most = max(float(trace.values.max()) for trace in traces)
    least = min(float(trace.values.min()) for trace in traces)
    limit = {TraceUnit.SHARE: 1.0, TraceUnit.PERCENT: 100.0, TraceUnit.USED_PERCENT: 100.0}.get(unit, np.inf)
    if most > limit * (1 + 1e-9) or least < 0:
        message = f"{where}: values from {least:g} to {most:g} are not of unit '{unit}'"
        if unit is TraceUnit.SHARE and least >= 0:
            hint = "percent" if most <= 100 else "rate or time"
            raise InputError("MIXED_UNITS", f"{message}; are they of unit {hint}? say so with --unit")
        raise InputError("MIXED_UNITS", f"{message}; expected {'at least 0' if least < 0 else f'at most {limit:g}'}")
    if unit in (TraceUnit.TIME, TraceUnit.RATE) and least <= 0:
        raise InputError("MIXED_UNITS", f"{where}: a value of {least:g} is not of unit '{unit}'; expected above 0")
    if unit is TraceUnit.SHARE and 0 < most < 0.02:
        message = f"{where}: no value is above {most:g}, which would be a fiftieth of the rated performance"
        raise InputError("MIXED_UNITS", f"{message}; if they are seconds, say --unit time")
    # Nothing left at all would make a machine that never answers: a hundredth stays.
    return tuple(Trace(each.vm, each.t_s, np.maximum(_share(each.values, unit, least, most), 0.01)) for each in traces)


def _share(values: Floats, unit: TraceUnit, least: float, most: float) -> Floats:
    match unit:
        case TraceUnit.PERCENT:
            return values / 100
        case TraceUnit.USED_PERCENT:
            return 1 - values / 100
        case TraceUnit.TIME:
            return least / values
        case TraceUnit.RATE:
            return values / most
    return values


def pool_of(
    speed: Sequence[Trace], where: str, bandwidth: Sequence[Trace] = (), latency: Sequence[Trace] = ()
) -> TracePool:
    """A pool of traces in slots of five minutes, cut to the shortest; raises :class:`InputError` for a gap."""
    slots = [_slots(trace, where) for trace in speed]
    length = min(map(len, slots))
    values = np.array([each[:length] for each in slots])
    others = []
    for given in (bandwidth, latency):
        if not given:
            others.append(np.ones_like(values))
            continue
        means = [_slots(trace, where) for trace in given]
        others.append(np.array([np.resize(means[row % len(means)], length) for row in range(len(values))]))
    try:
        return TracePool(values, others[0], others[1], SLOT_S, where)
    except BadValue as error:
        raise InputError("BAD_TRACE", f"{where}: {error}") from None


def _slots(trace: Trace, where: str) -> Floats:
    """Means over slots of five minutes; each measurement holds until the next."""
    steps = np.diff(trace.t_s)
    usual = float(np.median(steps))
    if (steps > GAP * usual).any():
        place = int(np.argmax(steps > GAP * usual))
        message = f"machine '{trace.vm[:60]}' has a gap from {trace.t_s[place]:g} to {trace.t_s[place + 1]:g} s"
        wanted = f"a measurement about every {usual:g} s; cut the trace there, or fill it in"
        raise InputError("TRACE_GAP", f"{where}: {message}; expected {wanted}")
    ends = np.append(trace.t_s[1:], trace.t_s[-1] + usual)
    edges = np.arange(trace.t_s[0], ends[-1] + 1e-9, SLOT_S)
    if len(edges) < 2:
        edges = np.array([trace.t_s[0], ends[-1]])
    total = np.concatenate([[0.0], np.cumsum(trace.values * (ends - trace.t_s))])
    upto = np.interp(edges, np.append(trace.t_s, ends[-1]), total)
    return np.asarray(np.diff(upto) / np.diff(edges))
