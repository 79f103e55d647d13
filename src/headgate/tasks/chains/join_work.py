"""The work of a join of streams (:class:`~headgate.tasks.windows.Join`) as a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.errors import InputError
from headgate.model.chain_work import HASH, Axis, Chain, ChainWork, StateTable
from headgate.model.work import RowWise
from headgate.tasks.chains.aggregation import state_schema
from headgate.tasks.chains.joins import SIDES, JoinFold
from headgate.tasks.chains.rows import TIME, check_time, microseconds
from headgate.tasks.heavy import pa
from headgate.tasks.sql_text import quoted
from headgate.tasks.windows import Join

__all__ = ["JOIN_WORK"]


def _before(options: Join, names: Sequence[Sequence[str]]) -> Sequence[RowWise]:
    keys = {name.casefold(): name for name in options.on}
    made = []
    for side in (0, 1):
        columns = [(keys.get(name.casefold(), name), quoted(name)) for name in names[side]]
        columns.append((TIME, quoted(options.time[side])))
        made.append(RowWise(tuple(name for name, _ in columns), columns=tuple(columns)))
    return tuple(made)


def _start(options: Join, schemas: Sequence[Any]) -> Chain:
    left, right = ([field for field in schema if field.name != HASH] for schema in schemas)
    for side, schema in enumerate(schemas):
        check_time(schema.field(TIME).type, options.time[side])
    kinds = tuple(_common(name, *(schema.field(name).type for schema in schemas)) for name in options.on)
    outer = options.kind in ("left", "full"), options.kind in ("right", "full")
    known = {name.casefold() for name in options.on}
    taken = {field.name.casefold() for field in left}
    columns, fields = [], []
    for field in left:
        if field.name != TIME:
            both = field.name in options.on and outer[1]
            columns.append(((0, field.name), (1, field.name)) if both else ((0, field.name),))
            fields.append(pa.field(field.name, field.type))
    for field in right:
        if field.name != TIME and field.name.casefold() not in known:
            name = f"right_{field.name}" if field.name.casefold() in taken else field.name
            columns.append(((1, field.name),))
            fields.append(pa.field(name, field.type))
    within = microseconds(options.within)
    states = tuple(state_schema(*((field.name, field.type) for field in side)) for side in (left, right))
    fold = JoinFold(
        (options.on, options.on),
        kinds,
        -within,
        within,
        outer,
        (states[0], states[1]),
        pa.schema(fields),
        tuple(columns),
    )
    tables = tuple(StateTable(name, state, Axis.EVENT) for name, state in zip(SIDES, states, strict=True))
    return Chain(tables, fold.output, fold.fold, fold.merge)


def _common(name: str, left: Any, right: Any) -> Any:
    """The type in which a key is compared on both sides."""
    types = pa.types
    if left == right:
        return left
    if types.is_integer(left) and types.is_integer(right):
        return pa.int64()
    if types.is_floating(left) and types.is_floating(right):
        return pa.float64()
    raise InputError("TASK_REFUSED", f"key '{name}' is of type {left} on the left and {right} on the right; cast one")


JOIN_WORK = ChainWork(
    before=_before,
    start=_start,
    keys=lambda options: (options.on, options.on),
    times=lambda _: (TIME, TIME),
    late_by=lambda options: microseconds(options.late_by),
)
