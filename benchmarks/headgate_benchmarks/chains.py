"""``headgate bench chains``: state in chains of files by itself, in one process, without Spark.

Of a tumbling window, a sliding one, sessions and a join, over a stream of bids and auctions out of order:

- ``WORKLOAD_cpu_s_per_million``: CPU seconds per million events: rows are mapped, hashed and folded in two ranges, and
  state is written, synced, merged and collected; ``WORKLOAD_kb_per_batch``: state written in a batch, merges included;
- ``WORKLOAD_files``: the most files that a table of a range had when an epoch began;
- ``WORKLOAD_state_mb``: the most that was kept;
- ``same_rows``: 1 if what came out is what pandas makes of all events at once;
- ``restart_ratio``: the time of the first batch after a restart that finds a million keys, over that of the same batch
  without state; ``resize_ms``: in which two ranges of them become seven.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.names import Signature
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress

__all__ = ["CHAINS"]

RATE_PER_S = 10_000
"""Events in a second of event time."""

AUCTIONS = 20_000
DISORDER_S, LATE_BY = 1.0, "2s"
FAR_S = 10**6
"""How long after the last event another one closes all windows."""

BEGIN = 1_700_000_000_000_000
WITHIN_S = 2
WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "tumbling": {"size": "10s"},
    "sliding": {"kind": "sliding", "size": "10s", "slide": "2s"},
    "session": {"kind": "session", "size": "2s"},
}
TOTALS = {"n": "count(*)", "most": "max(price)", "total": "sum(price)"}


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int = 3
    batches: int = 20
    rows: int = 50_000
    keys: int = 1_000_000


def _events(sizes: Sizes, seed: int) -> list[Any]:
    """Batches of bids and, one in twelve, auctions; the last batch is one event, far in the future."""
    import numpy as np
    import pyarrow as pa

    draw, batches = np.random.default_rng(seed), []
    for number in range(sizes.batches):
        at = BEGIN + np.arange(number * sizes.rows, (number + 1) * sizes.rows) * 1_000_000 // RATE_PER_S
        columns = {
            "auction": draw.integers(0, AUCTIONS, sizes.rows),
            "price": draw.integers(1, 10_000, sizes.rows),
            "bid": draw.random(sizes.rows) < 11 / 12,
            "at": pa.array(at - draw.integers(0, int(DISORDER_S * 1e6), sizes.rows), pa.timestamp("us", "UTC")),
        }
        batches.append(pa.table(columns))
    last = pa.array([BEGIN + FAR_S * 1_000_000] * 2, pa.timestamp("us", "UTC"))
    return [*batches, pa.table({"auction": [-1, -2], "price": [0, 0], "bid": [True, False], "at": last})]


class _Chain:
    """A window or a join with its chain; epochs are folded, merged and collected here, one after the other."""

    def __init__(self, folder: Path, workload: str, names: Sequence[str]) -> None:
        from headgate.runtime.chains.jobs import ChainTask
        from headgate.tasks.chains.join_work import JOIN_WORK
        from headgate.tasks.chains.window_work import WINDOW_WORK
        from headgate.tasks.windows import EventTimeWindow, Join

        self.is_join = workload == "join"
        if self.is_join:
            self.work: Any = JOIN_WORK
            self.options: Any = Join(on=("auction",), time=("at", "at"), within=f"{WITHIN_S}s", late_by=LATE_BY)
        else:
            self.work = WINDOW_WORK
            window = {"time": "at", "key": ("auction",), "columns": TOTALS, "late_by": LATE_BY, **WINDOWS[workload]}
            self.options = EventTimeWindow.model_validate(window)
        self.shapes = self.work.before(self.options, [names, names][: 1 + self.is_join])
        self.folder, self.epoch, self.ranges = folder, 0, 2
        self.known: Any = ChainTask(workload, "", ())
        self.commit: tuple[Any, ...] = ()
        self.outputs: list[Any] = []
        self.bytes_written, self.most_files, self.most_bytes = 0, 0, 0
        self.begin()

    def begin(self) -> None:
        """As after a restart: nothing is known but the last commit."""
        from headgate.runtime.chains.host import ChainHost
        from headgate.runtime.chains.jobs import ChainJobs

        self._chain: Any = None
        self._beside: list[Callable[[], None]] = []
        jobs = ChainJobs(self.folder / "chains", lambda _: self._started())
        self.host = ChainHost(jobs, self.folder / "outputs", 2, self._offer)

    def _started(self) -> Any:
        import pyarrow as pa

        if self._chain is None:
            schemas = [pa.ipc.read_schema(pa.py_buffer(side)) for side in self.known.sides]
            self._chain = self.work, self.options, self.work.start(self.options, schemas)
        return self._chain

    def _offer(self, work: Callable[[], None]) -> bool:
        self._beside.append(work)
        return True

    def stored(self, batch: Any) -> list[str]:
        """A batch in files, as a fragment before would have written it: one for each side."""
        import pyarrow as pa

        sides = [batch.filter(batch["bid"]), batch.filter(pa.compute.invert(batch["bid"]))] if self.is_join else [batch]
        files = []
        for at, (rows, shape) in enumerate(zip(sides, self.shapes, strict=True)):
            made = pa.table({name: rows[text.strip("`")] for name, text in shape.columns})
            files.append(str(self.folder / f"in-{at}.arrow"))
            with pa.OSFile(files[-1], "wb") as file, pa.ipc.new_file(file, made.schema) as writer:
                writer.write_table(made)
            if self.epoch == 0:
                sides_known = (*self.known.sides[:at], made.schema.serialize().to_pybytes())
                self.known = type(self.known)(self.known.type, "", sides_known)
        return files

    def run(self, files: Sequence[str]) -> None:
        """An epoch, from rows in files to a commit, and what is done beside it."""
        from headgate.runtime.chains.host import FoldedTask

        task = FoldedTask(Signature("task"), "task@1", self.known, tuple((file,) for file in files), self.ranges)
        folded = self.host.fold(self.epoch, self.commit, [task], lambda _: True)
        assert not folded.failed, folded.failed
        self.commit, self.epoch = folded.kept, self.epoch + 1
        self.outputs += [_read(path) for some in folded.outputs for _, path in some]
        self.host.tidy(self.commit)
        while self._beside:
            self._beside.pop()()

    def note(self, before: frozenset[str]) -> None:
        """Count what was written since a commit named those files."""
        (kept,) = self.commit
        each = {file for part in kept.parts for some in part.files.values() for file in some}
        self.bytes_written += sum(file.bytes for file in each if file.name not in before)
        self.most_bytes = max(self.most_bytes, kept.bytes)
        self.most_files = max(self.most_files, *(len(some) for part in kept.parts for some in part.files.values()), 0)


def _read(path: str) -> Any:
    from headgate.runtime.chains.files import mapped

    return mapped(Path(path))


def _expected(workload: str, events: Any) -> Any:
    """The same of all events at once."""
    import pandas as pd

    frame = events.to_pandas()
    if workload == "join":
        bids, auctions = frame[frame["bid"]], frame[~frame["bid"]]
        pairs = bids.merge(auctions, on="auction", suffixes=("", "_right"))
        near = (pairs["at"] - pairs["at_right"]).abs() <= pd.Timedelta(seconds=WITHIN_S)
        return pairs[near].rename(columns={f"{name}_right": f"right_{name}" for name in ("price", "bid", "at")})
    if workload == "session":
        frame = frame.sort_values(["auction", "at"])
        apart = frame.groupby("auction")["at"].diff() >= pd.Timedelta(seconds=2)
        frame["session"] = apart.groupby(frame["auction"]).cumsum()
        grouped = frame.groupby(["auction", "session"])
        made = grouped.agg(window_start=("at", "min"), window_end=("at", "max"), **_totals()).reset_index()
        made["window_end"] += pd.Timedelta(seconds=2)
        return made.drop(columns="session")
    slide, size = (2, 10) if workload == "sliding" else (10, 10)
    first = frame["at"].dt.floor(f"{slide}s")
    copies = [frame.assign(window_start=first - pd.Timedelta(seconds=back)) for back in range(0, size, slide)]
    made = pd.concat(copies).groupby(["window_start", "auction"]).agg(**_totals()).reset_index()
    return made.assign(window_end=made["window_start"] + pd.Timedelta(seconds=size))


def _totals() -> dict[str, tuple[str, str]]:
    return {"n": ("price", "size"), "most": ("price", "max"), "total": ("price", "sum")}


def _is_same(outputs: Sequence[Any], expected: Any) -> bool:
    """Whether the rows are the same; those of the last two events, which close nothing of their own, are left out."""
    import pandas as pd

    frames = [table.to_pandas() for table in outputs if len(table)]
    rows = pd.concat(frames) if frames else expected.iloc[:0]
    rows, expected = (one[one["auction"] >= 0] for one in (rows, expected))
    names = sorted(rows.columns)
    ordered = [one[names].sort_values(names).reset_index(drop=True) for one in (rows, expected)]
    return bool(len(ordered[0]) == len(ordered[1]) and (ordered[0].to_numpy() == ordered[1].to_numpy()).all())


def _cost(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    import pyarrow as pa

    batches = _events(sizes, seed)
    every = pa.concat_tables(batches)
    figures: dict[str, Any] = {}
    samples: dict[str, list[float]] = {}
    same = 1
    for workload in (*WINDOWS, "join"):
        spent = []
        for turn in range(sizes.rounds + 1):
            progress(f"{workload}, round {turn} of {sizes.rounds}, 0 warms up")
            with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
                chain, used = _Chain(Path(folder), workload, every.column_names), 0.0
                for batch in batches:
                    files = chain.stored(batch)
                    before = frozenset[str]().union(*(kept.files for kept in chain.commit))
                    began = time.process_time()
                    chain.run(files)
                    used += time.process_time() - began
                    chain.note(before)
                spent += [used] if turn else []
                same = same and int(_is_same(chain.outputs, _expected(workload, every)))
        samples[workload] = spent
        figures |= {
            f"{workload}_cpu_s_per_million": statistics.median(spent) / (len(every) / 1e6),
            f"{workload}_kb_per_batch": chain.bytes_written / len(batches) / 1e3,
            f"{workload}_files": chain.most_files,
            f"{workload}_state_mb": chain.most_bytes / 1e6,
        }
    return Measured({**figures, "same_rows": same}, samples)


def _restart(seed: int, progress: Progress, sizes: Sizes) -> Measured:
    """A window that holds many keys: its first batch after a restart, and more ranges."""
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(seed)

    def batch(keys: Any) -> Any:
        at = pa.array(np.full(len(keys), BEGIN), pa.timestamp("us", "UTC"))
        columns = {"auction": keys, "price": draw.integers(1, 10_000, len(keys)), "bid": np.ones(len(keys), bool)}
        return pa.table({**columns, "at": at})

    took: dict[str, list[float]] = {"with": [], "without": [], "resize": []}
    for turn in range(sizes.rounds + 1):
        progress(f"restart with {sizes.keys:,} keys, round {turn} of {sizes.rounds}, 0 warms up")
        some = batch(draw.integers(0, sizes.keys, sizes.rows))
        for kind in ("without", "with"):
            with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
                chain = _Chain(Path(folder), "tumbling", some.column_names)
                chain.stored(some)  # so that the columns are known
                if kind == "with":
                    for part in np.array_split(np.arange(sizes.keys), 10):
                        chain.run(chain.stored(batch(part)))
                files = chain.stored(some)
                chain.begin()
                took[kind] += [_timed(lambda chain=chain, files=files: chain.run(files))] if turn else []  # type: ignore[misc]
                if kind == "with":
                    (kept,) = chain.commit
                    took["resize"] += [_timed(lambda kept=kept: _resized(kept))] if turn else []  # type: ignore[misc]
    middle = {kind: statistics.median(times) for kind, times in took.items()}
    figures = {"restart_ratio": middle["with"] / middle["without"], "resize_ms": middle["resize"] * 1e3}
    return Measured(figures, took)


def _resized(kept: Any) -> Any:
    from headgate.runtime.chains.ranges import resliced

    return resliced(kept.parts, 7)


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


CHAINS = Benchmark(
    "chains",
    "State of windows and joins in chains of files, by itself.",
    {"cost": _cost, "restart": _restart},
    Sizes(),
    Sizes(1, 4, 2_000, 5_000),
    "*_cpu_s_per_million *_kb_per_batch *_files *_state_mb same_rows restart_ratio resize_ms",
)
