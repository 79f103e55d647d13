"""``headgate plan``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from headgate.service.plan_document import read_plan
from tests.cli.terminal import headgate

READ = "{id: read, type: read_files, config: {path: in, columns: 'sensor string, temperature double'}}"


def write(folder: Path, name: str, owner: str, where: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(
        f"""
name: {name}
owner: {owner}
tasks:
- {READ}
- {{id: {name}, type: filter, config: {{where: {where}}}, inputs: [read]}}
- {{id: store, type: write_files, config: {{path: out/{name}}}, inputs: [{name}]}}
""",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "flows"
    made.mkdir()
    write(made, "warm", "ana", "temperature > 20")
    write(made, "cold", "eva", "temperature < 0")
    return made


def test_what_is_shared_and_added_and_whom_it_touches(folder: Path, tmp_path: Path) -> None:
    ran = headgate("plan", write(tmp_path, "hot", "ben", "temperature > 35"), "--running", folder)
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "Tasks",
        "dataflow  task   sharing  detail",
        "--------  -----  -------  ------------------------------",
        "hot       read   shared   with cold, warm",
        "hot       hot    wider    from a wider stream, by filter",
        "hot       store  new",
        "",
        "Dataflows",
        "dataflow  owner  tasks  shared  wider  new  taps              touches",
        "--------  -----  -----  ------  -----  ---  ----------------  ----------",
        "hot       ben        3       1      1    1  warm.warm -> hot  cold, warm",
        "hot: Start earliest: what has passed is computed beside what runs, which it shares from here on.",
        "",
        "Bills",
        "dataflow  owner  before   after   change   alone",
        "--------  -----  ------  ------  -------  ------",
        "cold      eva    0.0500  0.0333  -0.0167  0.1000",
        "hot       ben         -  0.0405  +0.0405  0.1000",
        "warm      ana    0.0500  0.0262  -0.0238  0.1000",
        "Per hour, in USD: a machine costs 0.10 and holds 1 worker of 8 tasks.",
        "All dataflows: 0.1000 before, 0.1000 after, change +0.0000.",
    ]


def test_json_has_the_same(folder: Path, tmp_path: Path) -> None:
    document = headgate("plan", write(tmp_path, "hot", "ben", "temperature > 35"), "-r", folder, "--json").json
    assert {row["task"]: row["sharing"] for row in document["tasks"]} == {
        "read": "shared",
        "hot": "wider",
        "store": "new",
    }
    (one,) = document["dataflows"]
    assert (one["touches"], one["interrupts"]) == (["cold", "warm"], [])
    assert sum(Decimal(bill["after_per_h"]) for bill in document["bills"]) == Decimal("0.1000")


@pytest.mark.parametrize(
    ("strategy", "reused", "interrupted"),
    [("none", 0, []), ("incremental", 1, []), ("replace", 1, ["cold", "warm"]), ("hot", 1, [])],
)
def test_strategies_reuse_and_interrupt(
    strategy: str, reused: int, interrupted: list[str], folder: Path, tmp_path: Path
) -> None:
    new = write(tmp_path, "mild", "ben", "temperature between 5 and 25")
    (one,) = headgate("plan", new, "-r", folder, "-s", strategy, "--exact", "--json").json["dataflows"]
    assert (one["shared"], one["interrupts"], one["wider"]) == (reused, interrupted, 0)


def test_several_are_submitted_in_their_order(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a", "ana", "temperature > 1"), write(tmp_path, "b", "ana", "temperature > 1")
    one, two = headgate("plan", first, second, "--json").json["dataflows"]
    assert (one["shared"], two["shared"]) == (0, 2)


def test_prices_come_from_a_file(folder: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("{price_per_h: 1.25, workers_per_vm: 2, tasks_per_worker: 2, currency: CHF}", encoding="utf-8")
    ran = headgate("plan", write(tmp_path, "hot", "ben", "temperature > 35"), "-r", folder, "--prices", prices)
    assert "Per hour, in CHF: a machine costs 1.25 and holds 2 workers of 2 tasks" in ran.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{price: 3}", "unknown field 'price'"),
        ("{price_per_h: -1}", "price_per_h is -1"),
        ("{currency: dollars}", "currency is 'dollars'"),
        ("[1]", "expected a mapping"),
        ("{", "this is not YAML"),
    ],
)
def test_bad_prices_are_refused(text: str, told: str, folder: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(text, encoding="utf-8")
    ran = headgate("plan", folder / "warm.yaml", "--prices", prices)
    assert (ran.status, ran.out) == (2, "")
    assert told in ran.err
    assert "prices.yaml" in ran.err


def test_what_cannot_be_planned_is_told_and_nothing_else_is_said(folder: Path, tmp_path: Path, broken: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, told in (
        (("plan", folder / "warm.yaml", "-r", folder), "'warm' is submitted already"),
        (("plan", broken, "-r", folder), "unknown task type 'fliter'"),
        (("plan", folder / "warm.yaml", "-r", empty), "holds no dataflow"),
        (("plan", tmp_path / "none.yaml"), "cannot read this file"),
        (("plan", folder / "warm.yaml", "--prices", tmp_path / "none.yaml"), "cannot read this file"),
    ):
        ran = headgate(*arguments)
        assert (ran.status, ran.out) == (2, "")
        assert told in ran.err


def test_a_plan_is_written_for_submit(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert headgate("plan", folder / "warm.yaml", "--out", path).status == 0
    written = read_plan(path)
    assert [flow["name"] for flow in written.dataflows] == ["warm"]
    assert written.capacity == {}


def test_capacity_needs_a_rate(folder: Path) -> None:
    ran = headgate("plan", folder / "warm.yaml", "--algorithm", "exact")
    assert (ran.status, ran.out) == (2, "")
    assert "--rate" in ran.err


def test_json_is_one_line(folder: Path) -> None:
    assert len(headgate("plan", folder / "warm.yaml", "--json").out.splitlines()) == 1
