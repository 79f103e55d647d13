"""Keyed task types that train models on the rows of a key, and hand over a new one every so many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field, PositiveInt, model_validator

from headgate.model.task_type import STEP, ColumnName, State, TaskType
from headgate.tasks.stateful import KeyedConfig

__all__ = ["TYPES", "TrainConfig", "TrainLinear", "TrainTree"]


class TrainConfig(KeyedConfig):
    """A task that trains a model."""

    features: tuple[ColumnName, ...] = Field(min_length=1, description="The columns that the model is to look at.")
    every: int = Field(300, ge=2, le=100_000, description="After how many rows of a key to train.")
    rows: PositiveInt | None = Field(
        None, le=1_000_000, description="Train on the last so many; on those, if left out."
    )
    into: ColumnName = Field("model", description="The name of the new column: the model as JSON.")

    @property
    def sparse(self) -> bool:
        return True

    def added(self) -> Mapping[str, str]:
        return {self.into: "string"}


class TrainLinear(TrainConfig):
    """Train a linear regression by least squares, for predict_linear (scikit-learn's LinearRegression).

    Rows with nulls are passed over. The row that completes a batch is passed on, with the model.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["city"], "features": ["distance", "duration"], "target": "fare"}

    target: ColumnName = Field(description="The column that the model is to predict.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"features": self.features, "target": [self.target]}


class TrainTree(TrainConfig):
    """Train a decision tree, for classify_tree (scikit-learn's DecisionTreeClassifier).

    Rows with nulls are passed over. The row that completes a batch is passed on, with the model.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["city"], "features": ["distance", "fare"], "label": "class"}

    label: ColumnName = Field(description="The column of the class.")
    depth: int = Field(8, ge=1, le=20, description="How deep the tree may be.")
    leaves: int = Field(64, ge=2, le=1_000, description="How many leaves it may have.")

    @model_validator(mode="after")
    def _label_is_no_feature(self) -> TrainTree:
        if self.label in self.features:
            raise ValueError(f"label '{self.label}' is among the features: the tree would look it up")
        return self

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"features": self.features, "label": [self.label]}


TYPES = (
    TaskType("train_linear", TrainLinear, STEP, State.KEYED),
    TaskType("train_tree", TrainTree, STEP, State.KEYED),
)
