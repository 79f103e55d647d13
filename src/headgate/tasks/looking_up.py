"""What the task types that look up in files and databases do to a batch of rows."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import InputError
from headgate.tasks.arrow_task import Made, Work, replaced
from headgate.tasks.guard import told_of
from headgate.tasks.lookups import Annotate, QueryTable
from headgate.tasks.records import Bad, arrow_kinds, typed

__all__ = ["annotate", "query_table", "version_of"]


def version_of(path: str) -> tuple[str, int, int]:
    """A file and which version of it is there; raises :class:`InputError` if there is none."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise InputError("SOURCE_NOT_THERE", f"no file at '{path}' ({error.strerror}): mend the path") from None
    return str(Path(path).absolute()), found.st_mtime_ns, found.st_size


def annotate(options: Annotate) -> Work:
    """The work of an annotate task.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w+") as table:
    ...     _ = table.write("s1:harbour,4"), table.flush()
    ...     options = Annotate(key="id", path=table.name, columns="id string, place string, level bigint")
    ...     [column.to_pylist() for column in annotate(options)(pa.record_batch({"id": ["s1", "s2"]})).columns]
    [['s1', 's2'], ['harbour', None], [4, None]]
    """
    columns = [column.name for column in options.added().columns]

    def work(batch: pa.RecordBatch) -> Made:
        keys, attributes = _table(version_of(options.path), options.columns, options.separator)
        at = [name.casefold() for name in batch.schema.names].index(options.key.casefold())
        found = pc.index_in(batch.column(at).cast(pa.string()), value_set=keys)
        origin = None
        if options.unknown == "drop":
            known = pc.is_valid(found)
            origin = np.flatnonzero(known.to_numpy(zero_copy_only=False))
            batch, found = batch.filter(known), found.filter(known)
        new = [(name, array.take(found)) for name, array in zip(columns, attributes, strict=True)]
        return Made(replaced(batch, new), origin)

    return work


@lru_cache(maxsize=8)
def _table(version: tuple[str, int, int], columns: str, separator: str) -> tuple[pa.Array, list[pa.Array]]:
    """Keys and attributes of a file; of lines with one key the first counts, and of a short line the rest is null."""
    path, _, _ = version
    kinds = arrow_kinds(columns)
    rows: dict[str, list[str | None]] = {}
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, mark, rest = line.partition(separator)
        if mark:
            values = rest.split(",")
            rows.setdefault(key, [*values, *[None] * len(kinds)][: len(kinds) - 1])
    by_column = list(zip(*rows.values(), strict=True)) or [()] * (len(kinds) - 1)
    unfit: Bad = {}
    found = [typed(name, values, kind, unfit) for (name, kind), values in zip(kinds[1:], by_column, strict=True)]
    return pa.array(list(rows), pa.string()), found


def query_table(options: QueryTable) -> Work:
    """The work of a query_table task.

    >>> options = QueryTable(
    ...     url="sqlite://", query="select :n * 2 union select :n * 3", columns="m bigint", keep=("n",)
    ... )
    >>> [column.to_pylist() for column in query_table(options)(pa.record_batch({"n": [1, 5]})).columns]
    [[1, 1, 5, 5], [2, 3, 10, 15]]
    """
    import sqlalchemy as sa

    fields = arrow_kinds(options.columns)
    query = sa.text(options.query)
    names = set(query._bindparams)

    def work(batch: pa.RecordBatch) -> Made:
        bad: Bad = {}
        origin: list[int] = []
        rows: list[tuple[Any, ...]] = []
        with _engine(options.url).connect() as connection:
            for place, row in enumerate(batch.to_pylist()):
                try:
                    result = connection.execute(query, {name: row[name] for name in names})
                    found = [tuple(one) for one in result]
                    if found and len(found[0]) != len(fields):
                        raise ValueError(f"the query returns {len(found[0])} columns, not {len(fields)}")
                except KeyError as error:
                    bad[place] = f"the query asks for :{error.args[0]}, which is no column of the row"
                except (sa.exc.SQLAlchemyError, ValueError) as error:
                    connection.rollback()
                    bad[place] = told_of(error)
                else:
                    rows += found
                    origin += [place] * len(found)
        by_field = list(zip(*rows, strict=True)) or [()] * len(fields)
        unfit: Bad = {}
        made = [(n, typed(n, v, kind, unfit)) for (n, kind), v in zip(fields, by_field, strict=True)]
        if unfit:
            raise ValueError(next(iter(unfit.values())))
        places = np.array(origin, np.int64)
        kept = batch.select(list(options.keep)).take(pa.array(places))
        return Made(replaced(kept, made), places, sorted(bad.items()))

    return work


@lru_cache(maxsize=8)
def _engine(url: str) -> Any:
    import sqlalchemy as sa

    return sa.create_engine(url)
