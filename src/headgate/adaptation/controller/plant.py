"""What a controller works on: an engine, or a fake of one in a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from headgate.adaptation.actions import Action
from headgate.adaptation.policy import Capabilities, Terms
from headgate.model.cluster.observation import Observation
from headgate.model.names import Signature
from headgate.store.entries import Entry

__all__ = ["ControlledCluster", "Costed"]

Costed = Collection[tuple[Signature, str]]
"""Alternates, by task and name, of which it is known what they cost."""


class ControlledCluster(Protocol):
    """Where dataflows run. Machines come from a provider beside it."""

    def observations(self) -> Sequence[Observation]:
        """What was measured since the last call, an interval each."""

    def terms(self, costed: Costed) -> tuple[Terms, Capabilities] | None:
        """What runs now, with those alternates that are active or of known cost; none if nothing runs."""

    def publish(self, actions: Sequence[Action], by: str, reason: str, done: Callable[[int], Sequence[Entry]]) -> None:
        """Change how tasks are run, all of it or, with an error, nothing; and note by whom and why.

        ``done`` makes entries of the number of the plan snapshot; they become durable together with it.
        """
