"""Dataflows as Python files that use the builder (:mod:`headgate.documents.builder`).

Reading one runs it, as importing any Python file does; what it prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import keyword
import re
import sys
import traceback
from typing import Any

from headgate.documents.located import Located
from headgate.errors import Fault, HeadgateError, InvalidDataflow, Place, shorten

__all__ = ["read", "write"]


def read(text: str, file: str | None = None) -> Located:
    """Run a Python file and return the document of the one flow that it leaves behind.

    >>> read("from headgate import Flow\\nflow = Flow('f')\\nflow.source('rate')\\n").value["tasks"]
    [{'id': 'rate', 'type': 'rate'}]
    """
    from headgate.documents.builder import Flow

    name = file or "<dataflow>"
    namespace: dict[str, Any] = {"__name__": "__headgate__", "__file__": name}
    try:
        code = compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = Place(file, error.lineno or 1, error.offset or None)
        raise InvalidDataflow([Fault("NOT_PYTHON", f"this is not Python: {error.msg}", place)]) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        message = f"this is not Python: {_shown(error)}"
        raise InvalidDataflow([Fault("NOT_PYTHON", message, Place(file, 1))]) from None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(code, namespace)  # noqa: S102  (a file of the user's own, who runs the command)
    except (InvalidDataflow, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InvalidDataflow([_raised(error, name, file)]) from None
    flows = {id(value): value for value in namespace.values() if isinstance(value, Flow)}
    if len(flows) != 1:
        message = f"{len(flows) or 'no'} flow{'s' if len(flows) != 1 else ''} made in this file"
        raise InvalidDataflow(
            [Fault("NOT_A_DATAFLOW", message, Place(file, 1), expected="one, such as: flow = Flow('name')")]
        )
    return next(iter(flows.values())).located()


def _raised(error: BaseException, name: str, file: str | None) -> Fault:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    message = error.message if isinstance(error, HeadgateError) else f"{type(error).__name__}: {_shown(error)}"
    return Fault("PYTHON_RAISED", f"running this file raised {message}", Place(file, lines[-1] if lines else 1))


def _shown(error: BaseException) -> str:
    try:
        return shorten(str(error), 200)
    except Exception:
        return "an error that cannot be shown"


def write(document: dict[str, Any]) -> str:
    """Write a document as Python that builds it again."""
    names = _variables([task["id"] for task in document["tasks"]])
    dynamic = any("alternates" in task for task in document["tasks"])
    head: dict[str, Any] = {
        key: document[key] for key in ("owner", "description", "service_level", "share", "start") if key in document
    }
    lines = [
        f"from headgate import Flow{', alternate' if dynamic else ''}",
        "",
        _call("flow = Flow", [repr(document["name"])], head),
        "",
    ]
    lines += [f"{names[task['id']]} = {_task(task)}" for task in document["tasks"]]
    lines.append("")
    lines += _streams(document["tasks"], names)
    return "\n".join(lines).rstrip("\n") + "\n"


def _task(task: dict[str, Any]) -> str:
    if "alternates" in task:
        positional = [
            "None",
            *(_work("alternate", choice, ("name", "value", "cost_s", "selectivity")) for choice in task["alternates"]),
        ]
        own = ("id", "ports", "share", "on_error", "time_budget", "publish")
        return _call("flow.task", positional, {key: task[key] for key in own if key in task})
    measured = ("cost_s", "selectivity")
    return _work("flow.task", task, ("id", *measured, "ports", "share", "on_error", "time_budget", "publish"))


def _work(function: str, work: dict[str, Any], own: tuple[str, ...]) -> str:
    options = work.get("config", {})
    arguments = {key: work[key] for key in own if key in work}
    reserved = {"id", "name", "value", "cost_s", "selectivity", "ports", "share", "config", "type", "self"}
    reserved |= {"on_error", "time_budget", "publish"}
    plain = all(
        key.isascii() and key.isidentifier() and not keyword.iskeyword(key) and key not in reserved for key in options
    )
    arguments |= options if plain else {"config": options}
    return _call(function, [repr(work["type"])], arguments)


def _call(function: str, positional: list[str], arguments: dict[str, Any]) -> str:
    parts = positional + [f"{key}={value!r}" for key, value in arguments.items()]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= 100:
        return line
    return f"{function}(\n" + "".join(f"    {part.replace(chr(10), chr(10) + '    ')},\n" for part in parts) + ")"


def _streams(tasks: list[dict[str, Any]], names: dict[str, str]) -> list[str]:
    """A line for each stream; runs of plain streams are written as one chain."""
    follower: dict[str, str] = {}
    rest: list[str] = []
    for task in tasks:
        feeds = task.get("inputs", [])
        if len(feeds) == 1 and isinstance(feeds[0], str) and ":" not in feeds[0] and feeds[0] not in follower:
            follower[feeds[0]] = task["id"]
        else:
            rest += [_stream(feed, names[task["id"]], names) for feed in feeds]
    followed = set(follower.values())
    chains = []
    for task in tasks:
        if task["id"] in follower and task["id"] not in followed:
            chain = [task["id"]]
            while chain[-1] in follower:
                chain.append(follower[chain[-1]])
            chains.append(" >> ".join(names[step] for step in chain))
    return chains + rest


def _stream(feed: str | dict[str, Any], target: str, names: dict[str, str]) -> str:
    parts = {"from": feed} if isinstance(feed, str) else feed
    source, _, port = parts["from"].partition(":")
    line = names[source]
    if port:
        line += f".port({port!r})"
    if "where" in parts:
        line += f".where({parts['where']!r})"
    if "key" in parts:
        line += f".by({', '.join(map(repr, parts['key']))})"
    if parts.get("feedback"):
        line += ".feedback()"
    return f"{line} >> {target}" + (f".into({parts['to']!r})" if "to" in parts else "")


def _variables(ids: list[str]) -> dict[str, str]:
    taken = {"flow", "Flow", "alternate"}
    names = {}
    for task_id in ids:
        base = re.sub(r"\W", "_", task_id)
        base = f"{'t' if base[0].isdigit() else ''}{base}{'_' if keyword.iskeyword(base) else ''}"
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names[task_id] = name
    return names
