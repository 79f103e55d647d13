"""What flows through the running graph now: rates, delay, CPU time and waiting rows of each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.names import Signature
from headgate.service.console.bottleneck import Bottleneck, bottleneck, busy_share
from headgate.service.console.graph import GraphLevel, grouped
from headgate.service.console.selection import selected_tasks
from headgate.sharing.running import RunningSet

__all__ = ["GraphRates", "NodeRates", "graph_rates", "node_rates"]


@dataclass(frozen=True, slots=True)
class NodeRates:
    """A node of the graph in the last interval; what is not known is ``None``."""

    id: str
    in_per_s: float | None = None
    out_per_s: float | None = None
    cores: float | None = None
    share: float | None = None
    """Of the CPU time of all tasks."""

    own_delay_s: float | None = None
    """What the fragment that runs it adds: how long its rows wait for it, and a batch."""

    delay_s: float | None = None
    """From the source to behind this node: its own delay and that of all before it."""

    waiting: float | None = None
    errors: int = 0
    busy: float | None = None
    """The share of the time in which its fragment was in a batch."""


@dataclass(frozen=True, slots=True)
class GraphRates:
    """All nodes of a graph in the last interval."""

    at: float | None
    snapshot: int
    bottleneck: Bottleneck
    slow: str | None
    """The node of the bottleneck."""

    nodes: tuple[NodeRates, ...]


def graph_rates(
    running: RunningSet, recent: Sequence[Observation], *, snapshot: int, select: str = "", level: GraphLevel
) -> GraphRates:
    """The rates of the nodes that :func:`running_graph` draws for the same arguments."""
    limit = bottleneck(recent)
    if not recent:
        return GraphRates(None, snapshot, limit, None, ())
    seen = recent[-1]
    chosen = selected_tasks(running, select)
    tasks = {signature: used for signature, used in running.tasks.items() if signature in chosen}
    owners = {str(name): str(one.dataflow.owner) for name, one in running.submitted.items()}
    _, groups = grouped(tasks, owners, level)
    rates = node_rates(running, seen)
    together: dict[str, list[NodeRates]] = {}
    for signature, group in groups.items():
        together.setdefault(group, []).append(rates.get(signature, NodeRates(signature)))
    slow = groups.get(Signature(limit.task)) if limit.task is not None and limit.cause != "none" else None
    return GraphRates(seen.ended, snapshot, limit, slow, tuple(_joined(*pair) for pair in together.items()))


def node_rates(running: RunningSet, seen: Observation) -> dict[str, NodeRates]:
    """The rates of each task."""
    fragments = {task: fragment for fragment in seen.fragments for task in fragment.tasks}
    tasks = {task.task: task for task in seen.tasks}
    cores = {one: task.profile.cpu_s_per_row * seen.rate_in_per_s(task) for one, task in tasks.items() if task.profile}
    total = sum(cores.values())
    delays = _Delays(running, fragments, seen)
    rates: dict[str, NodeRates] = {}
    for signature in running.tasks:
        task, fragment = tasks.get(signature), fragments.get(signature)
        rates[signature] = NodeRates(
            signature,
            _rate(None if task is None else task.rows_in, seen),
            _rate(None if task is None else task.rows_out, seen),
            cores.get(signature),
            cores[signature] / total if signature in cores and total > 0 else None,
            delays.own(signature),
            delays.whole(signature),
            _waiting(fragment, signature),
            0 if task is None else task.errors,
            None if fragment is None else busy_share(fragment, seen),
        )
    for sink in seen.sinks:
        if sink.task in rates:
            known = rates[sink.task]
            rates[sink.task] = NodeRates(
                known.id,
                sink.rows / seen.seconds,
                None,
                None,
                None,
                known.own_delay_s,
                None if sink.sojourn is None else sink.sojourn.p50_s,
                known.waiting,
                0,
                known.busy,
            )
    return rates


def _rate(rows: int | None, seen: Observation) -> float | None:
    return None if rows is None else rows / seen.seconds


def _waiting(fragment: FragmentObservation | None, signature: str) -> float | None:
    """Rows wait for the fragment, and are shown where it begins."""
    if fragment is None or not fragment.tasks or fragment.tasks[0] != signature or fragment.rows_behind is None:
        return None
    return float(fragment.rows_behind)


class _Delays:
    """Own delays of fragments, added up along the streams between them."""

    def __init__(
        self, running: RunningSet, fragments: Mapping[Signature, FragmentObservation], seen: Observation
    ) -> None:
        self._running, self._fragments, self._seen = running, fragments, seen
        self._whole: dict[Signature, float | None] = {}

    def own(self, signature: Signature) -> float | None:
        fragment = self._fragments.get(signature)
        if fragment is None or not fragment.batches:
            return None
        rate = fragment.rows_in / self._seen.seconds
        waits = (fragment.rows_behind or 0) / rate if rate > 0 else 0.0
        return fragment.batch_s / fragment.batches + waits

    def whole(self, signature: Signature) -> float | None:
        """The delay behind a task; its inputs are looked at first, without recursion: dataflows may be long."""
        waiting = [signature]
        while waiting:
            task = waiting[-1]
            used = self._running.tasks.get(task)
            sources = [] if used is None else [feed.source for feed in used.running.feeds if not feed.feedback]
            unknown = [source for source in sources if source not in self._whole and source not in waiting]
            if unknown and task not in self._whole:
                waiting += unknown
                continue
            waiting.pop()
            if task not in self._whole:
                self._whole[task] = self._behind(task, sources)
        return self._whole[signature]

    def _behind(self, task: Signature, sources: list[Signature]) -> float | None:
        mine, own = self._fragments.get(task), self.own(task)
        before = [known for source in sources if (known := self._whole.get(source)) is not None]
        others = [self._fragments.get(source) for source in sources]
        if mine is not None and any(other is mine for other in others):
            return max(before, default=own)
        if own is None:
            return max(before, default=None)
        return own + max(before, default=0.0)


def _joined(group: str, members: list[NodeRates]) -> NodeRates:
    """Several tasks as one node."""
    if len(members) == 1:
        one = members[0]
        return one if one.id == group else _joined(group, [one, NodeRates(one.id)])
    return NodeRates(
        group,
        _most(member.in_per_s for member in members),
        _most(member.out_per_s for member in members),
        _sum(member.cores for member in members),
        _sum(member.share for member in members),
        _most(member.own_delay_s for member in members),
        _most(member.delay_s for member in members),
        _sum(member.waiting for member in members),
        sum(member.errors for member in members),
        _most(member.busy for member in members),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
