"""Columns of parquet files, for rooms that know no Arrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import InputError

__all__ = ["read_parquet_columns"]


def read_parquet_columns(path: Path) -> dict[str, list[object]]:
    """The columns of a parquet file, as Python values."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError("BAD_TRACE", f"cannot read {path}: {str(error).splitlines()[0][:200]}") from None
    return {name: table.column(name).to_pylist() for name in table.column_names}
