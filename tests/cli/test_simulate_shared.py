"""``headgate simulate --shared``: policies on a pool of shared cores, of one dataflow and of several merged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import headgate

ROAD = Path(__file__).resolve().parents[2] / "examples" / "simulation" / "linear_road.yaml"
RATES = ("--rate", "reports=sinusoid:75,2", "--rate", "weather=0.5", "--hours", "2", "--shared")
FLOW = """
name: {0}
service_level: {{throughput_min: 0.8, break_even_at_best_per_h: 2, break_even_at_worst_per_h: 1}}
tasks:
  - {{id: read, type: opaque, config: {{label: read}}, cost_s: 0.01, ports: {{outputs: [out]}}}}
  - id: work
    alternates:
      - {{name: best, type: opaque, config: {{label: {0}}}, value: 1.0, cost_s: {1}}}
      - {{name: quick, type: opaque, config: {{label: {0} quick}}, value: 0.5, cost_s: 0.01}}
    ports: {{inputs: [in]}}
    inputs: [read]
"""


def test_demand_and_usable_power_are_those_of_the_pool() -> None:
    seen = headgate("simulate", ROAD, *RATES, "--policy", "static-peak", "--policy", "ds2", "--json").json
    peak, ds2 = seen["pools"]
    assert peak["demand_cores"] == pytest.approx(ds2["demand_cores"])
    assert peak["usable_cores"] > 1.2 * ds2["usable_cores"]
    assert peak["kept_up"] == 1.0
    by_policy = {each["policy"]: each for each in seen["policies"]}
    assert by_policy["ds2"]["cost"] < by_policy["static-peak"]["cost"]
    assert len(ds2["demand"]) == 60


def test_without_epochs_all_power_is_usable(tmp_path: Path) -> None:
    given = ("simulate", ROAD, *RATES, "--policy", "static", "--json")
    flowing, epochs = (headgate(*given, "--epoch", length).json["pools"][0] for length in ("0s", "1s"))
    assert flowing["usable_cores"] == pytest.approx(round(flowing["usable_cores"]))
    assert epochs["usable_cores"] != pytest.approx(round(epochs["usable_cores"]))
    assert headgate("simulate", ROAD, *RATES, "--epoch", "0.1s").status == 2


def test_dataflows_that_share_a_task_share_its_work(tmp_path: Path) -> None:
    files = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for file, cost in zip(files, (0.04, 0.06), strict=True):
        file.write_text(FLOW.format(file.stem, cost), encoding="utf-8")
    given = ("--rate", "50", "--hours", "2", "--policy", "static")
    seen = headgate("simulate", *files, *given, "--shared", "--json").json
    # 50 messages a second: read once for both, and each one's own work.
    assert seen["pools"][0]["demand_cores"] == pytest.approx(50 * (0.01 + 0.04 + 0.06))
    assert [each["dataflow"] for each in seen["dataflows"]] == ["one", "two"]
    assert [each["omega"] for each in seen["dataflows"]] == pytest.approx([1.0, 1.0])
    refused = headgate("simulate", *files, *given)
    assert (refused.status, "add --shared" in refused.err) == (2, True)


def test_drs_meets_a_latency_and_says_why(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(FLOW.format("one", 0.04).replace("throughput_min: 0.8", "latency_max_s: 4"), encoding="utf-8")
    given = ("simulate", file, "--rate", "sinusoid:60,5,period_s=7200", "--hours", "2", "--policy", "drs", "--shared")
    seen = headgate(*given, "--explain", "--json").json
    assert seen["policies"][0]["omega"] > 0.97
    assert any("cores" in each["reason"] for each in seen["reasons"])
    assert headgate("simulate", file, "--rate", "5", "--policy", "drs").status == 2
    refused = headgate("simulate", file, "--rate", "5", "--policy", "ga", "--shared")
    assert "hands out cores that tasks own" in refused.err


def test_the_picture_has_the_pool(tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"
    assert headgate("simulate", ROAD, *RATES, "--policy", "exact", "--plot", picture).status == 0
    assert "usable" in picture.read_text(encoding="utf-8")
