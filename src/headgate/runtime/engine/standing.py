"""Where running sources stand, and whether what they have read is still there: asked of folders and brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.model.names import Signature
from headgate.model.task import Task
from headgate.model.work import Past, SourceWork
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.source_starts import moment
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.file_source.batches import BatchPlan
from headgate.runtime.file_source.oldest import files_of, oldest_ns
from headgate.runtime.file_source.read_until import plan_file, read_until
from headgate.runtime.io.secret_options import used_options
from headgate.runtime.kafka_source.driver import KafkaBatches
from headgate.runtime.kafka_source.ranges import Positions
from headgate.tasks.kafka.read import BEGUN, ReadKafka

__all__ = ["RunningSources", "fragment_of"]


def fragment_of(source: Signature) -> str:
    """The fragment that reads a source."""
    return f"source-{source[:16]}"


@dataclass(frozen=True, slots=True)
class RunningSources:
    """What can be known of the sources that an engine reads."""

    state: StateDirectory
    plans: Plans
    running: Mapping[str, RunningFragment]

    def past_of(self, source: Signature) -> Past:
        """How the past of a source is described."""
        shared = self.plans.snapshot.shared
        used = shared.running.tasks.get(source)
        work = None if used is None else shared.registry[used.running.task.type].work
        return work.past if isinstance(work, SourceWork) else Past.NONE

    def reached(self, source: Signature, since_ns: int) -> bool:
        """Whether a running source has read all that came before some time."""
        if self.past_of(source) is Past.FILES:
            return self._last_modified_ns(source) >= since_ns
        batches = self._kafka(source)
        return batches is not None and _is_before(batches.asked(since_ns // 1_000_000), self.position(source))

    def has_all(self, source: Signature) -> bool:
        """Whether all that a running source has read is still there; of files that is known when they are read."""
        batches = self._kafka(source)
        return batches is None or _is_before(batches.asked(), self._begun(source))

    def gone(self, source: Signature, since_ns: int) -> str:
        """What of that which a source has read since some time is no longer there, and from where on it is.

        From the earliest on, a topic has what its broker has.
        """
        if self.past_of(source) is Past.FILES:
            return self._gone_files(source, since_ns)
        batches = self._kafka(source) if since_ns else None
        if batches is None:
            return ""
        first, wanted = batches.asked(), batches.asked(since_ns // 1_000_000)
        cut = [(t, p) for t, each in first.items() for p, low in each.items() if low and wanted[t].get(p) == low]
        places = ", ".join(f"{topic}[{partition}] from offset {first[topic][partition]}" for topic, partition in cut)
        return f"Kafka has removed records from before; there is {places}" if cut else ""

    def _gone_files(self, source: Signature, since_ns: int) -> str:
        fragment, used = self.running.get(fragment_of(source)), self.plans.snapshot.shared.running.tasks.get(source)
        if fragment is None or used is None:
            return ""
        read = read_until(fragment.folder / "files", fragment.last_batch()).memory
        files = files_of(used.running.task)
        gone = read.others_than(file.path for file in files)
        if not gone or (since_ns and files and files[0].modified_ns <= since_ns):
            return ""
        are = "file that it has read is" if gone == 1 else "files that it has read are"
        there = f"what is there begins at {moment(files[0].modified_ns)}" if files else "there are no others"
        return f"{gone:,} {are} no longer there; {there}"

    def oldest_ns(self, task: Task) -> int | None:
        """When the oldest file of a source was modified that reads files."""
        return oldest_ns(task)

    def position(self, source: Signature) -> Positions:
        """The offsets up to which a Kafka source has read."""
        offset = self.offset(source)
        return {} if offset is None else offset.get("at", {})

    def offset(self, source: Signature) -> Mapping[str, Any] | None:
        """Up to where a source has read that counts in offsets; ``None`` before it is known where it begins."""
        fragment = self.running.get(fragment_of(source))
        return None if fragment is None else self.bound(source, fragment.last_offset())

    def bound(self, source: Signature, offset: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The same where its last epoch has read up to an offset, which is empty before the first."""
        if offset:
            return offset
        if self._options(source) is None:
            return {"rows": 0}
        begun = self._begun(source)
        return {"rows": 0, "at": begun} if begun else None

    def _last_modified_ns(self, source: Signature) -> int:
        """When the last file was modified that a source has read, in nanoseconds since 1970."""
        fragment = self.running.get(fragment_of(source))
        if fragment is None:
            return 0
        file = plan_file(fragment.folder / "files", fragment.last_batch())
        try:
            spans = BatchPlan.from_json(file.read_text(encoding="utf-8")).spans
        except FileNotFoundError:
            return 0
        return spans[-1].modified_ns if spans else 0

    def _begun(self, source: Signature) -> Positions:
        """Where a Kafka source began; nothing before that is known."""
        try:
            text = (self.state.fragment(fragment_of(source)) / BEGUN).read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        begun: Positions = json.loads(text)
        return begun

    def _kafka(self, source: Signature) -> KafkaBatches | None:
        options = self._options(source)
        return None if options is None else KafkaBatches(options, self.state.fragment(fragment_of(source)))

    def _options(self, source: Signature) -> ReadKafka | None:
        task = self.plans.current.tasks.get(source) or self.plans.unpaused().tasks.get(source)
        if task is None or not isinstance(task.options, ReadKafka):
            return None
        with used_options(task) as options:
            assert isinstance(options, ReadKafka)
            return options


def _is_before(one: Positions, other: Positions) -> bool:
    """Whether a position is nowhere after another one.

    >>> _is_before({"a": {"0": 5}}, {"a": {"0": 5, "1": 2}}), _is_before({"a": {"0": 5}}, {"a": {}})
    (True, False)
    """
    return all(
        offset <= other.get(topic, {}).get(partition, 0)
        for topic, partitions in one.items()
        for partition, offset in partitions.items()
    )
