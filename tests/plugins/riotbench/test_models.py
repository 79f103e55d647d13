"""Trained models against scikit-learn's own predictions; SQL of models is evaluated by DuckDB."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from headgate.errors import InputError
from headgate.model.expression import columns_of
from headgate.model.work import RowExpression, RowWise
from headgate.tasks.keyed_base import step_of
from headgate_riotbench import TYPES
from headgate_riotbench.models import ClassifyTree, PredictLinear, linear_sql, load_model, tree_sql
from headgate_riotbench.training import fit_linear, fit_tree

BY_NAME = {kind.name: kind for kind in TYPES}
DRAW = np.random.default_rng(3)
X: Any = DRAW.normal(size=(400, 3)) * [1.0, 50.0, 0.01] + [0.0, 300.0, 5.0]
Y: Any = 2.5 + X @ [3.0, -0.25, 70.0] + DRAW.normal(size=400)
LABELS = np.where(X[:, 1] > 310, "Good", np.where(X[:, 0] > 0.3, "It's \\bad", "So-so"))
NAMES = ["a", "b", "the c"]


def evaluated(sql: str, x: Any) -> list[Any]:
    """An expression over rows, by another engine than Spark; its doubles are written without a D there."""
    plain = re.sub(r"(e-?\d+)D", r"\1", sql).replace("`", '"').replace("\\'", "''").replace("\\\\", "\\")
    connection = duckdb.connect()
    connection.execute('create table x (a double, b double, "the c" double, n integer)')
    connection.executemany("insert into x values (?, ?, ?, ?)", [[*map(float, row), n] for n, row in enumerate(x)])
    return [outcome for (outcome,) in connection.execute(f"select {plain} from x order by n").fetchall()]


def test_a_linear_model_predicts_as_scikit_learn_does() -> None:
    model = fit_linear(NAMES, X, Y)
    assert model["kind"] == "linear"
    sql = linear_sql(json.loads(json.dumps(model)))
    assert set(columns_of(sql)) == set(NAMES)
    assert evaluated(sql, X) == pytest.approx(LinearRegression().fit(X, Y).predict(X))


def test_a_tree_classifies_as_scikit_learn_does() -> None:
    model = fit_tree(NAMES, X, list(LABELS), depth=8, leaves=64)
    fitted = DecisionTreeClassifier(max_depth=8, max_leaf_nodes=64, random_state=0).fit(X, LABELS)
    more = np.vstack([X, X + DRAW.normal(size=X.shape)])
    sql = tree_sql(json.loads(json.dumps(model)))
    assert set(columns_of(sql)) == set(NAMES)
    assert evaluated(sql, more) == list(fitted.predict(more))
    assert model["classes"] == sorted({*LABELS})


def step_through(name: str, given: list[list[Any]], names: list[str], **options: Any) -> list[Any]:
    config: Any = BY_NAME[name].config.model_validate({"key": ["k"], **options})
    step, state, outcome = step_of(BY_NAME[name], config, names), None, []
    for row in given:
        state, result = step(state, row)
        outcome.append(None if result is None else json.loads(str(result)))
    return outcome


def test_training_hands_over_a_model_every_so_many_rows() -> None:
    rows: list[list[Any]] = [[*map(float, x), float(y)] for x, y in zip(X, Y, strict=True)]
    rows.insert(50, [None, 1.0, 1.0, 1.0])
    outcome = step_through("train_linear", rows, [*NAMES, "y"], features=NAMES, target="y", every=100)
    places = [place for place, model in enumerate(outcome) if model is not None]
    assert places == [100, 200, 300, 400]
    for block, place in enumerate(places):
        some = slice(100 * block, 100 * block + 100)
        wanted = LinearRegression().fit(X[some], Y[some])
        assert outcome[place]["intercept"] == pytest.approx(wanted.intercept_)
        assert list(outcome[place]["coefficients"].values()) == pytest.approx(wanted.coef_)
        assert outcome[place]["rows"] == 100


def test_training_on_more_rows_than_came_since() -> None:
    rows = [[*map(float, x), str(label)] for x, label in zip(X, LABELS, strict=True)]
    options = {"features": NAMES, "label": "y", "every": 50, "rows": 120}
    outcome = [model for model in step_through("train_tree", rows, [*NAMES, "y"], **options) if model is not None]
    assert [model["rows"] for model in outcome] == [50, 100, *[120] * 6]
    wanted = DecisionTreeClassifier(max_depth=8, max_leaf_nodes=64, random_state=0).fit(X[-120:], LABELS[-120:])
    assert evaluated(tree_sql(outcome[-1]), X) == list(wanted.predict(X))


def sql_of(name: str, options: Any) -> RowWise:
    work = BY_NAME[name].work
    assert isinstance(work, RowExpression)
    return work.sql(options, ["a"])


def test_a_model_is_loaded_and_swapped(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    predict = PredictLinear(model=str(path))
    made = sql_of("predict_linear", predict)
    assert made.columns == (("a", "`a`"), ("predicted", "cast(null as double)"))
    for intercept in (1.0, 2.0):
        path.write_text(json.dumps({"kind": "linear", "intercept": intercept, "coefficients": {"a": 3}}))
        os.utime(path, ns=(0, int(intercept) * 10**9))
        (_, (_, sql)) = sql_of("predict_linear", predict).columns or ()
        assert evaluated(sql, [[1, 0, 0]]) == [intercept + 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oops", "cannot use the model at"),
        ('{"kind": "linear"}', "holds no tree model"),
        ("[]", "holds no tree model"),
        ('{"kind": "tree", "features": ["a"], "nodes": []}', "no tree: IndexError"),
        (
            '{"kind": "tree", "features": ["a"], "nodes": [{"feature": "a", "at_most": 1, "then": 0, "else": 0}]}',
            "deeper",
        ),
    ],
)
def test_what_is_no_model(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(InputError, match=message):
        sql_of("classify_tree", ClassifyTree(model=str(tmp_path / "m.json")))
    assert load_model(str(tmp_path / "nothing.json"), "tree") is None
