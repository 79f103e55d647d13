"""Models as JSON files, and as SQL: a linear regression is a sum, a decision tree a nest of CASE.

As SQL, a model costs Spark no more than any other expression. A file is looked at before each micro-batch, so that a
new model counts from the next one on. JSON, not pickle: a model is data, and loading one must not run anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from headgate.errors import InputError

__all__ = ["linear_sql", "load_model", "tree_sql"]

DEEPEST = 40
"""How deep a tree may be; SQL of more would be too much for those who read it."""


def load_model(path: str, kind: str) -> Mapping[str, Any] | None:
    """The model of that kind at a path; ``None`` if there is none yet."""
    try:
        found = Path(path).stat()
        model = _loaded(path, found.st_mtime_ns, found.st_size)
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
        terms = [f"{_number(w)} * cast({_name(n)} as double)" for n, w in model["coefficients"].items()]
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
        known = " and ".join(f"{_name(name)} is not null" for name in model["features"])
        return f"case when {known} then {_branch(nodes, 0, 0)} end"
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("BAD_MODEL", f"no tree: {error!r}") from None


def _branch(nodes: Any, at: int, depth: int) -> str:
    node = nodes[at]
    if "class" in node:
        text = str(node["class"]).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"
    if depth == DEEPEST:
        raise ValueError(f"deeper than {DEEPEST}")
    then, other = (_branch(nodes, node[way], depth + 1) for way in ("then", "else"))
    return (
        f"case when cast({_name(node['feature'])} as float) <= {_number(node['at_most'])} then {then} else {other} end"
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


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
