"""Which tasks of the running graph somebody wants to see: a few terms, the same in the page, the API and its links.

==================  =================================================
term                stands for
==================  =================================================
``alarms``          the tasks of a dataflow
``alarms.smooth``   a task
``team:records``    the tasks of a team's dataflows
``type:window``     the tasks of a type
==================  =================================================

A ``+`` before a term adds all that feeds these tasks, one after it all that they feed. Terms are separated by commas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from headgate.errors import unknown
from headgate.model.names import Signature
from headgate.sharing.running import RunningSet

__all__ = ["selected_tasks"]


def selected_tasks(running: RunningSet, text: str) -> set[Signature]:
    """The tasks that some terms stand for; all of them if there is no term.

    Raises :class:`~headgate.errors.InputError` for a name that stands for nothing, with the nearest one.
    """
    terms = [term.strip() for term in text.split(",") if term.strip()]
    if not terms:
        return set(running.tasks)
    chosen: set[Signature] = set()
    for term in terms:
        tasks = set(_named(running, term.strip("+")))
        before = _reached(tasks, _feeding(running)) if term.startswith("+") else set()
        after = _reached(tasks, _fed(running)) if term.endswith("+") else set()
        chosen |= tasks | before | after
    return chosen


def _named(running: RunningSet, name: str) -> Iterable[Signature]:
    kind, colon, value = name.partition(":")
    if colon and kind == "team":
        flows = [one for one in running.submitted.values() if one.dataflow.owner == value]
        if not flows:
            owners = sorted({str(one.dataflow.owner) for one in running.submitted.values()})
            raise unknown("UNKNOWN_OWNER", f"no dataflow of team '{value}' runs", value, owners)
        return [signature for one in flows for signature in one.signatures.values()]
    if colon and kind == "type":
        return [signature for signature in running.tasks if value in _types(running, signature)]
    if name in running:
        return running.find(name).signatures.values()
    for dataflow in _prefixes(name):
        if dataflow in running:
            signatures = running.find(dataflow).signatures
            task = name[len(dataflow) + 1 :]
            if task not in signatures:
                raise unknown("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'", task, signatures)
            return [signature for own, signature in signatures.items() if own == task]
    raise unknown("UNKNOWN_DATAFLOW", f"no dataflow '{name}' is submitted", name, running.submitted)


def _prefixes(name: str) -> Iterator[str]:
    """What may be the dataflow in a name that has dots."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _types(running: RunningSet, signature: Signature) -> set[str]:
    return {alternate.type for alternate in running.tasks[signature].running.task.alternates}


def _feeding(running: RunningSet) -> Mapping[Signature, list[Signature]]:
    return {one: [feed.source for feed in used.running.feeds] for one, used in running.tasks.items()}


def _fed(running: RunningSet) -> Mapping[Signature, list[Signature]]:
    fed: dict[Signature, list[Signature]] = defaultdict(list)
    for signature, used in running.tasks.items():
        for feed in used.running.feeds:
            fed[feed.source].append(signature)
    return fed


def _reached(tasks: set[Signature], steps: Mapping[Signature, list[Signature]]) -> set[Signature]:
    """What is reached from some tasks."""
    seen, waiting = set(tasks), list(tasks)
    while waiting:
        for following in steps.get(waiting.pop(), ()):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen
