"""Which functions run in processes of their own, and what these may have: as variables of workers' environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

__all__ = ["ISOLATED_VARIABLE", "IsolationSettings"]

PREFIX = "HEADGATE_WORKER_FUNCTIONS_"
ISOLATED_VARIABLE = f"{PREFIX}ISOLATED"
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class IsolationSettings:
    """Read from the environment, in Spark's process and in its workers."""

    is_on: bool = False
    trusted: tuple[str, ...] = ()
    """Modules whose functions run in Spark's workers themselves."""

    network: tuple[str, ...] = ()
    """Modules whose functions may connect to hosts."""

    read: tuple[Path, ...] = field(default=())
    """Files and folders that functions may read, besides the modules."""

    memory_bytes: int = MEMORY_BYTES

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> IsolationSettings:
        """The settings that an environment has.

        >>> IsolationSettings.of({"HEADGATE_WORKER_FUNCTIONS_ISOLATED": "1"}).isolates("city.clean")
        True
        """
        variables = os.environ if environment is None else environment

        def listed(name: str) -> tuple[str, ...]:
            return tuple(filter(None, variables.get(f"{PREFIX}{name}", "").split(os.pathsep)))

        memory = int(variables.get(f"{PREFIX}MEMORY_BYTES") or MEMORY_BYTES)
        is_on = variables.get(ISOLATED_VARIABLE) == "1"
        return cls(is_on, listed("TRUSTED"), listed("NETWORK"), tuple(map(Path, listed("READ"))), memory)

    def isolates(self, function: str) -> bool:
        """Whether a function, by its import path, runs in a process of its own.

        >>> settings = IsolationSettings(True, trusted=("city",))
        >>> settings.isolates("city.clean"), settings.isolates("citys.clean"), IsolationSettings().isolates("a.b")
        (False, True, False)
        """
        return self.is_on and not _is_of(function, self.trusted)

    def may_connect(self, function: str) -> bool:
        """Whether a function may use the network."""
        return _is_of(function, self.network)


def _is_of(function: str, modules: tuple[str, ...]) -> bool:
    return any(fnmatchcase(function.replace(":", "."), f"{module}.*") for module in modules)
