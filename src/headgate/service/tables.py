"""Tables from files: CSV, also gzipped, and parquet where it can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate.errors import missing_package
from headgate.simulation.traces import read_csv_columns

__all__ = ["table_columns"]


def table_columns(file: Path) -> Mapping[str, Sequence[object]]:
    """The columns of a file, by name."""
    if not file.name.endswith(".parquet"):
        return read_csv_columns(file)
    try:
        from headgate.runtime.io.tables import read_parquet_columns
    except ModuleNotFoundError as error:
        raise missing_package("NO_SPARK", "reading parquet", error, "spark") from None
    return read_parquet_columns(file)
