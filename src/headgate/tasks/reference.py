"""The options of a task type in words: one source for ``headgate tasks`` and for the reference pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headgate.model.task_type import TaskType

__all__ = ["Option", "options_of", "to_markdown"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a task type."""

    name: str
    type: str
    required: bool
    default: Any
    description: str


def options_of(kind: TaskType) -> list[Option]:
    """The options of a task type, in the order in which they are declared.

    >>> from headgate.tasks import BUILT_IN
    >>> [(o.name, o.type, o.required) for o in options_of(next(k for k in BUILT_IN if k.name == "sample"))]
    [('share', 'number, above 0, at most 1', True), ('seed', 'whole number, at least 0', False)]
    """
    schema = kind.config.model_json_schema()
    required = schema.get("required", [])
    return [
        Option(name, _type(part), name in required, part.get("default"), part.get("description", ""))
        for name, part in schema.get("properties", {}).items()
    ]


_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
}


def _type(part: dict[str, Any]) -> str:
    if "enum" in part:
        return " | ".join(str(choice) for choice in part["enum"])
    if "anyOf" in part:
        return " or ".join(_type(choice) for choice in part["anyOf"] if choice.get("type") != "null")
    kind = part.get("type", "anything")
    if kind == "array":
        return "list" if "items" not in part else f"list of {_plain(part['items'])}"
    if kind == "object":
        return "mapping"
    limits = [
        ("exclusiveMinimum", "above"),
        ("minimum", "at least"),
        ("exclusiveMaximum", "below"),
        ("maximum", "at most"),
    ]
    words = [f"{word} {part[key]:g}" for key, word in limits if key in part and abs(part[key]) < 1e15]
    return ", ".join([_WORDS.get(kind, kind), *words])


def _plain(part: dict[str, Any]) -> str:
    kind = str(part.get("type", "value"))
    return f"{_WORDS.get(kind, kind)}s"


def to_markdown(kind: TaskType) -> str:
    """A section of the reference page."""
    lines = [f"### {kind.name}", "", *(line.strip() for line in (kind.config.__doc__ or "").strip().splitlines()), ""]
    if kind.package != "headgate":
        lines += [f"From the package `{kind.package}`.", ""]
    if kind.stateful:
        lines += [f"Keeps state ({kind.state.value}).", ""]
    if kind.ports_declared:
        lines += ["Its ports may be named in the dataflow.", ""]
    options = options_of(kind)
    if options:
        lines += ["| option | type | default | meaning |", "|---|---|---|---|"]
        for option in options:
            default = "required" if option.required else f"`{json.dumps(option.default, ensure_ascii=False)}`"
            cells = [f"`{option.name}`", option.type, default, option.description]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)
