"""The objective, the bill and the achievable output agree with the logs of the simulator of DYN's authors."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from headgate import parse
from headgate.model.arrays import Shape
from headgate.model.cluster.catalogues import catalogue
from headgate.model.dataflow import Dataflow
from headgate.planning.objective import BreakEven, value_range
from headgate_benchmarks.checkout import shared_data

FOLDER = shared_data()
pytestmark = pytest.mark.skipif(
    FOLDER is None or not (FOLDER / "floe_sim").is_dir(), reason="the logs are not there; set HEADGATE_SHARED_DATA"
)


@dataclass(frozen=True)
class Row:
    scenario: str
    time_s: float
    value: float
    cost: float
    f: float
    most_per_s: float


def _folder() -> Path:
    assert FOLDER is not None
    return FOLDER / "floe_sim"


def _graph(name: str) -> Dataflow:
    """The authors' graph: alternates as id,cost,value,selectivity, then edges, then rates."""
    nodes, edges, _ = (_folder() / name).read_text().split("---")[:3]
    feeds = defaultdict(list)
    for line in edges.split("\n"):
        if line.strip():
            source, target = line.split()
            feeds[target].append(source)
    lines = ["tasks:"]
    for line in nodes.split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        node, *ways = line.split()
        lines += [
            f"- id: n{node}",
            "  ports: {inputs: [in], outputs: [out]}" if feeds[node] else "  ports: {outputs: [out]}",
        ]
        lines.append("  alternates:")
        for way in ways:
            number, cost, value, selectivity = way.split(",")
            figures = f"value: {value}, cost_s: {cost}, selectivity: {selectivity}"
            lines.append(f"  - {{name: a{number}, type: opaque, config: {{label: {node}-{number}}}, {figures}}}")
        if feeds[node]:
            lines.append(f"  inputs: [{', '.join('n' + source for source in feeds[node])}]")
    return parse("\n".join(lines), "yaml").dataflow


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, ...], list[Row]]:
    run: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    with gzip.open(_folder() / "coord_logs.csv.gz", "rt") as file:
        for each in csv.DictReader(file):
            key = tuple(each[name] for name in ("scenario", "mode", "run", "rate", "heuristic"))
            numbers = (float(each[name]) for name in ("time", "value", "cost", "f", "maxOutDataRate"))
            run[key].append(Row(each["scenario"], *numbers))
    return run


def _even(flow: Dataflow) -> BreakEven:
    lines = (_folder() / "optimizer_config.txt").read_text().splitlines()
    config = dict(line.replace(" ", "").split("=") for line in lines if "=" in line)
    return BreakEven(*value_range(flow), float(config["costAtMaxValue"]), float(config["costAtMinValue"]))


def test_value_and_objective_of_every_row(runs: dict[tuple[str, ...], list[Row]]) -> None:
    flow = _graph("appgraph5.txt")
    dynamic = _even(flow)
    assert dynamic.sigma == pytest.approx(0.014625)
    # Scenario 7 has no choice between alternates: the value is 0.95 throughout, and sigma follows from it.
    fixed = BreakEven(1.0, 0.95, 80.0, 60.0)
    values = {round(float(np.mean(chosen)), 4) for chosen in product(*(task.relative_values for task in flow.tasks))}
    rows = [row for run in runs.values() for row in run]
    assert len(rows) > 31_000
    for row in rows:
        even = fixed if row.scenario.startswith("7") else dynamic
        assert even.net_value(row.value, row.cost) == pytest.approx(row.f, abs=5.1e-6)
        assert row.scenario.startswith("7") or round(row.value, 4) in values


def test_machines_cost_what_they_did_there(runs: dict[tuple[str, ...], list[Row]]) -> None:
    """Static runs: all machines are held from the start, and each begun hour is paid."""
    billing = catalogue("floe-sim").billing
    static = [rows for key, rows in runs.items() if key[1] == "static"]
    assert len(static) > 80
    for rows in static:
        hourly = round(rows[0].cost, 3)  # they added up single-precision prices
        for row in rows:
            assert row.cost == pytest.approx(hourly * billing.periods(row.time_s), abs=2e-4)


def test_the_output_that_could_be_achieved(runs: dict[tuple[str, ...], list[Row]]) -> None:
    """Constant rates: the highest output of some choice of alternates with the logged value, within the log's noise."""
    shape = Shape.of(_graph("appgraph5.txt"))
    compared = 0
    for key, rows in runs.items():
        if not key[0].startswith("1 "):
            continue
        logged = float(np.median([row.most_per_s for row in rows[5:]]))
        value = rows[-1].value
        outputs = []
        for chosen in product(*(range(len(ways)) for ways in shape.alternates)):
            active = np.array(chosen)
            if abs(shape.value[np.arange(4), active].mean() - value) < 1e-6:
                rates = shape.rates({"n1": float(key[3])}, active)
                outputs.append(rates[3] * shape.selectivity[3, active[3]])
        assert min(abs(output / logged - 1) for output in outputs) < 0.03
        compared += 1
    assert compared == 20
