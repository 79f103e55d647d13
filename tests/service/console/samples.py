"""Dataflows that share, and observations of them."""

from __future__ import annotations

from headgate.documents import parse
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
    TaskProfile,
)
from headgate.model.names import Signature
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry

REGISTRY = default_registry()

TEXT = """\
name: {name}
owner: {owner}
tasks:
  - {{id: read, type: rate}}
  - {{id: part, type: filter, config: {{where: "value > 0"}}, inputs: [read]}}
  - {{id: own, type: filter, config: {{where: "value % {number} = 0"}}, inputs: [part]}}
  - {{id: out, type: write_memory, config: {{name: {name}}}, inputs: [own]}}
"""


def shared(count: int = 3, teams: int = 2) -> SharedSet:
    """Dataflows of which each has two tasks of its own and shares two with all others."""
    together = SharedSet(REGISTRY, semantic=False)
    for number in range(count):
        text = TEXT.format(name=f"flow{number}", owner=f"team{number % teams}", number=number + 2)
        together, _ = together.submit(parse(text, "yaml", REGISTRY).dataflow)
    return together


def signature(running: RunningSet, dataflow: str, task: str) -> Signature:
    return {str(own): one for own, one in running.find(dataflow).signatures.items()}[task]


def observation(running: RunningSet, *, waiting: int = 0, taken: int = 500, arrived: int = 500) -> Observation:
    """Five seconds in which one fragment ran everything."""
    tasks = list(running.tasks)
    sinks = [task for task in tasks if running.tasks[task].running.task.type == "write_memory"]
    steps = [task for task in tasks if task not in sinks]

    def names(task: Signature) -> tuple[str, ...]:
        return tuple(sorted(map(str, running.users(task))))

    def name(task: Signature) -> str:
        first = names(task)[0]
        return f"{first}.{running.users(task)[first]}"  # type: ignore[index]

    profile = TaskProfile(100, 0.001, 0.001, 0.0, 1, None)
    return Observation(
        1_000.0,
        5.0,
        tuple(
            TaskObservation(task, name(task), "filter", "filter", names(task), None, taken, taken, 0, profile)
            for task in steps
        ),
        tuple(
            SinkObservation(task, name(task), names(task), taken // 2, Sojourn(1.0, 1.0, 2.0, 3.0)) for task in sinks
        ),
        (FragmentObservation("f", "source", tuple(tasks), 5, taken, waiting, 4.0, 0.5, 0.5, 2.5, 0.5, None, arrived),),
        sources=(SourceObservation(steps[0], "read", names(steps[0]), taken, arrived, waiting),),
    )
