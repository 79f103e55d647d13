"""The works of keyed tasks (:mod:`headgate.tasks.keyed`) as chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.model.chain_work import HASH, Chain, ChainWork, StateTable
from headgate.model.work import RowWise
from headgate.tasks.chains.aggregation import state_schema
from headgate.tasks.chains.kernels import (
    CountKernel,
    DifferenceKernel,
    FirstKernel,
    KalmanKernel,
    MovingAverageKernel,
    RunningKernel,
    TopKernel,
)
from headgate.tasks.chains.keyed import KEYS, VALUE, KeyedFold, KeyedKernel, TimeToLive, state_names
from headgate.tasks.chains.rows import TIME
from headgate.tasks.heavy import pa
from headgate.tasks.keyed_base import KeyedConfig
from headgate.tasks.sql_text import quoted

__all__ = [
    "COUNT_WORK",
    "DEDUP_WORK",
    "DIFFERENCE_WORK",
    "KALMAN_WORK",
    "MOVING_AVERAGE_WORK",
    "RUNNING_WORK",
    "TOP_K_WORK",
    "keyed_work",
]

KernelOf = Callable[[Any], KeyedKernel]
LifeOf = Callable[[Any], TimeToLive]


def _forever(options: Any) -> TimeToLive:
    del options
    return TimeToLive()


def _no_time(options: Any) -> str | None:
    del options
    return None


def keyed_work(
    kernel: KernelOf,
    life: LifeOf = _forever,
    time: Callable[[Any], str | None] = _no_time,
    late_by: Callable[[Any], int] = lambda _: 0,
) -> ChainWork:
    """The work of a keyed task: what it computes, and how long it keeps a key, for its options."""

    def before(options: KeyedConfig, names: Sequence[Sequence[str]]) -> Sequence[RowWise]:
        keys = {name.casefold(): name for name in options.key}
        columns = [(keys.get(name.casefold(), name), quoted(name)) for name in names[0]]
        read = [name for group in options.reads().values() for name in group]
        columns.append((VALUE, f"cast({quoted(read[0])} as double)" if read else "cast(null as double)"))
        if (named := time(options)) is not None:
            columns.append((TIME, quoted(named)))
        return (RowWise(tuple(name for name, _ in columns), columns=tuple(columns)),)

    def start(options: KeyedConfig, schemas: Sequence[Any]) -> Chain:
        (rows,) = schemas
        of = kernel(options)
        columns, fields = _output(options, rows)
        keys = ((name, rows.field(name).type) for name in options.key)
        state = state_schema(*keys, *zip(state_names(of), of.state, strict=True))
        timed = TIME if time(options) is not None else None
        fold = KeyedFold(options.key, of, state, pa.schema(fields), columns, life(options), timed)
        table = StateTable(KEYS, state, life(options).axis, key=options.key)
        return Chain((table,), fold.output, fold.fold, fold.merge)

    return ChainWork(before, start, lambda options: (options.key,), lambda o: (TIME if time(o) else None,), late_by)


def _output(options: KeyedConfig, rows: Any) -> tuple[tuple[str | int, ...], list[Any]]:
    """The columns of the new rows: those of the old ones, results in place of columns of their name or at the end."""
    kinds = {"double": pa.float64(), "bigint": pa.int64()}
    added = {name.casefold(): (place, name, kind) for place, (name, kind) in enumerate(options.added().items())}
    columns: list[str | int] = []
    fields = []
    for field in rows:
        if field.name in (HASH, VALUE, TIME):
            continue
        if (new := added.pop(field.name.casefold(), None)) is None:
            columns.append(field.name)
            fields.append(pa.field(field.name, field.type))
        else:
            columns.append(new[0])
            fields.append(pa.field(new[1], kinds[new[2]]))
    columns += (place for place, _, _ in added.values())
    fields += (pa.field(name, kinds[kind]) for _, name, kind in added.values())
    return tuple(columns), fields


COUNT_WORK = keyed_work(lambda _: CountKernel())
DEDUP_WORK = keyed_work(lambda _: FirstKernel())
DIFFERENCE_WORK = keyed_work(lambda options: DifferenceKernel(options.lag))
KALMAN_WORK = keyed_work(lambda o: KalmanKernel(o.process_noise, o.sensor_noise, o.first_error))
MOVING_AVERAGE_WORK = keyed_work(lambda options: MovingAverageKernel(options.size))
RUNNING_WORK = keyed_work(lambda options: RunningKernel(tuple(options.columns.values())))
TOP_K_WORK = keyed_work(lambda options: TopKernel(options.size))
