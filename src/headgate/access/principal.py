"""Who asks: a name, a role and the teams that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AccessRole", "Principal"]


class AccessRole(StrEnum):
    """What somebody may do at most, each role more than the one before."""

    NONE = "none"
    """Nothing."""

    VIEWER = "viewer"
    """See what runs and how it is doing; of the own teams also rows and bills."""

    SUBMITTER = "submitter"
    """Submit, change and withdraw the dataflows of the own teams."""

    OPERATOR = "operator"
    """Change every team's dataflows, limits, placement and machines."""

    ADMIN = "admin"
    """All of it, and read who did what."""

    @property
    def rank(self) -> int:
        """Its place in the order of roles.

        >>> AccessRole.OPERATOR.rank > AccessRole.SUBMITTER.rank
        True
        """
        return list(AccessRole).index(self)


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who asks an engine for something; what authenticates a request makes one."""

    name: str
    """A user of the system, or the name of a token."""

    role: AccessRole = AccessRole.NONE
    teams: frozenset[str] = frozenset()
    """The owners for whom it may speak."""

    origin: str = ""
    """From where it asks, for the audit: a process on the Unix socket, or an address."""

    def is_at_least(self, role: AccessRole) -> bool:
        """Whether its role is this one or a higher one."""
        return self.role.rank >= role.rank
