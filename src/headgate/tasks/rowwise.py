"""What the row-wise task types do, as Spark SQL over the columns that come in.

A row-wise task makes at most one row of each row. Written as expressions, any number of them fuse into one Spark plan
(:mod:`headgate.runtime.compile.fusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.model.schema import Schema
from headgate.model.task_type import TaskConfig
from headgate.tasks.model_files import linear_sql, load_model, tree_sql
from headgate.tasks.models import ClassifyTree, ErrorEstimate, PredictLinear
from headgate.tasks.parsing import ToSenml
from headgate.tasks.relational import (
    Cast,
    Derive,
    Drop,
    Filter,
    ParseCsv,
    ParseJson,
    RangeFilter,
    Rename,
    Sample,
    Select,
    Union,
)

__all__ = ["ROW_WISE", "RowWise", "quoted"]


@dataclass(frozen=True, slots=True)
class RowWise:
    """A row-wise task over given columns: which rows pass, and what becomes of them.

    ``columns`` are the new row's columns, each an expression over the old row; ``row`` is an expression for the whole
    new row as a struct instead. With neither, rows pass as they are.
    """

    names: tuple[str, ...]
    condition: str | None = None
    columns: tuple[tuple[str, str], ...] | None = None
    row: str | None = None


def quoted(name: str) -> str:
    """A column's name as SQL wants it.

    >>> quoted("the `city`")
    '`the ``city```'
    """
    return "`" + name.replace("`", "``") + "`"


def _folded(names: Sequence[str]) -> dict[str, str]:
    return {name.casefold(): name for name in names}


def _filter(options: Filter, names: Sequence[str]) -> RowWise:
    return RowWise(tuple(names), condition=options.where)


def _range_filter(options: RangeFilter, names: Sequence[str]) -> RowWise:
    """Pass rows in range, or blank what is not.

    >>> _range_filter(RangeFilter(ranges={"v": (0, 1)}), ["v"]).condition
    '`v` between 0.0 and 1.0'
    >>> _range_filter(RangeFilter(ranges={"v": (0, 1)}, outside="null"), ["v"]).columns
    (('v', 'case when `v` between 0.0 and 1.0 then `v` end'),)
    """
    tests = {name: f"{quoted(name)} between {low!r} and {high!r}" for name, (low, high) in options.ranges.items()}
    if options.outside == "drop":
        return RowWise(tuple(names), condition=" and ".join(tests.values()))
    folded = _folded(names)
    blanked = {folded.get(n.casefold(), n): f"case when {test} then {quoted(n)} end" for n, test in tests.items()}
    return _replaced(names, blanked)


def _sample(options: Sample, names: Sequence[str]) -> RowWise:
    # A hash of the whole row, so that a replayed epoch passes the same rows.
    columns = ", ".join(quoted(name) for name in names)
    return RowWise(
        tuple(names), condition=f"pmod(xxhash64({columns}, {options.seed}L), 1000000) < {options.share * 1e6!r}"
    )


def _union(options: Union, names: Sequence[str]) -> RowWise:
    del options
    return RowWise(tuple(names))


def _select(options: Select, names: Sequence[str]) -> RowWise:
    del names
    return RowWise(options.columns, columns=tuple((name, quoted(name)) for name in options.columns))


def _drop(options: Drop, names: Sequence[str]) -> RowWise:
    gone = {name.casefold() for name in options.columns}
    kept = tuple(name for name in names if name.casefold() not in gone)
    return RowWise(kept, columns=tuple((name, quoted(name)) for name in kept))


def _derive(options: Derive, names: Sequence[str]) -> RowWise:
    return _replaced(names, {name: f"({expression})" for name, expression in options.columns.items()})


def _cast(options: Cast, names: Sequence[str]) -> RowWise:
    folded = _folded(names)
    return _replaced(
        names,
        {folded.get(n.casefold(), n): f"try_cast({quoted(n)} as {kind})" for n, kind in options.columns.items()},
    )


def _rename(options: Rename, names: Sequence[str]) -> RowWise:
    new = {old.casefold(): name for old, name in options.columns.items()}
    columns = tuple((new.get(name.casefold(), name), quoted(name)) for name in names)
    return RowWise(tuple(name for name, _ in columns), columns=columns)


def _parse_json(options: ParseJson, names: Sequence[str]) -> RowWise:
    mode = ", map('mode', 'FAILFAST')" if options.strict else ""
    return _parsed(names, options.columns, options.keep, f"from_json({quoted(options.column)}, {{ddl}}{mode})")


def _parse_csv(options: ParseCsv, names: Sequence[str]) -> RowWise:
    separator = options.separator.replace("\\", "\\\\").replace("'", "\\'")
    mode = ", 'mode', 'FAILFAST'" if options.strict else ""
    call = f"from_csv({quoted(options.column)}, {{ddl}}, map('sep', '{separator}'{mode}))"
    return _parsed(names, options.columns, options.keep, call)


def _parsed(names: Sequence[str], columns: str, keep: bool, call: str) -> RowWise:
    fields = Schema.parse(columns).columns
    ddl = ", ".join(f"{quoted(field.name)} {field.type}" for field in fields).replace("\\", "\\\\").replace("'", "\\'")
    blank = ", ".join(f"'{_literal(field.name)}', cast(null as {field.type})" for field in fields)
    # What is not there to be parsed becomes a row of nulls, like what cannot be parsed.
    text = "'" + ddl + "'"
    row = f"coalesce({call.replace('{ddl}', text)}, named_struct({blank}))"
    if not keep:
        return RowWise(tuple(field.name for field in fields), row=row)
    return _replaced(names, {field.name: f"{row}.{quoted(field.name)}" for field in fields})


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
        return _replaced(names, {options.into: record})
    return RowWise((options.into,), columns=((options.into, record),))


def _entry(name: str, unit: str, number: str, text: str) -> str:
    entry = f"named_struct('n', '{_literal(name)}', 'u', '{_literal(unit)}', 'v', {number}, 'sv', {text})"
    return f"case when {quoted(name)} is not null then {entry} end"


def _predict_linear(options: PredictLinear, names: Sequence[str]) -> RowWise:
    model = load_model(options.model, "linear")
    return _replaced(names, {options.into: "cast(null as double)" if model is None else linear_sql(model)})


def _classify_tree(options: ClassifyTree, names: Sequence[str]) -> RowWise:
    model = load_model(options.model, "tree")
    return _replaced(names, {options.into: "cast(null as string)" if model is None else tree_sql(model)})


def _error_estimate(options: ErrorEstimate, names: Sequence[str]) -> RowWise:
    """Tell how far off a prediction is.

    >>> _error_estimate(ErrorEstimate(observed="o", predicted="p", mean="m"), ["o", "p", "m"]).columns[-1]
    ('error', '(cast(`o` as double) - cast(`p` as double)) / nullif(cast(`m` as double), 0)')
    """
    observed, predicted, mean = map(quoted, (options.observed, options.predicted, options.mean))
    error = f"(cast({observed} as double) - cast({predicted} as double)) / nullif(cast({mean} as double), 0)"
    return _replaced(names, {options.into: error})


def _replaced(names: Sequence[str], new: dict[str, str]) -> RowWise:
    """The old columns, those of a new one's name replaced in place, the other new ones at the end."""
    by_folded = {name.casefold(): (name, expression) for name, expression in new.items()}
    columns = [by_folded.pop(name.casefold(), (name, quoted(name))) for name in names]
    columns += by_folded.values()
    return RowWise(tuple(name for name, _ in columns), columns=tuple(columns))


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


ROW_WISE: dict[type[TaskConfig], Callable[..., RowWise]] = {
    Filter: _filter,
    RangeFilter: _range_filter,
    Select: _select,
    Drop: _drop,
    Derive: _derive,
    Rename: _rename,
    Cast: _cast,
    Sample: _sample,
    Union: _union,
    ParseJson: _parse_json,
    ParseCsv: _parse_csv,
    ToSenml: _to_senml,
    PredictLinear: _predict_linear,
    ClassifyTree: _classify_tree,
    ErrorEstimate: _error_estimate,
}
"""From a task type's options and the names of its input's columns to what it does."""
