"""The real broker and the real database of a test run: started when the first test needs one, once for the process."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from headgate.errors import InputError
from headgate.machines.processes import end
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import Database
from headgate.machines.standalone import free_port

__all__ = ["end_services", "the_broker", "the_database"]

Service = TypeVar("Service", Broker, Database)
_started_here: list[Broker | Database] = []


def end_services() -> None:
    """End what this process has started; a process of xdist may be ended before what runs at exit."""
    for service in _started_here:
        end(service.mark, 5.0)
        shutil.rmtree(service.folder, ignore_errors=True)
    _started_here.clear()


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
