"""The routes of the console: what its pages show, and previews of changes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from headgate.access.authority import Verb
from headgate.api.answers import LetterCauses, PreviewRequest, Snapshots
from headgate.api.callers import Caller
from headgate.api.scopes import scope
from headgate.service.console.bill_lines import BillLines
from headgate.service.console.console import DataflowSeries, EngineConsole
from headgate.service.console.graph import GraphLevel, RunningGraph
from headgate.service.console.machines import MachinesView
from headgate.service.console.overview import Overview
from headgate.service.console.preview import PlanPreview
from headgate.service.console.rates import GraphRates
from headgate.service.console.task_panel import TaskPanel
from headgate.service.lineage.answer import LineageAnswer
from headgate.service.serve import ServedEngine

__all__ = ["console_routes"]

NEVER_CHANGES = "private, max-age=86400, immutable"

Select = Annotated[
    str,
    Query(
        max_length=2_000,
        description="Terms with commas: a dataflow, dataflow.task, team:NAME, type:NAME; + before one adds what feeds "
        "it, + after one what it feeds. Everything if left out.",
    ),
]
LineageOf = Annotated[
    str, Query(min_length=1, max_length=600, description="dataflow, dataflow.task or dataflow.task.column")
]
Level = Annotated[GraphLevel, Query(description="What a node stands for.")]
SnapshotNumber = Annotated[int | None, Query(ge=0, description="A plan snapshot that is kept; the newest if left out.")]


def console_routes(served: ServedEngine) -> APIRouter:
    """The routes that only the console needs."""
    router = APIRouter(prefix="/v1")
    console = EngineConsole(served.journal, served.state, served.registry)

    @router.get("/overview", response_model=Overview, openapi_extra=scope(Verb.READ))
    def overview(who: Caller) -> Any:
        """Show all dataflows: rates, backlog, latency, cost, and what holds them up."""
        return Response(console.overview_json(served.acting_for(who)), media_type="application/json")

    @router.get("/graph", response_model=RunningGraph, openapi_extra=scope(Verb.READ))
    def graph(
        who: Caller,
        response: Response,
        select: Select = "",
        level: Level = GraphLevel.AUTO,
        snapshot: SnapshotNumber = None,
    ) -> Any:
        """Show the graph of what runs, or ran at an earlier plan snapshot, with its layout."""
        if snapshot is not None:
            response.headers["Cache-Control"] = NEVER_CHANGES
        return console.graph(served.acting_for(who), snapshot, select, level)

    @router.get("/graph/rates", response_model=GraphRates, openapi_extra=scope(Verb.READ))
    def rates(who: Caller, select: Select = "", level: Level = GraphLevel.AUTO) -> Any:
        """Show what flows through the nodes of the graph, and the bottleneck."""
        return console.rates(served.acting_for(who), select, level)

    @router.get("/snapshots", response_model=Snapshots, openapi_extra=scope(Verb.READ))
    def snapshots(who: Caller) -> Any:
        """List the plan snapshots that are kept, with what each changed."""
        return {"snapshots": console.snapshots(who)}

    @router.get("/dataflows/{dataflow}/tasks/{task}", response_model=TaskPanel, openapi_extra=scope(Verb.READ))
    def task_details(dataflow: str, task: str, who: Caller) -> Any:
        """Show a task: its alternates, rates, and who shares it for what part of the bill."""
        return console.task(served.acting_for(who), dataflow, task)

    @router.get("/dataflows/{dataflow}/series", response_model=DataflowSeries, openapi_extra=scope(Verb.READ))
    def dataflow_series(dataflow: str, who: Caller) -> Any:
        """Show the last hour of a dataflow: rates, rows that wait, latency."""
        return console.series(served.acting_for(who), dataflow)

    @router.get("/usage", response_model=MachinesView, openapi_extra=scope(Verb.READ))
    def machine_usage(who: Caller) -> Any:
        """Show the machines, how busy they are, and the fragments that run on them."""
        return console.machines(who)

    @router.post("/plans", response_model=PlanPreview, openapi_extra=scope(Verb.SUBMIT))
    def preview_plan(body: PreviewRequest, who: Caller, response: Response) -> Any:
        """Show what submitting a dataflow would change, and everybody's bill before and after. Nothing changes."""
        preview = console.preview(served.acting_for(who), body.text, body.format, body.replace)
        response.headers["ETag"] = f'"plan-{preview.snapshot}"'
        return preview

    @router.get("/bill/dataflows/{dataflow}", response_model=BillLines, openapi_extra=scope(Verb.INSPECT))
    def bill_of_dataflow(dataflow: str, who: Caller) -> Any:
        """Open the bill of a dataflow: what it pays for each task, and who pays the rest."""
        return console.bill_lines(served.acting_for(who), dataflow)

    @router.get("/dead-letters/causes", response_model=LetterCauses, openapi_extra=scope(Verb.INSPECT))
    def dead_letter_causes(who: Caller) -> Any:
        """Show rows that failed, by cause, with some of them as they came in."""
        return {"causes": console.letters(served.acting_for(who))}

    @router.get("/lineage", response_model=LineageAnswer, openapi_extra=scope(Verb.INSPECT))
    def lineage(who: Caller, of: LineageOf) -> Any:
        """Show from which columns a column comes, and who would be hurt if it went."""
        return console.lineage(served.acting_for(who), of)

    return router
