"""A broker and a database on this machine, for trials and examples: start, stop, and what runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.machines.services.database import server_programs
from headgate.machines.services.jars import kafka_jars
from headgate.machines.services.local import NAMES, LocalServices
from headgate.model.table import Table, TableColumn

__all__ = ["NAMES", "fetch", "services_table", "start", "status", "stop"]


def fetch() -> list[str]:
    """Fetch what the services need; returns why one cannot be had, in a sentence each."""
    missing = []
    for provide in (kafka_jars().fetch, server_programs):
        try:
            provide()
        except InputError as error:
            missing.append(error.message)
    return missing


def start(folder: Path, names: tuple[str, ...], ports: dict[str, int]) -> list[dict[str, Any]]:
    """Start services whose data is in a folder."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InputError("NO_SUCH_SERVICE", f"no service '{unknown[0]}'; there are {' and '.join(NAMES)}")
    LocalServices(folder).start(names or NAMES, ports)
    return status(folder)


def stop(folder: Path) -> int:
    """Stop the services of a folder; their data stays. Returns how many ran."""
    return LocalServices(folder).stop()


def status(folder: Path) -> list[dict[str, Any]]:
    """The services of a folder."""
    return [{"service": one.name, "runs": one.runs, "address": one.address} for one in LocalServices(folder).status()]


def services_table(answer: list[dict[str, Any]]) -> Table:
    """The services as a table."""
    columns = TableColumn("service", "service"), TableColumn("state", "state"), TableColumn("address", "address")
    rows = [{**one, "state": "running" if one["runs"] else "stopped"} for one in answer]
    return Table("Services", columns, tuple(rows))
