"""What an engine measures of its tasks is kept for the next one, and what others have measured is found again."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headgate.adaptation.costs import Profiles
from headgate.errors import HeadgateError
from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature
from headgate.model.task import Alternate
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, alternate_key, digest
from headgate.runtime.compile.schemas import Schemas, ddl
from headgate.runtime.spark_internals.failures import JOB_FAILURES
from headgate.store.profiles import ProfileStore

__all__ = ["KeptProfiles"]


class KeptProfiles:
    """The profiles in a state directory, by tasks of a plan."""

    def __init__(self, state: Path, schemas: Schemas) -> None:
        self._store = ProfileStore(state / "profiles.json")
        self._schemas = schemas
        self._keys: dict[tuple[Signature, str, str], str] = {}
        self._lock = threading.Lock()

    def keep(self, plan: CompiledPlan, measured: Profiles, speed: float | None) -> None:
        """Keep what was measured on cores of a known speed."""
        if speed is None:
            return
        profiles = {}
        for (signature, name), profile in measured.items():
            task = plan.tasks.get(signature)
            way = None if task is None else _way(task, name)
            if task is not None and way is not None and (key := self._known_key(plan, task, way)) is not None:
                profiles[key] = _on_the_reference_core(profile, speed)
        with self._lock, suppress(OSError):  # a full disk; it is tried again with the next measurement
            self._store.keep(profiles)

    def of(self, plan: CompiledPlan) -> Profiles:
        """What is known of every alternate of every task, for the reference core."""
        known = {}
        for task in plan.tasks.values():
            for way in task.running.task.alternates:
                key = self._known_key(plan, task, way)
                profile = None if key is None else self._store.of(key)
                if profile is not None:
                    known[task.signature, way.name] = profile
        return known

    def _known_key(self, plan: CompiledPlan, task: CompiledTask, way: Alternate) -> str | None:
        """None where its input cannot be worked out: what stops Spark must not stop who observes it."""
        with suppress(HeadgateError, LookupError, *JOB_FAILURES):
            return self._key(plan, task, way)
        return None

    def _key(self, plan: CompiledPlan, task: CompiledTask, way: Alternate) -> str:
        """What an alternate does and on which columns, as a short text; columns change with alternates before it."""
        feeds = [feed for feed in task.feeds if not feed.feedback and feed.source in plan.tasks]
        before = " ".join(alternate_key(plan.tasks[feed.source].alternate) for feed in feeds)
        place = task.signature, alternate_key(way), before
        if place not in self._keys:
            sides = [f"{feed.target_port} {ddl(self._schemas.of(plan, plan.tasks[feed.source]))}" for feed in feeds]
            self._keys[place] = digest("\0".join([alternate_key(way), *sides]))
        return self._keys[place]


def _way(task: CompiledTask, name: str) -> Alternate | None:
    return next((way for way in task.running.task.alternates if way.name == name), None)


def _on_the_reference_core(profile: TaskProfile, speed: float) -> TaskProfile:
    """Work takes as much less time on the reference core as it is faster; waiting takes as long."""
    waited_s = max(profile.sojourn_s_per_row - profile.cpu_s_per_row, 0.0)
    cpu_s = profile.cpu_s_per_row * speed
    transfer_s = profile.transfer_s_per_row * speed
    return replace(profile, cpu_s_per_row=cpu_s, sojourn_s_per_row=cpu_s + waited_s, transfer_s_per_row=transfer_s)
