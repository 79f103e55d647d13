"""``headgate size``: sizes, what-ifs, pictures, and every fault of a file at once."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.report.render import render
from headgate.service.size import load_request, size, sizing_tables
from tests.cli.terminal import headgate

LOGOS = """\
name: logos
processors: 22
operators:
  - {name: extract, arrival_rate_per_s: 13, service_rate_per_s: 1.5, to: {match: 1}}
  - {name: match, service_rate_per_s: 1.4, to: {aggregate: 1}}
  - {name: aggregate, service_rate_per_s: 100}
"""

FAULTY = """\
name: faulty
processers: 22
operators:
  - {name: extract, arrival_rate_per_s: -13, service_rate_per_s: .nan, to: {mach: 1}}
  - {name: match, service_rate_per_s: 0}
  - {name: extract, service_rate_per_s: 100}
  - {nam: x}
"""


@pytest.fixture
def logos(tmp_path: Path) -> Path:
    path = tmp_path / "logos.yaml"
    path.write_text(LOGOS, encoding="utf-8")
    return path


def test_processors_are_split_as_the_paper_does(logos: Path) -> None:
    ran = headgate("size", logos)
    assert ran.status == 0
    assert "least mean latency of 22 processors" in ran.out
    document = headgate("size", logos, "--json").json
    assert [each["processors"] for each in document["operators"]] == [10, 11, 1]
    (sized,) = document["scenarios"]
    assert sized["mean_s"] == pytest.approx(1.886, abs=0.001)
    assert sized["exact"] is True


def test_csv_is_for_spreadsheets(logos: Path) -> None:
    scenarios, operators = headgate("size", logos, "--csv").out.split("\n\n")
    assert len(list(csv.DictReader(io.StringIO(scenarios)))) == 1
    rows = list(csv.DictReader(io.StringIO(operators)))
    assert [row["processors"] for row in rows] == ["10", "11", "1"]


def scenario(name: str, *arguments: str | Path) -> Any:
    """The figures of one scenario, with its operators."""
    document = headgate("size", *arguments, "--json").json
    (row,) = [each for each in document["scenarios"] if each["scenario"] == name]
    return row | {"operators": [each for each in document["operators"] if each["scenario"] == name]}


def test_a_latency_is_turned_into_the_fewest_processors(logos: Path) -> None:
    sized = scenario("sized", logos, "--latency", "2s")
    assert (sized["processors"], sized["mean_s"] <= 2) == (22, True)
    tail = scenario("sized", logos, "--latency", "4s", "--percentile", "0.95")
    assert tail["p95_s"] <= 4
    assert tail["processors"] > 22


@pytest.mark.parametrize("model", ["mmk", "ggk", "ggk-refined", "micro-batch"])
def test_every_model_can_be_asked(logos: Path, model: str) -> None:
    sized = scenario("sized", logos, "-k", "60", "--model", model)
    assert sized["processors"] <= 60
    assert ("trigger_s" in sized) == (model == "micro-batch")
    assert f"model {model}" in headgate("size", logos, "-k", "60", "--model", model).out


def test_what_if_tells_of_other_processors_and_other_rates(logos: Path) -> None:
    other = scenario("what if", logos, "--what-if", "extract=9", "--what-if", "rate=0.9x")
    assert [each["processors"] for each in other["operators"]] == [9, 11, 1]
    assert other["operators"][0]["arrival_rate_per_s"] == pytest.approx(11.7)
    overloaded = headgate("size", logos, "--what-if", "rate=2x")
    assert "cannot keep up" in overloaded.out
    assert scenario("what if", logos, "--what-if", "rate=2x")["mean_s"] is None


def test_what_there_is_now_is_shown_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    path.write_text(
        '{"processors": 4, "operators": ['
        '{"name": "a", "service_rate_per_s": 2, "arrival_rate_per_s": 3, "processors": 2}]}'
    )
    now, sized = scenario("now", path), scenario("sized", path)
    assert now["processors"] == 2
    assert now["mean_s"] > sized["mean_s"]


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_latency_is_drawn_against_processors(logos: Path, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"latency.{ending}"
    assert headgate("size", logos, "--plot", picture).status == 0
    data = picture.read_bytes()
    assert data.startswith(b"<?xml" if ending == "svg" else b"\x89PNG")
    assert headgate("size", logos, "--plot", picture).status == 2
    assert headgate("size", logos, "--plot", picture, "--force").status == 0
    assert picture.read_bytes() == data
    assert "expected .svg, .png or .pdf" in headgate("size", logos, "--plot", tmp_path / "latency.gif").err


def test_every_fault_of_a_file_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "faulty.yaml"
    path.write_text(FAULTY, encoding="utf-8")
    ran = headgate("size", path)
    assert ran.status == 2
    for line, told in [
        (2, "unknown field 'processers'"),
        (4, "arrival_rate_per_s is -13; expected greater than or equal to 0"),
        (4, "service_rate_per_s is nan; expected a finite number"),
        (4, "sends to 'mach', which is not an operator; expected one of extract, match; did you mean 'match'?"),
        (5, "service_rate_per_s is 0; expected greater than 0"),
        (6, "another operator is called 'extract' too"),
        (7, "'name' is missing"),
        (7, "'service_rate_per_s' is missing"),
        (7, "unknown field 'nam'"),
    ]:
        assert any(f"faulty.yaml:{line}:" in each and told in each for each in ran.err.splitlines()), told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("operators: []\n", "at least 1 item"),
        ("operators: 3\n", "expected a list"),
        ("- a\n", "expected a mapping"),
        ("operators: [1, {name: a, service_rate_per_s: 1}]\n", "expected a mapping"),
        ("operators: [{name: a, service_rate_per_s: 1, to: 7}]\n", "expected a mapping"),
        ("percentile: 0.5\noperators: [{name: a, service_rate_per_s: 1}]\n", "percentile is 0.5"),
        (
            "operators: [{name: a, service_rate_per_s: 1, processors_min: 3, processors_max: 2}]\n",
            "at least its least, 3",
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text, encoding="utf-8")
    ran = headgate("size", path)
    assert (ran.status, told in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-k", "12"], "needs 20 processors, 12 given; 'match' alone needs 10"),
        (["--latency", "1s"], "a mean latency of 1 s cannot be reached"),
        (["--latency", "1s", "-k", "30"], "both processors and a latency are given"),
        (["--model", "md1"], "unknown model 'md1'"),
        (["--percentile", "0.2"], "from 0.75 to below 1"),
        (["--what-if", "mach=3"], "there is no operator 'mach'; did you mean 'match'?"),
        (["--what-if", "more"], "neither NAME=PROCESSORS"),
        (["--what-if", "match=0"], "neither NAME=PROCESSORS"),
        (["--latency", "soon"], "not a span of time"),
        (
            ["-k", "25", "--model", "micro-batch"],
            "needs 41 processors to finish batches at all, 25 given; 'match' alone needs 20",
        ),
        (["-k", "60", "--model", "micro-batch", "--what-if", "extract=1"], ""),
    ],
)
def test_what_cannot_be_had_is_answered_with_what_is_missing(logos: Path, arguments: list[str], told: str) -> None:
    ran = headgate("size", logos, *arguments)
    assert told in ran.err
    assert (ran.status == 2) == bool(told)


def test_without_its_packages_it_says_what_to_install(logos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "headgate.service.size")
    monkeypatch.delitem(sys.modules, "headgate.queueing.traffic")
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    ran = headgate("size", logos)
    assert ran.status == 2
    assert "sizing needs the package 'scipy'; install headgate[queueing]" in ran.err


def test_an_unstable_loop_and_a_silent_network_are_told(tmp_path: Path) -> None:
    path = tmp_path / "loop.yaml"
    path.write_text(
        "processors: 9\noperators: [{name: a, service_rate_per_s: 9, arrival_rate_per_s: 1, to: {a: 1.5}}]\n"
    )
    assert "the loop a -> a makes 1.5 tuples of each one" in headgate("size", path).err
    path.write_text("processors: 9\noperators: [{name: a, service_rate_per_s: 9}]\n")
    assert "no tuples arrive from outside" in headgate("size", path).err
    assert headgate("size", tmp_path / "missing.yaml").status == 2
    assert "expected .yaml, .yml, .json" in headgate("size", tmp_path / "flow.xml").err


def test_it_fits_a_terminal_of_80_columns(logos: Path) -> None:
    tables = sizing_tables(load_request(logos), {"sized": size(load_request(logos))})
    assert max(map(len, render(tables, width=80).splitlines())) <= 80


def test_its_old_name_answers_with_the_new_one(logos: Path) -> None:
    ran = headgate("queue", logos, "-k", "22")
    assert (ran.status, ran.out) == (2, "")
    assert "headgate size" in ran.err
