#!/usr/bin/env python
"""Writes the Grafana dashboard of a Headgate service.

    .venv/bin/python deploy/grafana/build.py

headgate.json is imported into Grafana, or provisioned as compose.yaml does. A test fails when it is out of date.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT = 12, 8

# A row: its title, and its panels as (title, unit, what it shows, queries with legends).
Query = tuple[str, str]
Panel = tuple[str, str, str, list[Query]]
ROWS: list[tuple[str, list[Panel]]] = [
    (
        "Dataflows",
        [
            ("Dataflows by state", "short", "How many dataflows run, and how many do not.",
             [("headgate_dataflows", "{{state}}")]),
            ("Service level missed", "percentunit", "Share of the last five minutes in which it was missed.",
             [('sum by (dataflow, team) '
               '(rate(headgate_service_level_seconds_total{team=~"$team",outcome="missed"}[5m])) / '
               'sum by (dataflow, team) (rate(headgate_service_level_seconds_total{team=~"$team"}[5m]))',
               "{{dataflow}}")]),
            ("Relative throughput", "percentunit", "Share of the rows that were there which reached the sinks.",
             [('headgate_relative_throughput_ratio{team=~"$team"}', "{{dataflow}}")]),
            ("Rows kept up with", "percentunit", "Rows taken over rows that came: above 100 % while it catches up.",
             [('headgate_kept_up_ratio{team=~"$team"}', "{{dataflow}}")]),
            ("Cost", "currencyUSD", "What each dataflow pays for machines, for an hour, and its budget.",
             [('headgate_cost_per_hour{team=~"$team"}', "{{dataflow}}"),
              ('headgate_budget_per_hour{team=~"$team"}', "budget of {{dataflow}}")]),
            ("Value and profit", "none", "Relative value of the active alternates, and profit.",
             [('headgate_value_ratio{team=~"$team"}', "value of {{dataflow}}"),
              ('headgate_profit_ratio{team=~"$team"}', "profit of {{dataflow}}")]),
        ],
    ),
    (
        "Rows",
        [
            ("Rows from sources", "rowsps", "Rows that epochs have taken, by source.",
             [("rate(headgate_source_rows_total[$__rate_interval])", "{{source}}")]),
            ("Rows to sinks", "rowsps", "Rows that reached each sink.",
             [("rate(headgate_sink_rows_total[$__rate_interval])", "{{sink}}")]),
            ("Rows that wait", "short", "Rows that wait at each source.",
             [("headgate_source_waiting_rows", "{{source}}")]),
            ("Latency", "s", "From an event's arrival to its sink: the 99th percentile.",
             [('headgate_sojourn_seconds{percentile="99"}', "{{sink}}")]),
            ("Busiest tasks", "rowsps", "The ten tasks that most rows go into.",
             [("topk(10, rate(headgate_task_rows_total[$__rate_interval]))", "{{task}}")]),
            ("Rows that failed", "rowsps", "Rows for which tasks raised, and dead letters.",
             [("rate(headgate_task_errors_total[$__rate_interval])", "{{task}}"),
              ("rate(headgate_dead_letters_total[$__rate_interval])", "dead letters of {{dataflow}}")]),
        ],
    ),
    (
        "Engine",
        [
            ("Epochs", "ops", "Epochs a second, by kind of fragment.",
             [("rate(headgate_epochs_total[$__rate_interval])", "{{kind}}")]),
            ("Where the time of epochs goes", "percentunit", "Seconds of a phase in each second.",
             [("sum by (phase) (rate(headgate_epoch_seconds_total[$__rate_interval]))", "{{phase}}")]),
            ("Fragments", "short", "Fragments, and those that have failed.",
             [("headgate_fragments", "fragments"), ("headgate_fragments_failed", "failed")]),
            ("Cores", "short", "Cores of machines at work, and how many of them are busy.",
             [("headgate_cores", "cores"), ("headgate_busy_cores", "busy")]),
            ("Decisions", "short", "Decisions of the controller that are known, by what became of them.",
             [("headgate_known_decisions", "{{outcome}}")]),
            ("Error of predictions", "percentunit", "How far off the last verified prediction was.",
             [("headgate_prediction_error_ratio", "error")]),
            ("Machines", "short", "Machines by state and class.",
             [("headgate_machines", "{{state}} {{vm_class}}")]),
            ("Disk", "bytes", "Free room for the state directory, and the size of the journal.",
             [("headgate_state_directory_free_bytes", "free"), ("headgate_journal_size_bytes", "journal")]),
            ("Changes", "ops", "Appends to the journal a second.",
             [("rate(headgate_journal_appends_total[$__rate_interval])", "appends")]),
            ("Age of the last measurement", "s", "How long ago the last interval ended.",
             [("time() - headgate_last_observation_timestamp_seconds", "age")]),
        ],
    ),
    (
        "API",
        [
            ("Requests", "reqps", "Requests a second, by status.",
             [("sum by (status) (rate(headgate_http_request_duration_seconds_count[$__rate_interval]))",
               "{{status}}")]),
            ("Request latency", "s", "The 99th percentile, by route.",
             [("histogram_quantile(0.99, sum by (le, route) "
               "(rate(headgate_http_request_duration_seconds_bucket[$__rate_interval])))", "{{route}}")]),
        ],
    ),
]  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, given in ROWS:
        place = {"x": 0, "y": top, "w": 2 * WIDTH, "h": 1}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place, "panels": []})
        top += 1
        for number, panel in enumerate(given):
            place = {"x": number % 2 * WIDTH, "y": top + number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT}
            panels.append(_panel(len(panels) + 1, place, *panel))
        top += -(-len(given) // 2) * HEIGHT
    return {
        "uid": "headgate",
        "title": "Headgate",
        "tags": ["headgate"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _variables() -> list[dict[str, Any]]:
    team = "label_values(headgate_cost_per_hour, team)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "team",
            "label": "Team",
            "type": "query",
            "datasource": SOURCE,
            "definition": team,
            "query": {"query": team, "refId": "team"},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _panel(
    number: int, place: dict[str, int], title: str, unit: str, text: str, queries: list[Query]
) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "description": text,
        "gridPos": place,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0} if unit != "none" else {"unit": unit}, "overrides": []},
        "options": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(queries)
        ],
    }


def text() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    (HERE / "headgate.json").write_text(text(), encoding="utf-8")
    print(HERE / "headgate.json")
