"""Four dataflows of three teams become one graph in which no task stands twice. ``make demo`` runs this.

    .venv/bin/python examples/demo.py [FOLDER]

The picture of the merged graph goes into FOLDER, build/demo if none is given.
"""

import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headgate import Dataflow, default_registry
from headgate.drawing.svg import to_svg
from headgate.drawing.text import to_text
from headgate.service.load import load
from headgate.sharing.merge import Merged, merge
from headgate.sharing.overlap import overlap

HERE = Path(__file__).resolve().parent
FILES = ("city/alarms.yaml", "city/map.yaml", "city/archive.json", "city/quality.py")

WHAT_THIS_SHOWS = """\
This demonstration shows the model and the merge. Nothing was run: this version of Headgate checks, converts, compares
and merges dataflows, and does not yet run them on Spark."""


def main(folder: Path) -> None:
    console = Console(highlight=False)
    registry = default_registry()
    dataflows = [load(HERE / file, registry).dataflow for file in FILES]
    show_dataflows(console, dataflows)
    merged = show_submissions(console, dataflows)
    show_savings(console, dataflows, merged)

    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "merged.svg"
    users = {task: "for " + ", ".join(names) for task, names in merged.users.items()}
    graph = replace(merged.graph, description=", ".join(dataflow.name for dataflow in dataflows) + ": one graph")
    picture.write_text(to_svg(graph, registry, users), encoding="utf-8")
    console.print("\nA picture of the merged graph, with who uses what (open it in a browser):")
    console.print(f"  [bold]{escape(shown(picture))}[/bold]", soft_wrap=True)
    console.print(f"\n[yellow]{WHAT_THIS_SHOWS}[/yellow]", soft_wrap=True)
    console.print("\nTry: [bold].venv/bin/headgate diff examples/city/alarms.yaml examples/city/map.yaml[/bold]")


def show_dataflows(console: Console, dataflows: list[Dataflow]) -> None:
    owners = dict.fromkeys(dataflow.owner for dataflow in dataflows)
    console.rule(f"{len(dataflows)} dataflows of {len(owners)} teams, all over the same city sensors", align="left")
    for dataflow, file in zip(dataflows, FILES, strict=True):
        console.print(f"\n[bold blue]examples/{file}[/bold blue]")
        console.print(escape(to_text(dataflow).rstrip("\n")), soft_wrap=True)


def show_submissions(console: Console, dataflows: list[Dataflow]) -> Merged:
    """Submit one after the other; each finds what is there already."""
    console.print()
    console.rule("Submitted one after the other", align="left")
    merged = merge([])
    for number, dataflow in enumerate(dataflows, start=1):
        found = overlap(merged.graph, dataflow)
        merged = merge(dataflows[:number])
        console.print(f"\n[bold]{dataflow.name}[/bold] of {dataflow.owner}")
        for running, own in found.equivalent:
            console.print(f"  [green]reuses[/green]  {own:<10} which is {running}")
        console.print(f"  [cyan]adds[/cyan]    {', '.join(found.only_second)}", soft_wrap=True)
    return merged


def show_savings(console: Console, dataflows: list[Dataflow], merged: Merged) -> None:
    console.print()
    console.rule("What it comes to", align="left")
    table = Table("dataflow", "owner", box=None, header_style="bold")
    for heading in ("tasks", "reused", "added", "running then"):
        table.add_column(heading, justify="right")
    running = 0
    for dataflow in dataflows:
        added = sum(users[0] == dataflow.name for users in merged.users.values())
        running += added
        tasks = len(dataflow.tasks)
        table.add_row(dataflow.name, dataflow.owner, str(tasks), str(tasks - added), str(added), str(running))
    console.print(table)
    share = merged.saved / merged.submitted
    console.print(
        f"\n{merged.submitted} tasks were submitted and {len(merged.graph.tasks)} would run: "
        f"[bold]{merged.saved} tasks saved[/bold] ({share:.0%})."
    )


def shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "build" / "demo")
