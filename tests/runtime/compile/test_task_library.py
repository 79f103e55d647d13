"""The task library on Spark: every type that is not relational, at once over one source, against plain computations.

The functions behind the types are tested without Spark in tests/tasks; here it is shown that they reach the rows.
"""

from __future__ import annotations

import io
import json
import random
import sqlite3
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from headgate.runtime.engine.engine import Engine
from headgate.runtime.isolation.dead_letters import read_letters
from headgate_riotbench.mqtt import WriteMqtt, publish
from headgate_riotbench.training import fit_linear, fit_tree
from tests.runtime.broker import broker, listening, needs_broker
from tests.runtime.small import flow, memory, put, wait_for

pytestmark = pytest.mark.spark

COLUMNS = "id long, k string, v double, w double, t timestamp, senml string, csv string, json string, xml string"
BEGIN = datetime(2026, 7, 1, tzinfo=UTC)
KEYS = ("a", "b", "c")
Rows = list[dict[str, Any]]


def made(count: int) -> Rows:
    draw = random.Random(11)
    rows: Rows = []
    for n in range(count):
        v = round(draw.uniform(0, 100), 2)
        w = None if draw.random() < 0.1 else round(3 * v + draw.gauss(0, 5), 2)
        moment = BEGIN + timedelta(seconds=n)
        entries = [{"n": "v", "u": "m", "v": str(v)}, {"n": "who", "u": "string", "sv": f"Zoë {n}"}]
        senml = json.dumps({"e": entries, "bt": int(moment.timestamp() * 1_000)})
        row = {
            "id": n,
            "k": draw.choice(KEYS),
            "v": v,
            "w": w,
            "t": moment.isoformat(),
            "senml": senml,
            "csv": f"{n},{v}",
            "json": json.dumps({"n": n, "v": v}),
            "xml": f'<all><one id="{n}"><v>{v}</v></one><one id="{n + 1_000}"/></all>',
        }
        if n % 20 == 7:
            row |= {"senml": senml[:30], "csv": f"{n},warm", "json": '{"n":', "xml": "<all>"}
        rows.append(row)
    return rows


def step(kind: str, **config: Any) -> dict[str, Any]:
    return {"type": kind, "config": config}


def letting(task: dict[str, Any]) -> dict[str, Any]:
    return {**task, "on_error": "dead_letter"}


ROWS = made(400)
GOOD = [row for row in ROWS if row["id"] % 20 != 7]


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """Tables, models and a database for the tasks to look up in."""
    (tmp_path / "ids.txt").write_text("a\nc\n")
    (tmp_path / "places.txt").write_text("a:hill,1\nb:harbour,2\n")
    (tmp_path / "places.csv").write_text("a,1,north\na,2,south\nc,3,west\n")
    with sqlite3.connect(tmp_path / "names.db") as connection:
        connection.execute("create table names (k text, n integer)")
        connection.executemany("insert into names values (?, ?)", [("a", 1), ("a", 2), ("b", 3)])
    connection.close()
    x, y = [[row["v"]] for row in ROWS], [2 * row["v"] + 1 for row in ROWS]
    (tmp_path / "linear.json").write_text(json.dumps(fit_linear(["v"], x, y)))
    labels = ["high" if row["v"] > 61.7 else "low" for row in ROWS]
    (tmp_path / "tree.json").write_text(json.dumps(fit_tree(["v"], x, labels, 4, 8)))
    return tmp_path


def stateless(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        "senml": [letting(step("parse_senml", column="senml", columns="v double, who string", keep=True))],
        "csv": [letting(step("parse_csv", column="csv", columns="n bigint, v double", strict=True))],
        "json": [letting(step("parse_json", column="json", columns="n bigint, v double", strict=True))],
        "xml": [
            letting(step("parse_xml", column="xml", columns="n bigint, v double", each="one", paths={"n": "@id"})),
        ],
        "to_senml": [step("to_senml", time="t", texts={"k": "string"}, values={"v": "m", "w": "m"})],
        "range": [step("range_filter", ranges={"v": [20, 80], "w": [0, 200]}, outside="null")],
        "bloom": [step("bloom_filter", column="k", ids=str(folder / "ids.txt"), false_positives=0.0001)],
        "bloom_nulls": [
            step("bloom_filter", column="k", ids=str(folder / "ids.txt"), false_positives=0.0001, nulls=["v"])
        ],
        "annotate": [
            step("annotate", key="k", path=str(folder / "places.txt"), columns="k string, place string, level bigint")
        ],
        "join_table": [
            step("join_table", on=["k"], path=str(folder / "places.csv"), columns="k string, v int, side string")
        ],
        "query_table": [
            step(
                "query_table",
                url=f"sqlite:///{folder / 'names.db'}",
                query="select n from names where k = :k order by n",
                columns="n bigint",
                keep=["id"],
            )
        ],
        "models": [
            step("predict_linear", model=str(folder / "linear.json")),
            step("classify_tree", model=str(folder / "tree.json")),
            step("error_estimate", observed="w", mean="v"),
        ],
        "no_model": [step("classify_tree", model=str(folder / "nothing.json"))],
        "blobs": [
            step("derive", columns={"name": "concat('row', id)", "text": "concat('v=', v)"}),
            step("select", columns=["id", "name", "text"]),
            step("upload", folder=str(folder / "blobs"), name="name", content="text", ending=".txt"),
            step("download", folder=str(folder / "blobs"), name="path"),
        ],
        "zip": [step("derive", columns={"name": "concat('row', id)"}), step("zip", name="name", content="k", size=150)],
        "unpivot": [step("unpivot", columns=["v", "w"]), step("select", columns=["id", "field", "value"])],
    }


KEYED: dict[str, list[dict[str, Any]]] = {
    "block": [step("block_average", key=["k"], column="v", size=7)],
    "fill": [step("interpolate", key=["k"], columns=["w"], size=3)],
    "fill_two": [step("interpolate", key=["k"], columns=["w", "v"], size=3)],
    "distinct": [step("distinct", key=["k"], column="id")],
    "sketch": [step("distinct_sketch", key=["k"], column="id")],
    "moment": [step("second_moment", key=["k"], column="v", places=1_000)],
    "slide": [step("sliding_regression", key=["k"], column="v", train=5, ahead=2)],
    "top": [step("top_k", key=["k"], column="v", size=3)],
    "some": [
        step("accumulate", key=["k"], columns=["t", "v"], size=20),
        step("select", columns=["id", "k", "t", "v"]),
    ],
    "linear": [step("train_linear", key=["k"], features=["v"], target="w", every=50)],
    "tree": [
        step("derive", columns={"label": "case when v > 61.7 then 'high' else 'low' end"}),
        step("train_tree", key=["k"], features=["v"], label="label", every=50),
    ],
    "reunited": [
        step("select", columns=["id", "k", "v", "w"]),
        step("unpivot", columns=["v", "w"]),
        step("join_fields", key=["id"], columns="v double, w double"),
    ],
}
CHART = [*KEYED["some"], step("plot", lines=["v"], x="t", title="k")]


def test_the_task_library(engine: Engine, prepared: Path) -> None:
    source = {"type": "read_files", "config": {"path": str(prepared / "in"), "columns": COLUMNS}}
    (prepared / "in").mkdir()
    flows = {**stateless(prepared), **KEYED, "chart": CHART}
    engine.submit(*(flow(name, source, *tasks, memory(name)) for name, tasks in flows.items()))
    put(prepared / "in", "0", ROWS)
    engine.wait_until_idle()
    outcome = {name: engine.memory.rows(name) for name in flows}
    degraded = {status.name: status.reason for status in engine.status()[0] if status.state != "running"}
    assert degraded == {}
    _check_parsers(outcome, engine.state.path)
    _check_lookups(outcome)
    _check_files(outcome)
    _check_keyed(outcome)
    _check_models(outcome)
    # A model that is put in the place of another counts from the next micro-batch on.
    (prepared / "new.json").write_text(json.dumps({"kind": "linear", "intercept": -7, "coefficients": {"v": 10}}))
    (prepared / "new.json").replace(prepared / "linear.json")
    put(prepared / "in", "1", [{**row, "id": row["id"] + 1_000} for row in ROWS[:20]])
    engine.wait_until_idle()
    later = {row["id"] - 1_000: row["predicted"] for row in engine.memory.rows("models") if row["id"] >= 1_000}
    assert later == {row["id"]: pytest.approx(10 * row["v"] - 7) for row in ROWS[:20]}


def _check_parsers(outcome: dict[str, Rows], state: Path) -> None:
    wanted = [(row["id"], row["v"], f"Zoë {row['id']}", datetime.fromisoformat(row["t"])) for row in GOOD]
    assert sorted((r["id"], r["v"], r["who"], r["time"]) for r in outcome["senml"]) == wanted
    assert sorted((r["n"], r["v"]) for r in outcome["csv"]) == [(row["id"], row["v"]) for row in GOOD]
    assert sorted((r["n"], r["v"]) for r in outcome["json"]) == [(row["id"], row["v"]) for row in GOOD]
    elements = [(row["id"], row["v"]) for row in GOOD] + [(row["id"] + 1_000, None) for row in GOOD]
    assert sorted((r["n"], r["v"]) for r in outcome["xml"]) == sorted(elements)
    letters = [letter for letter in read_letters(state) if letter.task.split(".")[0] in ("senml", "csv", "json", "xml")]
    bad = {row["id"] for row in ROWS} - {row["id"] for row in GOOD}
    by_flow: dict[str, list[int]] = {}
    for letter in letters:
        by_flow.setdefault(letter.task.split(".")[0], []).append(json.loads(letter.record)["id"])
    assert {name: sorted(ids) for name, ids in by_flow.items()} == dict.fromkeys(
        ("senml", "csv", "json", "xml"), sorted(bad)
    )
    message = {letter.error for letter in letters if letter.task.startswith("senml")}
    assert all(text.startswith("no SenML: ") for text in message)
    for row, record in zip(
        ROWS, sorted((json.loads(r["value"]) for r in outcome["to_senml"]), key=lambda r: r["bt"]), strict=True
    ):
        entries = {entry["n"]: entry.get("v", entry.get("sv")) for entry in record["e"]}
        assert entries == {n: row[n] for n in ("k", "v", "w") if row[n] is not None}
        assert record["bt"] == datetime.fromisoformat(row["t"]).timestamp() * 1_000


def _check_lookups(outcome: dict[str, Rows]) -> None:
    inside = [
        (r["id"], r["v"] if 20 <= r["v"] <= 80 else None, r["w"] if r["w"] is not None and 0 <= r["w"] <= 200 else None)
        for r in ROWS
    ]
    assert sorted(((r["id"], r["v"], r["w"]) for r in outcome["range"]), key=lambda r: r[0]) == inside
    members = [row["id"] for row in ROWS if row["k"] in ("a", "c")]
    assert sorted(row["id"] for row in outcome["bloom"]) == members
    blanked = {row["id"] for row in outcome["bloom_nulls"] if row["v"] is None}
    assert blanked == {row["id"] for row in ROWS} - set(members)
    places = {"a": ("hill", 1), "b": ("harbour", 2), "c": (None, None)}
    assert all((row["place"], row["level"]) == places[row["k"]] for row in outcome["annotate"])
    assert len(outcome["annotate"]) == len(ROWS)
    table = pd.DataFrame({"k": ["a", "a", "c"], "right_v": [1, 2, 3], "side": ["north", "south", "west"]})
    joined = pd.DataFrame(ROWS)[["id", "k", "v"]].merge(table, on="k")
    names = ["id", "k", "v", "right_v", "side"]
    assert sorted(tuple(row[n] for n in names) for row in outcome["join_table"]) == sorted(
        joined[names].itertuples(index=False, name=None)
    )
    numbers = {"a": [1, 2], "b": [3], "c": []}
    assert sorted((r["id"], r["n"]) for r in outcome["query_table"]) == [
        (r["id"], n) for r in ROWS for n in numbers[r["k"]]
    ]


def _check_files(outcome: dict[str, Rows]) -> None:
    assert sorted((r["id"], r["content"]) for r in outcome["blobs"]) == [
        (r["id"], f"v={r['v']}".encode()) for r in ROWS
    ]
    unpacked: dict[str, bytes] = {}
    for row in outcome["zip"]:
        with zipfile.ZipFile(io.BytesIO(row["archive"])) as archive:
            assert len(archive.namelist()) == row["entries"] <= 150
            unpacked |= {name: archive.read(name) for name in archive.namelist()}
    assert unpacked == {f"row{row['id']}": row["k"].encode() for row in ROWS}
    charts = outcome["chart"]
    assert len(charts) == len(outcome["some"]) == sum(n // 20 for n in Counter(r["k"] for r in ROWS).values())
    assert all(row["chart"].startswith(b"<?xml") and b"<svg" in row["chart"] for row in charts)


def _check_keyed(outcome: dict[str, Rows]) -> None:
    of = {key: [row for row in ROWS if row["k"] == key] for key in KEYS}
    result = {
        name: {key: {row["id"]: row for row in outcome[name] if row["k"] == key} for key in KEYS} for name in KEYED
    }
    for key, rows in of.items():
        v = np.array([row["v"] for row in rows])
        ids = [row["id"] for row in rows]
        means = {ids[n + 6]: v[n : n + 7].mean() for n in range(0, len(v) - 6, 7)}
        assert {at: row["average"] for at, row in result["block"][key].items()} == pytest.approx(means)
        w = pd.Series([row["w"] for row in rows], dtype=float)
        before = w.dropna().rolling(3, min_periods=1).mean().reindex(w.index).ffill()
        filled = w.fillna(before)
        for name in ("fill", "fill_two"):
            made = [result[name][key][at]["w"] for at in ids]
            assert [np.nan if x is None else x for x in made] == pytest.approx(list(filled), nan_ok=True)
            assert [result[name][key][at]["v"] for at in ids] == list(v)
        assert [result["distinct"][key][at]["distinct"] for at in ids] == list(range(1, len(ids) + 1))
        assert result["sketch"][key][ids[-1]]["distinct"] == pytest.approx(len(ids), rel=0.1)
        squares = sum(count**2 for count in Counter(v).values())
        assert result["moment"][key][ids[-1]]["moment"] == pytest.approx(squares)
        assert sorted(result["slide"][key]) == ids[4:]
        for n in range(4, len(ids)):
            slope, start = np.polyfit(range(5), v[n - 4 : n + 1], 1)
            assert result["slide"][key][ids[n]]["predictions"] == pytest.approx([start + 5 * slope, start + 6 * slope])
        ranks = {at: 1 + int((v[:n] >= v[n]).sum()) for n, at in enumerate(ids)}
        assert {at: row["rank"] for at, row in result["top"][key].items()} == {a: r for a, r in ranks.items() if r <= 3}
        batches = {ids[n + 19]: list(v[n : n + 20]) for n in range(0, len(v) - 19, 20)}
        assert {at: row["v"] for at, row in result["some"][key].items()} == batches
        for at, row in result["some"][key].items():
            assert row["t"][-1] == BEGIN.timestamp() + at
    assert sorted(((r["id"], r["v"], r["w"]) for r in outcome["reunited"]), key=lambda r: r[0]) == [
        (row["id"], row["v"], row["w"]) for row in ROWS
    ]


def _check_models(outcome: dict[str, Rows]) -> None:
    tree = DecisionTreeClassifier(max_depth=4, max_leaf_nodes=8, random_state=0)
    v = np.array([[row["v"]] for row in ROWS])
    tree.fit(v, ["high" if x > 61.7 else "low" for x in v[:, 0]])
    rows = sorted(outcome["models"], key=lambda row: row["id"])
    assert [row["class"] for row in rows] == list(tree.predict(v))
    assert [row["predicted"] for row in rows] == pytest.approx(list(2 * v[:, 0] + 1))
    for row in rows:
        assert row["error"] == (None if row["w"] is None else pytest.approx((row["w"] - row["predicted"]) / row["v"]))
    assert {row["class"] for row in outcome["no_model"]} == {None}
    for key in KEYS:
        whole = [(row["v"], row["w"]) for row in ROWS if row["k"] == key and row["w"] is not None]
        models = [json.loads(r["model"]) for r in sorted(outcome["linear"], key=lambda r: r["id"]) if r["k"] == key]
        assert len(models) == len(whole) // 50
        for n, model in enumerate(models):
            some: Any = np.array(whole[50 * n : 50 * n + 50])
            fitted = LinearRegression().fit(some[:, :1], some[:, 1])
            assert model["intercept"] == pytest.approx(fitted.intercept_)
            assert model["coefficients"] == pytest.approx({"v": fitted.coef_[0]})
    assert len(outcome["tree"]) == sum(n // 50 for n in Counter(row["k"] for row in ROWS).values())
    assert all(json.loads(row["model"])["kind"] == "tree" for row in outcome["tree"])


def test_what_cannot_be_looked_up_is_no_fault_of_others(engine: Engine, prepared: Path) -> None:
    """A model that is broken while it is in use, and a table that goes away, degrade the dataflows that need them."""
    source = {"type": "read_files", "config": {"path": str(prepared / "in"), "columns": COLUMNS}}
    (prepared / "in").mkdir()
    annotate = step("annotate", key="k", path=str(prepared / "places.txt"), columns="k string, place string")
    bloom = step("bloom_filter", column="k", ids=str(prepared / "ids.txt"))
    model = step("predict_linear", model=str(prepared / "linear.json"))
    for name, task in {"table": annotate, "ids": bloom, "model": model, "other": step("union")}.items():
        engine.submit(flow(name, source, task, memory(name)))
    put(prepared / "in", "0", ROWS[:10])
    engine.wait_until_idle()
    assert {len(engine.memory.rows(name)) for name in ("table", "model", "other")} == {10}
    (prepared / "places.txt").unlink()
    (prepared / "ids.txt").unlink()
    (prepared / "linear.json").write_text("{")
    put(prepared / "in", "1", ROWS[10:20])
    wait_for(lambda: len(engine.memory.rows("other")) == 20, "rows of the other dataflow")
    reasons = {status.name: status.reason for status in engine.status()[0] if status.state != "running"}
    assert set(reasons) == {"table", "ids", "model"}
    assert "no file at" in reasons["table"]
    assert "no file at" in reasons["ids"]
    assert "cannot use the model at" in reasons["model"]


@needs_broker
def test_rows_by_way_of_a_broker(engine: Engine, tmp_path: Path) -> None:
    with broker(tmp_path) as port, listening(port, "loud") as heard:
        at: dict[str, Any] = {"host": "127.0.0.1", "port": port}
        read = {"type": "read_mqtt", "config": {**at, "topics": ["quiet"]}}
        loud = step("derive", columns={"value": "upper(value)"})
        engine.submit(flow("hearing", read, loud, step("write_mqtt", **at, topic="loud", column="value")))
        (fragment,) = engine.fragments.values()
        wait_for(lambda: fragment.query is not None and fragment.query.lastProgress is not None, "the subscription")
        publish(WriteMqtt(**at, topic="quiet", column="v"), [{"v": f"hush {n}"} for n in range(20)])
        wait_for(lambda: len(heard) >= 20, "messages")
        assert sorted(payload.decode() for _, payload in heard) == sorted(f"HUSH {n}" for n in range(20))
