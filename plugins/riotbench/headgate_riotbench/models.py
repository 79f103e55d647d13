"""Task types that apply models, and one that says how far off they are.

A model is a JSON file, and becomes SQL: a linear regression is a sum, a decision tree a nest of CASE. As SQL, a model
costs Spark no more than any other expression. A file is looked at before each micro-batch, so that a new model counts
from the next one on. JSON, not pickle: a model is data, and loading one must not run anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from headgate.errors import InputError
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import ReadPath
from headgate.model.work import RowExpression, RowWise
from headgate.tasks.sql_text import escaped, quoted, with_columns

__all__ = ["TYPES", "ClassifyTree", "ErrorEstimate", "PredictLinear", "linear_sql", "load_model", "tree_sql"]


MODEL = "Path of the model's file, as train tasks make them; it is loaded again when it has changed."

DEEPEST = 40
"""How deep a tree may be; SQL of more would be too much for those who read it."""


class PredictLinear(TaskConfig):
    """Predict a number by a linear regression: the intercept and the weighted sum of some columns.

    Null where one of these columns is, and as long as there is no model at the path.
    """

    example: ClassVar[Mapping[str, Any]] = {"model": "models/fare.json"}

    model: ReadPath = Field(min_length=1, description=MODEL)
    into: ColumnName = Field("predicted", description="The name of the new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "double")) if rows else None}


def _predict_linear(options: PredictLinear, names: Sequence[str]) -> RowWise:
    model = load_model(options.model, "linear")
    return with_columns(names, {options.into: "cast(null as double)" if model is None else linear_sql(model)})


class ClassifyTree(TaskConfig):
    """Find the class of a row by a decision tree.

    Null where a column that the tree looks at is, and as long as there is no model at the path.
    """

    example: ClassVar[Mapping[str, Any]] = {"model": "models/comfort.json"}

    model: ReadPath = Field(min_length=1, description=MODEL)
    into: ColumnName = Field("class", description="The name of the new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "string")) if rows else None}


def _classify_tree(options: ClassifyTree, names: Sequence[str]) -> RowWise:
    model = load_model(options.model, "tree")
    return with_columns(names, {options.into: "cast(null as string)" if model is None else tree_sql(model)})


class ErrorEstimate(TaskConfig):
    """Say how far a prediction is off, in units of the mean: (observed - predicted) / mean.

    Null where one of the three is, and where the mean is 0.
    """

    example: ClassVar[Mapping[str, Any]] = {"observed": "fare", "predicted": "predicted", "mean": "average"}

    observed: ColumnName = Field(description="The column of what was observed.")
    predicted: ColumnName = Field("predicted", description="The column of what was predicted.")
    mean: ColumnName = Field("average", description="The column of what is observed on average.")
    into: ColumnName = Field("error", description="The name of the new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        for option in ("observed", "predicted", "mean"):
            inputs.check_columns(option, [getattr(self, option)])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "double")) if rows else None}


def _error_estimate(options: ErrorEstimate, names: Sequence[str]) -> RowWise:
    """The error of a prediction.

    >>> _error_estimate(ErrorEstimate(observed="o", predicted="p", mean="m"), ["o", "p", "m"]).columns[-1]
    ('error', '(cast(`o` as double) - cast(`p` as double)) / nullif(cast(`m` as double), 0)')
    """
    observed, predicted, mean = map(quoted, (options.observed, options.predicted, options.mean))
    error = f"(cast({observed} as double) - cast({predicted} as double)) / nullif(cast({mean} as double), 0)"
    return with_columns(names, {options.into: error})


def load_model(path: str, kind: str) -> Mapping[str, Any] | None:
    """The model of that kind at a path; ``None`` if there is none yet."""
    try:
        file = Path(path).stat()
        model = _loaded(path, file.st_mtime_ns, file.st_size)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError("BAD_MODEL", f"cannot use the model at '{path}': {error}") from None
    if not isinstance(model, dict) or model.get("kind") != kind:
        raise InputError("BAD_MODEL", f"the file at '{path}' holds no {kind} model")
    return model


@lru_cache(maxsize=64)
def _loaded(path: str, changed_ns: int, size: int) -> Any:
    del changed_ns, size
    return json.loads(Path(path).read_bytes())


def linear_sql(model: Mapping[str, Any]) -> str:
    """A linear regression as an expression over its columns.

    >>> linear_sql({"intercept": 2.5, "coefficients": {"distance": 1.75}})
    '(2.5e0D + 1.75e0D * cast(`distance` as double))'
    """
    try:
        terms = [f"{_number(w)} * cast({quoted(n)} as double)" for n, w in model["coefficients"].items()]
        return f"({' + '.join([_number(model['intercept']), *terms])})"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("BAD_MODEL", f"no linear model: {error!r}") from None


def tree_sql(model: Mapping[str, Any]) -> str:
    """A decision tree as an expression over its columns, which are compared in single precision, as it was trained.

    >>> tree_sql(
    ...     {
    ...         "features": ["t"],
    ...         "nodes": [
    ...             {"feature": "t", "at_most": 20.5, "then": 1, "else": 2},
    ...             {"class": "cold"},
    ...             {"class": "warm"},
    ...         ],
    ...     }
    ... )
    "case when `t` is not null then case when cast(`t` as float) <= 2.05e1D then 'cold' else 'warm' end end"
    """
    try:
        nodes = model["nodes"]
        known = " and ".join(f"{quoted(name)} is not null" for name in model["features"])
        return f"case when {known} then {_branch(nodes, 0, 0)} end"
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("BAD_MODEL", f"no tree: {error!r}") from None


def _branch(nodes: Any, at: int, depth: int) -> str:
    node = nodes[at]
    if "class" in node:
        return f"'{escaped(str(node['class']))}'"
    if depth == DEEPEST:
        raise ValueError(f"deeper than {DEEPEST}")
    then, other = (_branch(nodes, node[way], depth + 1) for way in ("then", "else"))
    return (
        f"case when cast({quoted(node['feature'])} as float) <= {_number(node['at_most'])} then {then} else {other} end"
    )


def _number(value: Any) -> str:
    """A double that keeps every digit, in a form that Spark takes for a double.

    >>> _number(-0.1), _number(3)
    ('-1e-1D', '3e0D')
    """
    digits, _, exponent = f"{float(value):.17e}".partition("e")
    for places in range(18):
        short, _, power = f"{float(value):.{places}e}".partition("e")
        if float(f"{short}e{power}") == float(value):
            digits, exponent = short, power
            break
    return f"{digits}e{int(exponent)}D"


TYPES = (
    TaskType("predict_linear", PredictLinear, package="headgate-riotbench", work=RowExpression(_predict_linear)),
    TaskType("classify_tree", ClassifyTree, package="headgate-riotbench", work=RowExpression(_classify_tree)),
    TaskType("error_estimate", ErrorEstimate, package="headgate-riotbench", work=RowExpression(_error_estimate)),
)
