"""Kills without Spark: what makes outputs durable, in processes that are forked, killed at a step, and done again.

A program is a list of operations that a process does one after the other, noting each that is done. It is killed at a
step; another process does the operation that was in flight again, as recovery does, and the rest. Then all is there
once. Some hundred kills a minute, for they need no JVM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from headgate.store.durable_steps import MOMENTS, VARIABLE
from tests.compiled import plan_of

Operation = Callable[[], object]
TIMES = (1, 2, 3)


def exchange(folder: Path) -> tuple[list[Operation], Callable[[], list[str]]]:
    """Batches move into a topic, and its reader's position follows."""
    from headgate.runtime.exchange.files import FileExchange

    (folder / "topics").mkdir(exist_ok=True)
    topics, count = FileExchange(folder / "topics"), 12
    for number in range(count):
        for part in range(2):
            file = folder / f"{number}-{part}.arrow"
            if not (folder / "staged").exists():
                file.write_text(f"rows {number}-{part}", encoding="utf-8")
    (folder / "staged").touch()

    def publish(number: int) -> None:
        topics.publish("t", number, 1, [(str(folder / f"{number}-{part}.arrow"), 1) for part in range(2)], 0)
        topics.done("t", number - 1)

    def check() -> list[str]:
        wrong = []
        if (topics.head("t"), topics.position("t")) != (count - 1, count - 2):
            wrong.append(f"lost: head {topics.head('t')}, position {topics.position('t')}")
        for number in range(count - 2, count):
            texts = [(folder / "topics" / "t" / f"{number:010d}-{part}.arrow") for part in range(2)]
            if [file.read_text(encoding="utf-8") for file in texts] != [f"rows {number}-{part}" for part in range(2)]:
                wrong.append(f"lost: batch {number}")
        return wrong

    return [partial(publish, number) for number in range(count)], check


def outbox(folder: Path) -> tuple[list[Operation], Callable[[], list[str]]]:
    """A sink refuses, is offered its rows again, and takes them."""
    from headgate.documents import parse
    from headgate.model.names import Signature
    from headgate.runtime.io.outbox import SinkOutbox
    from headgate.runtime.io.sinks import MemorySink, StagedDelivery

    sink_folder = folder / "sink"
    read = {"id": "r", "type": "read_files", "config": {"path": str(folder), "columns": "id bigint"}}
    write = {"id": "w", "type": "write_files", "config": {"path": str(sink_folder)}, "inputs": ["r"]}
    flow = parse(json.dumps({"name": "f", "tasks": [read, write]}), "json").dataflow
    plan = plan_of(flow)
    sink = next(signature for signature, task in plan.tasks.items() if task.alternate.type == "write_files")
    (folder / "pending").mkdir(exist_ok=True)
    spark: Any = None
    box = SinkOutbox(folder / "pending", spark, MemorySink(), lambda _: plan)
    count = 6
    if not (folder / "staged").exists():
        for number in range(count):
            (folder / f"{number}.json").write_text(f'{{"id": {number}}}\n', encoding="utf-8")
        sink_folder.touch()  # a file where the sink wants its folder
    (folder / "staged").touch()

    def offer(number: int) -> None:
        box(1, Signature(sink), StagedDelivery("source-1", number, 1, [(str(folder / f"{number}.json"), 1)]))

    def accept() -> None:
        if sink_folder.is_file():
            sink_folder.unlink()
        box.retry()

    def check() -> list[str]:
        lines = [line for file in sorted(sink_folder.glob("part-*")) for line in file.read_text().splitlines()]
        ids = [json.loads(line)["id"] for line in lines]
        lost = [f"lost: row {number}" for number in range(count) if number not in ids]
        return lost + [f"doubled: row {number}" for number in set(ids) if ids.count(number) > 1]

    half = count // 2
    offers = [partial(offer, number) for number in range(count)]
    return [*offers[:half], accept, *offers[half:], box.retry], check


def chains(folder: Path) -> tuple[list[Operation], Callable[[], list[str]]]:
    """Windows keep their state in files that the commits of a journal name; files are merged and collected beside."""
    import pyarrow as pa

    from headgate.model.names import Signature
    from headgate.runtime.chains import jobs
    from headgate.runtime.chains.files import mapped
    from headgate.runtime.chains.host import ChainHost, FoldedTask
    from headgate.store.entries import CommittedOutput, EpochCommitted, OutputKind, StagedRows, Target
    from headgate.store.files import write_json
    from headgate.store.journal import Journal, create_journal
    from tests.runtime.chains.toy import KERNEL, SIDE, SIZE, started

    toy = KERNEL, None, started()
    known = jobs.ChainTask("toy", "{}", (SIDE.serialize().to_pybytes(),))
    path, count, delivered = folder / "journal", 18, folder / "delivered"
    if not path.exists():
        create_journal(path)
    delivered.mkdir(exist_ok=True)
    waiting: list[Callable[[], None]] = []

    def offer(work: Callable[[], None]) -> bool:
        waiting.append(work)
        return True

    opened: list[tuple[Journal, ChainHost]] = []

    def epoch(number: int) -> None:
        if not opened:
            host = ChainHost(jobs.ChainJobs(folder / "chains", lambda _: toy), folder / "outputs", 2, offer)
            opened.append((Journal(path), host))
        journal, host = opened[0]
        commit = journal.latest(EpochCommitted, "f-1")
        if commit is None or commit.epoch < number:
            rows = [("abc"[row % 3], number * SIZE // 4 + row, 1) for row in range(7)]
            columns = zip(*rows, strict=True)
            table = pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SIDE, strict=True)], schema=SIDE)
            with pa.OSFile(str(folder / "in.arrow"), "wb") as file, pa.ipc.new_file(file, SIDE) as writer:
                writer.write_table(table)
            task = FoldedTask(Signature("task"), "task@1", known, ((str(folder / "in.arrow"),),), 1 + number % 3)
            folded = host.fold(number, () if commit is None else commit.chains, [task], lambda _: True)
            files = tuple(StagedRows(one, 1) for some in folded.outputs for _, one in some)
            outputs = (CommittedOutput(Target(OutputKind.SINK, "s", 1), files),)
            commit = EpochCommitted("f-1", number, (1,), outputs, chains=folded.kept)
            journal.append(commit)
        if commit.epoch == number:
            put_out = [row for file in commit.outputs[0].files for row in mapped(Path(file.path)).to_pylist()]
            write_json(delivered / f"{number}.json", put_out)
        host.tidy(commit.chains)
        while waiting:
            waiting.pop()()

    def check() -> list[str]:
        wanted: dict[tuple[int, str], int] = {}
        for number in range(count):
            for row in range(7):
                end = ((number * SIZE // 4 + row) // SIZE + 1) * SIZE
                wanted[end, "abc"[row % 3]] = wanted.get((end, "abc"[row % 3]), 0) + 1
        closed = {key for key in wanted if key[0] <= (count - 1) * SIZE // 4 + 6 - 2_000_000}
        seen = [row for file in delivered.glob("*.json") for row in json.loads(file.read_text(encoding="utf-8"))]
        found = [(row["end"], row["k"]) for row in seen]
        wrong = [f"lost: window {key}" for key in closed if key not in found]
        wrong += [f"doubled: window {key}" for key in set(found) if found.count(key) > 1 or key not in closed]
        return wrong + [f"wrong: {row}" for row in seen if row["n"] != wanted.get((row["end"], row["k"]))]

    return [partial(epoch, number) for number in range(count)], check


PROGRAMS: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "exchange": (exchange, ("batch-files", "batch", "head", "position", "first")),
    "chains": (chains, ("state-file", "state-collected", "commit")),
    "outbox": (outbox, ("outbox-files", "outbox", "outbox-emptied", "delivery")),
}


def _child(folder: Path, program: Callable[[Path], Any]) -> int:
    """Do what is left of a program in a process of its own; returns how that ended."""
    child = os.fork()
    if child == 0:
        try:
            operations, _ = program(folder)
            done = folder / "done"
            begun = len(done.read_bytes()) if done.exists() else 0
            with done.open("ab", buffering=0) as file:
                for operation in operations[begun:]:
                    operation()
                    file.write(b".")
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(aim: Path, most: int) -> dict[str, Any]:
    """Kill every program at each of its steps; what is wrong afterwards, by fault."""
    outcome: dict[str, Any] = {"kills": 0, "not_reached": 0, "wrong": []}
    while outcome["kills"] < most:
        before = outcome["kills"]
        for times in TIMES:
            for name, (program, steps) in PROGRAMS.items():
                for step, moment in product(steps, MOMENTS):
                    _one(aim, name, program, f"{moment} {step} {times}", outcome)
                    if outcome["kills"] >= most:
                        return outcome
        if outcome["kills"] == before:
            break
    return outcome


def _one(aim: Path, name: str, program: Callable[[Path], Any], wanted: str, outcome: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        aim.write_text(wanted, encoding="utf-8")
        ended = _child(folder, program)
        aim.unlink(missing_ok=True)
        if ended != -signal.SIGKILL:
            outcome["not_reached"] += 1
        else:
            outcome["kills"] += 1
            ended = _child(folder, program)
        wrong: Sequence[str] = program(folder)[1]() if ended == 0 else [f"stuck: status {ended}"]
        outcome["wrong"] += [f"{text} ({name}, {wanted})" for text in wrong]


if __name__ == "__main__":
    print(json.dumps(main(Path(os.environ[VARIABLE]), int(sys.argv[1]))))
