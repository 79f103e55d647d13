"""Tables of a running engine."""

from __future__ import annotations

from typing import Any

from headgate.service.engine_tables import status_tables


def fragment(**fields: Any) -> dict[str, Any]:
    facts = {"name": "hot.read", "kind": "source", "epoch": 3, "rate_per_s": 10.0, "batch_s": 0.5, "behind": 4}
    return {**facts, "failure": None, **fields}


def test_a_fragment_without_an_epoch_has_no_rate_and_no_number() -> None:
    answer = {"process": 1, "snapshot": 2, "strategy": "hot", "dataflows": []}
    (_, table) = status_tables({**answer, "fragments": [fragment(), fragment(epoch=-1, rate_per_s=0.0, batch_s=0.0)]})
    assert [(row["epoch"], row["rate_per_s"], row["behind"]) for row in table.rows] == [(3, 10.0, 4), (None, None, 4)]
