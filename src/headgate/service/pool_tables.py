"""Simulated pools and the dataflows that share them as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.model.table import Table, TableColumn
from headgate.simulation.run import Run

__all__ = ["pool_tables"]

_POOLS = (
    TableColumn("policy", "policy"),
    TableColumn("pool", "pool"),
    TableColumn("demand_cores", "D", form=".4g"),
    TableColumn("usable_cores", "U", form=".4g"),
    TableColumn("utilisation", "D / U", form=".2f"),
    TableColumn("kept_up", "kept up", form=".1%"),
    TableColumn("demand"),
    TableColumn("usable"),
)
_DATAFLOWS = (
    TableColumn("policy", "policy"),
    TableColumn("dataflow", "dataflow"),
    TableColumn("omega", "Ω", form=".4f"),
    TableColumn("gamma", "Γ", form=".4f"),
)


def pool_tables(runs: Sequence[Run]) -> list[Table]:
    """A row for each policy and pool and, of several dataflows, one for each policy and dataflow."""
    sharing = runs[0].setting.sharing
    if sharing is None:
        return []
    rows = []
    for run in runs:
        for place, pool in enumerate(sharing.pools):
            demand, usable = run.demand[:, :, place], run.usable[:, :, place]
            rows.append(
                {
                    "policy": run.policy,
                    "pool": pool.name,
                    "demand_cores": float(demand.mean()),
                    "usable_cores": float(usable.mean()),
                    "utilisation": float(demand.sum() / usable.sum()) if usable.any() else None,
                    "kept_up": float((demand <= usable * (1 + 1e-9)).mean()),
                    "demand": demand.mean(axis=1).tolist(),
                    "usable": usable.mean(axis=1).tolist(),
                }
            )
    notes = (
        "D: reference cores that what comes needs; U: those that rows can use; kept up: intervals",
        "in which D was at most U.",
    )
    tables = [Table("Pools", _POOLS, tuple(rows), notes)]
    if runs[0].by_dataflow:
        shares = tuple(
            {"policy": run.policy, "dataflow": name, "omega": float(np.mean(omega)), "gamma": float(np.mean(gamma))}
            for run in runs
            for name, (omega, gamma) in run.by_dataflow.items()
        )
        tables.append(Table("Dataflows", _DATAFLOWS, shares))
    return tables
