"""``headgate forecast``: tables, JSON, pictures, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import headgate


def _wave(at: int) -> float:
    return 50 + 30 * math.sin(2 * math.pi * at / 24) + (at * 7_919 % 13) / 2


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    """Ten days of two rates by the hour, with two rows missing."""
    path = tmp_path / "rates.csv"
    rows = [f"{at * 3_600},{_wave(at)},{2 * _wave(at + 5)}" for at in range(240) if at not in (50, 51)]
    path.write_text("t_s,orders,clicks\n" + "\n".join(rows) + "\n")
    return path


def test_a_forecast_as_a_table(rates: Path) -> None:
    ran = headgate("forecast", rates, "--horizon", "6")
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[3].split() == ["2", "240", "3600", "4", "24", "6"]
    assert [line.split()[:2] for line in lines[-2:]] == [["ensemble", "orders"], ["ensemble", "clicks"]]
    assert ran.err == ""


def test_a_forecast_for_programs(rates: Path) -> None:
    ran = headgate("forecast", rates, "--horizon", "4", "--method", "holt-winters", "--series", "orders", "--json")
    (given,), steps = ran.json["input"], ran.json["forecasts"]
    assert (given["steps"], given["season_steps"], given["horizon"]) == (240, 24, 4)
    assert [row["t_s"] for row in steps] == [240 * 3_600 + step * 3_600 for step in range(4)]
    assert [row["mean"] for row in steps] == pytest.approx([_wave(at) for at in range(240, 244)], abs=12)
    quantiles = [row for row in steps[0] if row.startswith("q")]
    assert quantiles == ["q0.05", "q0.1", "q0.25", "q0.5", "q0.75", "q0.9", "q0.95"]
    assert [steps[0][level] for level in quantiles] == sorted(steps[0][level] for level in quantiles)


def test_a_backtest(rates: Path, tmp_path: Path) -> None:
    picture = tmp_path / "backtest.svg"
    arguments = ("forecast", rates, "--backtest", "--horizon", "3", "--origins", "20", "--method", "naive")
    ran = headgate(*arguments, "--method", "holt-winters", "--plot", picture)
    assert ran.status == 0, ran.err
    assert ran.out.index("holt-winters") < ran.out.index("naive")
    assert "a season before" in ran.out
    assert picture.read_text().startswith("<?xml")
    again = headgate(*arguments, "--plot", picture)
    assert again.status == 2
    assert "--force" in again.err
    facts = headgate(*arguments, "--json").json["backtest"][0]
    assert facts["forecaster"] == "naive"
    assert facts["origins"] <= 20
    assert len(facts["mase_by_step"]) == 3
    assert facts["within_50"] <= facts["within_80"] <= facts["within_90"]


def test_all_forecasters_are_compared_unless_some_are_named(rates: Path) -> None:
    ran = headgate("forecast", rates, "--backtest", "--season", "none", "--horizon", "2", "--origins", "5", "--json")
    names = {each["forecaster"] for each in ran.json["backtest"]}
    assert names == {"naive", "window-mean", "holt", "kalman", "ar", "ensemble"}
    assert ran.json["input"][0]["season_steps"] == 0


def test_a_picture_of_a_forecast(rates: Path, tmp_path: Path) -> None:
    picture = tmp_path / "next.png"
    ran = headgate("forecast", rates, "--method", "naive", "--plot", picture)
    assert ran.status == 0, ran.err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_long_tables_gzipped_and_longer_steps(tmp_path: Path) -> None:
    path = tmp_path / "machines.csv.gz"
    rows = [f"m{vm},{at * 60},{0.5 + 0.1 * vm},{at % 5}" for vm in range(2) for at in range(100)]
    path.write_bytes(gzip.compress(("vm,t_s,cpu,disk\n" + "\n".join(rows) + "\n").encode()))
    ran = headgate("forecast", path, "--metric", "cpu", "--step", "5min", "--method", "naive", "--json")
    (given,) = ran.json["input"]
    assert (given["series"], given["steps"], given["step_s"]) == (2, 20, 300)
    assert next(row for row in ran.json["forecasts"] if row["series"] == "m1")["mean"] == pytest.approx(0.6)


def test_values_below_0_may_stay_so(tmp_path: Path) -> None:
    path = tmp_path / "cold.csv"
    path.write_text("t_s,degrees\n" + "".join(f"{at},{-5 - at % 3}\n" for at in range(40)))
    ran = headgate("forecast", path, "--method", "naive", "--json")
    assert ran.json["input"][0]["non_negative"] is False
    assert ran.json["forecasts"][0]["mean"] < 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--method", "hollt"), "did you mean 'holt'?"),
        (("--series", "order"), "did you mean 'orders'?"),
        (("--season", "none", "--method", "holt-winters"), "needs a season"),
        (("--season", "90min"), "a whole number of at least 2"),
        (("--step", "soon"), "is not a span of time"),
        (("--backtest", "--warm-up", "239"), "the series have 240 steps"),
        (("--backtest", "--horizon", "200"), "at least 280"),
        (("--plot", "next.gif"), "expected .svg, .png or .pdf"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(rates: Path, arguments: tuple[str, ...], told: str) -> None:
    ran = headgate("forecast", rates, *arguments)
    assert ran.status == 2
    assert told in ran.err
    assert "Traceback" not in ran.said
    assert ran.out == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no rows"),
        ("t_s,rate\n", "has no rows"),
        ("time,rate\n1,2\n2,3\n", "no column t_s"),
        ("t_s,rate\n1,2\n2,x\n", "row 3: rate is 'x'"),
        ("t_s,rate\n1,2\n", "one measurement"),
        ("t_s,rate\n2,2\n1,2\n", "measured at 1 s after 2 s"),
        ("t_s\n1\n2\n", "has no series"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    ran = headgate("forecast", path)
    assert ran.status == 2
    assert told in ran.err


def test_a_package_that_is_missing_is_named(rates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    ran = headgate("forecast", rates, "--method", "auto-ets")
    assert ran.status == 2
    assert "needs the package 'statsforecast'; expected headgate[statsforecast] to be installed" in ran.err


def test_a_file_that_is_not_there() -> None:
    ran = headgate("forecast", "nowhere.csv")
    assert ran.status == 2
    assert "there is no folder or file nowhere.csv" in ran.err


def test_a_backtest_does_not_look_ahead(tmp_path: Path) -> None:
    """A day that repeats and a sign that changes only after the first forecast are not known to it."""
    path = tmp_path / "later.csv"
    rows = [f"{at * 3_600},{at % 7 + 1 if at < 100 else -_wave(at)}" for at in range(300)]
    path.write_text("t_s,sales\n" + "\n".join(rows) + "\n")
    ran = headgate("forecast", path, "--backtest", "--method", "naive", "--origins", "5", "--json").json
    whole = headgate("forecast", path, "--method", "naive", "--json").json
    known, seen = ran["input"][0], whole["input"][0]
    assert (known["season_steps"], known["non_negative"]) == (0, True)
    assert (seen["season_steps"], seen["non_negative"]) == (24, False)
    early = headgate("forecast", path, "--backtest", "--warm-up", "200", "--method", "naive", "--json").json
    assert early["input"][0]["non_negative"] is False
