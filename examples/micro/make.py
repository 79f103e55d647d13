"""Write the micro-benchmarks as dataflows: linear, diamond and star.

    .venv/bin/python examples/micro/make.py

Linear is bound by the processor throughout, star by moving rows, diamond has an operator of each kind side by side. A
test fails when a file is out of date.
"""

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
COLUMNS = "id bigint, at timestamp, message string"
TITLES = {
    "linear": "One operator after the other, each bound by the processor.",
    "diamond": "Four operators side by side: bound by the processor, by moving rows, by waiting, by memory.",
    "star": "Two sources, one operator in the middle, two behind it: all bound by moving rows.",
}


def _source(name: str, folder: str) -> dict[str, Any]:
    return {"id": name, "type": "read_files", "config": {"path": folder, "columns": COLUMNS}}


def _operator(name: str, kind: str, inputs: list[str], **options: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"function": f"operators.{kind}", "columns": COLUMNS}
    if options:
        config["options"] = options
    return {"id": name, "type": "python", "config": config, "inputs": inputs}


def _sink(name: str, path: str, inputs: list[str]) -> dict[str, Any]:
    return {"id": name, "type": "write_files", "config": {"path": f"out/micro/{path}"}, "inputs": inputs}


def documents() -> dict[str, dict[str, Any]]:
    """The dataflows, by name."""
    linear = [
        _source("source", "data/micro/one"),
        _operator("first", "cpu", ["source"]),
        _operator("second", "cpu", ["first"], calls=30_001),
        _operator("third", "cpu", ["second"], calls=30_002),
        _sink("sink", "linear", ["third"]),
    ]
    middle = ("cpu", "io", "wait", "memory")
    diamond = [
        _source("source", "data/micro/one"),
        *(_operator(kind, kind, ["source"]) for kind in middle),
        _operator("together", "io", list(middle)),
        _sink("sink", "diamond", ["together"]),
    ]
    star = [
        _source("one", "data/micro/one"),
        _source("two", "data/micro/two"),
        _operator("before_one", "io", ["one"], copies=2),
        _operator("before_two", "io", ["two"], copies=2),
        _operator("centre", "io", ["before_one", "before_two"], copies=2),
        _operator("left", "io", ["centre"]),
        _operator("right", "io", ["centre"], copies=2),
        _sink("left_sink", "star_left", ["left"]),
        _sink("right_sink", "star_right", ["right"]),
    ]
    topologies = {"linear": linear, "diamond": diamond, "star": star}
    return {name: {"name": name, "owner": "bench", "tasks": tasks} for name, tasks in topologies.items()}


def files() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        f"{name}.yaml": f"# {TITLES[name]} Written by make.py.\n{yaml.safe_dump(document, sort_keys=False, width=110)}"
        for name, document in documents().items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(HERE / name)
