"""Task types that filter rows and shape their columns, each row by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from headgate.model.schema import Column, Schema
from headgate.model.sql.bounds import bounded
from headgate.model.sql_type import sql_type
from headgate.model.task_type import IN, OUT, ColumnName, Expression, Inputs, TaskConfig, TaskType
from headgate.model.work import ArrowForm, BatchFunction, BatchResult, RowExpression, RowWise
from headgate.tasks.batch import NUMBERS, all_of, column_of, replaced
from headgate.tasks.heavy import np, pa, pc
from headgate.tasks.sql_text import quoted, with_columns

__all__ = [
    "TYPES",
    "Cast",
    "Derive",
    "Drop",
    "Filter",
    "RangeFilter",
    "Rename",
    "Sample",
    "Select",
    "Union",
]


TypeName = Annotated[str, AfterValidator(sql_type)]


class Filter(TaskConfig):
    """Pass the rows for which a SQL predicate holds."""

    example: ClassVar[Mapping[str, Any]] = {"where": "temperature between -12.5 and 43.1"}

    where: Expression = Field(description="The predicate, in Spark SQL; rows for which it is null do not pass.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_expression("where", self.where)
        return {OUT: inputs.rows()}


def _filter(options: Filter, names: Sequence[str]) -> RowWise:
    return RowWise(tuple(names), condition=bounded(options.where))


class RangeFilter(TaskConfig):
    """Pass the rows whose values all lie in given ranges, both ends included; or blank the values that do not."""

    example: ClassVar[Mapping[str, Any]] = {"ranges": {"temperature": [-12.5, 43.1], "humidity": [10.7, 95.2]}}

    ranges: dict[ColumnName, tuple[float, float]] = Field(
        min_length=1, description="Lowest and highest value by column."
    )
    outside: Literal["drop", "null"] = Field(
        "drop", description="Whether a value out of range drops its row, or becomes null and the row passes."
    )

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("ranges", self.ranges)
        return {OUT: inputs.rows()}


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
    return with_columns(names, blanked)


def _range_filter_batch(options: RangeFilter) -> BatchFunction:
    """Pass rows in range, or blank what is not.

    >>> work = _range_filter_batch(RangeFilter(ranges={"v": (0, 1)}, outside="null"))
    >>> work(pa.record_batch({"v": [0.5, 2.0, None]})).columns[0].to_pylist()
    [0.5, None, None]
    """

    def work(batch: pa.RecordBatch) -> BatchResult:
        tests = {}
        for name, (low, high) in options.ranges.items():
            column = column_of(batch, name).cast(pa.float64())
            tests[name] = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        if options.outside != "drop":
            blanked = [(name, pc.if_else(test, column_of(batch, name), None)) for name, test in tests.items()]
            return BatchResult(replaced(batch, blanked))
        passes = np.all([pc.fill_null(t, False).to_numpy(zero_copy_only=False) for t in tests.values()], axis=0)
        return BatchResult(batch.filter(pa.array(passes)).columns, np.flatnonzero(passes))

    return work


class Select(TaskConfig):
    """Keep some columns, in the given order."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["sensor", "temperature"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to keep.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        return {OUT: Schema(tuple(Column(name, inputs.type_of(name)) for name in self.columns))}


def _select(options: Select, names: Sequence[str]) -> RowWise:
    del names
    return RowWise(options.columns, columns=tuple((name, quoted(name)) for name in options.columns))


def _select_batch(options: Select) -> BatchFunction:
    return lambda batch: BatchResult([column_of(batch, name) for name in options.columns])


class Drop(TaskConfig):
    """Leave out some columns."""

    example: ClassVar[Mapping[str, Any]] = {"columns": ["raw"]}

    columns: tuple[ColumnName, ...] = Field(min_length=1, description="The columns to leave out.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        return inputs.passed_on(dropped=self.columns)


def _drop(options: Drop, names: Sequence[str]) -> RowWise:
    gone = {name.casefold() for name in options.columns}
    kept = tuple(name for name in names if name.casefold() not in gone)
    return RowWise(kept, columns=tuple((name, quoted(name)) for name in kept))


def _drop_batch(options: Drop) -> BatchFunction:
    return lambda batch: BatchResult(replaced(batch, [], options.columns))


class Derive(TaskConfig):
    """Add or replace columns by SQL expressions over the columns that come in."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"fahrenheit": "temperature * 9 / 5 + 32"}}

    columns: dict[ColumnName, Expression] = Field(min_length=1, description="The expression for each new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        for expression in self.columns.values():
            inputs.check_expression("columns", expression)
        return inputs.passed_on(*map(Column, self.columns))


def _derive(options: Derive, names: Sequence[str]) -> RowWise:
    return with_columns(names, {name: f"({bounded(expression)})" for name, expression in options.columns.items()})


class Rename(TaskConfig):
    """Give columns other names."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"v": "temperature"}}

    columns: dict[ColumnName, ColumnName] = Field(min_length=1, description="The new name by the old one.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        names = {old.casefold(): new for old, new in self.columns.items()}
        return {OUT: Schema(tuple(Column(names.get(c.name.casefold(), c.name), c.type) for c in rows.columns))}


def _rename(options: Rename, names: Sequence[str]) -> RowWise:
    new = {old.casefold(): name for old, name in options.columns.items()}
    columns = tuple((new.get(name.casefold(), name), quoted(name)) for name in names)
    return RowWise(tuple(name for name, _ in columns), columns=columns)


def _as_it_is(options: TaskConfig) -> BatchFunction:
    del options
    return lambda batch: BatchResult(batch.columns)


class Cast(TaskConfig):
    """Turn columns into other types; what cannot be turned becomes null."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"temperature": "double"}}

    columns: dict[ColumnName, TypeName] = Field(min_length=1, description="The Spark SQL type by column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("columns", self.columns)
        return inputs.passed_on(*(Column(*cast) for cast in self.columns.items()))


def _cast(options: Cast, names: Sequence[str]) -> RowWise:
    folded = _folded(names)
    return with_columns(
        names,
        {folded.get(n.casefold(), n): f"try_cast({quoted(n)} as {kind})" for n, kind in options.columns.items()},
    )


class Sample(TaskConfig):
    """Pass a random share of the rows, the same ones each time for one seed."""

    example: ClassVar[Mapping[str, Any]] = {"share": 0.1}

    share: float = Field(gt=0, le=1, description="The share that passes.")
    seed: int = Field(0, ge=0, lt=2**63, description="Another seed picks other rows.")


def _sample(options: Sample, names: Sequence[str]) -> RowWise:
    # A hash of the whole row, so that a replayed epoch passes the same rows.
    columns = ", ".join(quoted(name) for name in names)
    return RowWise(
        tuple(names), condition=f"pmod(xxhash64({columns}, {options.seed}L), 1000000) < {options.share * 1e6!r}"
    )


class Union(TaskConfig):
    """Interleave several streams of equal columns into one."""

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: inputs.rows(IN)}


def _union(options: Union, names: Sequence[str]) -> RowWise:
    del options
    return RowWise(tuple(names))


def _folded(names: Sequence[str]) -> dict[str, str]:
    return {name.casefold(): name for name in names}


AS_IT_IS = ArrowForm(_as_it_is)

TYPES = (
    TaskType("filter", Filter, work=RowExpression(_filter)),
    TaskType(
        "range_filter",
        RangeFilter,
        work=RowExpression(
            _range_filter, ArrowForm(_range_filter_batch, lambda o, types: all_of(types, o.ranges, NUMBERS))
        ),
    ),
    TaskType("select", Select, work=RowExpression(_select, ArrowForm(_select_batch))),
    TaskType("drop", Drop, work=RowExpression(_drop, ArrowForm(_drop_batch))),
    TaskType("derive", Derive, work=RowExpression(_derive)),
    TaskType("rename", Rename, work=RowExpression(_rename, AS_IT_IS)),
    TaskType("cast", Cast, work=RowExpression(_cast)),
    TaskType("sample", Sample, work=RowExpression(_sample)),
    TaskType("union", Union, work=RowExpression(_union, AS_IT_IS)),
)
