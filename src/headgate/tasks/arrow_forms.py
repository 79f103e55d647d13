"""Tasks that are written as expressions, as work on Arrow batches: for where rows are in a Python worker already.

An expression costs less as long as rows stay in Spark's process, and taking them there and back costs more than either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.model.task_type import TaskConfig
from headgate.tasks.arrow_task import Made, Work, replaced
from headgate.tasks.looking_up import version_of
from headgate.tasks.lookups import BloomFilter
from headgate.tasks.membership import few_ids
from headgate.tasks.parsing import ToSenml
from headgate.tasks.relational import Drop, RangeFilter, Rename, Select, Union
from headgate.tasks.stateful import KeyedConfig

__all__ = ["FORMS", "has_form", "has_result_form", "result_form"]

NUMBERS = ("double", "float", "tinyint", "smallint", "int", "bigint")

Kinds = Mapping[str, str]
"""SQL types of columns, by their names in lower case."""


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column([own.casefold() for own in batch.schema.names].index(name.casefold()))


def _range_filter(options: RangeFilter) -> Work:
    """Pass rows in range, or blank what is not.

    >>> work = _range_filter(RangeFilter(ranges={"v": (0, 1)}, outside="null"))
    >>> work(pa.record_batch({"v": [0.5, 2.0, None]})).columns[0].to_pylist()
    [0.5, None, None]
    """

    def work(batch: pa.RecordBatch) -> Made:
        tests = {}
        for name, (low, high) in options.ranges.items():
            column = _column(batch, name).cast(pa.float64())
            tests[name] = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        if options.outside != "drop":
            blanked = [(name, pc.if_else(test, _column(batch, name), None)) for name, test in tests.items()]
            return Made(replaced(batch, blanked))
        passes = np.all([pc.fill_null(t, False).to_numpy(zero_copy_only=False) for t in tests.values()], axis=0)
        return Made(batch.filter(pa.array(passes)).columns, np.flatnonzero(passes))

    return work


def _bloom_filter(options: BloomFilter) -> Work:
    def work(batch: pa.RecordBatch) -> Made:
        known = few_ids(version_of(options.ids))
        assert known is not None
        member = pc.is_in(_column(batch, options.column), value_set=pa.array(known, pa.string()))
        if options.nulls:
            return Made(replaced(batch, [(n, pc.if_else(member, _column(batch, n), None)) for n in options.nulls]))
        return Made(batch.filter(member).columns, np.flatnonzero(member.to_numpy(zero_copy_only=False)))

    return work


def _select(options: Select) -> Work:
    return lambda batch: Made([_column(batch, name) for name in options.columns])


def _drop(options: Drop) -> Work:
    return lambda batch: Made(replaced(batch, [], options.columns))


def _as_it_is(options: TaskConfig) -> Work:
    del options
    return lambda batch: Made(batch.columns)


def _to_senml(options: ToSenml) -> Work:
    """Put records together.

    >>> work = _to_senml(ToSenml(texts={"k": "string"}, values={"t": "far"}))
    >>> work(pa.record_batch({"k": ["a", None], "t": [1.5, 2.0]})).columns[0].to_pylist()[1]
    '{"e":[{"n":"t","u":"far","v":2}]}'
    """

    def work(batch: pa.RecordBatch) -> Made:
        entries = [(_begun(n, u, "sv"), _quoted(_column(batch, n))) for n, u in options.texts.items()]
        entries += [(_begun(n, u, "v"), _written(_column(batch, n))) for n, u in options.values.items()]
        is_led = entries[0][1].null_count == 0
        pieces: list[Any] = []
        text = '{"e":['
        for at, (begin, values) in enumerate(entries):
            begin = begin if at == 0 and is_led else f",{begin}"
            if values.null_count == 0:
                pieces += [f"{text}{begin}", values]
                text = "}"
            else:
                pieces += [text, pc.fill_null(pc.binary_join_element_wise(begin, values, "}", ""), "")]
                text = ""
        end = pa.scalar(f"{text}]}}")
        if options.time is not None:
            told = pc.binary_join_element_wise(f'{text}],"bt":', _milliseconds(_column(batch, options.time)), "}", "")
            end = pc.fill_null(told, end)
        made = pc.binary_join_element_wise(*pieces, end, "")
        if not is_led:
            made = pc.replace_substring(made, '{"e":[,', '{"e":[', max_replacements=1)
        return Made(replaced(batch, [(options.into, made)]) if options.keep else [made])

    return work


def _milliseconds(times: pa.Array) -> pa.Array:
    """Times in milliseconds since 1970, as texts."""
    since_us = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    found = pa.array(since_us.fill_null(0).to_numpy() // 1_000)
    return pc.if_else(since_us.is_valid(), found, None).cast(pa.string())


def _begun(name: str, unit: str, key: str) -> str:
    """An entry up to its value."""
    return f'{{"n":{orjson.dumps(name).decode()},"u":{orjson.dumps(unit).decode()},"{key}":'


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts as JSON has them; each once, since most come again and again."""
    coded = texts.cast(pa.string()).dictionary_encode()
    known = [None if text is None else orjson.dumps(text).decode() for text in coded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(coded.indices)


def _written(values: pa.Array) -> pa.Array:
    """Numbers as JSON has them; those that it does not have as texts, as Spark does."""
    if not pa.types.is_floating(values.type):
        return values.cast(pa.string())
    numbers = values.cast(pa.float64())
    written = numbers.cast(pa.string())
    if pc.all(pc.is_finite(numbers)).as_py() is False:
        for name, test in {
            '"NaN"': pc.is_nan(numbers),
            '"Infinity"': pc.equal(numbers, np.inf),
            '"-Infinity"': pc.equal(numbers, -np.inf),
        }.items():
            written = pc.if_else(pc.fill_null(test, False), name, written)
    return written


FORMS: dict[type[TaskConfig], Callable[..., Work]] = {
    RangeFilter: _range_filter,
    BloomFilter: _bloom_filter,
    Select: _select,
    Drop: _drop,
    Rename: _as_it_is,
    Union: _as_it_is,
    ToSenml: _to_senml,
}
"""From the options of a task to its work."""


def has_form(options: TaskConfig, kinds: Kinds) -> bool:
    """Whether a task over columns of these types has a form that makes the same of them as its expression does."""
    if isinstance(options, RangeFilter):
        return _all_of(kinds, options.ranges, NUMBERS)
    if isinstance(options, BloomFilter):
        return _all_of(kinds, [options.column], ["string"]) and few_ids(version_of(options.ids)) is not None
    if isinstance(options, ToSenml):
        times = [] if options.time is None else [options.time]
        is_number = _all_of(kinds, options.values, NUMBERS)
        return is_number and _all_of(kinds, options.texts, ["string"]) and _all_of(kinds, times, ["timestamp"])
    return type(options) in FORMS


def _all_of(kinds: Kinds, names: Any, allowed: Sequence[str]) -> bool:
    return all(kinds.get(name.casefold()) in allowed for name in names)


RESULTS: dict[str, pa.DataType] = {
    "double": pa.float64(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "array<double>": pa.list_(pa.float64()),
}
"""Types of results that can be put into rows here."""


def has_result_form(options: KeyedConfig) -> bool:
    """Whether the results of a keyed task can be put into rows here."""
    return all(kind in RESULTS for kind in options.added().values())


def result_form(options: KeyedConfig, slot: int, hidden: Sequence[str]) -> Work:
    """The rows of a hosted task with its results, as :func:`~headgate.tasks.keyed.row_with_result` says.

    ``hidden`` are the names of the columns of results, texts and errors, each a list with an item for each task.
    """
    results, texts, errors = hidden
    added = options.added()
    is_number = not added or (len(added) == 1 and next(iter(added.values())) in ("double", "bigint"))

    def item(batch: pa.RecordBatch, name: str) -> pa.Array:
        lists = batch.column(name)
        if lists.null_count == len(lists):
            return pa.nulls(len(lists), lists.type.value_type)
        return pc.list_element(lists, slot)

    def work(batch: pa.RecordBatch) -> Made:
        number, text, raised = item(batch, results), item(batch, texts), item(batch, errors)
        own = batch.select([name for name in batch.schema.names if not name.startswith("__")])
        new = _result_columns(options, own, number, text)
        columns = replaced(own, new, options.dropped())
        passes = pc.is_valid(number if is_number else text) if options.sparse else pc.is_null(raised)
        kept = passes.to_numpy(zero_copy_only=False)
        if kept.all():
            return Made(columns)
        return Made([column.filter(passes) for column in columns], np.flatnonzero(kept))

    return work


def _result_columns(
    options: KeyedConfig, own: pa.RecordBatch, number: pa.Array, text: pa.Array
) -> list[tuple[str, pa.Array]]:
    added = options.added()
    if len(added) > 1 and text.null_count < len(text):
        told = [None if one is None else orjson.loads(one) for one in text.to_pylist()]
        made = {n: pa.array([None if t is None else t.get(n) for t in told], RESULTS[k]) for n, k in added.items()}
    elif len(added) > 1:
        made = {}
    else:
        made = {name: _single(kind, number, text) for name, kind in added.items()}
    found = []
    names = [name.casefold() for name in own.schema.names]
    for name, kind in added.items():
        column = made.get(name)
        if options.keeps and name.casefold() in names:
            before = own.column(names.index(name.casefold())).cast(RESULTS[kind])
            column = before if column is None else pc.coalesce(column, before)
        found.append((name, pa.nulls(len(own), RESULTS[kind]) if column is None else column))
    return found


def _single(kind: str, number: pa.Array, text: pa.Array) -> pa.Array:
    if kind in ("double", "bigint"):
        return number.cast(RESULTS[kind], safe=False)
    if kind == "string":
        return text
    return pa.array([None if one is None else orjson.loads(one) for one in text.to_pylist()], RESULTS[kind])
