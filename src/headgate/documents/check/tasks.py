"""Step two of a check: the tasks, their types, options and ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from headgate.documents.check.pydantic_faults import complaints
from headgate.documents.check.report import Report, TaskInCheck, failed
from headgate.documents.document import AlternateDocument, PortDocument, PortsDocument, TaskDocument
from headgate.documents.located import Path
from headgate.errors import shorten
from headgate.model.config import Config
from headgate.model.names import PortName, TaskId, is_name
from headgate.model.on_error import OnError
from headgate.model.schema import Schema
from headgate.model.secret import MENTION, misspelt_references
from headgate.model.task import Alternate, Gather, Port, Ports
from headgate.model.task_type import Role, TaskConfig, TaskType
from headgate.tasks.registry import Registry

__all__ = ["Tasks", "understand_tasks"]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks that could be understood, and every id that was mentioned, understood or not."""

    known: dict[TaskId, TaskInCheck] = field(default_factory=dict)
    mentioned: dict[str, Path] = field(default_factory=dict)


def understand_tasks(raw: Iterable[object], registry: Registry, report: Report) -> Tasks:
    """Understand each task by itself; what is wrong with one does not hide what is wrong with another."""
    tasks = Tasks()
    for index, item in enumerate(raw):
        _understand(("tasks", index), item, tasks, registry, report)
    return tasks


def _understand(path: Path, raw: object, tasks: Tasks, registry: Registry, report: Report) -> None:
    raw_id = raw.get("id") if isinstance(raw, Mapping) else None
    task_id = TaskId(raw_id) if isinstance(raw_id, str) and is_name(raw_id) else None
    repeated = task_id is not None and task_id in tasks.mentioned
    if repeated:
        line = report.located.place([*tasks.mentioned[str(task_id)], "id"]).line
        message = f"id '{task_id}' is given twice" + (f", first on line {line}" if line else "")
        report.fault("DUPLICATE_ID", [*path, "id"], message, task_id, "an id of its own for each task")
    elif task_id is not None:
        tasks.mentioned[task_id] = path
    try:
        document = TaskDocument.model_validate(raw)
    except ValidationError as error:
        name = shorten(raw_id).strip("'") if isinstance(raw_id, str) else None
        report.faults += complaints(error, TaskDocument, report.located, path, name)
        return
    task = TaskInCheck(
        TaskId(document.id),
        path,
        document.inputs,
        document.alternates is not None,
        document.share,
        document.on_error,
        document.time_budget_s,
        document.publish or "",
    )
    _understand_work(task, document, registry, report)
    if task.on_error is not OnError.FAIL:
        _check_policy(task, registry, report)
    if not repeated:
        tasks.known[task.id] = task


def _understand_work(task: TaskInCheck, document: TaskDocument, registry: Registry, report: Report) -> None:
    if document.alternates is None:
        short = AlternateDocument(
            type=document.type or "",
            config=document.config or {},
            cost_s=document.cost_s,
            selectivity=document.selectivity,
        )
        _understand_alternate(task, 0, short, task.path, registry, report)
        wanted = 1
    else:
        for index, alternate in enumerate(document.alternates):
            _understand_alternate(task, index, alternate, [*task.path, "alternates", index], registry, report)
        _check_names(task, document.alternates, report)
        wanted = len(document.alternates)
    if len(task.alternates) == wanted:
        _understand_ports(task, _declared_ports(task, document.ports, report), registry, report)


def _understand_alternate(
    task: TaskInCheck, index: int, document: AlternateDocument, path: Path, registry: Registry, report: Report
) -> None:
    kind = registry.get(document.type)
    if kind is None:
        message = f"unknown task type {shorten(document.type)}"
        expected = f"one of the {len(registry)} that 'headgate tasks' lists"
        near = registry.nearest(document.type)
        report.fault("UNKNOWN_TASK_TYPE", [*path, "type"], message, task.id, expected, near)
        return
    understood = _options(task, document, kind.config, [*path, "config"], report)
    if understood is not None:
        options, config = understood
        _check_secrets(task, kind, config, [*path, "config"], report)
        name = document.name or document.type
        task.configs.append((index, options))
        task.alternates.append(
            Alternate(name, document.type, config, document.value, document.cost_s, document.selectivity)
        )


def _options(
    task: TaskInCheck, document: AlternateDocument, model: type[TaskConfig], path: Path, report: Report
) -> tuple[TaskConfig, Config] | None:
    """The options as the type's model has them, and as a canonical config without what is default."""
    try:
        options = model.model_validate(document.config)
        return options, Config(options.model_dump(mode="json", exclude_defaults=True))
    except ValidationError as error:
        report.faults += complaints(error, model, report.located, path, task.id)
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, ValueError) else "values nested too deeply"
        report.fault("BAD_VALUE", path, f"config holds {message}", task.id, "plain JSON values")
    except Exception as error:
        message = failed(document.type, error)
        report.fault("TASK_TYPE_FAILED", path, message, task.id, "a word to its author")
    return None


def _check_secrets(task: TaskInCheck, kind: TaskType, config: Config, path: Path, report: Report) -> None:
    """Secrets are for who connects to other systems; a step could write what it knows into its rows."""
    if MENTION not in config.text:
        return
    if kind.role is Role.STEP:
        message = f"a task of type '{kind.name}' refers to a secret"
        report.fault("BAD_VALUE", path, message, task.id, "references to secrets in sources and sinks only")
    elif misspelt_references(config.text):
        message = "config has a reference to a secret that is not complete"
        report.fault("BAD_VALUE", path, message, task.id, "${secret:NAME}, the name of letters, digits and _")


def _check_policy(task: TaskInCheck, registry: Registry, report: Report) -> None:
    """Only a task that treats each row by itself can go on without some of them."""
    for kind in (registry[alternate.type] for alternate in task.alternates):
        if not kind.by_row:
            message = (
                f"on_error is '{task.on_error.value}', and a task of type '{kind.name}' does not treat rows one by one"
            )
            report.fault("BAD_VALUE", [*task.path, "on_error"], message, task.id, "'fail', or nothing")
            return


def _check_names(task: TaskInCheck, alternates: Iterable[AlternateDocument], report: Report) -> None:
    seen: set[str] = set()
    for index, alternate in enumerate(alternates):
        name = alternate.name or alternate.type
        if name in seen:
            message = f"two alternates are called {shorten(name)}"
            path = [*task.path, "alternates", index]
            report.fault("DUPLICATE_ALTERNATE", path, message, task.id, "a name of its own for each")
        seen.add(name)


def _understand_ports(task: TaskInCheck, declared: Ports | None, registry: Registry, report: Report) -> None:
    kinds = [registry[alternate.type] for alternate in task.alternates]
    fixed = next((kind for kind in kinds if not kind.ports_declared), None)
    if fixed is None:
        task.user_defined = True
        task.declared = None if declared == kinds[0].ports else declared
        task.ports = declared or kinds[0].ports
        return
    task.ports = fixed.ports
    expected = f"{_listed_ports(fixed.ports)}, as type '{fixed.name}' has"
    for kind in kinds:
        if not kind.ports_declared and _names(kind.ports) != _names(fixed.ports):
            message = f"an alternate of type '{kind.name}' has the ports {_listed_ports(kind.ports)}"
            report.fault("PORTS_DIFFER", [*task.path, "alternates"], message, task.id, expected)
    if declared is not None and _names(declared) != _names(fixed.ports):
        report.fault(
            "PORTS_DIFFER", [*task.path, "ports"], f"the ports are {_listed_ports(declared)}", task.id, expected
        )


def _declared_ports(task: TaskInCheck, document: PortsDocument | None, report: Report) -> Ports | None:
    if document is None:
        return None
    ports = Ports(tuple(map(_port, document.inputs)), tuple(map(_port, document.outputs)))
    for names in _names(ports):
        for name in (name for name, count in Counter(names).items() if count > 1):
            message = f"port '{name}' is named twice"
            report.fault("DUPLICATE_PORT", [*task.path, "ports"], message, task.id, "each port once")
    return ports


def _port(document: PortDocument) -> Port:
    schema = None if document.columns is None else Schema.parse(document.columns)
    return Port(PortName(document.name), schema, document.gather, 2 if document.gather is Gather.JOIN else 1)


def _names(ports: Ports) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(port.name for port in ports.inputs), tuple(port.name for port in ports.outputs)


def _listed_ports(ports: Ports) -> str:
    inputs, outputs = _names(ports)
    return f"in: {', '.join(inputs) or 'none'}; out: {', '.join(outputs) or 'none'}"
