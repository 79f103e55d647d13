"""The snapshots of an Iceberg table, by its library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.runtime.table_source.versions import AddedFile, Version, changed
from headgate.tasks.lakehouse.iceberg import catalogue
from headgate.tasks.lakehouse.read import ReadIceberg
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError

__all__ = ["IcebergCommits"]


@dataclass(slots=True)
class IcebergCommits:
    """The snapshots of a task's table; a version is the id of one."""

    options: ReadIceberg

    def newest(self) -> Version | None:
        with self._asking():
            current = self._table().current_snapshot()
            return None if current is None else int(current.snapshot_id)

    def before(self, ms: int) -> Version | None:
        earlier = [snapshot for snapshot in self._ancestors() if snapshot.timestamp_ms < ms]
        return int(earlier[-1].snapshot_id) if earlier else None

    def after(self, version: Version | None) -> Sequence[Version]:
        ids = [int(snapshot.snapshot_id) for snapshot in self._ancestors()]
        if version is None:
            return ids
        if version not in ids:
            message = (
                f"snapshot {version} of '{self.options.table}' has expired, or the table was rolled back behind it"
            )
            raise UnreadableSourceError(f"{message}; withdraw the dataflow and submit it again")
        return ids[ids.index(version) + 1 :]

    def files(self, version: Version, *, whole: bool) -> Sequence[AddedFile]:
        with self._asking():
            table = self._table()
            if whole:
                tasks = table.scan(snapshot_id=version).plan_files()
            else:
                snapshot = table.snapshot_by_id(version)
                operation = "unknown" if snapshot.summary is None else snapshot.summary.operation.value
                if operation == "replace":  # files that were put together
                    return ()
                if operation != "append":
                    return changed(self.options, version, operation)
                tasks = table.incremental_append_scan(
                    from_snapshot_id_exclusive=snapshot.parent_snapshot_id, to_snapshot_id_inclusive=version
                ).plan_files()
            made = [AddedFile(task.file.file_path, int(task.file.record_count), task) for task in tasks]
        return sorted(made, key=lambda file: file.path)

    def read(self, file: AddedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file; what was deleted from it by then is left out."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        with self._asking():
            table = self._table()
            there = {column.name.casefold(): column.name for column in table.schema().columns}
            names = [there.get(name.casefold()) for name in schema.names]
            projected = table.schema().select(*(name for name in names if name is not None))
            scan = ArrowScan(table.metadata, table.io, projected, AlwaysTrue())
            batches = list(scan.to_record_batches([file.about]))
        for batch in batches:
            columns = [
                pa.nulls(len(batch), field.type) if name is None else batch.column(name).cast(field.type)
                for name, field in zip(names, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _ancestors(self) -> list[Any]:
        """The snapshots that led to the current one, the oldest that there still is first."""
        from pyiceberg.table.snapshots import ancestors_of

        with self._asking():
            table = self._table()
            return list(ancestors_of(table.current_snapshot(), table.metadata))[::-1]

    def _table(self) -> Any:
        options = self.options
        return catalogue(options.catalog, options.warehouse, options.catalog_name).load_table(options.table)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What is raised for a catalogue or storage that does not answer."""
        try:
            yield
        except UnreadableSourceError:
            raise
        except Exception as error:  # each catalogue and each storage has its own
            reason = " ".join(str(error).split())[:300]
            raise SourceAwayError(f"the Iceberg table '{self.options.table}' cannot be read ({reason})") from None
