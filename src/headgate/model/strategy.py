"""The names of the strategies by which dataflows are merged where they run."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["StrategyName"]


class StrategyName(StrEnum):
    """How dataflows are merged where they run."""

    NONE = "none"
    INCREMENTAL = "incremental"
    REPLACE = "replace"
    REPLACE_PRUNE = "replace-prune"
    HOT = "hot"
