"""The real broker and the real database of a test run: started when the first test needs one, once for the process."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headgate.errors import InputError
from headgate.machines.processes import end
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import Database
from headgate.machines.standalone import free_port
from headgate.runtime.spark_internals.worker_limits import PASSED_VARIABLE

__all__ = ["S3_SETTINGS", "end_services", "the_broker", "the_database", "the_object_store"]

Service = TypeVar("Service", Broker, Database)
_started_here: list[Broker | Database] = []
_stores: list[ObjectStore] = []


def end_services() -> None:
    """End what this process has started; a process of xdist may be ended before what runs at exit."""
    for service in _started_here:
        end(service.mark, 5.0)
        shutil.rmtree(service.folder, ignore_errors=True)
    _started_here.clear()
    while _stores:
        _stores.pop().close()


def the_broker() -> Broker:
    """A broker that runs; skips the test where there can be none."""
    return _or_skip(_broker())


def the_database() -> Database:
    """A database server that runs; skips the test where there can be none."""
    return _or_skip(_database())


def _or_skip(made: Service | InputError) -> Service:
    if isinstance(made, InputError):
        pytest.skip(made.message)
    return made


@cache
def _broker() -> Broker | InputError:
    folder = _folder()
    broker = Broker(folder, free_port("127.0.0.1"), free_port("127.0.0.1"), f"test broker {folder}")
    return _started(broker)


@cache
def _database() -> Database | InputError:
    folder = _folder()
    return _started(Database(folder, free_port("127.0.0.1"), f"test database {folder}"))


def _folder() -> Path:
    """A folder that the database's user may pass through, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix=f"headgate-services-{os.getpid()}-"))
    folder.chmod(0o755)
    return folder


def _started(service: Service) -> Service | InputError:
    _started_here.append(service)
    try:
        service.start()
    except InputError as error:
        return error
    return service


def _lasting_port() -> int:
    """A free port that nobody is given for a connection meanwhile: systems take those from 32,768 on."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


S3_PORT = _lasting_port()

S3_SETTINGS = {
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{S3_PORT}",
    "AWS_ACCESS_KEY_ID": "headgate",
    "AWS_SECRET_ACCESS_KEY": "headgate",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    PASSED_VARIABLE: "AWS_*",
}
"""The environment in which everything finds the local S3; workers have it from when Spark is started."""


SERVE_S3 = """
import socket, sys
from moto.server import ThreadedMotoServer
made = None
for line in sys.stdin:
    if line.strip() == "start":
        socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()  # moto waits forever for one that is taken
        made = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
        made.start()
    else:
        made.stop()
    print("done", flush=True)
"""


class ObjectStore:
    """A local S3; what it stores stays when it is away for a while.

    It is a process of its own: libraries in Rust keep Python's lock while they wait for an answer.
    """

    def __init__(self) -> None:
        command = [sys.executable, "-c", SERVE_S3, str(S3_PORT)]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        _stores.append(self)

    def start(self) -> None:
        self._do("start")

    def stop(self) -> None:
        self._do("stop")

    def close(self) -> None:
        """End it."""
        self._server.kill()
        self._server.communicate()

    def _do(self, what: str) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{what}\n")
        self._server.stdin.flush()
        assert self._server.stdout.readline() == "done\n"

    def bucket(self) -> str:
        """A new bucket, as a URL."""
        name = f"b{uuid.uuid4().hex[:10]}"
        self.client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def client(self) -> Any:
        """Amazon's own client."""
        import boto3

        place = {"endpoint_url": S3_SETTINGS["AWS_ENDPOINT_URL"], "region_name": "us-east-1"}
        keys = {"aws_access_key_id": "headgate", "aws_secret_access_key": "headgate"}
        return boto3.client("s3", **place, **keys)


@cache
def the_object_store() -> ObjectStore:
    """A local S3 that runs."""
    os.environ.update(S3_SETTINGS)
    store = ObjectStore()
    store.start()
    return store
