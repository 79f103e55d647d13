"""``headgate recommend`` and ``headgate replay``: other policies on what a state directory has recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsJson, State, packages, print_answer, print_tables, seconds, write_file

__all__ = ["recommend", "replay"]


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
        from headgate.service.recommend import recommend as ask
        from headgate.service.recommend import recommend_tables
    answer = ask(state, policy)
    print_answer(answer, recommend_tables(answer), as_json)


def replay(
    policy: Annotated[list[str] | None, typer.Option(help="Under which policy; repeat it to compare several.")] = None,
    since: Annotated[str, typer.Option(metavar="SPAN", help="How far back, such as 2h or 1d.")] = "24h",
    state: State = Path(".headgate"),
    plot: Annotated[Path | None, typer.Option(help="Draw the runs into this .svg, .png or .pdf file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the last hours of an engine would have been, and cost, under other policies.

    What was recorded is simulated first as it was: by how far that is off is the error of the replay itself.

    Example: [bold]headgate replay --policy exact --policy ds2 --since 24h[/bold]
    """
    with packages("replaying", "simulation"):
        from headgate.report.figures import check_picture
        from headgate.report.runs import draw_runs
        from headgate.service.recommend import replay_policies, replay_tables
    if plot is not None:
        check_picture(plot.suffix)
    result = replay_policies(state, policy or ["exact"], seconds("--since", since))
    if plot is not None:
        write_file(plot, draw_runs([result.simulated, *result.runs], plot.suffix), force)
    print_tables(replay_tables(result), as_json)
