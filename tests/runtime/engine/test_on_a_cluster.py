"""The suites that tell whether the runtime is right, on a standalone cluster of three real workers.

A process has one Spark, so each suite runs in a pytest of its own, which finds the cluster in its environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.machines.local import LocalProvider
from headgate.machines.provider import MachineState, machine_class
from tests.runtime.place import MASTER, MASTER_VARIABLE

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ROOT = Path(__file__).parents[3]
NODE = machine_class("node", 2, 2**30, Decimal("0.10"))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The cluster that the environment names, or one of three machines for these tests."""
    if MASTER.startswith("spark://"):
        yield MASTER
        return
    provider = LocalProvider.up(tmp_path_factory.mktemp("cluster") / "cluster", classes=[NODE])
    try:
        for _ in range(3):
            provider.acquire("node")
        assert [machine.state for machine in provider.wait_until_settled(240)] == [MachineState.READY] * 3
        yield provider.master
    finally:
        provider.down()


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "suite", ["equality", "exactly_once", "going_on", "streams", "host", "isolation", "sinks", "fusion", "compaction"]
)
def test_the_suite_passes_there_too(master: str, suite: str, tmp_path: Path) -> None:
    (file,) = (ROOT / "tests" / "runtime").rglob(f"test_{suite}.py")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "spark and not slow", "--timeout", "1800", str(file)]
    environment = {**os.environ, MASTER_VARIABLE: master, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "log").open("wb") as log:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False, timeout=7000)
    said = (tmp_path / "log").read_text(encoding="utf-8", errors="replace")
    last = said.strip().splitlines()[-1]
    print(suite, last)
    assert re.search(r"\d+ passed", last), said[-6000:]
    assert not re.search(r"failed|error", last), said[-6000:]
