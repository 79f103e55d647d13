"""Three teams' dataflows over one city's sensors: they merge, live through a rush hour, and share the bill.

    .venv/bin/python examples/demo.py [FOLDER] [--no-run]

``make demo`` runs this, in two to three minutes. Data, results and a picture of what runs go into FOLDER, build/demo if
none is given. With --no-run only the merge is shown, which needs no Spark.
"""

import shutil
import sys
import threading
import time
from contextlib import chdir, contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from headgate import Dataflow, default_registry
from headgate.report.svg import to_svg
from headgate.report.text import to_text
from headgate.service.load import load
from headgate.sharing.merge import merge
from headgate.sharing.overlap import overlap

HERE = Path(__file__).resolve().parent
FILES = ("city/alarms.yaml", "city/map.yaml", "city/archive.json", "city/quality.py")

USUAL, RUSH = 400.0, 4_000.0
"""Readings a second."""

CHEAPER_ABOVE, BETTER_BELOW = 1_500.0, 800.0
"""The rule that somebody has set by hand: from how many readings a second on smoothing is done the cheaper way, and
below how many the better way again."""

PRICE_PER_H = Decimal("0.40")
COMPARED_ROWS = 60_000


def main(folder: Path, run: bool) -> None:
    console = Console(highlight=False)
    registry = default_registry()
    dataflows = [load(HERE / file, registry).dataflow for file in FILES]
    owners = dict.fromkeys(dataflow.owner for dataflow in dataflows)
    console.rule(f"{len(dataflows)} dataflows of {len(owners)} teams, all over the same city sensors", align="left")
    for dataflow, file in zip(dataflows, FILES, strict=True):
        console.print(f"\n[bold blue]examples/{file}[/bold blue]")
        console.print(escape(to_text(dataflow).rstrip("\n")), soft_wrap=True)
    folder.mkdir(parents=True, exist_ok=True)
    if run:
        run_them(console, dataflows, folder)
    else:
        console.print()
        for number, dataflow in enumerate(dataflows):
            console.print(submission(dataflows[:number], dataflow), soft_wrap=True)
    draw(console, dataflows, folder / "running.svg")
    console.print("\nTry: [bold].venv/bin/headgate diff examples/city/alarms.yaml examples/city/map.yaml[/bold]")


def submission(running: list[Dataflow], dataflow: Dataflow) -> str:
    """What a submission finds there already."""
    common = overlap(merge(running).graph, dataflow)
    reused = ", ".join(own for _, own in common.equivalent)
    text = f"[bold]{dataflow.name}[/bold] of {dataflow.owner} "
    text += f"[green]reuses {reused}[/green] and " if reused else ""
    return text + f"[cyan]adds {', '.join(common.only_second)}[/cyan]"


def draw(console: Console, dataflows: list[Dataflow], picture: Path) -> None:
    merged = merge(dataflows)
    users = {task: "for " + ", ".join(names) for task, names in merged.users.items()}
    graph = replace(merged.graph, description=", ".join(dataflow.name for dataflow in dataflows) + ": one graph")
    picture.write_text(to_svg(graph, default_registry(), users), encoding="utf-8")
    share = merged.saved / merged.submitted
    text = f"{merged.submitted} tasks were submitted and {len(merged.graph.tasks)} run"
    console.print(f"\n{text}: [bold]{merged.saved} tasks saved[/bold] ({share:.0%}).")
    console.print("\nA picture of the merged graph, with who uses what (open it in a browser):")
    console.print(f"  [bold]{escape(shown(picture))}[/bold]", soft_wrap=True)


def run_them(console: Console, dataflows: list[Dataflow], folder: Path) -> None:
    """The story on Spark, and then what it has cost and saved."""
    from headgate.report.bill import bill_tables
    from headgate.report.render import render
    from headgate.runtime.spark_internals.session import open_session
    from headgate.service.bill import bill

    for old in ("live", "merged", "separate"):
        shutil.rmtree(folder / old, ignore_errors=True)
    console.print()
    console.rule("On Spark", align="left")
    with console.status("starting Spark"):
        spark = open_session("local[2]", {}, log=folder / "spark.log")
    try:
        with place(folder / "live"):
            story(console, spark, dataflows)
        console.print()
        console.rule(f"The bill, at {PRICE_PER_H} an hour for the machine", align="left")
        console.print(escape(render(bill_tables(bill(folder / "live" / "state"))).rstrip("\n")), soft_wrap=True)
        console.print()
        console.rule("What merging saves", align="left")
        compare(console, spark, dataflows, folder)
    finally:
        spark.stop()
    console.print(f"\nWhat came out is in [bold]{escape(shown(folder / 'live' / 'out'))}[/bold].", soft_wrap=True)


def story(console: Console, spark, dataflows: list[Dataflow]) -> None:
    from demo_screen import Screen

    from headgate.runtime.engine.engine import Engine

    with Engine("state", spark=spark, trigger_s=0.5, price_per_h=PRICE_PER_H) as engine, Feeder() as feeder:
        screen = Screen(console, engine, feeder)
        with screen.shown():

            def live(seconds: float) -> None:
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    engine.housekeep()
                    follow_the_rule(engine, feeder, screen)
                    screen.refresh()
                    time.sleep(0.25)
                screen.table()

            for number, dataflow in enumerate(dataflows):
                text = submission(dataflows[:number], dataflow)
                began = time.monotonic()
                engine.submit(dataflow)
                screen.tell(f"{text} [dim]({time.monotonic() - began:.1f} s)[/dim]")
                if dataflow.name == "alarms":
                    screen.alternate = "kalman"
                live(12.0)
            feeder.start_rush()
            screen.tell(f"[red]rush hour[/red]: {RUSH:,.0f} readings a second come in")
            live(25.0)
            feeder.end_rush()
            screen.tell("the rush hour is over")
            live(15.0)
            began = time.monotonic()
            engine.withdraw("archive")
            took = time.monotonic() - began
            screen.tell(f"[bold]archive[/bold] is withdrawn; what others use goes on [dim]({took:.1f} s)[/dim]")
            live(8.0)
            feeder.stop()
            engine.wait_until_idle()
            engine.housekeep()


def follow_the_rule(engine, feeder, screen) -> None:
    wanted = screen.alternate
    if feeder.rate > CHEAPER_ABOVE:
        wanted = "moving_average"
    elif feeder.rate < BETTER_BELOW:
        wanted = "kalman"
    if screen.alternate not in ("-", wanted):
        began = time.monotonic()
        engine.switch("alarms", "smooth", wanted)
        screen.alternate = wanted
        way = "the cheaper way" if wanted == "moving_average" else "the better way again"
        took = f"{1_000 * (time.monotonic() - began):.0f} ms"
        screen.tell(f"[magenta]the rule switches smooth to {wanted}[/magenta], {way} [dim]({took})[/dim]")


class Feeder:
    """Sensors that never rest: files of readings appear twice a second."""

    def __init__(self) -> None:
        from city_data import readings

        self.rate, self.rush = USUAL, False
        self._readings = readings(10_000_000, seed=1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._bring, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def start_rush(self) -> None:
        self.rate, self.rush = RUSH, True

    def end_rush(self) -> None:
        self.rate, self.rush = USUAL, False

    def _bring(self) -> None:
        from city_data import write_file

        number = 0
        while not self._ended.wait(0.5):
            write_file(Path("data/city"), number, islice(self._readings, int(self.rate / 2)))
            number += 1


@contextmanager
def place(folder: Path):
    """A folder with the maintenance log, as the working directory: the dataflows name their files from there."""
    from city_data import write

    write(folder / "data", rows=0, seed=1)
    (folder / "out").mkdir()
    with chdir(folder):
        yield


def compare(console: Console, spark, dataflows: list[Dataflow], folder: Path) -> None:
    """The same readings through the same dataflows, merged and as separate queries, and the CPU of either."""
    from city_data import write

    from headgate.model.strategy import StrategyName
    from headgate.runtime.engine.engine import Engine
    from headgate_benchmarks.cpu_clock import cpu_seconds

    spent = {}
    for name, strategy in (("merged", StrategyName.HOT), ("separate", StrategyName.NONE)):
        text = f"{COMPARED_ROWS:,} readings through {len(dataflows)} dataflows, {name}"
        with (
            console.status(text),
            place(folder / name),
            Engine("state", spark=spark, trigger_s=0.5, strategy=strategy) as engine,
        ):
            write(Path("data"), rows=1_000, seed=1)
            engine.submit(*dataflows)
            engine.wait_until_idle()
            before = cpu_seconds()
            write(Path("data"), rows=COMPARED_ROWS, seed=2, first=1)
            engine.wait_until_idle()
            spent[name] = cpu_seconds() - before
            queries = len(engine.fragments)
        console.print(f"{text}: [bold]{spent[name]:.1f} s[/bold] of CPU, {queries} Spark queries")
    saved = 1 - spent["merged"] / spent["separate"]
    console.print(f"[bold]{saved:.0%} of the CPU[/bold] is saved by running every task once.")


def shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--no-run"]
    target = Path(given[0]) if given else HERE.parent / "build" / "demo"
    main(target.absolute(), run="--no-run" not in sys.argv)
