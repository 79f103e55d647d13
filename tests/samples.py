"""One dataflow that has everything, in every format."""

from __future__ import annotations

import json
from typing import Any

from headgate.documents import FORMATS, parse, write

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "everything",
    "owner": "ana",
    "description": "Two lines,\nof which one has odd signs: <&>\"'#",
    "service_level": {
        "throughput_min": 0.7,
        "throughput_tolerance": 0.1,
        "latency_max_s": 3,
        "latency_min_s": 0.5,
        "budget_per_h": 2.25,
        "break_even_at_best_per_h": 4,
        "break_even_at_worst_per_h": 1.5,
        "processors_max": 12,
    },
    "tasks": [
        {"id": "read", "type": "read_files", "config": {"path": "in/*", "columns": "id string, t timestamp, v double"}},
        {"id": "other", "type": "read_files", "config": {"path": "b", "columns": "id string, t timestamp, v double"}},
        {
            "id": "clean",
            "type": "filter",
            "config": {"where": "v > 1 and id <> 'x'"},
            "cost_s": 0.004,
            "selectivity": 0.5,
            "inputs": [{"from": "read", "where": "v < 100"}, {"from": "other", "key": ["id", "t"]}],
        },
        {
            "id": "smooth",
            "alternates": [
                {"name": "fine", "type": "kalman", "config": {"key": ["id"], "column": "v"}, "value": 1.4, "cost_s": 2},
                {
                    "name": "coarse",
                    "type": "moving_average",
                    "config": {"key": ["id"], "column": "v", "size": 5, "into": "smoothed"},
                    "value": 0.7,
                    "selectivity": 1,
                },
            ],
            "inputs": ["clean"],
        },
        {
            "id": "pair",
            "type": "join",
            "config": {"on": ["id"], "time": ["t", "t"], "within": "10min", "kind": "left"},
            "inputs": ["smooth", "other"],
        },
        {
            "id": "split",
            "type": "opaque",
            "config": {"label": "splitting", "options": {"deep": [{"a": None, "b": [True, 1.5, "text"]}]}},
            "ports": {
                "inputs": ["in", {"name": "back"}],
                "outputs": [{"name": "hot", "columns": "id string, v double"}, "cold"],
            },
            "inputs": ["pair", {"from": "loop", "to": "back", "feedback": True}],
        },
        {"id": "loop", "type": "python", "config": {"function": "m.f", "over": "arrow"}, "inputs": ["split:cold"]},
        {"id": "print", "type": "write_console", "config": {"rows": 5}, "inputs": ["split:hot"]},
        {
            "id": "count",
            "type": "window",
            "config": {"time": "t", "size": "5min", "columns": {"n": "count(*)"}},
            "inputs": ["read"],
        },
        {
            "id": "write",
            "type": "write_files",
            "config": {"path": "out", "format": "csv"},
            "inputs": [{"from": "count"}],
        },
    ],
}

DATAFLOW = parse(json.dumps(DOCUMENT), "json").dataflow
TEXTS = {form: write(DATAFLOW, form) for form in FORMATS}
ENDINGS = {form: endings[0] for form, endings in FORMATS.items()}
