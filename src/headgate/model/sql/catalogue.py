"""All functions of Spark, classified: allowed, allowed within a bound, or refused with a reason."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

__all__ = ["BoundKind", "FunctionBound", "FunctionCatalogue", "function_catalogue"]


class BoundKind(StrEnum):
    """What is bounded. Kinds that begin with ``written_`` are checked on the text, the others while it runs."""

    PRODUCT = "product"
    """The length of a text, times how often it is repeated."""

    COUNT = "count"
    """The characters of a text."""

    ELEMENTS = "elements"
    """The elements of an array."""

    SEQUENCE = "sequence"
    """The elements from a first to a last one, by a step."""

    WORK = "work"
    """The lengths of two texts, multiplied."""

    DIGITS = "digits"
    """The digits of a number."""

    WRITTEN_DIGITS = "written_digits"
    WRITTEN_COUNT = "written_count"
    WRITTEN_ERROR = "written_error"
    """How far an estimate may be off; the less, the more memory it takes."""

    WRITTEN_FORMAT = "written_format"
    """A format as of C's printf; its widths and precisions are bounded."""

    PATTERN = "pattern"
    """A regular expression; it must be in the text, and not explode."""

    PATTERNS = "patterns"
    """Several of them, which may be left out."""

    WILDCARDS = "wildcards"
    """A pattern of LIKE; it must be in the text."""


@dataclass(frozen=True, slots=True)
class FunctionBound:
    """A bound, and the places of the arguments that it is about."""

    kind: BoundKind
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionCatalogue:
    """The classification, by name in lower case."""

    allowed: frozenset[str]
    bounded: Mapping[str, FunctionBound]
    refused: Mapping[str, str]
    """Why each is refused."""

    @property
    def all(self) -> frozenset[str]:
        return self.allowed | self.bounded.keys() | self.refused.keys()


@cache
def function_catalogue() -> FunctionCatalogue:
    """The classification of the data file beside this module.

    >>> catalogue = function_catalogue()
    >>> "upper" in catalogue.allowed, catalogue.bounded["repeat"].kind.value, catalogue.refused["java_method"]
    (True, 'product', 'it runs Java code')
    """
    text = resources.files(__package__ or "").joinpath("functions.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    bounded = {
        name: FunctionBound(BoundKind(bound["kind"]), tuple(bound["arguments"]))
        for name, bound in raw["bounded"].items()
    }
    refused = {name: reason for reason, names in raw["refused"].items() for name in names.split()}
    return FunctionCatalogue(frozenset(raw["allowed"].split()), bounded, refused)
