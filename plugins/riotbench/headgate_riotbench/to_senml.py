"""The task type to_senml: columns into SenML records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, model_validator

from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.work import ArrowForm, BatchFunction, BatchResult, RowExpression, RowWise
from headgate.tasks.batch import NUMBERS, all_of, column_of, replaced
from headgate.tasks.heavy import np, orjson, pa, pc
from headgate.tasks.sql_text import escaped, quoted, with_columns

__all__ = ["ToSenml"]


class ToSenml(TaskConfig):
    """Put columns together as a SenML record; what is null is left out of it."""

    example: ClassVar[Mapping[str, Any]] = {
        "time": "time",
        "texts": {"source": "string"},
        "values": {"temperature": "far", "humidity": "per"},
    }

    time: ColumnName | None = Field(None, description="The column of the record's time, a timestamp.")
    texts: dict[ColumnName, str] = Field(default_factory=dict, description="Columns of texts, each with its unit.")
    values: dict[ColumnName, str] = Field(default_factory=dict, description="Columns of numbers, each with its unit.")
    into: ColumnName = Field("value", description="The name of the record's column.")
    keep: bool = Field(False, description="Whether the other columns stay.")

    @model_validator(mode="after")
    def _has_fields(self) -> ToSenml:
        if not self.texts and not self.values:
            raise ValueError("neither texts nor values: name the columns to put into the record")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("time", [] if self.time is None else [self.time])
        inputs.check_columns("texts", self.texts)
        inputs.check_columns("values", self.values)
        made = Column(self.into, "string")
        rows = inputs.rows()
        if not self.keep:
            return {OUT: Schema((made,))}
        return {OUT: rows.with_column(made) if rows else None}


def _to_senml(options: ToSenml, names: Sequence[str]) -> RowWise:
    """Put a record together.

    >>> _to_senml(ToSenml(values={"t": "far"}), ["t"]).columns[0][1][:45]
    "to_json(named_struct('e', array_compact(array"
    """
    entries = [_entry(n, u, "cast(null as double)", f"cast({quoted(n)} as string)") for n, u in options.texts.items()]
    entries += [_entry(n, u, f"cast({quoted(n)} as double)", "cast(null as string)") for n, u in options.values.items()]
    time = "" if options.time is None else f", 'bt', unix_millis({quoted(options.time)})"
    record = f"to_json(named_struct('e', array_compact(array({', '.join(entries)})){time}))"
    if options.keep:
        return with_columns(names, {options.into: record})
    return RowWise((options.into,), columns=((options.into, record),))


def _entry(name: str, unit: str, number: str, text: str) -> str:
    entry = f"named_struct('n', '{escaped(name)}', 'u', '{escaped(unit)}', 'v', {number}, 'sv', {text})"
    return f"case when {quoted(name)} is not null then {entry} end"


def _to_senml_batch(options: ToSenml) -> BatchFunction:
    """Put records together.

    >>> work = _to_senml_batch(ToSenml(texts={"k": "string"}, values={"t": "far"}))
    >>> work(pa.record_batch({"k": ["a", None], "t": [1.5, 2.0]})).columns[0].to_pylist()[1]
    '{"e":[{"n":"t","u":"far","v":2}]}'
    """

    def work(batch: pa.RecordBatch) -> BatchResult:
        entries = [(_begun(n, u, "sv"), _quoted(column_of(batch, n))) for n, u in options.texts.items()]
        entries += [(_begun(n, u, "v"), _written(column_of(batch, n))) for n, u in options.values.items()]
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
            ended = pc.binary_join_element_wise(
                f'{text}],"bt":', _milliseconds(column_of(batch, options.time)), "}", ""
            )
            end = pc.fill_null(ended, end)
        made = pc.binary_join_element_wise(*pieces, end, "")
        if not is_led:
            made = pc.replace_substring(made, '{"e":[,', '{"e":[', max_replacements=1)
        return BatchResult(replaced(batch, [(options.into, made)]) if options.keep else [made])

    return work


def _milliseconds(times: pa.Array) -> pa.Array:
    """Times in milliseconds since 1970, as texts."""
    since_us = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    milliseconds = pa.array(since_us.fill_null(0).to_numpy() // 1_000)
    return pc.if_else(since_us.is_valid(), milliseconds, None).cast(pa.string())


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


def _fits(options: ToSenml, types: Mapping[str, str]) -> bool:
    times = [] if options.time is None else [options.time]
    are_numbers = all_of(types, options.values, NUMBERS)
    return are_numbers and all_of(types, options.texts, ["string"]) and all_of(types, times, ["timestamp"])


TO_SENML = TaskType(
    "to_senml",
    ToSenml,
    package="headgate-riotbench",
    work=RowExpression(_to_senml, ArrowForm(_to_senml_batch, _fits)),
)
