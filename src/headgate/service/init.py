"""Write a project that runs at once."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from headgate.errors import InputError, os_reason

__all__ = ["FILES", "NEXT", "write_project"]

FILES = ("README.md", "alarms.yaml", "averages.yaml", "headgate.toml", "make_data.py")
NEXT = ("python make_data.py", "headgate plan alarms.yaml averages.yaml", "headgate run *.yaml --until-idle")


def write_project(folder: Path) -> list[Path]:
    """Write the files of a project into a folder; raises :class:`InputError` if one of them exists."""
    templates = files("headgate.service") / "project"
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        message = f"{folder} already has {', '.join(there)}; choose another folder, such as headgate init demo"
        raise InputError("FILE_EXISTS", message, {"files": there})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (folder / name).write_text((templates / name).read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise InputError("CANNOT_WRITE", f"cannot write {folder}: {os_reason(error)}") from None
    return [folder / name for name in FILES]
