"""Pages that need Spark run on the one that the tests of the runtime have."""

from __future__ import annotations

from tests.runtime.conftest import spark

__all__ = ["spark"]
