"""The console's side of an engine: what its pages ask for, each answer from one look and for one principal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from headgate.access.authority import AccessObject, Verb, check_access, may
from headgate.access.principal import AccessRole, Principal
from headgate.model.names import TaskId
from headgate.service.console.bill_lines import BillLines, bill_lines
from headgate.service.console.choices import SnapshotChoices, choices_of, shared_at
from headgate.service.console.graph import GraphLevel, RunningGraph, running_graph
from headgate.service.console.hourly import machine_prices
from headgate.service.console.letters import LetterCause, letter_causes
from headgate.service.console.machines import MachinesView, machines_view
from headgate.service.console.overview import Overview, overview
from headgate.service.console.preview import PlanPreview, preview, read_text
from headgate.service.console.rates import GraphRates, graph_rates
from headgate.service.console.recent import FLOW, FLOWS_KEPT, Recent
from headgate.service.console.snapshots import SnapshotStep, snapshot_steps
from headgate.service.console.task_panel import TaskPanel, task_panel
from headgate.service.lineage.answer import LineageAnswer, lineage_answer, named_dataflow
from headgate.service.principal_engine import PrincipalEngine
from headgate.sharing.running import RunningSet
from headgate.store.journal import Journal
from headgate.tasks.registry import Registry

__all__ = ["DataflowSeries", "EngineConsole"]

SAME_S = 1.0
"""For how long an overview may be shown again."""

_OVERVIEW = TypeAdapter(Overview)

KEPT = 64
"""Graphs, and snapshots that no longer run, of which so many are remembered."""


@dataclass(frozen=True, slots=True)
class DataflowSeries:
    """The last hour of a dataflow: columns as long as ``times``."""

    dataflow: str
    times: tuple[float, ...]
    series: dict[str, tuple[float | None, ...]]


class EngineConsole:
    """Remembers the last hour, and the graphs that were laid out."""

    def __init__(self, journal: Journal, state: Path, registry: Registry) -> None:
        self._journal, self._state, self._registry = journal, state, registry
        self.recent = Recent(state)
        self._past = lru_cache(maxsize=KEPT)(self._read_running)
        self._overviews: dict[tuple[object, ...], tuple[float, bytes]] = {}
        self._graphs: dict[tuple[int, str, GraphLevel], RunningGraph] = {}

    def overview_json(self, engine: PrincipalEngine) -> bytes:
        """The overview as JSON; many pages that ask in the same second get the same one."""
        who, number = engine.principal, engine.about()["snapshot"]
        key, now = (who.name, who.role, who.teams, number), time.monotonic()
        made, text = self._overviews.get(key, (0.0, b""))
        if not text or now - made > SAME_S:
            text = _OVERVIEW.dump_json(self.overview(engine))
            kept = {one: pair for one, pair in self._overviews.items() if now - pair[0] <= SAME_S}
            self._overviews = {**kept, key: (now, text)}
        return text

    def overview(self, engine: PrincipalEngine) -> Overview:
        """All dataflows, and what they do together."""
        about, flows = engine.about(), engine.status()[0]
        return overview(
            about,
            engine.shared.running,
            flows,
            self._choices(about["snapshot"]),
            self.recent,
            machine_prices(self._journal),
            lambda owner: may(engine.principal, Verb.INSPECT, AccessObject(owner)),
        )

    def graph(self, engine: PrincipalEngine, snapshot: int | None, select: str, level: GraphLevel) -> RunningGraph:
        """The graph of what runs, or of what ran at an earlier snapshot; a snapshot's never changes."""
        number = engine.about()["snapshot"] if snapshot is None else snapshot
        key = (number, select, level)
        if key not in self._graphs:
            running = self._running(engine, number)
            graph = running_graph(
                running, self._choices(number), self._registry, snapshot=number, select=select, level=level
            )
            self._graphs = {**dict(list(self._graphs.items())[-KEPT + 1 :]), key: graph}
        return self._graphs[key]

    def rates(self, engine: PrincipalEngine, select: str, level: GraphLevel) -> GraphRates:
        """What flows through the nodes of the newest graph."""
        running, number = engine.shared.running, engine.about()["snapshot"]
        return graph_rates(running, self.recent.newest(), snapshot=number, select=select, level=level)

    def task(self, engine: PrincipalEngine, dataflow: str, task: str) -> TaskPanel:
        """One task in full."""
        return task_panel(
            engine.shared.running,
            dataflow,
            task,
            self._choices(engine.about()["snapshot"]),
            self._registry,
            self.recent,
            machine_prices(self._journal),
            lambda owner: may(engine.principal, Verb.INSPECT, AccessObject(owner)),
            engine.alternates(dataflow).get(TaskId(task)),
        )

    def series(self, engine: PrincipalEngine, dataflow: str) -> DataflowSeries:
        """The last hour of a dataflow."""
        engine.shared.running.find(dataflow)
        times = self.recent.times(FLOWS_KEPT)
        series = {name: tuple(self.recent.flow(dataflow, name)) for name in FLOW}
        count = min([len(times), *(len(values) for values in series.values() if values)])
        return DataflowSeries(
            dataflow, tuple(times[-count:]), {name: values[-count:] for name, values in series.items()}
        )

    def machines(self, who: Principal) -> MachinesView:
        """Machines and fragments."""
        check_access(who, Verb.READ)
        return machines_view(self.recent, machine_prices(self._journal))

    def snapshots(self, who: Principal) -> tuple[SnapshotStep, ...]:
        """The plan snapshots that are kept, oldest first."""
        check_access(who, Verb.READ)
        return snapshot_steps(self._journal, may(who, Verb.AUDIT))

    def preview(self, engine: PrincipalEngine, text: str, form: str, replace: bool) -> PlanPreview:
        """What submitting a dataflow would change."""
        given = read_text(text, form, self._registry)
        number = engine.about()["snapshot"]
        who = engine.principal
        check_access(who, Verb.SUBMIT, AccessObject(str(given[1].owner), given[1].name))
        return preview(
            engine.shared,
            number,
            given,
            replace=replace,
            paused=self._choices(number).paused,
            prices=machine_prices(self._journal),
            may_see_costs=lambda owner: may(who, Verb.INSPECT, AccessObject(owner)),
        )

    def bill_lines(self, engine: PrincipalEngine, dataflow: str) -> BillLines:
        """What a dataflow pays for each of its tasks, with whom."""
        lines = bill_lines(self._state, self._journal, dataflow, lambda number: self._running(engine, number))
        check_access(engine.principal, Verb.INSPECT, AccessObject(lines.owner, dataflow))
        return lines

    def lineage(self, engine: PrincipalEngine, of: str) -> LineageAnswer:
        """Where columns come from, and who would be hurt without one."""
        who, running = engine.principal, engine.shared.running
        owner = str(running.find(named_dataflow(running, of)).dataflow.owner)
        check_access(who, Verb.INSPECT, AccessObject(owner))
        return lineage_answer(running, of, self._registry, lambda other: may(who, Verb.INSPECT, AccessObject(other)))

    def letters(self, engine: PrincipalEngine) -> tuple[LetterCause, ...]:
        """Dead letters by cause, of the dataflows whose rows somebody may see."""
        who, submitted = engine.principal, engine.shared.running.submitted

        def may_see(dataflows: Iterable[str]) -> bool:
            owners = {str(flow.dataflow.owner) for name, flow in submitted.items() if name in dataflows}
            operator = who.is_at_least(AccessRole.OPERATOR)
            return operator or any(may(who, Verb.INSPECT, AccessObject(owner)) for owner in owners)

        return letter_causes(self._state, may_see, engine.seen_letter)

    def _choices(self, number: int) -> SnapshotChoices:
        return choices_of(self._journal, number)

    def _running(self, engine: PrincipalEngine, number: int) -> RunningSet:
        return engine.shared.running if number == engine.about()["snapshot"] else self._past(number)

    def _read_running(self, number: int) -> RunningSet:
        return shared_at(self._journal, number, self._registry).running
