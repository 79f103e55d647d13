"""RIoTBench's applications on Spark, on records of the generator, one in a hundred of them broken: against pandas.

Where RIoTBench's own sample streams are at hand, some of their records follow those of the generator.

The dataflows are those of examples/riotbench, with a file of records in the place of the source and memory in the place
of sinks; everything else runs as it stands there.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from headgate.documents import parse
from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.dead_letters import read_letters
from headgate_benchmarks.checkout import shared_data
from headgate_riotbench.generate import FIELDS, Generate, records
from headgate_riotbench.training import fit_linear, fit_tree
from tests.runtime.small import put

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
COUNT, REAL = 400, 100
TAPS = {"stats": ("average", "predict", "distinct"), "pred": ("classes", "errors"), "etl": ("senml",)}

Table = pd.DataFrame


def real_records(data: str) -> list[bytes]:
    """Some records of RIoTBench's sample streams, where they are."""
    folder = shared_data()
    if folder is None:
        return []
    name = {"city": "sys", "taxi": "taxi", "fitness": "fit"}[data]
    lines = gzip.decompress((folder / "riotbench" / f"{name}_senml.csv.gz").read_bytes()).splitlines()
    return lines[:REAL]


class City:
    """What is known of a data set, read from the dataflows, and its records as the standard library reads them."""

    def __init__(self, data: str) -> None:
        self.data = data
        self.ending = "" if data == "city" else f"_{data}"
        self.name = FIELDS[data][0].name
        self.raw = [*records(Generate(data=data, bad=0.03, keys=50), range(COUNT)), *real_records(data)]  # type: ignore[arg-type]
        self.count = len(self.raw)
        understood = [(number, self._understood(text)) for number, text in enumerate(self.raw)]
        self.bad = {number for number, outcome in understood if outcome is None}
        self.rows = Table([{"id": number, **outcome} for number, outcome in understood if outcome is not None])
        self.tasks = {app: {task["id"]: task for task in self.document(app)["tasks"]} for app in TAPS}
        self.ranges: dict[str, list[float]] = self.tasks["etl"]["in_range"]["config"]["ranges"]

    def document(self, app: str) -> dict[str, Any]:
        outcome: dict[str, Any] = yaml.safe_load((ROOT / f"examples/riotbench/{app}{self.ending}.yaml").read_text())
        return outcome

    def _understood(self, text: bytes) -> dict[str, Any] | None:
        try:
            whole = text.decode("utf-8")
            record = json.loads(whole[whole.index("{") :])
            entries = {entry["n"]: entry for entry in record["e"]}
            given = {name: entry["u"].strip() for name, entry in entries.items()}
            fits = all(given.get(f.name, f.unit) == f.unit for f in FIELDS[self.data] if f.number)
            bt = int(record["bt"])
            if len(text) > 10_000 or not fits or not 0 <= bt < 4_102_444_800_000 or self.name not in entries:
                return None
        except (ValueError, KeyError):
            return None
        values = {
            f.name: float(e["v"]) if f.number else e["sv"] for f in FIELDS[self.data] if (e := entries.get(f.name))
        }
        return {"bt": bt, **{f.name: values.get(f.name) for f in FIELDS[self.data]}}

    def long(self) -> Table:
        """One row for each observed field of each record, in the order in which they come."""
        observed = list(self.ranges)
        outcome = self.rows[["id", self.name, *observed]].melt(["id", self.name], observed, "field", "value")
        return outcome.sort_values("id", kind="stable").reset_index(drop=True)


def submitted(engine: Engine, city: City, app: str, folder: Path) -> None:
    """Submit an application; what its taps hand on is kept in memory too, and what its sinks get."""
    text = (
        json.dumps(city.document(app)).replace("out/riotbench", str(folder)).replace("examples/", f"{ROOT}/examples/")
    )
    document = json.loads(text)
    name = app.removesuffix("_wide")
    for task in document["tasks"]:
        kind = task.get("type")
        if kind == "generate":
            config = {"path": str(folder / "in"), "format": "parquet", "columns": "id bigint, value string"}
            task.update(type="read_files", config=config)
        elif kind == "rate":
            task.update(type="read_files", config={"path": str(folder / "timer"), "columns": "value bigint"})
        elif kind == "write_files":
            task.update(type="write_memory", config={"name": f"{app}.{task['id']}"})
    for tap in TAPS.get(name, ()):
        document["tasks"].append(
            {"id": f"tap_{tap}", "type": "write_memory", "config": {"name": f"{app}.tap_{tap}"}, "inputs": [tap]}
        )
    engine.submit(parse(json.dumps(document), "json").dataflow)


def put_records(city: City, folder: Path) -> None:
    texts = pa.array(city.raw, pa.binary()).cast(pa.string(), safe=False)  # some are no UTF-8
    pq.write_table(pa.table({"id": pa.array(range(city.count), pa.int64()), "value": texts}), folder / "0.parquet")
    (folder / "0.parquet").rename(folder / "in" / "0.parquet")


def put_models(city: City, folder: Path) -> None:
    """Models for PRED, trained on all records that have what they look at."""
    (folder / "models").mkdir(parents=True)
    features, target = _trained(city)
    whole = city.rows.dropna(subset=[*features, target])
    x, y = whole[features].to_numpy().tolist(), whole[target].tolist()
    classes = ["many" if value > np.median(y) else "few" for value in y]
    (folder / f"models/{city.data}_linear.json").write_text(json.dumps(fit_linear(features, x, y)))
    (folder / f"models/{city.data}_tree.json").write_text(json.dumps(fit_tree(features, x, classes, 6, 20)))


def _trained(city: City) -> tuple[list[str], str]:
    tasks = {task["id"]: task for task in city.document("train")["tasks"]}
    return tasks["linear"]["config"]["features"], tasks["linear"]["config"]["target"]


@pytest.mark.slow
@pytest.mark.parametrize("data", ["city", "taxi", "fitness"])
def test_the_applications(engine: Engine, tmp_path: Path, data: str) -> None:
    city = City(data)
    put_models(city, tmp_path)
    for source in ("in", "timer"):
        (tmp_path / source).mkdir()
    for app in ("etl", "stats", "pred", "train", *(["etl_wide"] if data == "city" else [])):
        submitted(engine, city, app, tmp_path)
    put_records(city, tmp_path)  # all have been submitted: each gets every record
    engine.wait_until_idle()
    put(tmp_path / "timer", "0", [{"value": number} for number in range(city.count // 100 + 6)])
    engine.wait_until_idle()
    assert {flow.name: flow.reason for flow in engine.status()[0] if flow.state != "running"} == {}
    rows = engine.memory.rows
    _check_letters(engine.state.path, city)
    _check_etl(rows("etl.publish"), city)
    if data == "city":
        assert _records(rows("etl_wide.publish")) == _records(rows("etl.publish"))
    _check_stats({tap: Table(rows(f"stats.tap_{tap}")) for tap in TAPS["stats"]}, rows("stats.told"), city)
    _check_pred(Table(rows("pred.tap_classes")), Table(rows("pred.tap_errors")), city)
    _check_train(rows("train.told"), tmp_path, city)


def _check_letters(state: Path, city: City) -> None:
    letters = [letter for letter in read_letters(state) if letter.task.endswith(".parse")]
    assert sorted(json.loads(letter.record)["id"] for letter in letters) == sorted(city.bad)
    assert 0 < len(city.bad) < 0.06 * COUNT


def _records(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    outcome = []
    for row in rows:
        record = json.loads(row["value"])
        entries = {entry["n"]: entry.get("v", entry.get("sv")) for entry in record["e"]}
        outcome.append(
            (record["bt"], *(round(v, 9) if isinstance(v, float) else v for _, v in sorted(entries.items())))
        )
    return sorted(outcome, key=repr)


def _check_etl(rows: list[dict[str, Any]], city: City) -> None:
    config = city.tasks["etl"]["annotate"]["config"]
    lines = (ROOT / config["path"]).read_text().splitlines()
    names = [part.split()[0] for part in config["columns"].split(",")][1:]
    attributes = {
        key: dict(zip(names, rest.split(","), strict=True)) for key, _, rest in (x.partition(":") for x in lines)
    }
    known = set((ROOT / city.tasks["etl"]["known"]["config"]["ids"]).read_text().split())
    wanted = city.rows.copy()
    for field, (low, high) in city.ranges.items():
        wanted[field] = wanted[field].where(wanted[field].between(low, high) & wanted[city.name].isin(known))
        if "fill" in city.tasks["etl"]:
            for _, some in wanted.groupby(city.name):
                last = some[field].dropna().rolling(5, min_periods=1).mean().reindex(some.index).ffill()
                wanted.loc[some.index, field] = some[field].fillna(last)
    expected = []
    for row in wanted.to_dict("records"):
        texts = {f.name: row[f.name] for f in FIELDS[city.data] if not f.number} | attributes.get(row[city.name], {})
        numbers = {f.name: row[f.name] for f in FIELDS[city.data] if f.number and pd.notna(row[f.name])}
        whole = {**texts, **numbers}
        expected.append((row["bt"], *(round(v, 9) if isinstance(v, float) else v for _, v in sorted(whole.items()))))
    assert _records(rows) == sorted(expected, key=repr)


def _check_stats(outcome: dict[str, Table], message: list[dict[str, Any]], city: City) -> None:
    tasks, long = city.tasks["stats"], city.long()
    size = tasks["average"]["config"]["size"]
    batch = tasks["some_average"]["config"]["size"]
    averages, predictions, batches = [], 0, 0
    for (name, field), some in long.groupby([city.name, "field"]):
        values = some["value"].dropna().to_numpy()
        blocks = [values[n : n + size].mean() for n in range(0, len(values) - size + 1, size)]
        averages += [(name, field, round(float(mean), 6)) for mean in blocks]
        predictions += max(len(values) - 9, 0)
        batches += len(blocks) // batch + max(len(values) - 9, 0) // batch
    made = outcome["average"]
    assert sorted(zip(made[city.name], made["field"], made["average"].round(6), strict=True)) == sorted(averages)
    assert len(outcome["predict"]) == predictions
    _check_smoothing(outcome["predict"], long, city)
    made = outcome["distinct"].sort_values(["field", "id"])
    for field, some in made.groupby("field"):
        here = long[long["field"] == field].sort_values("id")[city.name]
        assert list(some["distinct"]) == list((~here.duplicated()).cumsum()), field
        batches += len(some) // batch
    charts: list[str] = []
    for row in message:
        with zipfile.ZipFile(io.BytesIO(Path(row["path"]).read_bytes())) as archive:
            assert len(archive.namelist()) == row["entries"]
            charts += archive.namelist()
            assert all(b"<svg" in archive.read(name) for name in archive.namelist()[:1])
    assert len(charts) == len(set(charts)) == batches


def _check_smoothing(made: Table, long: Table, city: City) -> None:
    """The better of the two ways to smooth runs; ten values are predicted from the line through the last ten."""
    ways = {way["type"]: way for way in city.tasks["stats"]["smooth"]["alternates"]}
    best = max(ways, key=lambda kind: ways[kind]["value"])
    outcome = {(row["id"], row["field"]): row for row in made.to_dict("records")}
    for (_, field), some in long.groupby([city.name, "field"]):
        there = some.dropna(subset=["value"])
        values = there["value"].to_numpy()
        smooth = _kalman(values) if best == "kalman" else list(pd.Series(values).rolling(5, min_periods=1).mean())
        for n in range(9, len(values)):
            row = outcome[there["id"].iloc[n], field]
            assert row["smoothed"] == pytest.approx(smooth[n])
            slope, start = np.polyfit(range(10), smooth[n - 9 : n + 1], 1)
            scale = np.abs(smooth).max()
            assert row["predictions"] == pytest.approx(
                [start + slope * x for x in range(10, 20)], abs=1e-9 * scale + 1e-9
            )


def _kalman(values: Any) -> list[float]:
    x, p, outcome = 0.0, 30.0, []
    for value in values:
        p += 0.125
        gain = p / (p + 0.32)
        x += gain * (value - x)
        p *= 1 - gain
        outcome.append(x)
    return outcome


def _check_pred(classes: Table, errors: Table, city: City) -> None:
    features, target = _trained(city)
    rows = city.rows.sort_values("id").reset_index(drop=True)
    whole = rows.dropna(subset=[*features, target])
    x, y = whole[features].to_numpy(), whole[target].to_numpy()
    labels = np.where(y > np.median(y), "many", "few")
    tree = DecisionTreeClassifier(max_depth=6, max_leaf_nodes=20, random_state=0).fit(x, labels)
    linear = LinearRegression().fit(x, y)
    asked = rows.dropna(subset=features)
    by_id = classes.set_index("id")["class"]
    assert list(by_id.loc[asked["id"]]) == list(tree.predict(asked[features].to_numpy()))
    assert by_id.drop(asked["id"]).isna().all()
    errors = errors.set_index("id")
    predicted = pd.Series(linear.predict(asked[features].to_numpy()), asked["id"])
    assert list(errors.loc[asked["id"], "predicted"]) == pytest.approx(list(predicted))
    size = city.tasks["pred"]["average"]["config"]["size"]
    for _, some in rows.groupby(city.name):
        blocks, last, values = [], None, []
        for value in some[target]:
            if pd.notna(value):
                values.append(value)
                last = np.mean(values[-size:]) if len(values) % size == 0 else last
            blocks.append(last)
        made = errors.loc[some["id"]]
        assert [None if pd.isna(v) else v for v in made["average"]] == pytest.approx(blocks)
        wanted = (some.set_index("id")[target] - predicted.reindex(some["id"])) / pd.Series(
            blocks, some["id"], dtype=float
        )
        assert list(made["error"].astype(float)) == pytest.approx(list(wanted), nan_ok=True)


def _check_train(message: list[dict[str, Any]], folder: Path, city: City) -> None:
    features, target = _trained(city)
    clean = city.rows[city.rows["id"] < city.count // 100 * 100].sort_values("id")
    for field, (low, high) in city.ranges.items():
        clean = clean.assign(**{field: clean[field].where(clean[field].between(low, high))})
    whole = clean.dropna(subset=[*features, target])
    batches = len(whole) // 300
    assert batches >= 1
    assert sum(row["path"].endswith(f"{city.data}_linear.json") for row in message) == batches
    model = json.loads((folder / f"models/{city.data}_linear.json").read_text())
    last = whole.iloc[(batches - 1) * 300 : batches * 300]
    fitted = LinearRegression().fit(last[features].to_numpy(), last[target].to_numpy())
    assert model["rows"] == 300
    assert model["intercept"] == pytest.approx(fitted.intercept_)
    assert list(model["coefficients"].values()) == pytest.approx(list(fitted.coef_))
    tree = json.loads((folder / f"models/{city.data}_tree.json").read_text())
    assert (tree["kind"], tree["rows"], tree["features"]) == ("tree", 300, features)
