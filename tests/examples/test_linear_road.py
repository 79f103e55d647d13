"""Linear Road without Spark: the traffic, the validator, and the tasks on micro-batches cut at random."""

from __future__ import annotations

import importlib
import random
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate_benchmarks.checkout import shared_data

traffic = importlib.import_module("examples.linear_road.traffic")
tolls = importlib.import_module("examples.linear_road.tolls")
congestion = importlib.import_module("examples.linear_road.congestion")
validate = importlib.import_module("examples.linear_road.validate")
alternates = importlib.import_module("examples.linear_road.alternates")

ROAD = traffic.Road(cars=700, entering_per_s=4, jams=1, crowding=3.5, queries=0.05, come_back=0.3, ghosts=0.05)


@pytest.fixture(scope="module")
def rows() -> Any:
    return traffic.make(2, 400, 11, ROAD)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("usual") / "usual.npy"
    np.save(path, traffic.usual_speeds(2, 11, ROAD))
    return path


# traffic


def test_the_same_seed_makes_the_same_traffic(rows: Any) -> None:
    again, other = traffic.make(2, 400, 11, ROAD), traffic.make(2, 400, 12, ROAD)
    assert all(np.array_equal(rows.columns[name], again.columns[name]) for name in traffic.COLUMNS)
    assert again.accidents == rows.accidents
    assert len(other) != len(rows)


def test_reports_are_as_linear_road_has_them(rows: Any) -> None:
    found = rows.rows(rows.columns["type"] == 0).columns
    assert np.all(np.diff(rows.columns["time"]) >= 0)
    assert np.array_equal(found["seg"], found["pos"] // 5_280)
    assert (found["pos"] >= 0).all()
    assert (found["pos"] < 528_000).all()
    assert set(np.unique(found["lane"])) == {0, 1, 2, 3, 4}
    assert set(np.unique(found["xway"])) == {0, 1}
    by_car = defaultdict(list)
    for vid, time in zip(found["vid"].tolist(), found["time"].tolist(), strict=True):
        by_car[vid].append(time)
    gaps = [b - a for times in by_car.values() for a, b in pairwise(times)]
    assert min(gaps) == 30
    assert np.mean(np.array(gaps) == 30) > 0.98  # the others have left and come back


def test_queries_are_of_three_kinds_and_numbered(rows: Any) -> None:
    asked = rows.rows(np.isin(rows.columns["type"], (2, 3, 4))).columns
    assert np.array_equal(asked["qid"], np.arange(len(asked["qid"])))
    shares = {kind: float(np.mean(asked["type"] == kind)) for kind in (2, 3, 4)}
    assert shares == pytest.approx({2: 0.5, 3: 0.1, 4: 0.4}, abs=0.06)
    days = asked["day"][asked["type"] == 3]
    assert days.min() >= 1
    assert days.max() <= 69


def test_expressways_may_begin_later() -> None:
    found = traffic.make(3, 100, 1, traffic.Road(cars=60), starts=[0, 40, 200]).columns
    assert found["time"][found["xway"] == 1].min() >= 40
    assert 2 not in found["xway"]


def test_stations_tell_of_the_rain_of_the_next_minute(rows: Any) -> None:
    told = rows.rows(rows.columns["type"] == traffic.WEATHER).columns
    assert len(told["time"]) == 2 * 2 * 10 * 6 + 2 * 2 * 8  # of the seventh minute only 40 seconds are there
    for xway in (0, 1):
        wet = traffic.rain(8, 11, xway, ROAD)
        here = told["xway"] == xway
        wanted = wet[told["seg"][here] // 10, told["time"][here] // 60 + 1]
        assert told["spd"][here].tolist() == np.round(wanted * 10).astype(int).tolist()
        assert len(np.unique(wet)) > 1


def test_rain_slows_cars_down() -> None:
    """The same cars on the same road, but for the rain."""
    road = traffic.Road(cars=2_000, accidents=0)
    wet, dry = (alternates.speeds_of(traffic.make(1, 1_200, 3, replace(road, showers=n))) for n in (2, 0))
    mm_per_h = np.repeat(traffic.rain(20, 3, 0, road), traffic.STRETCH, axis=0)
    ratio = np.stack((wet[0, 0] / dry[0, 0], wet[0, 1, ::-1] / dry[0, 1, ::-1]))  # by segment, not along
    assert np.nanmedian(ratio[:, mm_per_h > 5]) == pytest.approx(0.75, abs=0.06)
    assert np.nanmedian(ratio[:, mm_per_h == 0]) == pytest.approx(1, abs=0.02)


# the validator


def test_it_finds_the_accidents_that_were_arranged_and_no_others(rows: Any) -> None:
    found = validate.expect(rows.columns)
    wanted = {(a.xway, a.dir, a.lane, a.pos, a.since_s, a.until_s) for a in rows.accidents}
    assert len(wanted) == 4
    assert {(*a[:5], 10**9 if a[5] is None else a[5]) for a in found.accidents} == wanted


def report(
    time: int, vid: int, seg: int, lane: int = 1, spd: int = 30, feet: int = 100, way: int = 0
) -> dict[str, int]:
    blank = dict.fromkeys(traffic.COLUMNS, -1)
    place = {"xway": 0, "dir": way, "lane": lane, "seg": seg, "pos": seg * 5_280 + feet}
    return {**blank, "type": 0, "time": time, "vid": vid, "spd": spd, **place}


def columns(reports: list[dict[str, int]]) -> dict[str, Any]:
    ordered = sorted(reports, key=lambda row: row["time"])
    return {name: np.array([row[name] for row in ordered]) for name in traffic.COLUMNS}


def test_a_toll_by_hand() -> None:
    """53 cars at 30 miles an hour: 2 (53 - 50)^2 in the next minute, charged on leaving the segment for another."""
    crowd = [report(n % 60, n, 7, feet=n) for n in range(53)]
    later = [report(61, 100, 7), report(91, 100, 8), report(70, 101, 7), report(100, 101, 7, lane=4)]
    asked = {**dict.fromkeys(traffic.COLUMNS, -1), "type": 2}
    asked_of = [{**asked, "time": 110, "vid": vid, "qid": vid} for vid in (100, 101)]
    found = validate.expect(columns([*crowd, *later, *asked_of]))
    assert found.tolls[100, 61] == (30, 18)
    assert found.tolls[100, 91] == (None, 0)
    assert found.tolls[101, 70] == (30, 18)
    assert (101, 100) not in found.tolls
    assert found.balances[100] == (110, [(91, 18)])
    assert found.balances[101] == (110, [])  # it left by the ramp of the segment


def test_an_accident_by_hand() -> None:
    """Two cars tell one place four times by 119: in the third minute cars behind are told, in five segments."""
    stopped = [report(t + n, vid, 50, spd=0) for vid, n in ((1, 0), (2, 5)) for t in (20, 50, 80, 110)]
    moves = [report(150, 1, 50, feet=2_000), report(150, 2, 50, spd=0)]
    cars = {46: 10, 45: 11, 50: 12, 51: 13}
    entering = [report(130, vid, seg) for seg, vid in cars.items()]
    after = [report(185, 20, 46)]
    found = validate.expect(columns([*stopped, *moves, *entering, *after]))
    assert found.accidents == [(0, 0, 1, 50 * 5_280 + 100, 115, 150)]
    assert found.alerts == {(10, 130): 50, (12, 130): 50}  # it cleared in that minute, and is in force until its end


def test_it_tells_what_is_wrong_missing_unasked_twice_and_late(rows: Any) -> None:
    expected = validate.expect(rows.columns)
    given = validate.Answers(tolls=dict(expected.tolls), alerts=dict(expected.alerts))
    given.balances = {
        n: (sum(c for at, c in charges if at < t), t - 1) for n, (t, charges) in expected.balances.items()
    }
    given.expenditures = dict(expected.expenditures)
    assert validate.check(expected, given).right
    one, two, *_ = given.tolls
    given.tolls[one] = (given.tolls[one][0], given.tolls[one][1] + 1)
    del given.tolls[two]
    given.alerts[-1, -1] = 3
    given.twice["balances"] += 1
    paid = next(n for n, (balance, _) in given.balances.items() if balance > 0)
    given.balances[paid] = (given.balances[paid][0], given.balances[paid][1] - 60)  # too old
    found = validate.check(expected, given)
    assert not found.right
    assert dict(found.wrong) == {"tolls": 1, "balances": 1}
    assert found.missing["tolls"] == found.unasked["alerts"] == found.twice["balances"] == 1
    given.emitted = {("tolls", 1): 14.0, ("tolls", 2): 15.1, ("travel_times", 3): 39.0}
    share, times, late = validate.share_in_time(given, {("tolls", 1): 10, ("tolls", 2): 10, ("travel_times", 3): 10})
    assert share == pytest.approx(2 / 3)
    assert late == [10]
    assert times["travel_times"] == [29.0]
    asked = [("tolls", 1), ("tolls", 3)]  # the second of which has no answer
    share, times, late = validate.share_in_time(given, {("tolls", 1): 10, ("tolls", 3): 12}, 11, asked)
    assert (share, late, times) == (0.0, [12], {"tolls": [float("inf")]})


# the tasks


def answered(rows: dict[str, Any], usual: Path, seed: int, model: str = "regression") -> Any:
    """What the tasks answer, on micro-batches cut at random whose rows come in any order."""
    draw = random.Random(seed)
    rows, asked = dict(rows), rows["type"] == 4
    rows["dir"] = np.where(asked, (rows["s_init"] > rows["s_end"]).astype(int), rows["dir"])
    for name, given in {"seg": "s_init", "pos": "s_end", "lane": "dow", "spd": "tod"}.items():
        rows[name] = np.where(asked, rows[given], rows[name])
    answers = validate.Answers()
    roads: dict[Any, Any] = {}
    models: dict[Any, Any] = {}
    accounts: dict[Any, Any] = {}
    first = 0
    while first < len(rows["time"]):
        last = first + draw.randrange(1, len(rows["time"]) // 8)
        batch = _by(rows, range(first, min(last, len(rows["time"]))), ("xway", "dir"), draw)
        charges = defaultdict(list)
        for key, some in batch.items():
            roads[key], told = tolls.told(roads.get(key), some)
            models[key], speeds = congestion.estimated(models.get(key), some, model, str(usual))
            for at, (result, way) in enumerate(zip(told, speeds, strict=True)):
                row = {name: some[name][at] for name in ("vid", "time", "type", "qid")}
                if way is not None:
                    seconds = alternates.predicted_s(
                        [np.nan if v is None else v for v in way["now"]], way["usual"], True
                    )
                    answers.travel_times[row["qid"]] = seconds
                if result is None:
                    continue
                if result["told"]:
                    answers.tolls[row["vid"], row["time"]] = result["lav"], result["toll"]
                    if result["accident"] is not None:
                        answers.alerts[row["vid"], row["time"]] = result["accident"]
                if row["type"] == 2 or result["charged"]:
                    charges[row["vid"]].append((row["time"], row["type"], result["charged"], row["qid"]))
        for vid, lines in charges.items():
            draw.shuffle(lines)
            named = dict(zip(("time", "type", "charged", "qid"), zip(*lines, strict=True), strict=True))
            accounts[vid], found = tolls.account(accounts.get(vid), named)
            for number, result in zip(named["qid"], found, strict=True):
                if result is not None:
                    answers.balances[number] = result["balance"], result["as_of"]
        first = last
    return answers


def _by(rows: dict[str, Any], places: range, key: tuple[str, ...], draw: random.Random) -> dict[Any, dict[str, Any]]:
    found = defaultdict(list)
    for place in places:
        if rows["type"][place] != 3:
            found[tuple(int(rows[name][place]) for name in key)].append(place)
    for some in found.values():
        draw.shuffle(some)
    return {k: {name: values[some].tolist() for name, values in rows.items()} for k, some in found.items()}


@pytest.mark.parametrize("seed", range(3))
def test_tasks_answer_as_the_validator_does_however_rows_are_cut(rows: Any, usual: Path, seed: int) -> None:
    model = list(congestion.MODELS)[seed]
    expected = validate.expect(rows.columns, None, np.load(usual), congestion=model)
    given = answered(rows.columns, usual, seed, model)
    given.expenditures = expected.expenditures
    found = validate.check(expected, given)
    assert found.right, found
    assert sum(toll > 0 for _, toll in expected.tolls.values()) > 50
    assert len(expected.alerts) > 10
    assert sum(balance > 0 for balance, _ in given.balances.values()) > 5


def test_the_real_sample(usual: Path) -> None:
    """Linear Road's own data, 214 seconds of one expressway with an accident in them."""
    folder = shared_data()
    if folder is None:
        pytest.skip("the sample is not here")
    rows = validate.read_rows(folder / "linear_road" / "lrb_L1_t0_214.csv.gz")
    expected = validate.expect(rows, None, np.load(usual))
    assert len(expected.accidents) == 1
    assert all(toll == 0 for _, toll in expected.tolls.values())
    given = answered(rows, usual, 1)
    given.expenditures = expected.expenditures
    found = validate.check(expected, given)
    assert found.right, found


def test_a_weather_update_changes_the_regression_and_tolls_stay(rows: Any, usual: Path) -> None:
    """What is told of rain reaches travel times, and nothing else."""
    some = rows.rows((rows.columns["xway"] <= 0) & (rows.columns["dir"] <= 0))
    dry = some.rows(some.columns["type"] != traffic.WEATHER)
    with_rain, without = (validate.expect(given.columns, None, np.load(usual)) for given in (some, dry))
    assert with_rain.tolls == without.tolls
    assert with_rain.balances == without.balances
    other = [abs(with_rain.travel_times[n] / s - 1) > 1e-3 for n, s in without.travel_times.items()]
    assert sum(other) > 10


def test_knowing_the_rain_makes_the_regression_better() -> None:
    """On minutes that it has not seen, against the same regression which is told of no rain."""
    road = traffic.Road(cars=2_000, entering_per_s=5, accidents=0)
    speeds = alternates.speeds_of(traffic.make(1, 1_800, 5, road))[0, 0]
    wet = np.repeat(traffic.rain(31, 5, 0, road), traffic.STRETCH, axis=0)
    seen, unseen = (alternates.forecasts(speeds, congestion.regression, r) for r in (wet, np.full_like(wet, np.nan)))
    errors = [float(np.nanmean(np.abs(found - speeds)[:, 10:])) for found in (seen, unseen)]
    assert errors[0] < 0.9 * errors[1], errors


def test_values_of_alternates_are_those_measured() -> None:
    import yaml

    path = Path(__file__).parents[2] / "examples/linear_road/linear_road.yaml"
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))["tasks"]
    written = {way["name"]: way["value"] for task in tasks for way in task.get("alternates", ())}
    assert alternates.values(alternates.measured()) == written
