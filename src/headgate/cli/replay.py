"""``headgate recommend`` and ``headgate replay``: other policies on what a state directory has recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsJson, State, packages, print_answer, seconds, write_file
from headgate.cli.remote import service_url
from headgate.errors import BadValue, InputError

if TYPE_CHECKING:
    from headgate.api.client import EngineClient

__all__ = ["recommend", "replay"]

ASK_EVERY_S = 0.2


def recommend(
    policy: Annotated[str, typer.Option(help="Which policy is asked: exact, ce, drs, ds2, lookahead, ...")] = "exact",
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Show what a policy would do now for what an engine runs, and why. Nothing is changed.

    It is asked about the last minute that the engine has recorded, and knows nothing of the time before.

    Example: [bold]headgate recommend --policy exact[/bold]
    """
    with packages("recommending", "simulation"):
        from headgate.service.recommend import recommend as recommend_now
        from headgate.service.recommend import recommend_tables
    if service_url() is None:
        answer = recommend_now(state, policy)
    else:
        answer = ask(state, lambda client: client.recommend(policy), "asking")
    print_answer(answer, recommend_tables(answer), as_json)


def replay(
    policy: Annotated[list[str] | None, typer.Option(help="Under which policy; repeat it to compare several.")] = None,
    since: Annotated[str, typer.Option(metavar="SPAN", help="How far back, such as 2h or 1d.")] = "24h",
    rate_factor: Annotated[
        float, typer.Option("--rate-factor", metavar="FACTOR", help="So many times as much comes.")
    ] = 1.0,
    price_factor: Annotated[
        float, typer.Option("--price-factor", metavar="FACTOR", help="Machines cost so many times as much.")
    ] = 1.0,
    state: State = Path(".headgate"),
    plot: Annotated[Path | None, typer.Option(help="Draw the runs into this .svg, .png or .pdf file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the last hours of an engine would have been, and cost, under other policies.

    What was recorded is simulated first as it was: by how far that is off is the error of the replay itself.

    Example: [bold]headgate replay --policy exact --policy ds2 --since 24h[/bold]
    """
    if plot is not None and service_url() is not None:
        raise InputError("LOCAL_ONLY", "--plot draws what a state directory holds; leave it out with --url")
    span_s, factors = seconds("--since", since), {"rate_factor": rate_factor, "price_factor": price_factor}
    chosen = tuple(policy or ["exact"])
    if service_url() is not None:
        now = time.time()
        question = {"policies": list(chosen), "since": now - span_s, "until": now, **factors}
        facts = ask(state, lambda client: _answered(client, question), "replaying")
    else:
        facts = _replayed(state, chosen, span_s, factors, plot, force)
    with packages("replaying", "simulation"):
        from headgate.service.what_if import what_if_tables
    print_answer(facts, what_if_tables(facts), as_json)


def _replayed(
    state: Path, policies: tuple[str, ...], span_s: float, factors: dict[str, float], plot: Path | None, force: bool
) -> dict[str, Any]:
    with packages("replaying", "simulation"):
        from headgate.report.figures import check_picture
        from headgate.report.runs import draw_runs
        from headgate.service.what_if import last_span, replay_past, what_if_facts
    if plot is not None:
        check_picture(plot.suffix)
    try:
        result = replay_past(state, last_span(policies, span_s, **factors))
    except BadValue as error:
        raise InputError("BAD_SETTING", error.sentence) from None
    if plot is not None:
        write_file(plot, draw_runs([result.simulated, *result.runs], plot.suffix), force)
    return what_if_facts(result)


def _answered(client: EngineClient, question: dict[str, Any]) -> dict[str, Any]:
    """Ask a service, and wait for its answer."""
    operation = client.what_if(question)
    while operation["state"] == "running":
        time.sleep(ASK_EVERY_S)
        operation = client.operation(operation["id"])
    if operation["result"] is None:
        problem = operation["problem"] or {"condition": "CANCELLED", "message": f"it was {operation['state']}"}
        raise InputError(problem["condition"], problem["message"])
    result: dict[str, Any] = operation["result"]
    return result
