"""The city example as a service: dataflows of four teams, and sensors whose day takes ten minutes."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType

import headgate
from headgate.access.principal import AccessRole, Principal
from headgate.errors import InputError
from headgate.service.serve import ServedEngine

__all__ = ["DAY_S", "DemoCity", "rate_at"]

FILES = ("city/alarms.yaml", "city/map.yaml", "city/archive.json", "city/quality.py")
DAY_S = 600.0
EVERY_S = 0.5
KEPT_FILES = 1_200
"""Ten minutes of readings stay; what is older has been read."""

TOKEN = "demo"  # noqa: S105  (of a demonstration on this machine)
TOKEN_LIFE_S = 86_400.0


def rate_at(hour: float) -> float:
    """Readings a second at an hour of the day: a quiet night, and two rush hours.

    >>> rate_at(3.0) < 250.0, rate_at(8.0) > 2_500.0, rate_at(24.0) == rate_at(0.0)
    (True, True, True)
    """
    of_day = hour % 24.0
    day = 300.0 * math.sin(math.pi * of_day / 24.0)
    rushes = sum(peak * math.exp(-(((of_day - at) / width) ** 2)) for at, peak, width in RUSHES)
    return 100.0 + day + rushes


RUSHES = ((8.0, 2_500.0, 1.0), (17.5, 1_800.0, 1.5))


class DemoCity:
    """The folder in which the city runs, and its sensors."""

    def __init__(self, folder: Path) -> None:
        """Make the folder; it becomes the working directory, from where the dataflows name their files."""
        examples = Path(headgate.__file__).parents[2] / "examples"
        if not (examples / FILES[0]).is_file():
            raise InputError("NO_DEMO", "the examples are not installed; run headgate serve --demo in a clone")
        self.files = [examples / file for file in FILES]
        self._data = _module(examples / "city_data.py")
        self.folder = folder.absolute()
        self.state = self.folder / "state"
        try:
            self._data.write(self.folder / "data", rows=0, seed=1)
            (self.folder / "out").mkdir(exist_ok=True)
            os.chdir(self.folder)
        except OSError as error:
            raise InputError("CANNOT_WRITE", f"cannot write {folder}: {error.strerror}") from None

    def token(self, served: ServedEngine) -> str:
        """A token for the one who looks at the demonstration; the one of before is revoked."""
        who = Principal(TOKEN, AccessRole.ADMIN, origin="headgate serve --demo")
        with suppress(InputError):
            served.tokens.revoke(who, TOKEN)
        return str(served.tokens.create(who, TOKEN, AccessRole.ADMIN, (), TOKEN_LIFE_S)["token"])

    @contextmanager
    def living(self) -> Iterator[None]:
        """The sensors send readings, in files that appear twice a second."""
        ended = threading.Event()
        sensors = threading.Thread(target=self._send, args=(ended,), name="sensors", daemon=True)
        sensors.start()
        try:
            yield
        finally:
            ended.set()
            sensors.join()

    def _send(self, ended: threading.Event) -> None:
        city = self.folder / "data" / "city"
        there = sorted(int(file.stem) for file in city.glob("[0-9]*.jsonl"))
        number = there[-1] + 1 if there else 0
        readings, began = self._data.readings(10**12, seed=number), time.monotonic()
        while not ended.wait(EVERY_S):
            hour = 6.0 + (time.monotonic() - began) / DAY_S * 24.0
            self._data.write_file(city, number, islice(readings, int(rate_at(hour) * EVERY_S)))
            (city / f"{number - KEPT_FILES:05}.jsonl").unlink(missing_ok=True)
            number += 1


def _module(file: Path) -> ModuleType:
    spec = spec_from_file_location(f"headgate_example_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
