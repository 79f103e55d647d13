#!/usr/bin/env python
"""Writes the parts of the documentation that follow from the code.

    .venv/bin/python scripts/reference.py

docs/reference/task-types.md and format.md come from the options' models, dataflow.schema.json from the same,
openapi.json from the API's routes, and the pictures from the examples. pictures/house.svg shows which room of
src/headgate imports which. A test fails when one of them is out of date.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import typer.main
import yaml
from pydantic import BaseModel

from headgate import Flow
from headgate.api.application import application
from headgate.cli.main import app
from headgate.cli.settings import settings_of_commands
from headgate.documents import document
from headgate.documents.project_tables import ProjectTables
from headgate.documents.settings import CommandSettings, environment_name
from headgate.model.strategy import StrategyName
from headgate.model.task_type import Role, TaskType
from headgate.report.runs import draw_runs
from headgate.report.svg import to_svg
from headgate.service.load import load
from headgate.service.serve import ServedEngine
from headgate.service.simulate import SimulationRequest, run_policies, setting_of
from headgate.service.size import latency_picture, load_request, size
from headgate.sharing.merge import merge
from headgate.tasks import BUILT_IN
from headgate.tasks.reference import to_markdown
from headgate.tasks.registry import Registry
from headgate_riotbench import TYPES as RIOTBENCH

ROOT = Path(__file__).resolve().parent.parent
KINDS = (*BUILT_IN, *RIOTBENCH)
REGISTRY = Registry(KINDS)  # without what other packages may have added here

CITY = ("city/alarms.yaml", "city/map.yaml", "city/archive.json", "city/quality.py")
PICTURES = {
    "alarms": CITY[0],
    "tweets": "tweets/tweets.xml",
    "nexmark-q4": "nexmark/q4.yaml",
    "sentiment": "sentiment/sentiment.yaml",
    "micro-diamond": "micro/diamond.yaml",
    "micro-star": "micro/star.yaml",
    "patterns": "patterns/patterns.yaml",
    "logos": "logos/logos.yaml",
    "linear_road": "linear_road/linear_road.yaml",
}

ROLES = {
    Role.SOURCE: ("Sources", "Tasks that bring rows in. They have no inputs."),
    Role.STEP: ("Steps", "Tasks that read rows and pass rows on."),
    Role.SINK: ("Sinks", "Tasks that hand rows over. They have no outputs."),
}

PARTS = {
    "The dataflow": document.DataflowDocument,
    "A task": document.TaskDocument,
    "An alternate": document.AlternateDocument,
    "An input": document.InputDocument,
    "Ports": document.PortsDocument,
    "A port": document.PortDocument,
    "The service level": document.ServiceLevelDocument,
}

SHORT_FORMS = {
    "An input": "An input that needs nothing but `from` may be written as that text alone.",
    "A port": "A port that needs nothing but `name` may be written as that text alone.",
}


def files() -> dict[Path, Callable[[], str]]:
    """Every file that is written, and what makes its text."""
    reference, pictures = ROOT / "docs" / "reference", ROOT / "docs" / "pictures"
    drawn = {name: partial(_drawn, example) for name, example in PICTURES.items()}
    return {
        reference / "task-types.md": task_types,
        reference / "format.md": format_page,
        reference / "settings.md": settings_page,
        reference / "dataflow.schema.json": lambda: _json(document.json_schema(REGISTRY)),
        reference / "openapi.json": lambda: _json(application(without_engine()).openapi()),
        pictures / "merged.svg": merged_picture,
        pictures / "house.svg": house_picture,
        pictures / "latency.svg": partial(latency_picture_of, "sizing/logos.yaml", latency_s=2.0),
        pictures / "simulated.svg": simulated_picture,
        **{pictures / f"{name}.svg": draw for name, draw in drawn.items()},
    }


def _drawn(example: str) -> str:
    return to_svg(dataflow_of(example), REGISTRY)


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def without_engine() -> ServedEngine:
    """What the routes are made of; nobody asks for anything."""
    names = ("policy", "refusals", "tokens", "journal", "events", "metrics", "operations")
    parts = {**dict.fromkeys(names), "state": Path(), "registry": REGISTRY}
    return cast(ServedEngine, SimpleNamespace(**parts))


def task_types() -> str:
    lines = [
        "# Task types",
        "",
        "The built-in task types, and those of the package `headgate-riotbench`. `headgate tasks` lists them too,",
        "with those of installed packages; [Your own task types](../guides/own-task-types.md) shows how to add some.",
        "SQL is Spark's; columns are written as in SQL's `CREATE TABLE`, such as `id string, v double`.",
        "",
    ]
    for role, (title, meaning) in ROLES.items():
        lines += [f"## {title}", "", meaning, ""]
        for kind in KINDS:
            if kind.role is role:
                lines += [to_markdown(kind), "```yaml", *example_of(kind), "```", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def example_of(kind: TaskType) -> list[str]:
    example = {"id": "example", "type": kind.name}
    if kind.config.example:
        example["config"] = dict(kind.config.example)
    if kind.ports.inputs:
        example["inputs"] = ["before"] if kind.ports.inputs[0].streams_min == 1 else ["left", "right"]
    return yaml.safe_dump([example], sort_keys=False, width=100).splitlines()


def format_page() -> str:
    lines = [
        "# Fields of a dataflow",
        "",
        "One set of fields, whether they are written as YAML, JSON, XML or Python.",
        "[Writing dataflows](../guides/writing-dataflows.md) shows them at work. For editors, there is a JSON Schema,",
        "[dataflow.schema.json](dataflow.schema.json).",
        "",
    ]
    for title, model in PARTS.items():
        lines += [f"## {title}", "", (model.__doc__ or "").strip(), ""]
        if title in SHORT_FORMS:
            lines += [SHORT_FORMS[title], ""]
        lines += ["| field | type | default | meaning |", "|---|---|---|---|", *rows(model), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


SETTING_TYPES = {
    "state": "path",
    "cluster": "path",
    "prices": "path",
    "conf": "list of texts",
    "rows": "whole number, at least 1",
    "trigger": "span of time",
    "time_budget": "span of time",
    "time_limit": "span of time",
    "strategy": ", ".join(StrategyName),
}


def settings_page() -> str:
    commands = typer.main.get_command(app).commands
    used: dict[str, list[str]] = {name: [] for name in CommandSettings.model_fields}
    for path, _, setting in settings_of_commands(commands):
        used[setting].append(f"`{' '.join(path)}`")
    lines = [
        "# Settings",
        "",
        "A project keeps its settings in `headgate.toml`. Commands read the nearest one upwards from the working",
        "directory, or the one that `headgate --config FILE COMMAND` or `HEADGATE_CONFIG` names. A setting replaces",
        "the default of the option of its name. An option on the command line wins over an environment variable, which",
        "wins over the file. Relative paths in the file begin at its folder.",
        "",
        "```text",
        'state = ".headgate"',
        'trigger = "1s"',
        'conf = ["spark.executor.memory=4g"]',
        "```",
        "",
        "| Setting | Type | Default | Meaning | Environment | Commands |",
        "|---|---|---|---|---|---|",
    ]
    schema = CommandSettings.model_json_schema()
    for name, part in schema["properties"].items():
        cells = [
            f"`{name}`",
            "true or false" if part.get("type") == "boolean" else SETTING_TYPES.get(name, "text"),
            default_of(part),
            CommandSettings.model_fields[name].description or "",
            f"`{environment_name(name)}`",
            ", ".join(used[name]),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "## Tables", "", "An engine reads these when it starts.", ""]
    lines += ["| Table | Key | Meaning |", "|---|---|---|"]
    for table, field in ProjectTables.model_fields.items():
        for name, part in cast(type[BaseModel], field.annotation).model_fields.items():
            lines.append(f"| `[{table}]` | `{name}` | {part.description} |")
    lines += ["", "Unknown names and wrong values are reported all at once, each with its line; the exit status is 2."]
    return "\n".join(lines) + "\n"


def rows(model: type[BaseModel]) -> list[str]:
    schema = model.model_json_schema()
    found = []
    for name, part in schema["properties"].items():
        default = "required" if name in schema.get("required", []) else default_of(part)
        cells = [f"`{name}`", type_of(part, name, schema.get("$defs", {})), default, part.get("description", "")]
        found.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return found


def default_of(part: dict) -> str:
    default = part.get("default")
    return "" if default in (None, "", [], {}) or isinstance(default, dict) else f"`{json.dumps(default)}`"


HELD = {
    "tasks": "list of [tasks](#a-task)",
    "alternates": "list of [alternates](#an-alternate)",
    "ports": "[ports](#ports)",
    "service_level": "[service level](#the-service-level)",
    "outputs": "list of [ports](#a-port)",
}
WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
LIMITS = {"exclusiveMinimum": "above", "minimum": "at least", "exclusiveMaximum": "below", "maximum": "at most"}


def type_of(part: dict, name: str, definitions: dict) -> str:
    if name == "inputs":
        return "list of [ports](#a-port)" if "PortDocument" in json.dumps(part) else "list of [inputs](#an-input)"
    if name in HELD:
        return HELD[name]
    if "anyOf" in part:
        # A price may also be given as text, so that no digit is lost; the first form tells enough.
        choices = [choice for choice in part["anyOf"] if choice.get("type") != "null"]
        return type_of(choices[0], name, definitions)
    if "$ref" in part:
        return type_of(definitions[part["$ref"].rpartition("/")[2]], name, definitions)
    if "enum" in part:
        return " or ".join(f"`{choice}`" for choice in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if "pattern" in part and name in ("id", "name", "owner", "to"):
        return "name"
    if part.get("type") == "array":
        return f"list of {type_of(part['items'], '', definitions)}s"
    limits = [f"{word} {part[key]:g}" for key, word in LIMITS.items() if key in part]
    return ", ".join([WORDS.get(part.get("type", ""), part.get("type", "")), *limits])


def dataflow_of(example: str):
    return load(ROOT / "examples" / example, REGISTRY).dataflow


def latency_picture_of(example: str, latency_s: float) -> str:
    asked = replace(load_request(ROOT / "examples" / example), processors=None, latency_max_s=latency_s)
    return latency_picture(asked, size(asked), ".svg").decode("utf-8")


def simulated_picture() -> str:
    road = ROOT / "examples" / "simulation" / "linear_road.yaml"
    asked = SimulationRequest(road, ("random-walk:50", "weather=0.5"), variability="ec2")
    return draw_runs(run_policies(setting_of(asked, REGISTRY), ["static", "threshold"]), ".svg").decode("utf-8")


def merged_picture() -> str:
    dataflows = [dataflow_of(example) for example in CITY]
    merged = merge(dataflows)
    graph = replace(merged.graph, description=", ".join(dataflow.name for dataflow in dataflows) + ": one graph")
    return to_svg(graph, REGISTRY, {task: "for " + ", ".join(names) for task, names in merged.users.items()})


def house_picture() -> str:
    """The rooms and their imports, without those that follow from others."""
    imports = room_imports()
    below = {room: set().union(*(reachable(other, imports) for other in others)) for room, others in imports.items()}
    flow = Flow("house", description="Each room imports those to its right")
    rooms = {room: flow.task("opaque", id=room) for room in sorted(imports)}
    for room, others in sorted(imports.items()):
        for other in sorted(others - below[room]):
            rooms[room] >> rooms[other]
    picture = to_svg(flow.build(), REGISTRY)
    picture = re.sub(r"house: \d+ tasks, \d+ streams", "The rooms of src/headgate", picture)
    for room in rooms:  # what a room is for takes the place of the task's type
        picture = re.sub(rf"(>{room}<.*?>)opaque<", rf"\g<1>{ROOMS[room]}<", picture, count=1, flags=re.DOTALL)
    return picture


ROOMS = {
    "access": "who may do what",
    "adaptation": "policies",
    "api": "HTTP",
    "billing": "who pays",
    "capacity": "pools, throughput",
    "cli": "commands",
    "documents": "text to dataflow",
    "forecasting": "rates ahead",
    "machines": "acquire, release",
    "model": "values",
    "planning": "best plans",
    "queueing": "latency models",
    "report": "tables, pictures",
    "runtime": "on Spark",
    "service": "use cases",
    "sharing": "merge, unmerge",
    "simulation": "without Spark",
    "store": "durable files",
    "tasks": "task types",
}


def reachable(room: str, imports: dict[str, set[str]]) -> set[str]:
    return set().union(*({other} | reachable(other, imports) for other in imports[room]))


def room_imports() -> dict[str, set[str]]:
    """For each folder of src/headgate, the other folders from which its modules import, wherever in the module."""
    package = ROOT / "src" / "headgate"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    imports: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for path in (package / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
                imports[room] |= {name.split(".")[1] for name in names if name.startswith("headgate.")} & rooms - {room}
    return imports


if __name__ == "__main__":
    for path, made in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made(), encoding="utf-8")
        print(path.relative_to(ROOT))
