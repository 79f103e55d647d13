"""What training tasks do to one row and to what they remember of its key: the rows to train on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from headgate.errors import missing_package
from headgate.tasks.statistic_steps import Index, Row, Step, Stepped, as_json
from headgate.tasks.training import TrainConfig, TrainLinear, TrainTree

__all__ = ["TRAINING", "check_training", "fit_linear", "fit_tree"]

Fit = Callable[[Sequence[Sequence[float]], Sequence[Any]], dict[str, Any]]


def check_training() -> None:
    """Raise :class:`InputError` where models cannot be trained."""
    if find_spec("sklearn") is None:
        raise missing_package("NO_MODELS", "training", "scikit-learn", "models")


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
        model = fit([found[:-1] for found in rows], [found[-1] for found in rows])
        return (rows if most > every else (), 0), as_json({**model, "rows": len(rows)})

    return step


def train_linear(options: TrainLinear, index: Index) -> Step:
    """The step of a train_linear task."""
    return _training(options, options.target, index, lambda x, y: fit_linear(options.features, x, y), float)


def train_tree(options: TrainTree, index: Index) -> Step:
    """The step of a train_tree task."""

    def fit(x: Sequence[Sequence[float]], y: Sequence[str]) -> dict[str, Any]:
        return fit_tree(options.features, x, y, options.depth, options.leaves)

    return _training(options, options.label, index, fit, str)


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


TRAINING: dict[type[Any], Callable[..., Step]] = {TrainLinear: train_linear, TrainTree: train_tree}
"""The steps of the task types in :mod:`headgate.tasks.training`."""
