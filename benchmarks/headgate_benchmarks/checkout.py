"""The checkout that the benchmarks run in: its examples, and the folder of shared data beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headgate.errors import InputError

__all__ = ["ROOT", "example", "make_importable", "shared_data"]

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> Path:
    """A file or folder of ``examples``."""
    path = ROOT / "examples" / name
    if not path.exists():
        message = f"the benchmark reads examples/{name}, which is not there; run it in a clone of Headgate"
        raise InputError("NO_EXAMPLES", message)
    return path


def make_importable() -> None:
    """Let this process and Spark's workers import the examples; call it before Spark starts."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(ROOT), *filter(None, inherited)]))


def shared_data(start: Path | None = None) -> Path | None:
    """The folder of shared data: ``$HEADGATE_SHARED_DATA``, or ``shared/data`` beside this folder or one above it."""
    named = os.environ.get("HEADGATE_SHARED_DATA")
    places = [Path(named)] if named else [p / "shared" / "data" for p in (start or Path.cwd()).resolve().parents]
    return next((place for place in places if place.is_dir()), None)
