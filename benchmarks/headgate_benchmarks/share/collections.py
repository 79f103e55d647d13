"""Collections of dataflows like those that SHARE was evaluated on, and real ones where they are available.

The paper's collections are not published as it used them. The generators here make collections of the same numbers:
dataflows, tasks in all, sizes, sources, distinct kinds of tasks, and how many tasks are left when all are merged. Of
several drafts, the one that comes nearest to the paper's numbers is taken; everything else follows from the seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner, PortName, TaskId
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Task
from headgate.sharing.merge import merge

__all__ = ["Collection", "opmw_like", "real_collections", "riotbench_like"]

DRAFTS = 20
OWNERS = ("ana", "ben", "eva", "jon", "mia")


@dataclass(frozen=True, slots=True)
class Collection:
    """Dataflows that are submitted and withdrawn in an experiment."""

    name: str
    dataflows: tuple[Dataflow, ...]
    initial: int
    """How many are there when a random walk begins."""

    @property
    def tasks(self) -> int:
        return sum(len(dataflow.tasks) for dataflow in self.dataflows)

    def facts(self) -> dict[str, int]:
        """The columns of the paper's Table 2, and its size when merged."""
        kinds = {task.config.text for dataflow in self.dataflows for task in dataflow.tasks}
        sources = {task.config.text for dataflow in self.dataflows for task in _sources(dataflow)}
        return {
            "dataflows": len(self.dataflows),
            "tasks": self.tasks,
            "largest": max(len(dataflow.tasks) for dataflow in self.dataflows),
            "kinds": len(kinds),
            "sources": len(sources),
            "merged": len(merge(self.dataflows).graph.tasks),
        }


def riotbench_like(seed: int) -> Collection:
    """21 dataflows of 4 to 8 tasks, 138 in all, of 16 kinds over 3 sources; 75 tasks when merged (SHARE, Table 2).

    Each reads one source and goes on along a path that dataflows before it have taken, until it turns off; now and then
    a step has two successors or joins two branches.
    """
    return _nearest("riotbench-like", 15, {"kinds": 16, "sources": 3, "merged": 75}, seed, _draft_riotbench)


def opmw_like(seed: int) -> Collection:
    """65 dataflows of up to 34 tasks, 828 in all, of 291 kinds with 82 sources; 467 tasks when merged (SHARE, Table 2).

    They come in families, as the workflows of OPMW do: members of one begin with the same tasks and end with their own.
    """
    return _nearest("opmw-like", 40, {"kinds": 291, "sources": 82, "merged": 467}, seed, _draft_opmw)


def _nearest(
    name: str, initial: int, wanted: Mapping[str, int], seed: int, draft: Callable[[random.Random], list[Dataflow]]
) -> Collection:
    def distance(collection: Collection) -> int:
        facts = collection.facts()
        return sum(abs(facts[key] - number) for key, number in wanted.items())

    drafts = (Collection(name, tuple(draft(random.Random(f"{seed} {n}"))), initial) for n in range(DRAFTS))
    return min(drafts, key=distance)


def _draft_riotbench(draw: random.Random) -> list[Dataflow]:
    kinds = _Kinds(draw, "step", 13)
    taken: dict[tuple[str, ...], list[str]] = {}
    flows = []
    for number, size in enumerate(_sizes(draw, 21, 138, 4, 8)):
        path = [f"source{number % 3}"]
        parents: list[list[int]] = [[]]
        for place in range(1, size):
            before = taken.setdefault(tuple(path), [])
            follows = bool(before) and draw.random() < 0.78
            before.append(draw.choice(before) if follows else kinds.next())
            path.append(before[-1])
            parents.append(_feeds(draw, place, 0.05, False))
        flows.append(_dataflow(f"riot{number:02}", path, parents, number))
    return flows


def _draft_opmw(draw: random.Random) -> list[Dataflow]:
    families = 18
    kinds, sources = _Kinds(draw, "kind", 291 - 82), _Kinds(draw, "data", 82)
    sizes = _sizes(draw, 65, 828, 2, 34)
    common = [max(1, round(size * draw.uniform(0.45, 1.0))) for size in sizes]
    templates = [_template(draw, max(common[family::families]), kinds, sources) for family in range(families)]
    drawn = []
    for number, size in enumerate(sizes):
        labels, parents = templates[number % families]
        path, feeds = list(labels[: common[number]]), [list(entering) for entering in parents[: common[number]]]
        for place in range(common[number], size):
            feeds.append(_feeds(draw, place, 0.2, sources.has(path[-1])))
            path.append(kinds.next())
        drawn.append((path, feeds))
    _place_sources(draw, drawn, common, sources)
    return [_dataflow(f"opmw{n:02}", path, feeds, n) for n, (path, feeds) in enumerate(drawn)]


Drawn = tuple[list[str], list[list[int]]]


def _template(draw: random.Random, length: int, kinds: _Kinds, sources: _Kinds) -> Drawn:
    """How a family begins: some sources, each joined in soon after it comes."""
    labels, parents = [sources.next()], list[list[int]]([[]])
    for place in range(1, length):
        starts = sources.unused and place in (2, 5, 9)
        parents.append([] if starts else _feeds(draw, place, 0.3, sources.has(labels[-1])))
        labels.append(sources.next() if starts else kinds.next())
    return labels, parents


def _place_sources(draw: random.Random, drawn: Sequence[Drawn], common: Sequence[int], sources: _Kinds) -> None:
    """Turn steps of single dataflows into the sources that no family has taken."""
    for number in draw.sample(range(len(drawn)), len(drawn)):
        path, feeds = drawn[number]
        if sources.unused and len(path) - common[number] > 1:
            path[common[number]], feeds[common[number]] = sources.next(), []
            feeds[common[number] + 1] = [common[number] - 1, common[number]]


class _Kinds:
    """Labels of tasks: each is drawn once before any is drawn again."""

    def __init__(self, draw: random.Random, stem: str, count: int) -> None:
        self._draw = draw
        self._all = [f"{stem}{n}" for n in range(count)]
        self.unused = draw.sample(self._all, count)

    def has(self, label: str) -> bool:
        return label in self._all

    def next(self) -> str:
        return self.unused.pop() if self.unused else self._draw.choice(self._all)


def _feeds(draw: random.Random, place: int, joining: float, after_source: bool) -> list[int]:
    """What a task reads: mostly the one before it, sometimes an earlier one too or instead; a source is joined in."""
    if after_source and place > 1:
        return [place - 2, place - 1]
    feeds = {max(0, place - draw.choice((1, 1, 1, 1, 2)))}
    if place > 1 and draw.random() < joining:
        feeds.add(draw.randrange(place))
    return sorted(feeds)


def _sizes(draw: random.Random, count: int, total: int, low: int, high: int) -> list[int]:
    """So many sizes within bounds that add up to a total."""
    sizes = [draw.randint(low, min(high, round(2 * total / count) - low)) for _ in range(count)]
    sizes[draw.randrange(count)] = high
    while sum(sizes) != total:
        step = 1 if sum(sizes) < total else -1
        place = draw.randrange(count)
        if low <= sizes[place] + step <= high and sizes[place] != high:
            sizes[place] += step
    return sizes


def _dataflow(name: str, labels: Sequence[str], parents: Sequence[Iterable[int]], number: int) -> Dataflow:
    tasks = tuple(_task(f"t{n}", {"label": label}) for n, label in enumerate(labels))
    streams = tuple(_stream(f"t{p}", f"t{n}") for n, feeds in enumerate(parents) for p in feeds)
    return Dataflow(DataflowName(name), tasks, streams, Owner(OWNERS[number % len(OWNERS)]))


def _task(name: str, config: Mapping[str, Any]) -> Task:
    return Task(TaskId(name), (Alternate("opaque", "opaque", Config(config)),))


def _stream(source: str, target: str) -> Stream:
    return Stream(TaskId(source), PortName("out"), TaskId(target), PortName("in"))


def _sources(dataflow: Dataflow) -> list[Task]:
    fed = {stream.target for stream in dataflow.streams}
    return [task for task in dataflow.tasks if task.id not in fed]


def real_collections(folder: Path) -> list[Collection]:
    """The DAGs of Wings (OPMW) and RIoTBench in a folder of shared data; those that are there."""
    collections = []
    wings, riot = folder / "workflow_dags" / "opmw_wings.jsonl", folder / "riotbench" / "dags.json"
    if wings.is_file():
        lines = wings.read_text(encoding="utf-8").splitlines()
        flows = [_wings(json.loads(line), number) for number, line in enumerate(lines)]
        collections.append(Collection("wings", tuple(flows), 2 * len(flows) // 3))
    if riot.is_file():
        listed = json.loads(riot.read_text(encoding="utf-8"))
        flows = [_riotbench(dag, data, n) for n, (dag, data) in enumerate(_data_sets(listed))]
        collections.append(Collection("riotbench", tuple(flows), 2 * len(flows) // 3))
    return collections


def _wings(dag: Mapping[str, Any], number: int) -> Dataflow:
    fed = {target for _, target in dag["edges"]}
    tasks = tuple(
        _task(f"t{task['id']}", {"label": task["type"]} | ({} if task["id"] in fed else {"reads": task["inputs"]}))
        for task in dag["tasks"]
    )
    streams = tuple(_stream(f"t{source}", f"t{target}") for source, target in dag["edges"])
    name = DataflowName(f"wings{number:02}")
    return Dataflow(name, tasks, streams, Owner(dag["source"]), description=dag["name"])


def _data_sets(dags: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Each topology with each data set that it can be run on."""
    for dag in dags:
        if not {end for edge in dag["edges"] for end in edge[:2]} <= {task["id"] for task in dag["tasks"]}:
            continue  # published with some of its tasks commented out
        named = [data for data in ("SYS", "TAXI", "FIT") if data in dag["dataset"].split()]
        for data in named[:1] if not dag["dataset"].startswith("generic") else ("SYS", "TAXI", "FIT"):
            yield dag, data


def _riotbench(dag: Mapping[str, Any], data: str, number: int) -> Dataflow:
    fed = {edge[1] for edge in dag["edges"]}
    tasks = tuple(
        _task(task["id"], {"label": task["type"]} | ({} if task["id"] in fed else {"data": data}))
        for task in dag["tasks"]
    )
    streams = tuple(_stream(source, target) for source, target, _ in dag["edges"])
    name = DataflowName(f"{dag['topology']}-{data}")
    return Dataflow(name, tasks, streams, Owner(OWNERS[number % len(OWNERS)]))
