"""The work of windows of event time (:class:`~headgate.tasks.windows.EventTimeWindow`) as chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.errors import InputError
from headgate.model.chain_work import Axis, Chain, ChainWork, StateTable
from headgate.model.sql.bounds import bounded
from headgate.model.work import RowWise
from headgate.tasks.chains.aggregate_text import Split, result_name, split
from headgate.tasks.chains.aggregation import Aggregation, argument_name, state_schema
from headgate.tasks.chains.panes import Panes
from headgate.tasks.chains.rows import TIME, check_time, microseconds
from headgate.tasks.chains.sessions import SESSIONS, SessionFold
from headgate.tasks.chains.windows import PANES, START, WindowFold
from headgate.tasks.heavy import pa
from headgate.tasks.sql_text import quoted
from headgate.tasks.windows import EventTimeWindow

__all__ = ["WINDOW_WORK"]

BOUNDS = ("window_start", "window_end")


def split_of(options: EventTimeWindow) -> Split:
    """The expressions of a window, bounded and split."""
    return split({name: bounded(text) for name, text in options.columns.items()})


def _before(options: EventTimeWindow, names: Sequence[Sequence[str]]) -> Sequence[RowWise]:
    del names
    columns = [(name, quoted(name)) for name in options.key]
    columns.append((TIME, quoted(options.time)))
    columns += ((argument_name(place), text) for place, text in enumerate(split_of(options).arguments))
    return (RowWise(tuple(name for name, _ in columns), columns=tuple(columns)),)


def named(outer: Sequence[tuple[str, str]]) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """The call and the name of each column, if all columns are results as they are."""
    places = {f"`{result_name(place)}`": place for place in range(len(outer))}
    if not all(text.strip() in places for _, text in outer):
        return None
    return tuple(places[text.strip()] for _, text in outer), tuple(name for name, _ in outer)


def _start(options: EventTimeWindow, schemas: Sequence[Any]) -> Chain:
    (rows,) = schemas
    check_time(rows.field(TIME).type, options.time)
    panes = _panes(options)
    parts = split_of(options)
    aggregation = Aggregation.of(parts.calls, rows)
    keys = [(name, rows.field(name).type) for name in options.key]
    results = aggregation.results
    plain = named(parts.outer)
    picked = tuple(range(len(results))) if plain is None else plain[0]
    names = [name for name, _ in results] if plain is None else plain[1]
    bounds = [(name, pa.timestamp("us", rows.field(TIME).type.tz)) for name in BOUNDS]
    made = [(name, results[place][1]) for name, place in zip(names, picked, strict=True)]
    state = state_schema((START, pa.int64()), *keys, *aggregation.state)
    windows = WindowFold(panes, options.key, aggregation, state, pa.schema([*bounds, *keys, *made]), picked)
    fold = windows if options.kind != "session" else SessionFold(panes.size, windows)
    table = StateTable(PANES if options.kind != "session" else SESSIONS, state, Axis.EVENT)
    return Chain((table,), windows.output, fold.fold, fold.merge, None if plain else _after(options, parts))


def _after(options: EventTimeWindow, parts: Split) -> RowWise:
    columns = [(name, quoted(name)) for name in (*BOUNDS, *options.key)] + list(parts.outer)
    return RowWise(tuple(name for name, _ in columns), columns=tuple(columns))


def _panes(options: EventTimeWindow) -> Panes:
    size = microseconds(options.size)
    slide = size if options.slide is None else microseconds(options.slide)
    if not 0 < slide <= size:
        message = f"size {options.size} and slide {options.slide or options.size}"
        raise InputError("TASK_REFUSED", f"{message}; take at least 1ms, and a slide that is no longer than size")
    return Panes(size, slide)


WINDOW_WORK = ChainWork(
    before=_before,
    start=_start,
    keys=lambda options: (options.key,),
    times=lambda _: (TIME,),
    late_by=lambda options: microseconds(options.late_by),
)
