"""Four dataflows of three teams become one graph in which no task stands twice, and run on one Spark.

    .venv/bin/python examples/demo.py [FOLDER] [--no-run]

``make demo`` runs this. Data, results and a picture of the merged graph go into FOLDER, build/demo if none is given.
With --no-run only the merge is shown, which needs no Spark.
"""

import os
import shutil
import sys
import time
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


def main(folder: Path, run: bool) -> None:
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
    if run:
        run_them(console, dataflows, folder)
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


def run_them(console: Console, dataflows: list[Dataflow], folder: Path) -> None:
    """Run the dataflows: they come one after the other, an alternate is switched, one leaves; readings keep coming."""
    from city_data import write

    from headgate.runtime.engine import Engine

    for old in ("data", "out", "state"):
        shutil.rmtree(folder / old, ignore_errors=True)
    (folder / "out").mkdir()
    write(folder / "waiting", rows=8_000, seed=1)
    (folder / "data" / "city").mkdir(parents=True)
    shutil.move(folder / "waiting" / "repairs", folder / "data" / "repairs")
    files = sorted((folder / "waiting" / "city").iterdir())
    os.chdir(folder)

    def bring(count: int) -> None:
        for _ in range(count):
            files[0].rename(Path("data/city") / files.pop(0).name)

    def more(count: int) -> None:
        bring(count)
        with console.status(f"{count * 1_000:,} readings came in"):
            engine.wait_until_idle()
            engine.housekeep()
        show_status(console, engine)

    console.print()
    console.rule("On Spark", align="left")
    with console.status("starting Spark"):
        engine = Engine("state", master="local[2]", trigger_s=0.2)
    bring(1)
    with engine:
        for dataflow in dataflows:
            began = time.monotonic()
            with console.status(f"submitting {dataflow.name}"):
                engine.submit(dataflow)
            console.print(f"\n[bold]{dataflow.name}[/bold] submitted in {time.monotonic() - began:.1f} s")
            more(1)
        began = time.monotonic()
        engine.switch("alarms", "smooth", "moving_average")
        took = (time.monotonic() - began) * 1000
        console.print(f"\n[bold]alarms[/bold] switched to the cheaper alternate of smooth in {took:.0f} ms")
        more(1)
        engine.withdraw("archive")
        console.print("\n[bold]archive[/bold] withdrawn; what others use goes on")
        more(1)
    console.print(f"\nWhat came out is in [bold]{escape(str(folder / 'out'))}[/bold].", soft_wrap=True)


def show_status(console: Console, engine) -> None:
    flows, fragments = engine.status()
    table = Table("dataflow", "state", box=None, header_style="bold")
    for heading in ("tasks", "shared", "rows out"):
        table.add_column(heading, justify="right")
    for flow in flows:
        table.add_row(flow.name, flow.state, str(flow.tasks), str(flow.shared), f"{flow.rows_out:,}")
    console.print(table)
    console.print(f"[dim]{len(fragments)} Spark queries, plan snapshot {engine.snapshot.number}[/dim]")


def shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--no-run"]
    place = Path(given[0]) if given else HERE.parent / "build" / "demo"
    main(place.absolute(), run="--no-run" not in sys.argv)
