"""Spark masters: which kind a URL names, and the settings that Spark needs when it does not run in this process."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from headgate.errors import InputError

__all__ = ["check_master", "is_local", "settings_for"]

_KINDS = "local[*], local[4], spark://host:7077, yarn or k8s://https://host:443"

AWAY: Mapping[str, str] = {
    # Machines are released while they work: executors end their tasks and hand on what they keep.
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    # An executor looks that often whether all is handed on; at Spark's 30 s it outlives its last task by as much.
    "spark.storage.decommission.replicationReattemptInterval": "1s",
    # How many executors there are is decided by policies, not by the number of waiting tasks.
    "spark.dynamicAllocation.enabled": "false",
    # A micro-batch must not wait seconds for the one executor that it would like best.
    "spark.locality.wait": "500ms",
    "spark.executor.logs.rolling.strategy": "size",
    "spark.executor.logs.rolling.maxSize": "8388608",
    "spark.executor.logs.rolling.maxRetainedFiles": "2",
}
"""Settings for any master but a local one."""


def is_local(master: str) -> bool:
    """Whether all work is done in the driver's process.

    >>> is_local("local[4]"), is_local("spark://host:7077")
    (True, False)
    """
    return master == "local" or master.startswith("local[")


def check_master(master: str, settings: Mapping[str, str]) -> None:
    """Raise :class:`InputError` for a master that cannot work, before Spark tries for a minute and says less."""
    if is_local(master):
        if not re.fullmatch(r"local(\[(\*|[1-9]\d*)(\s*,\s*\d+)?\])?", master):
            raise InputError("BAD_MASTER", f"--master {master[:60]!r} is no Spark master; give {_KINDS}")
    elif master.startswith("spark://"):
        addresses = _addresses(master)
        if not any(_answers(host, port) for host, port in addresses):
            message = f"nothing answers at {master[:200]}"
            raise InputError("NO_MASTER", f"{message}; start a cluster with 'headgate cluster up', or mend --master")
    elif master == "yarn":
        if not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
            message = "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR: the folder with YARN's settings"
            raise InputError("NO_MASTER", message)
    elif master.startswith("k8s://"):
        image = "spark.kubernetes.container.image"
        if not any(name.startswith(image) or name == "spark.kubernetes.executor.container.image" for name in settings):
            message = f"--master {master[:100]} needs an image for executors, with Python and headgate in it"
            raise InputError("NO_IMAGE", f"{message}; give it with --conf {image}=IMAGE")
    else:
        raise InputError("BAD_MASTER", f"--master {master[:60]!r} is no Spark master; give {_KINDS}")


def settings_for(master: str) -> dict[str, str]:
    """The settings that Spark needs for a master, beside those for all."""
    if is_local(master):
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    settings = {**AWAY, "spark.executorEnv.PYTHONPATH": _python_path()}
    if address := _address_towards(master):
        # The name of this machine often means nothing, or its loopback, elsewhere.
        settings["spark.driver.host"] = address
        if address.startswith("127."):
            settings["spark.driver.bindAddress"] = address
    return settings


def _python_path() -> str:
    """Where executors may find what this process has imported from folders; those they do not see do no harm."""
    here = str(Path(__file__).parents[3])
    folders = [*(os.environ.get("PYTHONPATH") or "").split(os.pathsep), here]
    installed = Path(here).name in ("site-packages", "dist-packages")
    wanted = [folder for folder in folders if folder and not (installed and folder == here)]
    return os.pathsep.join(dict.fromkeys([*wanted, *(path for path in sys.path if path in wanted)]))


def _addresses(master: str) -> list[tuple[str, int]]:
    """The hosts and ports of a standalone master, and of those that stand in for it.

    >>> _addresses("spark://a:1,b:2")
    [('a', 1), ('b', 2)]
    """
    places = re.findall(r"([^,:/\s]+|\[[^\]]+\]):(\d{1,5})(?:,|$)", master.removeprefix("spark://"))
    if not places or any(int(port) > 65_535 for _, port in places):
        raise InputError("BAD_MASTER", f"--master {master[:60]!r} is no Spark master; give {_KINDS}")
    return [(host.strip("[]"), int(port)) for host, port in places]


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False


def _address_towards(master: str) -> str | None:
    """The address under which this machine is seen from a master's machine, as far as its URL names that one."""
    if master.startswith("spark://"):
        host, port = _addresses(master)[0]
    else:
        match = re.fullmatch(r"k8s://(?:https?://)?(\[[^\]]+\]|[^:/]+)(?::(\d{1,5}))?.*", master)
        if match is None:
            return None
        host, port = match[1].strip("[]"), int(match[2] or 443)
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as towards:
            towards.connect(address)  # sends nothing; it only chooses a way
            return str(towards.getsockname()[0])
    except OSError:
        return None
