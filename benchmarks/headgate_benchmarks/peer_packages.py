"""Other stream processors, for benchmarks: they need other versions of packages than Headgate.

They are installed into an environment of their own under the user's cache folder, once for each set of versions.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from headgate.errors import HeadgateError
from headgate_benchmarks.study import Progress

__all__ = ["PINNED", "cache_folder", "installed_peers", "peer_python"]

PINNED = ("apache-flink==2.3.0", "bytewax==0.21.1", "orjson==3.13.0")


def cache_folder() -> Path:
    """Where Headgate keeps what it can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headgate"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headgate"


def _environment(pinned: Sequence[str], root: Path | None) -> tuple[Path, str]:
    wanted = "\n".join((*sorted(pinned), f"{sys.version_info[0]}.{sys.version_info[1]}"))
    return (root or cache_folder()) / "peers" / hashlib.sha256(wanted.encode()).hexdigest()[:12], wanted


def installed_peers(pinned: Sequence[str] = PINNED, root: Path | None = None) -> Path | None:
    """The Python of the environment that has these packages, if there is one."""
    folder, _ = _environment(pinned, root)
    return folder / "bin" / "python" if (folder / "ready").exists() else None


def peer_python(progress: Progress, pinned: Sequence[str] = PINNED, root: Path | None = None) -> Path:
    """The Python of an environment that has these packages; makes it where there is none."""
    installed = installed_peers(pinned, root)
    if installed is not None:
        return installed
    folder, wanted = _environment(pinned, root)
    python = folder / "bin" / "python"
    progress(f"installing {', '.join(pinned)} into {folder}: about 900 MB, some minutes, and only this once")
    venv.EnvBuilder(with_pip=True, clear=True).create(folder)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pinned]
    pip = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    if pip.returncode:
        last = [line for line in pip.stderr.splitlines() if line.strip()][-1:] or ["pip said nothing"]
        reason = f"the other stream processors could not be installed: {last[0][:200]}; --only spark runs without them"
        raise HeadgateError("NO_PEERS", reason)
    (folder / "ready").write_text(wanted, encoding="utf-8")
    return python
