"""Dashboards and alert rules: they parse, name only metrics that there are, and alert when they should."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import promql_parser
import pytest
import yaml

from headgate.service.metrics import EngineMetrics
from headgate.service.tally import MOST_NAMES
from headgate.store.observations import ObservationHistory
from tests.api.fake import FakeEngine
from tests.deploy.conftest import interval
from tests.deploy.test_deploy import DEPLOY

DASHBOARD = DEPLOY / "grafana" / "headgate.json"
RULES = DEPLOY / "prometheus" / "rules.yaml"
OF_PROMETHEUS = {"up"}


def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grafana_build", DEPLOY / "grafana" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def queries() -> Iterator[str]:
    """All that dashboards and rules ask for."""
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    yield from (rule["expr"] for rule in rules())


def selected(query: str) -> set[str]:
    """The names of the metrics in a query; raises for one that Prometheus would not take."""
    plain = query.replace("$__rate_interval", "5m").replace("$team", ".*")
    text = promql_parser.parse(plain).prettify()
    return set(re.findall(r"\b((?:headgate[_:]\w[\w:]*)|up)\b(?=[\s{\[)]|$)", text))


def exported(metrics: EngineMetrics) -> set[str]:
    """The names of all series that a service exports."""
    lines = metrics.text().decode().splitlines()
    return {re.split(r"[{ ]", line)[0] for line in lines if line and not line.startswith("#")}


def promtool() -> str:
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is not installed; on Debian: apt-get install prometheus")
    return path


def test_the_dashboard_is_what_its_program_writes() -> None:
    assert DASHBOARD.read_text("utf-8") == build().text(), "run .venv/bin/python deploy/grafana/build.py"


def test_every_panel_can_be_read() -> None:
    """What a linter of dashboards asks for: a unit, a description, a legend, the variable of the data source."""
    assert len(panels()) > 20
    for panel in panels():
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
    numbers = [panel["id"] for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_every_query_is_one() -> None:
    for query in queries():
        assert selected(query), query
    with pytest.raises(ValueError, match=r"parse error|unknown function|invalid"):
        selected("rat(headgate_epochs_total[5m])")


def test_only_metrics_that_the_service_exports_are_named(lively: EngineMetrics) -> None:
    known = exported(lively) | OF_PROMETHEUS | {rule["record"] for rule in rules() if "record" in rule}
    named = set().union(*map(selected, queries()))
    assert named - known == set()
    unused = {name for name in exported(lively) if name.startswith("headgate_")} - named
    assert {name for name in unused if not name.endswith(("_created", "_sum", "_bucket", "_count"))} <= {
        "headgate_build_info",
        "headgate_plan_snapshot_number",
    }, "every metric is on the dashboard"


def test_the_names_follow_the_conventions(lively: EngineMetrics, tmp_path: Path) -> None:
    done = subprocess.run([promtool(), "check", "metrics"], input=lively.text(), capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_counters_are_sums_over_intervals(engine: FakeEngine, tmp_path: Path) -> None:
    """Computed here from what was measured; what nobody asked for meanwhile is counted, and nothing twice."""
    metrics, history = EngineMetrics(engine, tmp_path), ObservationHistory(tmp_path / "observations")
    began, given = time.time() + 1.0, [(100, True), (50, False), (25, True)]
    for number, (rows, within) in enumerate(given):
        history.append(interval(began + 5.0 * number, rows, within))
        if number != 1:
            metrics.text()
    seen = dict(line.rsplit(" ", 1) for line in metrics.text().decode().splitlines() if line[0] != "#")
    assert float(seen['headgate_sink_rows_total{sink="f0.w"}']) == 175
    assert float(seen['headgate_task_errors_total{task="f0.t"}']) == 3
    levels = {
        outcome: float(seen[f'headgate_service_level_seconds_total{{dataflow="f0",outcome="{outcome}",team="city"}}'])
        for outcome in ("met", "missed")
    }
    assert levels == {"met": 10.0, "missed": 5.0}
    assert float(seen['headgate_epoch_seconds_total{kind="source",phase="execution"}']) == pytest.approx(2.1)


def test_names_do_not_grow_without_bound(engine: FakeEngine, tmp_path: Path) -> None:
    metrics, history = EngineMetrics(engine, tmp_path), ObservationHistory(tmp_path / "observations")
    history.append(interval(time.time() + 1.0, names=3 * MOST_NAMES))
    text = metrics.text().decode()
    rows = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}
    sinks = {name: value for name, value in rows.items() if name.startswith("headgate_sink_rows_total")}
    assert len(sinks) <= MOST_NAMES + 1
    assert sum(sinks.values()) == 100 * 3 * MOST_NAMES, "what has no name of its own is counted too"
    assert len(rows) < 20 * MOST_NAMES


def test_the_rules_are_valid_and_alert_when_they_should() -> None:
    folder = RULES.parent
    for command in (["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]):
        done = subprocess.run([promtool(), *command], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    tests = yaml.safe_load((RULES.parent / "rules_test.yaml").read_text(encoding="utf-8"))["tests"]
    fired = {case["alertname"] for one in tests for case in one["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {rule["alert"] for rule in rules() if "alert" in rule}
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("page", "ticket")
            assert set(rule["annotations"]) == {"summary", "description"}
