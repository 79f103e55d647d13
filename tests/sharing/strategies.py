"""Random small dataflows, drawn from so few kinds of tasks that many of them are equivalent."""

from __future__ import annotations

from hypothesis import strategies as st

from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, PortName, TaskId
from headgate.model.stream import ByKey, ByPredicate, Duplicate, Routing, Stream
from headgate.model.task import Alternate, Task

ROUTINGS: list[Routing] = [Duplicate(), Duplicate(), ByPredicate("v > 1"), ByKey(("k",))]


def opaque(task: str, *labels: str) -> Task:
    """A task with an alternate for each label."""
    ways = [Alternate(f"way{n}", "opaque", Config({"label": label})) for n, label in enumerate(labels)]
    return Task(TaskId(task), tuple(ways))


@st.composite
def dataflows(draw: st.DrawFn, *, loops: bool = False, most: int = 8) -> Dataflow:
    """A random graph; ids are shuffled and tasks listed in any order, so neither tells anything."""
    size = draw(st.integers(1, most))
    names = draw(st.permutations([TaskId(f"t{n}") for n in range(size)]))
    tasks, streams = [], []
    for n, name in enumerate(names):
        labels = draw(st.sampled_from([("a",), ("a",), ("b",), ("a", "b")]))
        tasks.append(opaque(name, *labels))
        joins = draw(st.booleans()) and draw(st.booleans())
        parents = draw(st.lists(st.sampled_from(names[:n]), max_size=3)) if n else []
        for side, parent in enumerate(parents):
            port = PortName(draw(st.sampled_from(["out", "out", "rest"])))
            routing = draw(st.sampled_from(ROUTINGS))
            target = PortName("both" if joins else draw(st.sampled_from(["in", "in", "other"])))
            streams.append(Stream(parent, port, name, target, routing, side if joins else None))
    if loops:
        for _ in range(draw(st.integers(0, 2))):
            back = draw(st.integers(0, size - 1))
            source = draw(st.integers(back, size - 1))
            streams.append(Stream(names[source], PortName("out"), names[back], PortName("in"), feedback=True))
    listed = draw(st.permutations(tasks))
    return Dataflow(DataflowName("random"), tuple(listed), tuple(draw(st.permutations(streams))))
