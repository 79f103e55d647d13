"""The memory of the policy that decides, from decision to decision; it begins anew when what runs changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.adaptation.controller.records import RecordedDecision
from headgate.adaptation.policy import Memory, Policy
from headgate.adaptation.window import Window
from headgate.store.journal import Journal

__all__ = ["PolicyMemory"]


@dataclass(slots=True)
class PolicyMemory:
    """Makes policies by name, and keeps what the one that decides remembers."""

    make_policy: Callable[[str], Policy]
    journal: Journal
    last: RecordedDecision | None = None
    """The last decision that a process before this one has written down: its policy goes on from there."""

    _policy: Policy | None = None
    _terms: str = ""
    _memory: Memory | None = field(default=None)

    def begun(self, name: str, terms: str, seen: Window) -> tuple[Policy, Memory]:
        """The policy of that name, and what it remembers on these terms."""
        if self._policy is None or self._policy.name != name:
            self._policy, self._memory = self.make_policy(name), None
        policy = self._policy
        if self._memory is None or self._terms != terms:
            self._memory = self._read(policy, terms) or policy.begin(seen.terms, seen.capabilities)
            self._terms = terms
        return policy, self._memory

    def remember(self, terms: str, memory: Memory) -> None:
        """Go on with another memory."""
        self._terms, self._memory = terms, memory

    def _read(self, policy: Policy, terms: str) -> Memory | None:
        last, self.last = self.last, None
        if last is None or (last.made.policy, last.made.terms) != (policy.name, terms):
            return None
        before = Memory.of(last.made.memory, policy.name, policy.version)
        return None if before is None else policy.decide(last.window(self.journal), before)[1]
