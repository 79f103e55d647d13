"""How an engine is started: by the command, with a JVM of its own; or, quickly, forked and with a JVM that is warm.

A start by the command takes half a minute on a busy machine, most of it in the JVM and in imports. What a test of
durable steps kills is the engine's Python process, and that process writes all of them. So the JVM may live on: what
runs in it is stopped after each kill, before the next engine is started. The engine does not know the difference.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import psutil

from headgate.store.durable_steps import VARIABLE
from tests.judge.interpreter import interpreter

__all__ = ["ROOT", "ColdStarts", "Starts", "WarmStarts"]

ROOT = Path(__file__).parents[2]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"
"""For a JVM that does not live long enough for a compiler that takes its time."""

SPARK = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": QUICK, "spark.ui.enabled": "false"}
STOP_S = 10.0
"""How long a JVM may take to stop what it runs, before it is killed."""

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Settings without which libraries start threads when they are imported, which a fork does not copy."""

PATHS = os.pathsep.join(map(str, (ROOT / "src", ROOT)))


class Starts(Protocol):
    """Starts engines one after the other."""

    aim: Path
    """At which durable step they end (:mod:`headgate.store.durable_steps`)."""

    def start(self, arguments: Sequence[str], folder: Path) -> psutil.Process:
        """Start ``headgate`` with some arguments, the leader of a session."""

    def after_kill(self) -> None:
        """End what an engine has left behind."""

    def jvm(self, engine: psutil.Process) -> psutil.Process | None:
        """The engine's JVM."""

    def python(self, engine: psutil.Process) -> psutil.Process | None:
        """The parent of the Python processes that its JVM has started."""

    def close(self) -> None:
        """End everything."""


def _end_session(process: psutil.Process | None) -> None:
    if process is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(psutil.Error):
            process.wait(30)


logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # it logs what it raises, when a JVM is killed


def _close(process: subprocess.Popen[Any] | psutil.Popen | None) -> None:
    """End a process that was started here, with its session and its pipes."""
    if process is None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _stopped(gateway: Any) -> bool:
    """Stop what an engine ran in a JVM, and say whether that worked.

    A query would live on without its engine and write; in a crash of the whole it could not. Stopping the context ends
    its jobs, and interrupting the threads of queries, as Spark does to stop them, ends these.
    """
    active = getattr(getattr(gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
    _interrupted(gateway)
    if active.isDefined():
        active.get().stop()
    until = time.monotonic() + STOP_S
    while _interrupted(gateway):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _interrupted(gateway: Any) -> int:
    """Interrupt the threads of queries; how many there were."""
    every = gateway.jvm.java.lang.Thread.getAllStackTraces().keySet()
    threads = [thread for thread in every if "stream execution" in thread.getName()]
    for thread in threads:
        thread.interrupt()
    return len(threads)


class ColdStarts:
    """By the command, as a user does."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="headgate-cold-")
        self.aim = Path(self._place.name) / "aim"
        self._environment = {**os.environ, "PYTHONPATH": PATHS, VARIABLE: str(self.aim)}
        self._engine: psutil.Process | None = None

    def start(self, arguments: Sequence[str], folder: Path) -> psutil.Process:
        command = [sys.executable, "-m", "headgate", *arguments]
        for name, value in SPARK.items():
            command += ["--conf", f"{name}={value}"]
        with (folder / "log").open("ab") as log:
            self._engine = psutil.Popen(
                command, cwd=folder, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        return self._engine

    def after_kill(self) -> None:
        _end_session(self._engine)

    def jvm(self, engine: psutil.Process) -> psutil.Process | None:
        with suppress(psutil.Error):
            for child in engine.children(recursive=True):
                if child.name() == "java":
                    return child
        return None

    def python(self, engine: psutil.Process) -> psutil.Process | None:
        return self.jvm(engine)

    def close(self) -> None:
        _end_session(self._engine)
        self._place.cleanup()


class WarmStarts:
    """Forked from a process that has imported everything, with a JVM that outlives engines.

    The Python processes that Spark starts are forked as well: :mod:`tests.judge.fork_server`. ``program`` is the
    module whose ``main`` an engine is.
    """

    def __init__(self, program: str = "headgate.cli.main") -> None:
        self._program = program
        self._place = tempfile.TemporaryDirectory(prefix="headgate-warm-")
        python = interpreter(Path(self._place.name), self._server_address)
        given = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), **dict.fromkeys(ONE_THREAD, "1")}
        self.aim = Path(self._place.name) / "aim"
        self._environment = {**os.environ, "PYTHONPATH": PATHS, **given, VARIABLE: str(self.aim)}
        self._engine: psutil.Process | None = None
        self._jvm: psutil.Popen | None = None
        self._server: subprocess.Popen[str] | None = None
        self._python: psutil.Process | None = None
        """The parent of the Python processes that Spark has started."""

        self._address: tuple[int, str] = (0, "")

    @property
    def _server_address(self) -> Path:
        return Path(self._place.name) / "server"

    def start(self, arguments: Sequence[str], folder: Path) -> psutil.Process:
        if self._jvm is None or self._jvm.poll() is not None:
            self._start_jvm(folder)
        assert self._server is not None
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = {"program": self._program, "arguments": list(arguments)}
        asked |= {"log": str(folder / "log"), "folder": str(folder)}
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        self._engine = psutil.Process(int(self._server.stdout.readline()))
        return self._engine

    def _start_jvm(self, folder: Path) -> None:
        """Start a JVM as PySpark does, and a server that forks engines which use it."""
        _close(self._jvm)
        java = (Path(sys.prefix) / "java-home").read_text(encoding="utf-8").strip()
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        spark = Path(spec.origin).parent
        address = Path(self._place.name) / "jvm"
        address.unlink(missing_ok=True)
        environment = {**self._environment, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address), "SPARK_CONNECT_MODE": "0"}
        environment |= {"JAVA_HOME": java, "SPARK_HOME": str(spark)}
        command = [str(spark / "bin" / "spark-submit")]
        for name, value in SPARK.items():
            command += ["--conf", f"{name}={value}"]
        with (folder / "jvm.log").open("ab") as log:
            self._jvm = psutil.Popen(
                [*command, "pyspark-shell"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while not address.exists():
            assert self._jvm.poll() is None, (folder / "jvm.log").read_text(errors="replace")
            time.sleep(0.05)
        known = address.read_bytes()
        self._address = int.from_bytes(known[:4]), known[8:].decode()
        self._start_server()

    def _start_server(self) -> None:
        _close(self._server)
        self._server_address.unlink(missing_ok=True)
        port, secret = self._address
        known = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        command = [sys.executable, "-m", "tests.judge.fork_server", str(self._server_address)]
        self._server = subprocess.Popen(
            command,
            env={**self._environment, **known},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        self._python = psutil.Process(int(self._server.stdout.readline()))

    def after_kill(self) -> None:
        """Kill the engine's session, and stop what it ran in the JVM."""
        _end_session(self._engine)
        if self._jvm is None or self._jvm.poll() is not None:
            return
        gateway: Any = self._gateway()
        try:
            if not _stopped(gateway):
                _close(self._jvm)
        except Exception:  # whatever a JVM in this state has to say
            _close(self._jvm)
        finally:
            gateway.close()

    def _gateway(self) -> Any:
        from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]

        port, secret = self._address
        return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))

    def jvm(self, engine: psutil.Process) -> psutil.Process | None:
        del engine
        return self._jvm

    def python(self, engine: psutil.Process) -> psutil.Process | None:
        del engine
        return self._python

    def close(self) -> None:
        _end_session(self._engine)
        for process in (self._server, self._jvm):
            _close(process)
        self._place.cleanup()
