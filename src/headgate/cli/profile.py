"""``headgate profile``: what a row costs in each operator of a dataflow, and how that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import AsCsv, AsJson, Force, State, known_types, packages, print_answer, write_file
from headgate.errors import InputError

__all__ = ["profile"]

SUFFIXES = (".yaml", ".yml", ".json", ".xml", ".py")


def profile(
    what: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A dataflow's file, or the name of a running one.")],
    state: State = Path(".headgate"),
    profiles: Annotated[
        Path | None, typer.Option("--profiles", metavar="FILE", help="Figures that come before all others.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the profiles to this file; deploy reads it.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw cost against rate, from recordings, into this .svg, .png or .pdf file.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the profile of each operator: CPU, time, transfer and memory of a row, and rows out, each with its origin.

    What an engine has measured with the state directory comes before what the file declares, and that before the
    defaults of task types. The file of --profiles comes first.

    Examples: [bold]headgate profile etl.yaml[/bold], [bold]headgate profile etl --plot costs.svg[/bold]
    """
    with packages("profiling", "planning"):
        from headgate.service.profile import (
            costs_of_recordings,
            profile_document,
            profile_tables,
            profiles_of_file,
            read_profiles,
            recorded_profiles,
            write_profiles,
        )
    if Path(what).suffix.lower() in SUFFIXES:
        given = read_profiles(profiles) if profiles else None
        _, known = profiles_of_file(Path(what), known_types(), state, given)
    elif profiles is not None:
        raise InputError("BAD_PROFILE", "--profiles goes with a dataflow's file, not with the name of a running one")
    else:
        known = recorded_profiles(what, state)
    if plot is not None:
        from headgate.report.figures import check_picture
        from headgate.report.placements import draw_costs

        check_picture(plot.suffix)
        write_file(plot, draw_costs(costs_of_recordings(state, list(known)), plot.suffix), force)
    if out is not None:
        write_file(out, write_profiles(known), force)
    print_answer(profile_document(known), profile_tables(known), as_json, as_csv)
