"""Connections to SQL databases, and the types of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.tasks.heavy import pa

__all__ = ["absolute_url", "check_database", "database", "is_postgresql", "sql_type"]

CONNECT_S = 5
"""How long a server may take to let somebody in."""


@cache
def database(url: str) -> Any:
    """The engine of SQLAlchemy for a database."""
    import sqlalchemy as sa

    place = sa.engine.make_url(url)
    if place.get_backend_name() == "sqlite" and place.database not in (None, "", ":memory:"):
        Path(str(place.database)).parent.mkdir(parents=True, exist_ok=True)  # as files get their folder
    patience: dict[str, Any] = {"connect_timeout": CONNECT_S} if place.drivername == "postgresql+psycopg" else {}
    # Arrays and structs are stored as JSON; a time or a decimal within one becomes a text. A connection from before the
    # server was away is noticed and replaced.
    serializer = partial(json.dumps, default=str)
    return sa.create_engine(url, json_serializer=serializer, pool_pre_ping=True, connect_args=patience)


def absolute_url(url: str) -> str:
    """The URL of a database as it is understood from any folder: workers may have been started in another one.

    >>> absolute_url("sqlite:////srv/city.db"), absolute_url("sqlite://"), absolute_url("postgresql://db/city")
    ('sqlite:////srv/city.db', 'sqlite://', 'postgresql://db/city')
    """
    path = url.removeprefix("sqlite:///")
    return url if path in (url, "", ":memory:") else f"sqlite:///{Path(path).absolute()}"


def check_database(url: str, condition: str = "SINK_UNUSABLE") -> None:
    """Raise :class:`InputError` where no engine can be made; whether the database answers is not asked."""
    try:
        database(url)
    except ImportError as error:
        message = f"the database needs the package {error.name}, which is not installed; install it"
        raise InputError(condition, message) from None
    except Exception as error:  # whatever SQLAlchemy and its dialects have against a URL
        raise InputError(condition, f"not a database that can be used: {error}") from None


def is_postgresql(connection: Any) -> bool:
    """Whether rows can be copied in bulk: PostgreSQL by psycopg."""
    return bool(connection.dialect.name == "postgresql" and connection.dialect.driver == "psycopg")


def sql_type(kind: pa.DataType) -> Any:
    """The type of a column that holds values of an Arrow type."""
    import sqlalchemy as sa

    known: list[tuple[Callable[[pa.DataType], bool], Any]] = [
        (pa.types.is_boolean, sa.Boolean()),
        (pa.types.is_integer, sa.BigInteger()),
        (pa.types.is_floating, sa.Double()),
        (pa.types.is_decimal, sa.Numeric()),
        (pa.types.is_timestamp, sa.DateTime(timezone=True)),
        (pa.types.is_date, sa.Date()),
        (pa.types.is_binary, sa.LargeBinary()),
        (pa.types.is_string, sa.Text()),
    ]
    return next((of for test, of in known if test(kind)), sa.JSON(none_as_null=True))
