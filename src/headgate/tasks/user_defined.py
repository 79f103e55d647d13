"""Task types whose work is written by the dataflow's author, and one that only stands for work."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from headgate.errors import BadValue, shorten
from headgate.model.expression import check_query
from headgate.model.schema import Schema
from headgate.model.task_type import (
    OUT,
    STEP,
    ColumnName,
    Inputs,
    JsonObject,
    SchemaText,
    State,
    TaskConfig,
    TaskType,
)
from headgate.tasks.stateful import KeyedConfig

__all__ = ["TYPES", "Fold", "ImportPath", "Opaque", "Python", "Sql", "is_import_path"]

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*([.:][A-Za-z_]\w*)+\Z")


def is_import_path(text: str) -> bool:
    """Tell whether a text could name a function in a module.

    >>> is_import_path("topics.bayes"), is_import_path("bayes"), is_import_path("a..b")
    (True, False, False)
    """
    return len(text) <= 512 and _IMPORT_PATH.match(text) is not None


def _checked_path(text: str) -> str:
    if not is_import_path(text):
        raise BadValue(f"{shorten(text)} is not an import path", "such as package.module.function")
    return text


ImportPath = Annotated[str, AfterValidator(_checked_path)]


class Python(TaskConfig):
    """Run a Python function over the rows.

    A ``row`` function takes and returns dicts (or a list of them, or None to drop the row); a ``pandas`` function takes
    and returns a DataFrame; an ``arrow`` function a RecordBatch.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "function": "topics.bayes",
        "over": "arrow",
        "columns": "text string, topic string",
    }

    function: ImportPath = Field(description="Import path of the function.")
    over: Literal["row", "pandas", "arrow"] = Field("row", description="What the function is given at a time.")
    columns: SchemaText | None = Field(None, description="The columns it returns; those it was given if left out.")
    options: JsonObject = Field(default_factory=dict, description="Handed to the function as keyword arguments.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {OUT: inputs.rows() if self.columns is None else Schema.parse(self.columns)}


def _checked_query(text: str) -> str:
    check_query(text)
    return text


class Sql(TaskConfig):
    """Run a SQL query over the rows of a micro-batch; each input port is a table of that name.

    The query sees one micro-batch at a time: use ``window`` for sums over time.
    """

    example: ClassVar[Mapping[str, Any]] = {"query": "select city, v * 2 as doubled from `in` where v > 0"}

    query: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_checked_query)] = Field(
        description="A SELECT in Spark SQL."
    )
    columns: SchemaText | None = Field(None, description="The columns it returns, if later tasks shall be checked.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: None if self.columns is None else Schema.parse(self.columns)}


class Fold(KeyedConfig):
    """Run a Python function that remembers something of each key over the rows.

    It is given what it remembers of the key (``None`` at first) and a dict with some columns of the row, and returns
    what to remember from now on and the values of the new columns, as a dict. For ``None`` in the place of that dict
    the row does not pass. With ``mode: rows`` it is given all rows of the key that a micro-batch has, as a dict from
    column to values, in the order in which they came, and returns a list with such a dict or ``None`` for each; what it
    returns must not depend on which rows come together. What is remembered is kept by pickle.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "function": "shop.spent",
        "key": ["customer"],
        "takes": ["price"],
        "columns": "total double, orders bigint",
    }

    function: ImportPath = Field(description="Import path of the function.")
    takes: tuple[ColumnName, ...] = Field(min_length=1, description="The columns that the function is given.")
    columns: SchemaText = Field(description="The columns that it adds to the row.")
    mode: Literal["row", "rows"] = Field("row", description="Whether it is given rows one by one, or all of a key.")
    options: JsonObject = Field(default_factory=dict, description="Handed to the function as keyword arguments.")

    @property
    def sparse(self) -> bool:
        return True

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"takes": self.takes}

    def added(self) -> Mapping[str, str]:
        return {column.name: str(column.type) for column in Schema.parse(self.columns).columns}


class Opaque(TaskConfig):
    """Stand for work that is known only by its cost and selectivity: for planning and simulating, not for running."""

    example: ClassVar[Mapping[str, Any]] = {"label": "congestion estimation"}

    label: str = Field("", max_length=512, description="What the step stands for; steps of equal label are equal.")
    options: JsonObject = Field(default_factory=dict, description="Anything else that tells two steps apart.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {}


TYPES = (
    TaskType("python", Python, STEP, ports_declared=True),
    TaskType("fold", Fold, STEP, State.KEYED),
    TaskType("sql", Sql, STEP, ports_declared=True, batchwise=True),
    TaskType("opaque", Opaque, STEP, ports_declared=True),
)
