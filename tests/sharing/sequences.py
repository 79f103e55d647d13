"""Random sequences of submissions and withdrawals, over dataflows with forks, joins and several sources."""

from __future__ import annotations

import random
from collections.abc import Iterator

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner, PortName, TaskId
from headgate.model.share import Share
from headgate.model.stream import ByKey, ByPredicate, Duplicate, Routing, Stream
from headgate.model.task import Task
from tests.sharing.strategies import opaque

ROUTINGS: tuple[Routing, ...] = (Duplicate(), Duplicate(), Duplicate(), ByPredicate("v > 1"), ByKey(("k",)))


def random_dataflow(name: str, draw: random.Random, *, isolated: bool = False) -> Dataflow:
    """A dataflow of up to four sources and ten steps; labels are so few that many overlap with those of others."""
    sources = draw.choice((1, 1, 1, 2, 2, 3, 4))
    tasks = [opaque(f"t{n}", f"source{draw.randrange(8)}") for n in range(sources)]
    streams: list[Stream] = []
    for n in range(sources, sources + draw.randrange(1, 10)):
        task = opaque(f"t{n}", draw.choice("abc"))
        parents = draw.choices(range(n), k=draw.choice((1, 1, 1, 2, 2, 3)))
        for parent in dict.fromkeys(parents):
            routing = draw.choice(ROUTINGS)
            streams.append(Stream(TaskId(f"t{parent}"), PortName("out"), TaskId(f"t{n}"), PortName("in"), routing))
        tasks.append(task)
    share = draw.choice(list(Share)) if isolated else Share.ANYONE
    owner = Owner(draw.choice(("ana", "ben")))
    tasks = [_with_share(task, draw) if isolated else task for task in tasks]
    draw.shuffle(tasks)
    return Dataflow(DataflowName(name), tuple(tasks), tuple(streams), owner, share=share)


def _with_share(task: Task, draw: random.Random) -> Task:
    return Task(task.id, task.alternates, share=draw.choice((None, None, None, *Share)))


def operations(draw: random.Random, length: int, *, isolated: bool = False) -> Iterator[tuple[str, Dataflow]]:
    """Submissions and withdrawals, about as many of each once some dataflows are there."""
    submitted: list[Dataflow] = []
    for number in range(length):
        if submitted and draw.random() < (0.5 if len(submitted) > 12 else 0.25):
            yield "withdraw", submitted.pop(draw.randrange(len(submitted)))
        else:
            submitted.append(random_dataflow(f"flow{number}", draw, isolated=isolated))
            yield "submit", submitted[-1]
