"""Whether a query, as Spark's own parser understands it, reads nothing but the streams that it is given. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from headgate.errors import InputError
from headgate.model.sql.catalogue import function_catalogue

__all__ = ["check_query_plan"]

_PLANS, _ANALYSIS = "org.apache.spark.sql.catalyst.plans.logical.", "org.apache.spark.sql.catalyst.analysis."
_EXPRESSIONS, _TYPES = "org.apache.spark.sql.catalyst.expressions.", "org.apache.spark.sql.types."

_OPERATOR_NAMES = """
Project Filter Aggregate Join SubqueryAlias UnresolvedWith Union Distinct Sort GlobalLimit LocalLimit Offset
WithWindowDefinition UnresolvedHaving Generate Intersect Except LateralJoin OneRowRelation LocalRelation
UnresolvedInlineTable UnresolvedSubqueryColumnAliases UnresolvedRelation UnresolvedAttribute UnresolvedStar
UnresolvedAlias UnresolvedFunction UnresolvedGenerator UnresolvedExtractValue UnresolvedOrdinal
UnresolvedNamedLambdaVariable
"""
_OPERATORS = frozenset(_OPERATOR_NAMES.split())


def check_query_plan(plan: Any, ports: Collection[str]) -> None:
    """Raise :class:`InputError` for a query that reads something else, or does more than a SELECT.

    ``plan`` is Spark's JSON of the parsed query: lists of nodes, each with its class.
    """
    nodes = list(_nodes(plan))
    known = {name.casefold() for name in ports} | {name.casefold() for name in _named_by(nodes)}
    for node in nodes:
        name = str(node["class"])
        short = name.rpartition(".")[2]
        if name.startswith((_PLANS, _ANALYSIS)) and short not in _OPERATORS:
            raise InputError("TASK_REFUSED", f"the query has {_in_words(short)}, which a task may not use")
        if not name.startswith((_PLANS, _ANALYSIS, _EXPRESSIONS, _TYPES)):
            raise InputError("TASK_REFUSED", f"the query has {_in_words(short)}, which a task may not use")
        if short == "UnresolvedRelation":
            relation = str(node["multipartIdentifier"]).removeprefix("[").removesuffix("]")
            if "," in relation or relation.casefold() not in known:  # a comma separates the parts of a name
                listed = ", ".join(f"'{port}'" for port in ports)
                raise InputError("TASK_REFUSED", f"the query reads '{relation[:80]}'; its input ports are {listed}")
        if short == "UnresolvedFunction":
            _check_function(str(node["nameParts"]))


def _check_function(name_parts: str) -> None:
    catalogue, name = function_catalogue(), name_parts.removeprefix("[").removesuffix("]").lower()
    if name not in catalogue.allowed and name not in catalogue.bounded:
        raise InputError("TASK_REFUSED", f"the query calls '{name[:80]}', which is not allowed")


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "class" in value:
            yield value
        for item in value.values():
            yield from _nodes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _nodes(item)


def _named_by(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    """The names that the query itself gives to its parts by WITH."""
    for node in nodes:
        for relation in node.get("cteRelations") or () if str(node["class"]).endswith(".UnresolvedWith") else ():
            if isinstance(relation, dict) and isinstance(relation.get("_1"), str):
                yield relation["_1"]


def _in_words(class_name: str) -> str:
    """The name of a class as words.

    >>> _in_words("UnresolvedTableValuedFunction")
    'a table valued function'
    """
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in class_name.removeprefix("Unresolved")).split()
    return f"{'an' if words[0][0] in 'aeiou' else 'a'} {' '.join(words)}"
