"""``headgate cluster`` with arguments that make no sense, and clusters that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shell import run_headgate


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("list", "no cluster is up in"),
        ("down", "no cluster is up in"),
        ("release small-1", "no cluster is up in"),
        ("acquire small", "no cluster is up in"),
        ("up smal", "no VM class 'smal' is known; did you mean 'small'?"),
        ("up small:0", "'small:0' is not a VM class with a number, such as small or small:3"),
        ("up small:x", "'small:x' is not a VM class with a number"),
        ("up small:150 large:51", "more than 200 machines"),
        ("up --class tiny=1,1g", "is not NAME=CORES,MEMORY,PRICE"),
        (
            "up --class tiny=0,1g,1",
            "VM class 'tiny' is too small for anything: 0 cores of power 1",
        ),
        ("up --class fast=1,1g,1,2", "core speed 2; this machine can imitate slower cores than its own"),
        ("up --class tiny=1,100m,1", "Spark's executors need 512 MiB at least"),
    ],
)
def test_one_sentence_says_what_is_wrong(command: str, told: str) -> None:
    printed, status = run_headgate(["cluster", *command.split()])
    assert status == 2
    assert told in printed
    assert len(printed.strip().splitlines()) == 1
    assert not Path(".headgate-cluster").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--cluster nowhere", "no cluster is up in nowhere; start one with 'headgate cluster up --dir nowhere'"),
        ("--cluster nowhere --master yarn", "leave one out"),
        ("--conf nonsense", "is not NAME=VALUE, such as spark.executor.memory=2g"),
    ],
)
def test_run_says_what_is_wrong_before_it_starts_spark(options: str, told: str) -> None:
    printed, status = run_headgate(["run", *options.split()])
    assert status == 2
    assert told in printed


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    printed, status = run_headgate(["cluster", "up", "--dir", "file/cluster"])
    assert (status, "cannot keep a cluster in" in printed) == (2, True)
