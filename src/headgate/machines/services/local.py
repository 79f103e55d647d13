"""The broker and the database of a folder: started, stopped, and what of them runs."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import InputError
from headgate.machines.processes import end, marked, reap
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import Database
from headgate.machines.standalone import free_port, is_free
from headgate.store.files import read_json, write_json

__all__ = ["NAMES", "LocalServices", "ServiceStatus"]

NAMES = ("kafka", "postgres")

USUAL_PORTS = {"kafka": 9092, "postgres": 5432}


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service of a folder, and whether it runs."""

    name: str
    runs: bool
    address: str
    """How a dataflow names it: ``servers`` of Kafka, ``url`` of a database."""


@dataclass(frozen=True, slots=True)
class LocalServices:
    """The services whose data is in a folder."""

    folder: Path

    def start(self, names: tuple[str, ...] = NAMES, ports: dict[str, int] | None = None) -> None:
        """Start services that do not run; a port is the one of last time, the usual one, or any free one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(self.folder.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)  # for the database's user
        reap()
        for name in names:
            if not self._runs(name):
                self._service(name, self._port(name, (ports or {}).get(name))).start()

    def stop(self, names: tuple[str, ...] = NAMES) -> int:
        """End services; returns how many ran. Their data stays."""
        running = [name for name in names if self._runs(name)]
        for name in running:
            end(self._mark(name), patience_s=30.0)
        return len(running)

    def status(self) -> list[ServiceStatus]:
        """The services that have been started in this folder."""
        ports = self._ports()
        return [
            ServiceStatus(name, self._runs(name), self._address(name, ports[name])) for name in NAMES if name in ports
        ]

    def _address(self, name: str, port: int) -> str:
        return self._broker(port).servers if name == "kafka" else self._database(port).url

    def _service(self, name: str, port: int) -> Broker | Database:
        return self._broker(port) if name == "kafka" else self._database(port)

    def _broker(self, port: int) -> Broker:
        controller = int((read_json(self._file) or {}).get("controller") or free_port("127.0.0.1"))
        write_json(self._file, {**(read_json(self._file) or {}), "controller": controller})
        return Broker(self.folder.resolve() / "kafka", port, controller, self._mark("kafka"))

    def _database(self, port: int) -> Database:
        return Database(self.folder.resolve() / "postgres", port, self._mark("postgres"))

    def _runs(self, name: str) -> bool:
        return bool(marked(self._mark(name)))

    def _mark(self, name: str) -> str:
        return f"{name} of {self.folder.resolve()}"

    @property
    def _file(self) -> Path:
        return self.folder / "services.json"

    def _ports(self) -> dict[str, int]:
        stored = read_json(self._file) or {}
        return {name: int(stored[name]) for name in NAMES if name in stored}

    def _port(self, name: str, wanted: int | None) -> int:
        port = wanted if wanted is not None else self._ports().get(name, USUAL_PORTS[name])
        if port == 0 or (wanted is None and not is_free("127.0.0.1", port)):
            port = free_port("127.0.0.1")
        if not is_free("127.0.0.1", port):
            message = f"port {port} is in use by another process; choose another one for {name}, or 0 for any"
            raise InputError("PORT_TAKEN", message)
        write_json(self._file, {**(read_json(self._file) or {}), name: port})
        return port
