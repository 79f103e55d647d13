"""Objects that a policy keeps from decision to decision, as JSON: forecasters and estimates with their arrays."""

from __future__ import annotations

import base64
import importlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np

from headgate.errors import BadValue

__all__ = ["JsonValue", "read_kept", "written_kept"]

JsonValue = None | bool | int | float | str | list[Any] | dict[str, Any]

_ROOT = "headgate."
_PLAIN = (bool, int, str)


def written_kept(value: Any) -> JsonValue:
    """A value as JSON: numbers, texts, lists, mappings, arrays, and objects of ours made of these.

    Functions are left out: whoever reads an object that has one gives it another. Numbers come back as they were to
    the last bit, NaN and infinity too.

    >>> written_kept({"rates": np.array([1.5])})
    {'rates': {'$array': ['<f8', [1], 'AAAAAAAA+D8=']}}
    """
    if value is None or (isinstance(value, _PLAIN) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float | np.generic | np.ndarray):
        return _number(value)
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, list | tuple | deque | set | frozenset):
        return _sequence(value)
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: written_kept(each) for key, each in value.items()}
        return {"$map": [[written_kept(key), written_kept(each)] for key, each in value.items()]}
    return _object(value)


def _number(value: Any) -> JsonValue:
    if isinstance(value, float) and not isinstance(value, np.generic) and np.isfinite(value):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        raise BadValue("an array of objects in a memory", "an array of numbers")
    shape = None if isinstance(value, float) and not isinstance(value, np.generic) else list(array.shape)
    return {"$array": [array.dtype.str, shape, base64.b64encode(array.tobytes()).decode("ascii")]}


def _sequence(value: Any) -> JsonValue:
    items = [written_kept(each) for each in value]
    if isinstance(value, list):
        return items
    if isinstance(value, deque):
        return {"$deque": [value.maxlen, items]}
    if isinstance(value, set | frozenset):
        items.sort(key=json.dumps)
    return {"$" + type(value).__name__: items}


def _object(value: Any) -> JsonValue:
    kind = type(value)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if isinstance(value, Enum):
        return {"$enum": [name, value.value]}
    if not kind.__module__.startswith(_ROOT):
        raise BadValue(f"a {name} in a memory", "numbers, texts, arrays, lists, mappings and objects of Headgate")
    return {"$object": [name, {key: written_kept(each) for key, each in _state(value).items()}]}


def _state(value: Any) -> dict[str, Any]:
    names = [field.name for field in fields(value)] if is_dataclass(value) else list(vars(value))
    state = {name: getattr(value, name) for name in names}
    return {name: each for name, each in state.items() if not _is_function(each)}


def _is_function(value: Any) -> bool:
    return callable(value) and not type(value).__module__.startswith(_ROOT)


def read_kept(document: Any) -> Any:
    """What was written, as it was; raises :class:`BadValue` for anything else.

    >>> read_kept(written_kept({"a": (1, float("inf")), "b": deque([0.1], maxlen=3)}))
    {'a': (1, inf), 'b': deque([0.1], maxlen=3)}
    """
    if isinstance(document, list):
        return [read_kept(each) for each in document]
    if not isinstance(document, Mapping):
        return document
    if len(document) == 1:
        ((kind, value),) = document.items()
        if kind.startswith("$"):
            try:
                return _READERS[kind](value)
            except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
                raise BadValue(f"a damaged memory: {error!r}"[:200], "what Memory.document has written") from None
    return {key: read_kept(each) for key, each in document.items()}


def _read_array(value: Any) -> Any:
    kind, shape, text = value
    array = np.frombuffer(base64.b64decode(text), dtype=kind)
    if shape is None:
        return float(array[0])
    return array.reshape(shape).copy() if shape else array[0]


def _read_object(value: Any) -> Any:
    name, state = value
    made = object.__new__(_class_of(name))
    for key, each in state.items():
        object.__setattr__(made, key, read_kept(each))
    return made


def _class_of(name: str) -> Any:
    module, _, path = name.partition(":")
    if not module.startswith(_ROOT):
        raise ValueError(f"{name} is no class of Headgate")
    kind: Any = importlib.import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type):
        raise ValueError(f"{name} is no class")
    return kind


_READERS: Mapping[str, Any] = {
    "$array": _read_array,
    "$deque": lambda value: deque(read_kept(value[1]), maxlen=value[0]),
    "$tuple": lambda value: tuple(read_kept(value)),
    "$decimal": Decimal,
    "$set": lambda value: set(read_kept(value)),
    "$frozenset": lambda value: frozenset(read_kept(value)),
    "$map": lambda value: {read_kept(key): read_kept(each) for key, each in value},
    "$enum": lambda value: _class_of(value[0])(value[1]),
    "$object": _read_object,
}
