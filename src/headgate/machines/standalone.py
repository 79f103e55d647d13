"""Spark's standalone master and workers as processes, from the PySpark package."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError, InputError, missing_package
from headgate.machines.processes import Process, start
from headgate.model.cluster.vm_class import VmClass

__all__ = [
    "MIB",
    "free_port",
    "is_free",
    "java_command",
    "last_words",
    "registered_hosts",
    "start_master",
    "start_worker",
]

MIB = 2**20

_ALL = (
    "-Dspark.decommission.enabled=true",
    "-Dspark.port.maxRetries=0",  # one that is taken is an answer; the next one would be a surprise
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)
_MASTER = (
    "-Dspark.master.rest.enabled=false",
)  # another way to submit, on a port that a second cluster would find taken
_WORKER = ("-Dspark.worker.cleanup.enabled=true",)


def start_master(host: str, port: int, web_port: int, mark: str, log: Path) -> Process:
    """Start a master."""
    arguments = ["--host", host, "--port", str(port), "--webui-port", str(web_port)]
    command = [_spark_class(), "org.apache.spark.deploy.master.Master", *arguments]
    return start(command, mark, log, _environment(host) | {"SPARK_MASTER_OPTS": _added("SPARK_MASTER_OPTS", _MASTER)})


def start_worker(vm_class: VmClass, host: str, master: str, folder: Path, mark: str) -> Process:
    """Start a worker that offers the cores and the memory of a VM class; logs and work are kept in ``folder``."""
    for name in ("work", "local"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    offered = ["--cores", str(vm_class.cores), "--memory", f"{vm_class.memory_bytes // MIB}M"]
    places = ["--host", host, "--port", "0", "--webui-port", "0", "--work-dir", str(folder / "work")]
    environment = _environment(host) | {
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_OPTS": _added("SPARK_WORKER_OPTS", _WORKER),
    }
    command = [_spark_class(), "org.apache.spark.deploy.worker.Worker", *places, *offered, master]
    return start(command, mark, folder / "worker.log", environment)


def registered_hosts(web: str, timeout_s: float = 2.0) -> set[str] | None:
    """The hosts of the registered workers; none if the master does not answer."""
    try:
        with urllib.request.urlopen(f"{web}/json/", timeout=timeout_s) as answer:  # noqa: S310  (a master of ours)
            answered: dict[str, Any] = json.load(answer)
    except (OSError, urllib.error.URLError, ValueError):
        return None
    return {worker["host"] for worker in answered["workers"] if worker["state"] == "ALIVE"}


def free_port(host: str) -> int:
    """A port that is free at the moment."""
    with socket.socket() as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    """Whether a port is free."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError:
            return False
    return True


def last_words(log: Path) -> str:
    """The last line of a log that looks like the reason why a process ended."""
    if not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    signs = ("error", "exception", "java_home", "not found", "no such file", "failed")
    reasons = [line for line in lines if any(sign in line.lower() for sign in signs)]
    return (reasons or lines or [""])[-1][:300]


def java_command() -> str:
    """The program ``java`` that set-up has found, or the system's."""
    home = {**_java_home(), **os.environ}.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _java_home() -> dict[str, str]:
    known = Path(sys.prefix) / "java-home"
    return {"JAVA_HOME": known.read_text(encoding="utf-8").strip()} if known.exists() else {}


def _environment(host: str) -> dict[str, str]:
    return {
        **_java_home(),
        "SPARK_DAEMON_MEMORY": "192m",
        **os.environ,
        "SPARK_DAEMON_JAVA_OPTS": _added("SPARK_DAEMON_JAVA_OPTS", _ALL),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": host,
    }


def _added(name: str, options: Sequence[str]) -> str:
    """An environment variable with added options."""
    return " ".join([os.environ.get(name, ""), *options]).strip()


def _spark_class() -> str:
    path = _spark_home() / "bin" / "spark-class"
    if not path.is_file():
        message = f"there is no Spark at {path.parent.parent}; unset SPARK_HOME, or let it name a Spark"
        raise InputError("NO_SPARK", message)
    return str(path)


def _spark_home() -> Path:
    if os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"])
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise missing_package("NO_SPARK", "a local cluster", "pyspark", "spark")
    if not Path("/proc/self/stat").exists():
        raise HeadgateError("NOT_LINUX", "a local cluster needs Linux: processes are identified through /proc")
    return Path(spec.submodule_search_locations[0])
