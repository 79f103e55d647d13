"""Keyed task types that train models on the rows of a key, and pass on a new one every so many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

from pydantic import Field, PositiveInt, model_validator

from headgate.errors import missing_package
from headgate.model.task_type import STEP, ColumnName, State, TaskType
from headgate.model.work import Index, KeyedWork
from headgate.tasks.keyed_base import KeyedConfig, Row, Step, Stepped, as_json, by_step

__all__ = ["TYPES", "TrainConfig", "TrainLinear", "TrainTree", "fit_linear", "fit_tree"]


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


def _check(options: TrainConfig) -> None:
    """Raise :class:`InputError` where models cannot be trained."""
    del options
    if find_spec("sklearn") is None:
        raise missing_package("NO_MODELS", "training", "scikit-learn", "models")


Fit = Callable[[Sequence[Sequence[float]], Sequence[Any]], dict[str, Any]]


def _training(options: TrainConfig, answer: str, index: Index, fit: Fit, answer_of: Callable[[Any], Any]) -> Step:
    places, wanted = [index(name) for name in options.features], index(answer)
    every, most = options.every, options.rows or options.every

    def step(state: Any, row: Row) -> Stepped:
        rows, since = state or ((), 0)
        values = [row[at] for at in (*places, wanted)]
        if any(value is None for value in values):
            return state, None
        rows = (*rows, (*map(float, values[:-1]), answer_of(values[-1])))[-most:]
        if since + 1 < every:
            return (rows, since + 1), None
        model = fit([values[:-1] for values in rows], [values[-1] for values in rows])
        return (rows if most > every else (), 0), as_json({**model, "rows": len(rows)})

    return step


class TrainLinear(TrainConfig):
    """Train a linear regression by least squares, for predict_linear (scikit-learn's LinearRegression).

    Rows with nulls are passed over. The row that completes a batch is passed on, with the model.
    """

    example: ClassVar[Mapping[str, Any]] = {"key": ["city"], "features": ["distance", "duration"], "target": "fare"}

    target: ColumnName = Field(description="The column that the model is to predict.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"features": self.features, "target": [self.target]}


def train_linear(options: TrainLinear, index: Index) -> Step:
    """The step of a train_linear task."""
    return _training(options, options.target, index, lambda x, y: fit_linear(options.features, x, y), float)


def fit_linear(features: Sequence[str], x: Sequence[Sequence[float]], y: Sequence[float]) -> dict[str, Any]:
    """A linear model of least squares.

    >>> model = fit_linear(["a"], [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(model["intercept"], 9), round(model["coefficients"]["a"], 9)
    (1.0, 2.0)
    """
    from sklearn.linear_model import LinearRegression

    fitted = LinearRegression().fit(x, y)
    weights = dict(zip(features, map(float, fitted.coef_), strict=True))
    return {"kind": "linear", "intercept": float(fitted.intercept_), "coefficients": weights}


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


def train_tree(options: TrainTree, index: Index) -> Step:
    """The step of a train_tree task."""

    def fit(x: Sequence[Sequence[float]], y: Sequence[str]) -> dict[str, Any]:
        return fit_tree(options.features, x, y, options.depth, options.leaves)

    return _training(options, options.label, index, fit, str)


def fit_tree(
    features: Sequence[str], x: Sequence[Sequence[float]], y: Sequence[str], depth: int, leaves: int
) -> dict[str, Any]:
    """A decision tree, node by node.

    >>> fit_tree(["a"], [[0.0], [1.0]], ["low", "high"], depth=2, leaves=4)["nodes"][0]
    {'feature': 'a', 'at_most': 0.5, 'then': 1, 'else': 2}
    """
    from sklearn.tree import DecisionTreeClassifier

    fitted = DecisionTreeClassifier(max_depth=depth, max_leaf_nodes=leaves, random_state=0).fit(x, y)
    tree = fitted.tree_
    nodes: list[dict[str, Any]] = []
    for at in range(tree.node_count):
        if tree.children_left[at] == tree.children_right[at]:
            nodes.append({"class": str(fitted.classes_[int(tree.value[at][0].argmax())])})
        else:
            ways = {"then": int(tree.children_left[at]), "else": int(tree.children_right[at])}
            nodes.append({"feature": features[tree.feature[at]], "at_most": float(tree.threshold[at]), **ways})
    return {"kind": "tree", "features": list(features), "classes": [str(c) for c in fitted.classes_], "nodes": nodes}


TYPES = tuple(
    TaskType(name, config, STEP, State.KEYED, package="headgate-riotbench", work=KeyedWork(by_step(start), _check))
    for name, config, start in (("train_linear", TrainLinear, train_linear), ("train_tree", TrainTree, train_tree))
)
