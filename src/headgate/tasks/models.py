"""Task types that apply models, and that tell how far off they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType

__all__ = ["TYPES", "ClassifyTree", "ErrorEstimate", "PredictLinear"]

MODEL = "Path of the model's file, as train tasks make them; it is loaded again when it has changed."


class PredictLinear(TaskConfig):
    """Predict a number by a linear regression: the intercept and the weighted sum of some columns.

    Null where one of these columns is, and as long as there is no model at the path.
    """

    example: ClassVar[Mapping[str, Any]] = {"model": "models/fare.json"}

    model: str = Field(min_length=1, description=MODEL)
    into: ColumnName = Field("predicted", description="The name of the new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "double")) if rows else None}


class ClassifyTree(TaskConfig):
    """Find the class of a row by a decision tree.

    Null where a column that the tree looks at is, and as long as there is no model at the path.
    """

    example: ClassVar[Mapping[str, Any]] = {"model": "models/comfort.json"}

    model: str = Field(min_length=1, description=MODEL)
    into: ColumnName = Field("class", description="The name of the new column.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "string")) if rows else None}


class ErrorEstimate(TaskConfig):
    """Tell how far a prediction is off, in units of the mean: (observed - predicted) / mean.

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


TYPES = (
    TaskType("predict_linear", PredictLinear),
    TaskType("classify_tree", ClassifyTree),
    TaskType("error_estimate", ErrorEstimate),
)
