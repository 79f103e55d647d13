"""Errors of pydantic as faults, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headgate.documents.located import Located, Path
from headgate.errors import Fault, counted, nearest, shorten

__all__ = ["complaints", "model_of"]

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "mapping_type": "a mapping",
    "finite_number": "a finite number",
    "string_unicode": "Unicode text",
    "none_required": "nothing",
}

_VALIDATOR = re.compile(r"(function-(before|after|wrap|plain)|lax-or-strict|nullable)\[")


def model_of(
    model: type[M], value: object, located: Located, faults: list[Fault], base: Path = (), task: str | None = None
) -> M | None:
    """A value of a document as its model; what is wrong with it is added to the faults."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults += complaints(error, model, located, base, task)
        return None


def complaints(
    error: ValidationError, model: type[BaseModel], located: Located, base: Path = (), task: str | None = None
) -> Iterator[Fault]:
    """One fault for each error of pydantic below ``base``."""
    for detail in error.errors(include_url=False):
        named = detail["type"] in ("missing", "extra_forbidden")  # the last step is then the name, whatever it is
        above, last = (detail["loc"][:-1], detail["loc"][-1:]) if named else (detail["loc"], ())
        steps = [*(step for step in above if not _is_internal(step)), *last]
        yield _fault(detail, model, located, [*base, *steps], task)


def _fault(
    detail: ErrorDetails, model: type[BaseModel], located: Located, path: list[str | int], task: str | None
) -> Fault:
    kind, context, given = detail["type"], detail.get("ctx", {}), detail["input"]
    place = located.place(path)
    name = _readable(path)
    if kind == "missing":
        return Fault("MISSING_FIELD", f"'{path[-1]}' is missing", place, task, f"a value for '{path[-1]}'")
    if kind == "extra_forbidden":
        valid = _fields_at(model, detail["loc"][:-1])
        known = f"one of {', '.join(valid)}" if valid else None
        return Fault(
            "UNKNOWN_FIELD", f"unknown field {shorten(path[-1])}", place, task, known, nearest(str(path[-1]), valid)
        )
    if kind in ("literal_error", "enum"):
        choices = str(context.get("expected", ""))
        near = nearest(given, re.findall(r"'([^']+)'", choices)) if isinstance(given, str) else None
        return Fault("BAD_VALUE", f"{name} is {shorten(given)}", place, task, choices, near)
    if kind == "value_error":
        reason = context.get("error", detail["msg"])
        expected, near = getattr(reason, "expected", None), getattr(reason, "nearest", None)
        return Fault("BAD_VALUE", f"{name}: {reason}" if name else str(reason), place, task, expected, near)
    if kind in _WANTED:
        return Fault("BAD_VALUE", f"{name or 'this'} is {shorten(given)}", place, task, _WANTED[kind])
    return Fault("BAD_VALUE", f"{name or 'this'} is {shorten(given)}", place, task, _limit(detail))


def _limit(detail: ErrorDetails) -> str:
    """The bound that a value has not kept to.

    >>> _limit({"type": "too_short", "loc": (), "msg": "", "input": [], "ctx": {"min_length": 1}})
    'at least 1 item'
    """
    context = detail.get("ctx", {})
    for key, message in (("min_length", "at least"), ("max_length", "at most")):
        if key in context:
            noun = "character" if detail["type"].startswith("string") else "item"
            return f"{message} {counted(context[key], noun)}"
    wanted = detail["msg"][:1].lower() + detail["msg"][1:]
    for words in ("input should be ", "input should have ", "decimal input should have ", "string should "):
        wanted = wanted.removeprefix(words)
    return wanted


def _is_internal(step: str | int) -> bool:
    """Steps that pydantic adds to a path and no user wrote: names of validators and of a mapping's keys."""
    return isinstance(step, str) and (step == "[key]" or _VALIDATOR.match(step) is not None)


def _readable(path: list[str | int]) -> str:
    """The path below the task, as a person would write it.

    >>> _readable(["tasks", 3, "config", "ranges", "light", 0])
    'config.ranges.light[0]'
    """
    inner = path[2:] if len(path) > 1 and path[0] in ("tasks", "operators") else path
    text = ""
    for step in inner:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text if len(text) <= 80 else text[:77] + "..."


def _fields_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The fields of the model at ``path`` below ``model``."""
    current: Any = model
    for step in path:
        if isinstance(step, str) and isinstance(current, type) and issubclass(current, BaseModel):
            field = next((f for n, f in current.model_fields.items() if step in (n, f.alias)), None)
            current = _model_in(field.annotation) if field else None
    if not (isinstance(current, type) and issubclass(current, BaseModel)):
        return []
    return [field.alias or name for name, field in current.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)
