"""Paths of files: local ones, and URLs."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any

from headgate.errors import InputError

__all__ = ["absolute", "appears_whole", "away", "file_system", "is_there", "is_url"]


def is_url(path: str) -> bool:
    """Whether a path is a URL.

    >>> is_url("s3://bucket/in/*.json"), is_url("data/in")
    (True, False)
    """
    return re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def absolute(path: str) -> str:
    """The path as it is seen from any folder: workers may have been started in another one."""
    return path if is_url(path) else str(Path(path).absolute())


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there; raises :class:`InputError` where nothing knows such URLs.

    What it has listed once it lists again: files come and go. It asks the environment for addresses and credentials.
    """
    from fsspec.core import url_to_fs

    try:
        made: tuple[Any, str] = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        message = f"'{url}' needs a package that is not installed: {error}"
        raise InputError("MISSING_PACKAGE", f"{message}; for s3:// it is in the extra headgate[s3]") from None
    except ValueError as error:
        raise InputError("SOURCE_NOT_THERE", f"'{url}' is not a URL of files: {error}") from None
    return made


OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "r2"})


def appears_whole(url: str) -> bool:
    """Whether a file that is written at a URL is there when all of it is, and not before: so it is in object stores.

    >>> appears_whole("s3://bucket/out"), appears_whole("sftp://host/out")
    (True, False)
    """
    return url.partition("://")[0] in OBJECT_STORES


def is_there(path: str, *, may_be_empty: bool = False) -> bool:
    """Whether there is something at a path; with ``may_be_empty``, whether files could come there."""
    if is_url(path):
        system, root = file_system(path)
        return may_be_empty or bool(system.glob(root) if glob.has_magic(root) else system.exists(root))
    return bool(glob.glob(path)) or Path(path).exists() or (may_be_empty and Path(path).parent.is_dir())  # noqa: PTH207


def away(path: str, error: Exception) -> str:
    """A sentence for storage that does not answer, or not as it should."""
    return f"{path} cannot be reached ({' '.join(str(error).split())[:300]})"
