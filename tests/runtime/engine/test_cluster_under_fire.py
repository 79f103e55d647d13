"""A cluster of real workers, some of which are killed, added and drained under load: no row is lost or comes twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.machines.local import LocalProvider
from headgate.machines.processes import marked
from headgate.machines.provider import MachineState, machine_class
from tests.runtime.compared import compare
from tests.runtime.place import MASTER_VARIABLE
from tests.runtime.rig import Rig, rig_in

pytestmark = [pytest.mark.slow, pytest.mark.spark]
NODE = machine_class("node", 2, 2**30, Decimal("0.10"))
EXECUTOR, PYTHON = b"CoarseGrainedExecutorBackend", b"pyspark.daemon"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    """Three machines."""
    made = LocalProvider.up(tmp_path / "cluster", classes=[NODE])
    try:
        for _ in range(3):
            made.acquire("node")
        assert [machine.state for machine in made.wait_until_settled(240)] == [MachineState.READY] * 3
        yield made
    finally:
        with suppress(InputError):
            made.down()


def processes_of(provider: LocalProvider, machine: str, kind: bytes) -> list[int]:
    """The processes of a machine whose command names something."""
    found = []
    for pid in marked(f"{provider.folder}/{machine}"):
        with suppress(OSError):
            if kind in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def now_and_then(reached: Callable[[], object], every_s: float = 0.3) -> Callable[[], bool]:
    """The same question, looked into only so often: it goes through all processes."""
    last = 0.0

    def asked() -> bool:
        nonlocal last
        if time.monotonic() < last + every_s:
            return False
        last = time.monotonic()
        return bool(reached())

    return asked


class Fire:
    """What happens to a cluster, and how often it did."""

    def __init__(self, provider: LocalProvider, rig: Rig) -> None:
        self.provider = provider
        self.rig = rig
        self.done: dict[str, int] = {}

    def __call__(self, what: str) -> None:
        """Let some epochs pass, then do it, with rows coming all the time."""
        enough = self.rig.epochs() + self.rig.rnd.randrange(4, 10)
        assert self.rig.wait(lambda: self.rig.epochs() >= enough, 0.3), self.rig.log()
        at_work = [machine.name for machine in self.provider.list() if self._executors(machine.name)]
        chosen = self.rig.rnd.choice(at_work)
        getattr(self, what)(chosen)
        self.done[what] = self.done.get(what, 0) + 1

    def _is_gone(self, machine: str) -> bool:
        return machine not in {found.name for found in self.provider.list()}

    def _executors(self, machine: str) -> list[int]:
        return processes_of(self.provider, machine, EXECUTOR)

    def kill_worker(self, machine: str) -> None:
        process = self.provider.process(machine)
        assert process is not None
        assert process.send(signal.SIGKILL)
        assert self.rig.wait(now_and_then(lambda: self._is_gone(machine)), 0.3), self.rig.log()
        assert [m.state for m in self.provider.list(gone=True) if m.name == machine] == [MachineState.LOST]

    def kill_executor(self, machine: str) -> None:
        before = set(self._executors(machine))
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        # Spark starts another one in its place.
        assert self.rig.wait(now_and_then(lambda: set(self._executors(machine)) - before), 0.3), self.rig.log()

    def kill_python(self, machine: str) -> None:
        for pid in processes_of(self.provider, machine, PYTHON):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def drain(self, machine: str) -> None:
        began = time.monotonic()
        self.provider.release(machine)
        assert self.rig.wait(now_and_then(lambda: self._is_gone(machine)), 0.3), self.rig.log()
        print(f"drained {machine} in {time.monotonic() - began:.1f} s")

    def add(self, _: str) -> None:
        name = self.provider.acquire("node").name
        assert self.rig.wait(now_and_then(lambda: self._executors(name)), 0.3), self.rig.log()
        print(f"added {name}")


@pytest.mark.timeout(3600)
def test_no_row_is_lost_or_twice(tmp_path: Path, provider: LocalProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MASTER_VARIABLE, provider.master)
    (tmp_path / "rig").mkdir()
    with rig_in(tmp_path / "rig", seed=11) as rig:
        fire = Fire(provider, rig)
        rig.start()
        assert rig.wait(rig.is_ready, 1.0), rig.log()
        for what in ("kill_executor", "add", "drain", "kill_worker", "kill_python", "add", "kill_executor", "drain"):
            fire(what)
        (rig.folder / "out" / "late").unlink()
        for what in ("add", "kill_worker", "drain", "add", "kill_executor"):
            fire(what)
        rig.kill()  # and the driver at last: its executors must go, and the next one's come
        rig.finish()
        found = compare(rig)
    print(found, fire.done)
    assert found["rows"] > 100
    assert sum(fire.done.values()) == 13
