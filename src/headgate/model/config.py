"""The configuration of a task as a value: immutable, hashable, with one canonical text.

Two configurations are equal exactly when their canonical texts are. The text is JSON with sorted keys, no spaces, and
every number written in one way, so that ``1`` and ``1.0`` are the same and ``1`` and ``true`` are not (which they would
be if Python's own equality decided).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

__all__ = ["Config", "Json", "canonical_text"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_DEPTH = 64
"""Less than what any format can hold, so that what was read from one can be written in all."""

MAX_INT_DIGITS = 4_000
_TOO_GREAT = 10**MAX_INT_DIGITS


class Config(Mapping[str, Json]):
    """An immutable JSON object.

    >>> a, b = Config({"size": 5.0, "by": ["k"]}), Config({"by": ["k"], "size": 5})
    >>> a == b, hash(a) == hash(b), a
    (True, True, Config({"by":["k"],"size":5}))
    >>> Config({"on": 1}) == Config({"on": True})
    False
    """

    __slots__ = ("text",)

    text: str
    """The canonical text, which is all that a Config keeps: with many tasks, memory is what costs time."""

    def __init__(self, items: Mapping[str, Json] | None = None) -> None:
        object.__setattr__(self, "text", canonical_text(items or {}))

    @classmethod
    def of_canonical(cls, items: Mapping[str, Json]) -> Config:
        """A Config of what another one gave as its items; they need no check."""
        config = cls.__new__(cls)
        object.__setattr__(config, "text", _encode(items))
        return config

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is immutable; cannot set {name!r}")

    def __getitem__(self, key: str) -> Json:
        return _frozen(self.as_dict()[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self.as_dict())

    def __bool__(self) -> bool:
        return self.text != "{}"

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Config) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Config({self.text})"

    def __reduce__(self) -> tuple[type[Config], tuple[dict[str, Json]]]:
        return Config, (self.as_dict(),)

    def as_dict(self) -> dict[str, Json]:
        """A fresh, mutable copy in plain Python."""
        return dict(json.loads(self.text))


def canonical_text(value: Json) -> str:
    """Write a JSON value in the one canonical way.

    Raises ``ValueError`` for what JSON cannot carry: infinite or undefined numbers, keys that are no text, broken text.

    >>> canonical_text({"b": [1.0, True, -0.0], "a": 1e300 == 10**300})
    '{"a":false,"b":[1,true,0]}'
    """
    return _encode(_normal(value, 0))


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _normal(value: object, depth: int) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _checked_text(value)
    if isinstance(value, int):
        if abs(value) >= _TOO_GREAT:
            raise ValueError(f"a number of more than {MAX_INT_DIGITS:,} digits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return int(value) if value.is_integer() else float(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a key that is not text")
        return {_checked_text(key): _normal(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_normal(item, depth + 1) for item in value]
    raise ValueError(f"a value of type {type(value).__name__}, which JSON does not have")


def _checked_text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("text with half a surrogate pair, which is not Unicode") from None
    return str(text)


def _frozen(value: Json) -> Json:
    if isinstance(value, dict):
        return Config(value)
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value
