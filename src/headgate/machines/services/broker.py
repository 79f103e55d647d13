"""A Kafka broker of one node on the loopback interface (KRaft: it is its own controller)."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import InputError
from headgate.machines.processes import Process, start
from headgate.machines.services.jars import kafka_jars
from headgate.machines.standalone import java_command, last_words

__all__ = ["Broker", "wait_until"]

MEMORY = "256m"

SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
"""


@dataclass(slots=True)
class Broker:
    """A broker whose data is in ``folder``; its processes carry ``mark``."""

    folder: Path
    port: int
    controller: int
    mark: str
    process: Process | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self, patience_s: float = 90.0) -> None:
        """Start it and wait until it answers; raises :class:`InputError` if it does not."""
        if shutil.which(java_command()) is None:
            raise InputError("SERVICE_UNAVAILABLE", "the Kafka broker needs Java 17 or 21: install it")
        jars = kafka_jars().fetch()
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "server.properties"
        text = SETTINGS.format(port=self.port, controller=self.controller, folder=self.folder)
        settings.write_text(text, encoding="utf-8")
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(jars, settings)
        command = _java(jars, "kafka.Kafka", str(settings))
        self.process = start(command, self.mark, self.log, os.environ)
        wait_until(self._answers, self.process, self.log, "the Kafka broker", patience_s)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _format(self, jars: Path, settings: Path) -> None:
        # One that began with a dash would be taken for an option.
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").lstrip("-").ljust(22, "A")
        command = _java(jars, "kafka.tools.StorageTool", "format", "--standalone", "-t", name, "-c", str(settings))
        with self.log.open("ab") as log:
            ran = subprocess.run(command, stdout=log, stderr=log, check=False)
        if ran.returncode:
            message = f"the Kafka broker could not make its data folder: {last_words(self.log)}"
            raise InputError("SERVICE_UNAVAILABLE", message)


def _java(jars: Path, main: str, *arguments: str) -> list[str]:
    log = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
    quick = (f"-Xmx{MEMORY}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [java_command(), *quick, *log, "-cp", f"{jars}/*", main, *arguments]


def wait_until(is_ready: Callable[[], bool], process: Process, log: Path, what: str, patience_s: float) -> None:
    """Wait until a service answers; raises :class:`InputError` with the reason from its log if the process ends."""
    until = time.monotonic() + patience_s
    while not is_ready():
        if not process.is_alive() or time.monotonic() > until:
            message = f"{what} did not start: {last_words(log) or 'no reason given'}; see {log}"
            raise InputError("SERVICE_UNAVAILABLE", message)
        time.sleep(0.05)
