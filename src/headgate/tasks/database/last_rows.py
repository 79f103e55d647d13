"""The last row of each key."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.tasks.heavy import np, pa

__all__ = ["last_rows"]


def last_rows(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of rows with the same key the last, in the order in which these come.

    >>> last_rows(pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3]}), ["k"]).to_pylist()
    [{'k': 'b', 'n': 2}, {'k': 'a', 'n': 3}]
    """
    places = pa.array(np.arange(len(rows)))
    keyed = rows.select(list(key)).append_column("__place", places)
    last = keyed.group_by(list(key), use_threads=False).aggregate([("__place", "max")]).column("__place_max")
    return rows.take(pa.array(np.sort(last.to_numpy())))
