"""Paths of files to read: local ones, and URLs."""

from __future__ import annotations

import glob
import re
from pathlib import Path

__all__ = ["absolute", "is_there", "is_url"]


def is_url(path: str) -> bool:
    """Whether a path is a URL.

    >>> is_url("s3://bucket/in/*.json"), is_url("data/in")
    (True, False)
    """
    return re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def absolute(path: str) -> str:
    """The path as it is seen from any folder: workers may have been started in another one."""
    return path if is_url(path) else str(Path(path).absolute())


def is_there(path: str, *, may_be_empty: bool = False) -> bool:
    """Whether there is something at a path; with ``may_be_empty``, whether files could come there."""
    if is_url(path):
        from fsspec.core import url_to_fs

        system, root = url_to_fs(path)
        return may_be_empty or bool(system.glob(root) if glob.has_magic(root) else system.exists(root))
    return bool(glob.glob(path)) or Path(path).exists() or (may_be_empty and Path(path).parent.is_dir())  # noqa: PTH207
