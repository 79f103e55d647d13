"""Step three of a check: the streams. Do both ends exist, is every input fed, does anything run in circles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headgate.documents.check.report import Report, TaskInCheck
from headgate.documents.check.tasks import Tasks
from headgate.documents.document import InputDocument
from headgate.documents.located import Path
from headgate.errors import shorten
from headgate.model.graph import cycles, loops
from headgate.model.names import PortName, TaskId
from headgate.model.stream import DUPLICATE, ByKey, ByPredicate, Routing, Stream
from headgate.model.task import Gather, Port

__all__ = ["check_loops", "connect", "tell_unread_outputs"]

MAX_FEEDBACK = 100
"""Signing the tasks of a loop takes a round for each of its feedback streams, so their number is bounded."""


def connect(tasks: Tasks, report: Report) -> None:
    """Give every understood task the streams that enter it."""
    for task in tasks.known.values():
        for index, feed in enumerate(task.inputs):
            stream = _stream(task, feed, [*task.path, "inputs", index], tasks, report)
            if stream is not None:
                task.feeds.append((index, stream))
        _number_sides(task)
    for task in tasks.known.values():
        _check_fed(task, report)
        task.inputs = ()


def _stream(task: TaskInCheck, feed: InputDocument, path: Path, tasks: Tasks, report: Report) -> Stream | None:
    name, _, port_name = feed.from_.partition(":")
    source = tasks.known.get(TaskId(name))
    if source is None:
        if name not in tasks.mentioned:
            message = f"reads from {shorten(name)}, which is no task here"
            near = report.nearest(name, tasks.mentioned)
            report.fault("UNKNOWN_TASK", path, message, task.id, "the id of a task", near)
        return None
    source_port = target_port = None
    if source.ports is not None:
        source_port = _output(source, port_name, task, path, report)
    if task.ports is not None:
        target_port = _input(task, feed.to or "", path, report)
    if source_port is None or target_port is None:
        return None
    return Stream(source.id, source_port.name, task.id, target_port.name, _routing(feed), None, feed.feedback)


def _output(source: TaskInCheck, name: str, reader: TaskInCheck, path: Path, report: Report) -> Port | None:
    ports = source.ports.outputs if source.ports else ()
    if not ports:
        message = f"task '{source.id}' hands its rows over and has no output"
        report.fault("NO_SUCH_PORT", path, message, reader.id, "a task that has an output")
        return None
    return _chosen(ports, name, "out", f"task '{source.id}'", "output", "written task:port", reader, path, report)


def _input(task: TaskInCheck, name: str, path: Path, report: Report) -> Port | None:
    ports = task.ports.inputs if task.ports else ()
    if not ports:
        report.fault("NO_SUCH_PORT", path, "this task is a source and reads nothing", task.id, "no inputs")
        return None
    return _chosen(ports, name, "in", "this task", "input", "named by 'to'", task, path, report)


def _chosen(
    ports: tuple[Port, ...],
    name: str,
    usual: str,
    whose: str,
    side: str,
    how: str,
    reader: TaskInCheck,
    path: Path,
    report: Report,
) -> Port | None:
    """The port of that name; without a name the only one, or the one with the usual name."""
    names = [port.name for port in ports]
    wanted = name or (names[0] if len(names) == 1 else usual)
    if wanted in names:
        return ports[names.index(PortName(wanted))]
    if name:
        message, near = f"{whose} has no {side} port {shorten(name)}", report.nearest(name, names)
        report.fault("NO_SUCH_PORT", path, message, reader.id, f"one of {', '.join(names)}", near)
    else:
        message = f"{whose} has {len(names)} {side} ports"
        report.fault("NO_SUCH_PORT", path, message, reader.id, f"one of {', '.join(names)}, {how}")
    return None


def _routing(feed: InputDocument) -> Routing:
    if feed.where is not None:
        return ByPredicate(feed.where)
    return ByKey(feed.key) if feed.key is not None else DUPLICATE


def _number_sides(task: TaskInCheck) -> None:
    """Streams into a joining port are its sides, in the order in which they are listed."""
    for port in task.ports.inputs if task.ports else ():
        if port.gather is Gather.JOIN:
            entering = [position for position, (_, s) in enumerate(task.feeds) if s.target_port == port.name]
            for side, position in enumerate(entering):
                index, stream = task.feeds[position]
                task.feeds[position] = (index, replace(stream, side=side))


def _check_fed(task: TaskInCheck, report: Report) -> None:
    if task.ports is None or len(task.feeds) < len(task.inputs):
        return
    entering = Counter(stream.target_port for _, stream in task.feeds)
    for port in task.ports.inputs:
        count = entering[port.name]
        if count < port.streams_min and task.user_defined and not count:
            message = f"no stream enters input port '{port.name}': it must be fed from outside"
            report.notice("FED_FROM_OUTSIDE", task.path, message, task.id)
        elif count < port.streams_min or (port.streams_max is not None and count > port.streams_max):
            exact = port.streams_max == port.streams_min
            expected = f"{'' if exact else 'at least '}{port.streams_min}, listed under inputs"
            message = "1 stream enters" if count == 1 else f"{count or 'no'} streams enter"
            message += f" input port '{port.name}'"
            report.fault("INPUT_NOT_FED", [*task.path, "inputs"], message, task.id, expected)


def tell_unread_outputs(tasks: Tasks, report: Report) -> None:
    """Give notice of outputs that no task reads: valid, and often a mistake."""
    read = {(stream.source, stream.source_port) for task in tasks.known.values() for _, stream in task.feeds}
    for task in tasks.known.values():
        for port in task.ports.outputs if task.ports else ():
            if (task.id, port.name) not in read:
                report.notice("UNREAD_OUTPUT", task.path, f"nobody reads output port '{port.name}'", task.id)


def check_loops(tasks: Tasks, report: Report) -> bool:
    """Report cycles that no feedback stream closes, and idle feedback; returns whether there was a cycle."""
    forward = {task.id: [s.source for _, s in task.feeds if not s.feedback] for task in tasks.known.values()}
    circles = cycles(forward)
    for cycle in circles:
        message = f"the streams run in a circle: {' -> '.join(_abridged(cycle))}"
        expected = "no circle, or the stream that closes it marked with feedback: true"
        report.fault("CYCLE", tasks.known[cycle[0]].path, message, cycle[0], expected)
    if not circles:
        _check_feedback(tasks, report)
    return bool(circles)


def _check_feedback(tasks: Tasks, report: Report) -> None:
    marked = [(task, index, s) for task in tasks.known.values() for index, s in task.feeds if s.feedback]
    if not marked:
        return
    if len(marked) > MAX_FEEDBACK:
        task, index, _ = marked[MAX_FEEDBACK]
        message = f"{len(marked)} streams are marked as feedback"
        path = [*task.path, "inputs", index]
        report.fault("TOO_MUCH_FEEDBACK", path, message, task.id, f"at most {MAX_FEEDBACK} in a dataflow")
    parents = {task.id: [stream.source for _, stream in task.feeds] for task in tasks.known.values()}
    loop_of = {member: number for number, loop in enumerate(loops(parents)) for member in loop}
    for task, index, stream in marked:
        if loop_of.get(stream.source, -1) != loop_of.get(stream.target, -2):
            message = f"the stream from '{stream.source}' is marked as feedback and closes no loop"
            report.fault("IDLE_FEEDBACK", [*task.path, "inputs", index], message, task.id, "feedback: true left out")


def _abridged(cycle: list[TaskId], most: int = 12) -> list[str]:
    if len(cycle) <= most:
        return list(cycle)
    return [*cycle[: most - 2], f"... {len(cycle) - most} more ...", *cycle[-2:]]
