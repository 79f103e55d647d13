"""A local cluster of real Spark processes: what it answers when it is up, half gone, or hit by somebody."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import HeadgateError, InputError
from headgate.machines.local import LocalProvider
from headgate.machines.processes import Process, marked
from headgate.machines.provider import MachineState, Provider, machine_class
from headgate.machines.standalone import start_worker
from tests.machines.provider_contract import check_contract

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]
ROOT = Path(__file__).parents[2]
TINY = machine_class("tiny", 1, 2**29, Decimal("36"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    with suppress(InputError):
        LocalProvider(tmp_path / "cluster").down()


def headgate(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1", "COLUMNS": "120"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False)


def master_of(folder: Path) -> Process:
    return Process(**json.loads((folder / "cluster.json").read_text())["process"])


def test_machines_come_and_go_and_are_recorded(folder: Path) -> None:
    provider = LocalProvider.up(folder, classes=[TINY])
    names = [provider.acquire("tiny").name, provider.acquire("tiny").name]
    assert [machine.state for machine in provider.list()] == [MachineState.STARTING] * 2
    ready = provider.wait_until_settled()
    assert [machine.name for machine in ready] == names == ["tiny-1", "tiny-2"]
    assert all(machine.state is MachineState.READY and (machine.startup_s or 0) > 0.3 for machine in ready)
    assert len({machine.host for machine in ready}) == 2

    provider.limit(2)
    with pytest.raises(InputError, match=r"has no more machines: 2 are its limit"):
        provider.acquire("tiny")
    assert len(provider.list(gone=True)) == 2
    provider.limit(None)

    with pytest.raises(InputError, match=r"is up already, at spark://127.0.0.1:.*'headgate cluster acquire' adds"):
        LocalProvider.up(folder)
    taken = int(provider.master.rpartition(":")[2])
    with pytest.raises(InputError, match=f"port {taken} of 127.0.0.1 is taken; give another"):
        LocalProvider.up(folder.parent / "other", port=taken)
    # Another cluster may be up beside it.
    LocalProvider.up(folder.parent / "beside").down()

    # Another process's view of the same folder sees the same, and may release.
    LocalProvider(folder).release("tiny-1")
    (left,) = provider.wait_until_settled()
    assert left.name == "tiny-2"
    with pytest.raises(InputError, match="no machine 'tiny-1' runs"):
        provider.release("tiny-1")

    # A worker that is killed is noticed, and nothing of it is left.
    process = provider.process("tiny-2")
    assert process is not None
    assert process.send(signal.SIGKILL)
    while process.is_alive():
        time.sleep(0.02)
    assert provider.list() == ()
    now = time.time()
    one, two = provider.list(gone=True)
    assert (one.state, two.state) == (MachineState.RELEASED, MachineState.LOST)
    assert 0 < one.cost(now) == one.cost(now + 1_000)
    assert marked(f"{folder}/tiny-2") == []

    # Half gone: without its master nothing can be acquired, and down takes what is left.
    provider.acquire("tiny")
    assert master_of(folder).send(signal.SIGKILL)
    while master_of(folder).is_alive():
        time.sleep(0.02)
    for refused in (lambda: LocalProvider.up(folder), lambda: provider.acquire("tiny")):
        with pytest.raises(InputError, match="headgate cluster down"):
            refused()
    stopped = provider.down()
    assert stopped.gone_before == ("master",)
    assert marked(f"{folder}/tiny-3") == []
    assert [machine.state for machine in provider.list(gone=True)][2] is MachineState.RELEASED
    assert (folder / "machines" / "tiny-3" / "worker.log").exists()


def test_keys_make_requests_safe_to_repeat(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = LocalProvider.up(folder, classes=[TINY])

    def settle(asked: Provider) -> None:
        del asked
        provider.wait_until_settled()

    check_contract(lambda: LocalProvider(folder), "tiny", settle)

    # Killed between starting a worker and recording its process: the worker is adopted.
    class Killed(BaseException):
        pass

    def started_and_killed(*arguments: Any) -> Process:
        start_worker(*arguments)
        raise Killed

    def killed(*_: object) -> Process:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("headgate.machines.local.start_worker", started_and_killed)
        with pytest.raises(Killed):
            LocalProvider(folder).acquire("tiny", "test/3")
    (adopted,) = (machine for machine in provider.wait_until_settled() if machine.key == "test/3")
    assert adopted.state is MachineState.READY
    process = provider.process(adopted.name)
    assert process is not None
    assert process.pid in marked(f"{folder}/{adopted.name}")

    # Killed before it was started: the machine is lost, and nothing of it runs.
    with monkeypatch.context() as patched:
        patched.setattr("headgate.machines.local.start_worker", killed)
        with pytest.raises(Killed):
            LocalProvider(folder).acquire("tiny", "test/4")
    assert "test/4" not in {machine.key for machine in provider.list()}
    assert provider.acquire("tiny", "test/4").state is MachineState.LOST


def test_a_master_that_does_not_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java/here")
    with pytest.raises(HeadgateError, match=r"the cluster's master did not start: .*/no/java/here.*master\.log"):
        LocalProvider.up(folder)
    assert not (folder / "cluster.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_guide_by_its_word(tmp_path: Path) -> None:
    """The commands of the guide, one after the other, as a reader would type them."""
    page = (ROOT / "docs" / "guides" / "cluster.md").read_text(encoding="utf-8")
    flow, commands = page.split("```yaml\n")[1].split("```")[0], page.split("```sh\n")[1].split("```")[0]
    (tmp_path / "squares.yaml").write_text(flow, encoding="utf-8")
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "1.json").write_text("".join(json.dumps({"n": n}) + "\n" for n in range(40)))
    with socket.socket() as machine:
        machine.bind(("127.0.0.1", 0))
        port = str(machine.getsockname()[1])
    said: list[str] = []
    try:
        for line in commands.strip().splitlines():
            _, *arguments = shlex.split(line, comments=True)
            if arguments[:2] == ["cluster", "up"]:
                arguments += ["--port", port]  # 7077 may be somebody else's
            done = headgate(*arguments, cwd=tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
    finally:
        headgate("cluster", "down", cwd=tmp_path)
    rows: list[dict[str, Any]] = [
        json.loads(line) for file in (tmp_path / "squares").glob("*.json") for line in file.read_text().splitlines()
    ]
    assert sorted(row["square"] for row in rows) == [n * n for n in range(40)]
    assert "stopped" in said[-1]
