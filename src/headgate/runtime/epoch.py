"""What a fragment does with the rows of an epoch: fuse its tasks into one Spark job, run it, and stage the outputs.

Tasks that make the job fail are found out and left out, with all that is behind them
(:mod:`headgate.runtime.isolation`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from headgate.model.names import Signature
from headgate.model.task_type import Role
from headgate.runtime.counting import RowCounts
from headgate.runtime.exchange import SNAPSHOT
from headgate.runtime.failures import JOB_FAILURES, reason_of, workers_were_late
from headgate.runtime.fusion import Fusion, Output, union
from headgate.runtime.isolation import Quarantine, behind, find_culprits
from headgate.runtime.plan import Feed, Fragment, Kind, Plan
from headgate.runtime.records import Arrivals
from headgate.runtime.sinks import form_of
from headgate.runtime.staging import Staged, pack, stage
from headgate.runtime.surroundings import Surroundings

__all__ = ["Epochs", "Outcome"]

TRIED = Output("tried", "arrow")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch came to: its commit, with all that was staged, and what was measured on the way."""

    commit: dict[str, Any]
    counts: RowCounts = field(default_factory=Counter)
    arrivals: Mapping[Signature, list[Arrivals]] = field(default_factory=dict)


class Epochs:
    """Runs the epochs of one fragment."""

    def __init__(self, fragment: Fragment, around: Surroundings, stopping: Callable[[], bool]) -> None:
        self._fragment = fragment
        self._around = around
        self._stopping = stopping
        self.quarantine = Quarantine()

    def remember(self, rows: DataFrame) -> None:
        """Take rows in without letting any out: what stateful operators keep must not miss an epoch."""
        if self._fragment.kind in (Kind.KEYED, Kind.NATIVE):
            rows.write.format("noop").mode("append").save()

    def run(self, rows: DataFrame, epoch: int, plans: Sequence[Plan], ingested_us: int) -> Outcome:
        """Run an epoch under the plans that its rows belong to.

        ``ingested_us`` is when its events were taken in, where that is not known row by row.
        """
        sampled = bool(plans) and self._around.profiler.wants(epoch)
        # Rows that come out of a stateful operator must not be asked of it again and again.
        if len(plans) > 1 or (sampled and self._fragment.kind is not Kind.SOURCE):
            rows = rows.persist()
        began = time.monotonic()
        try:
            return self._run_without(self.quarantine.resting(), rows, epoch, plans, ingested_us)
        except JOB_FAILURES as error:
            if self._stopping():
                raise
            rows, sampled = rows.persist(), False
            culprits = self._culprits(rows, plans)
            if not culprits and workers_were_late(str(error)):
                raise
            for task, reason in culprits.items():
                self.quarantine.put(task, reason)
            return self._run_without(self.quarantine.resting(), rows, epoch, plans, ingested_us)
        finally:
            self._around.profiler.took(time.monotonic() - began)
            handed_over = sampled and self._around.aside.offer(rows, partial(self._sample, plans[-1]))
            if rows.is_cached and not handed_over:
                rows.unpersist()

    def _sample(self, plan: Plan, rows: DataFrame) -> None:
        if self._fragment.id in plan.fragments:
            self._around.profiler.sample(rows, plan, plan.fragments[self._fragment.id])

    def _culprits(self, rows: DataFrame, plans: Sequence[Plan]) -> dict[str, str]:
        """The tasks and topics that raise for these rows, with the reasons."""
        culprits: dict[str, str] = {}
        for plan in plans:
            if self._fragment.id not in plan.fragments:
                continue
            here = rows.where(f"{SNAPSHOT} = {plan.number}") if len(plans) > 1 else rows
            feeds = _feeds_of_items(plan, plan.fragments[self._fragment.id])

            def trial(items: Sequence[str], plan: Plan = plan, here: DataFrame = here) -> str | None:
                return self._tried(plan, here, set(items))

            culprits |= find_culprits(feeds, trial)
        return culprits

    def _tried(self, plan: Plan, rows: DataFrame, wanted: set[str]) -> str | None:
        """Why some tasks and topics fail for these rows, if they do; nothing is put out."""
        fusion = Fusion(plan, plan.fragments[self._fragment.id])
        try:
            self._fuse(fusion, rows, lambda item: item in wanted, all_outputs=True)
            frame = fusion.result(packed=False)
            (rows if frame is None else frame).write.format("noop").mode("append").save()
        except JOB_FAILURES as error:
            return reason_of(str(error))
        finally:
            for stored in fusion.stored:
                stored.unpersist()
        return None

    def _run_without(
        self, resting: set[str], rows: DataFrame, epoch: int, plans: Sequence[Plan], ingested_us: int
    ) -> Outcome:
        """Run an epoch without some tasks and what is behind them, and stage what the others put out."""
        staging = self._around.state.path / "staging" / self._fragment.id
        shutil.rmtree(staging, ignore_errors=True)
        # A worker that outlives a killed engine for a moment must not write into what the next engine stages.
        staging = staging / f"{epoch}-{os.getpid()}"
        staging.mkdir(parents=True)
        fusions: list[Fusion] = []
        targets: list[tuple[str, str, Plan]] = []
        parts = []
        ran: set[str] = set()
        for plan in plans:
            if self._fragment.id not in plan.fragments:
                continue  # those who want its rows have paused or are gone: the rows pass by
            here = rows.where(f"{SNAPSHOT} = {plan.number}") if len(plans) > 1 else rows
            counting = self._around.counting
            fusion = Fusion(plan, plan.fragments[self._fragment.id], first_output=len(targets), counting=counting)
            feeds = _feeds_of_items(plan, fusion.fragment)
            left_out = behind(resting & feeds.keys(), feeds)
            ran |= feeds.keys() - left_out
            found = self._fuse(fusion, here, lambda item, left_out=left_out: item not in left_out)  # type: ignore[misc]
            targets += [(kind, name, plan) for kind, name in found]
            fusions.append(fusion)
            part = fusion.result(packed=len(plans) == 1)
            if part is not None:
                parts.append(part)
        try:
            if not parts:
                self.remember(rows)
                return Outcome({"epoch": epoch, "done": True, "targets": []})
            forms = [output.form for fusion in fusions for output in fusion.outputs]
            staged = stage(parts[0] if len(plans) == 1 else pack(union(parts)), forms, staging, ingested_us)
        finally:
            for fusion in fusions:
                for stored in fusion.stored:
                    stored.unpersist()
        self.quarantine.passed(ran)
        files: dict[tuple[str, str, int], list[Staged]] = {}
        rows_of: Counter[int] = Counter()
        for item in staged:
            kind, name, plan = targets[item.output]
            files.setdefault((kind, name, plan.number), []).append(item)
            rows_of[item.output] += item.rows
        commit = {"epoch": epoch, "done": not files, "targets": self._numbered(files)}
        counts = sum((fusion.counted(rows_of) for fusion in fusions), start=Counter())
        arrivals: dict[Signature, list[Arrivals]] = {}
        for (kind, name, _), items in files.items():
            if kind == "sink":
                reached = [Arrivals(item.rows, np.frombuffer(item.ingested, np.int64)) for item in items]
                arrivals.setdefault(Signature(name), []).extend(reached)
        return Outcome(commit, counts, arrivals)

    def _numbered(self, files: Mapping[tuple[str, str, int], list[Staged]]) -> list[dict[str, Any]]:
        """Targets in the order of their snapshots; what goes to a topic gets its number before it is durable."""
        heads: dict[str, int] = {}
        found = []
        for (kind, name, snapshot), staged in sorted(files.items(), key=lambda item: item[0][2]):
            paths = [(item.path, item.rows) for item in staged]
            target: dict[str, Any] = {"kind": kind, "name": name, "snapshot": snapshot, "files": paths}
            if kind == "topic":
                heads[name] = heads.get(name, self._around.exchange.head(name)) + 1
                target["number"] = heads[name]
                weights = [item.rows for item in staged]
                means = [np.frombuffer(item.ingested, np.int64).mean() for item in staged]
                target["ingested_us"] = int(np.average(means, weights=weights))
            found.append(target)
        return found

    def _fuse(
        self, fusion: Fusion, rows: DataFrame, runs: Callable[[str], bool], *, all_outputs: bool = False
    ) -> list[tuple[str, str]]:
        """Put those of the fragment's tasks and topics that are to run into a fusion; returns where each output goes.

        With ``all_outputs`` the rows of every task are an output, so that each task has work to do.
        """
        plan, fragment = fusion.plan, fusion.fragment
        if fragment.kind is Kind.KEYED:
            fusion.hosted([plan.tasks[signature] for signature in fragment.roots], rows)
        elif fragment.kind is Kind.FEEDBACK:
            if fragment.roots[0] in plan.tasks and runs(fragment.roots[0]):
                fusion.feedback(plan.tasks[fragment.roots[0]], rows)
        elif fragment.kind is Kind.PROXY:
            fusion.proxy(plan.tasks[fragment.roots[0]], rows)
        else:
            fusion.source(fragment.roots[0], rows)
        targets: list[tuple[str, str]] = []
        for signature in filter(runs, fragment.tasks):
            task = plan.tasks.get(signature)
            if task is None or (fragment.kind is Kind.FEEDBACK and signature == fragment.roots[0]):
                continue
            if task.role is Role.SINK:
                fusion.put(task.feeds, Output(signature, form_of(task.options)))
                targets += [("sink", signature)] * (len(fusion.outputs) - len(targets))
            else:
                fusion.run(task)
            if all_outputs:
                fusion.put([Feed(signature, port.name, "in", None, None, False) for port in task.ports.outputs], TRIED)
        for topic in fragment.writes:
            if runs(topic.id):
                schema = self._around.schemas.of(plan, plan.tasks[topic.feeds[0].source])
                names = [field.name for field in schema.fields]
                fusion.put(topic.feeds, Output(topic.id, "topic"), names)
                targets += [("topic", topic.id)] * (len(fusion.outputs) - len(targets))
        return targets


def _feeds_of_items(plan: Plan, fragment: Fragment) -> dict[str, list[str]]:
    """The tasks of a fragment, sinks among them, and its topics, with what feeds each; those that feed others first."""
    tasks = [plan.tasks[signature] for signature in fragment.tasks if signature in plan.tasks]
    items: dict[str, list[str]] = {t.signature: [f.source for f in t.feeds if not f.feedback] for t in tasks}
    return items | {topic.id: [feed.source for feed in topic.feeds] for topic in fragment.writes}
