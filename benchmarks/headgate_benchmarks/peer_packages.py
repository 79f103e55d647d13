"""Other stream processors, for benchmarks: they go with other versions of packages than Headgate, so they live apart.

They are installed into an environment of their own under the user's cache folder, once for each set of versions.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from headgate.errors import HeadgateError

__all__ = ["PINNED", "cache_folder", "peer_python"]

PINNED = ("apache-flink==2.3.0", "bytewax==0.21.1", "orjson==3.13.0")

Progress = Callable[[str], None]


def cache_folder() -> Path:
    """Where Headgate keeps what it can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headgate"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


def peer_python(progress: Progress, pinned: Sequence[str] = PINNED, root: Path | None = None) -> Path:
    """The Python of an environment that has these packages; makes it where there is none."""
    wanted = "\n".join((*sorted(pinned), f"{sys.version_info[0]}.{sys.version_info[1]}"))
    folder = (root or cache_folder()) / "peers" / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / "ready").exists():
        return python
    progress(f"installing {', '.join(pinned)} into {folder}: about 900 MB, some minutes, and only this once")
    venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pinned]
    found = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        last = [line for line in found.stderr.splitlines() if line.strip()][-1:] or ["pip said nothing"]
        told = f"the other stream processors could not be installed: {last[0][:200]}; --only spark runs without them"
        raise HeadgateError("NO_PEERS", told)
    (folder / "ready").write_text(wanted, encoding="utf-8")
    return python
