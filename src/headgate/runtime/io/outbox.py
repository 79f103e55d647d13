"""The outbox: what sinks are due. A sink that refuses keeps nobody else waiting, and loses nothing."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.errors import os_reason
from headgate.model.names import Signature
from headgate.model.work import SinkWork
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.engine.past import SinkTurn
from headgate.runtime.io.secret_options import used_options
from headgate.runtime.io.sinks import MemorySink, StagedDelivery, deliver
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.store.durable_steps import step
from headgate.store.files import read_json, sync_files, write_json
from headgate.store.secrets import SECRETS

__all__ = ["SinkOutbox"]

LONGEST_REST_S = 10.0
"""How long a sink that takes long to refuse is left alone at most."""


def _now(sink: Signature, snapshot: int) -> SinkTurn:
    del sink, snapshot
    return SinkTurn.NOW


class SinkOutbox:
    """Delivers at once where it can; what is refused is kept on disk and offered again, in order."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        memory: MemorySink,
        plan: Callable[[int], CompiledPlan],
        due: Callable[[Signature, int], SinkTurn] = _now,
    ) -> None:
        self._folder = folder
        self._spark = spark
        self._memory = memory
        self._plan = plan
        self._due = due
        """What is to become of rows for a sink that were made under a snapshot."""

        self._lock = threading.RLock()
        self.refusals: dict[Signature, str] = {}
        """Why sinks refuse, as long as they do."""

        self._totals = folder.with_name("rows_out.json")
        self.delivered: Counter[Signature] = Counter(read_json(self._totals))
        """Rows that sinks have got, from engines before this one too: all but those of the last second of a crash."""

        self._saved = Counter(self.delivered)
        self._locks: dict[Signature, threading.RLock] = {}
        self._rests: dict[Signature, float] = {}
        """Until when sinks are left alone."""

        self._unsynced: set[str] = set()
        """Folders that have got files since they were last synced."""

    def __call__(self, snapshot: int, sink: Signature, delivery: StagedDelivery) -> None:
        with self._lock_of(sink):
            due = self._due(sink, snapshot)
            if due is SinkTurn.NEVER:
                return
            if due is SinkTurn.NOW and not self._waiting(sink) and self._offer(snapshot, sink, delivery):
                return
            self._keep(snapshot, sink, delivery)

    def retry(self, sinks: Collection[str] | None = None) -> None:
        """Offer what was refused again; ``sinks`` are those that there are, if the rest is to be forgotten."""
        if sinks is not None:
            self.save_totals(sinks)
        for folder in list(self._folder.iterdir()):
            sink = Signature(folder.name)
            if time.monotonic() >= self._rests.get(sink, 0.0):
                with self._lock_of(sink):
                    self._retry(sink)

    def _retry(self, sink: Signature) -> None:
        """Offer a sink what it has refused; one that takes long to refuse is left alone for a while."""
        began = time.monotonic()
        for item in self._waiting(sink):
            kept = read_json(item / "delivery.json")
            due = self._due(sink, kept["snapshot"])
            if due is SinkTurn.LATER:
                break
            if due is SinkTurn.NEVER:
                _drop(item)
                continue
            files = [(str(item / name), rows) for name, rows in kept["files"]]
            delivery = StagedDelivery(kept["fragment"], kept["epoch"], kept["snapshot"], files)
            for path, _ in files:  # who reads a folder in the order of age reads in the order of delivery
                with suppress(FileNotFoundError):
                    os.utime(path)
            if not self._offer(kept["snapshot"], sink, delivery):
                now = time.monotonic()
                self._rests[sink] = now + min(4 * (now - began), LONGEST_REST_S)
                break
            self.sync()
            _drop(item)

    def _lock_of(self, sink: Signature) -> threading.RLock:
        """The lock of a sink: one that is slow to refuse keeps no other waiting."""
        with self._lock:
            return self._locks.setdefault(sink, threading.RLock())

    def keeps(self, sink: Signature) -> bool:
        """Whether rows wait for a sink."""
        with self._lock_of(sink):
            return bool(self._waiting(sink))

    def rename(self, sinks: Mapping[Signature, Signature]) -> None:
        """Count the rows of some sinks for others from now on."""
        with self._lock:
            for before, after in sinks.items():
                self.delivered[after] += self.delivered.pop(before, 0)

    def sync(self) -> None:
        """Make durable which files sinks have got; all folders together, for the disk takes them together."""
        with self._lock:
            folders, self._unsynced = self._unsynced, set()
        sync_files([folder for folder in folders if Path(folder).is_dir()])

    def save_totals(self, sinks: Collection[str]) -> None:
        """Keep how many rows sinks have got for the next engine; those of other sinks are forgotten."""
        with self._lock:
            for gone in self.delivered.keys() - set(sinks):
                del self.delivered[gone]
            totals = Counter(self.delivered)  # deliveries go on meanwhile
            if totals != self._saved:
                write_json(self._totals, totals)
                self._saved = totals

    def _waiting(self, sink: Signature) -> list[Path]:
        folder = self._folder / sink
        return sorted(p for p in folder.iterdir() if (p / "delivery.json").exists()) if folder.is_dir() else []

    def _offer(self, snapshot: int, sink: Signature, delivery: StagedDelivery) -> bool:
        task = self._plan(snapshot).tasks[sink]
        try:
            deliver(task, delivery, self._spark, self._memory)
        except Exception as error:
            message = f"cannot write to sink '{task.name}' ({SECRETS.hidden(_reason(error))[:200]})"
            self.refusals[sink] = f"{message}; its rows are queued and retried"
            return False
        self.refusals.pop(sink, None)
        assert isinstance(task.work, SinkWork)
        with used_options(task) as options:
            folder = task.work.folder(options)
        if folder is not None:
            with self._lock:
                self._unsynced |= {folder, str(Path(folder).parent)}
        self.delivered[sink] += delivery.rows
        return True

    def _keep(self, snapshot: int, sink: Signature, delivery: StagedDelivery) -> None:
        item = self._folder / sink / f"{delivery.epoch:010d}-{delivery.origin}"
        item.mkdir(parents=True, exist_ok=True)
        names = [(Path(path).name, rows) for path, rows in delivery.files]
        with step("outbox-files") as point:
            for path, _ in delivery.files:
                if Path(path).exists():
                    Path(path).replace(item / Path(path).name)
                point.halfway()
        kept = {"snapshot": snapshot, "fragment": delivery.fragment, "epoch": delivery.epoch, "files": names}
        write_json(item / "delivery.json", kept, "outbox")


def _drop(item: Path) -> None:
    """Remove a delivery that is no longer due."""
    with step("outbox-emptied") as point:
        # Without its description a delivery is no longer one, whatever is left of it.
        (item / "delivery.json").unlink()
        point.halfway()
        shutil.rmtree(item)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return os_reason(error)
    return reason_of(str(error) if isinstance(error, JOB_FAILURES) else f"{type(error).__name__}: {error}")
