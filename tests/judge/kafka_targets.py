"""Where the rows of the Kafka campaigns go, and how somebody else reads them: kcat, psql, and DuckDB by Delta's log.

Records are as kcat prints them: a partition, a place in it, a key, and the row as JSON. A table is one partition.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import duckdb

from headgate.machines.processes import end, reap
from headgate.machines.services.broker import Broker
from headgate.machines.services.database import Database, server_programs
from headgate.machines.standalone import free_port

__all__ = ["CLIENT", "PARTITIONS", "DeltaTarget", "KafkaTarget", "PostgresTarget", "Target"]

PARTITIONS = 3
CLIENT = {"reconnect.backoff.max.ms": 500, "log_level": 0}
Record = dict[str, Any]


class Target(Protocol):
    """Where rows go. What is started with it is killed in the campaign too."""

    def begin(self) -> None:
        """Start and make what is needed."""

    def sink(self) -> Mapping[str, Any]:
        """The task that writes."""

    def count(self) -> int:
        """How many rows are there; less than 0 if nobody answers."""

    def records(self) -> Sequence[Record]:
        """All rows, in their order, as another program reads them."""

    def kills(self) -> Mapping[str, Callable[[float], None]]:
        """What else can be killed, by name; it is away for so many seconds."""

    def close(self) -> None:
        """End what was started."""


@dataclass(slots=True)
class KafkaTarget:
    """A topic of the broker that the rows come from."""

    broker: Broker

    def begin(self) -> None:
        import confluent_kafka.admin

        admin: Any = confluent_kafka.admin
        client = admin.AdminClient({"bootstrap.servers": self.broker.servers})
        client.create_topics([admin.NewTopic("target", PARTITIONS, 1)])["target"].result(60)

    def sink(self) -> Mapping[str, Any]:
        return {"type": "write_kafka", "config": {"servers": self.broker.servers, "topic": "target", "key": "k"}}

    def count(self) -> int:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        settings = {"bootstrap.servers": self.broker.servers, "group.id": "judge", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, **CLIENT})
        try:
            places = [TopicPartition("target", partition) for partition in range(PARTITIONS)]
            return sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)
        except KafkaException:
            return -1
        finally:
            consumer.close()

    def records(self) -> list[Record]:
        command = ["kcat", "-C", "-e", "-q", "-J", "-b", self.broker.servers, "-t", "target", "-o", "beginning"]
        ran = subprocess.run(
            [*command, "-X", "isolation.level=read_committed"], capture_output=True, text=True, timeout=300, check=True
        )
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def kills(self) -> Mapping[str, Callable[[float], None]]:
        return {}

    def close(self) -> None:
        """The broker is the campaign's."""


@dataclass(slots=True)
class PostgresTarget:
    """A table of a server of its own; the table numbers rows as they come."""

    folder: Path
    database: Database = field(init=False)

    def __post_init__(self) -> None:
        self.database = Database(self.folder, free_port("127.0.0.1"), f"judged database {self.folder}")

    def begin(self) -> None:
        self.database.start()
        self._psql("create table target (place bigserial, id bigint, k text, v bigint, twice bigint)")

    def sink(self) -> Mapping[str, Any]:
        return {"type": "write_table", "config": {"url": self.database.url, "table": "target"}}

    def count(self) -> int:
        with suppress(subprocess.SubprocessError):
            return int(self._psql("select count(*) from target"))
        return -1

    def records(self) -> list[Record]:
        row = "json_build_object('id', id, 'k', k, 'v', v, 'twice', twice)"
        lines = self._psql(f"select place, k, {row} from target order by place").splitlines()
        fields = (line.split("|", 2) for line in lines)
        return [{"partition": 0, "offset": int(at), "key": key, "payload": text} for at, key, text in fields]

    def _psql(self, text: str) -> str:
        place = self.database.url.replace("+psycopg", "")
        command = [str(server_programs() / "psql"), place, "-qAtX", "-c", text]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout

    def kills(self) -> Mapping[str, Callable[[float], None]]:
        return {"database": self._kill}

    def _kill(self, away_s: float) -> None:
        end(self.database.mark, 0.0)
        reap()
        time.sleep(away_s)  # for how long it is away is what varies
        self.database.start()

    def close(self) -> None:
        end(self.database.mark, 1.0)


@dataclass(slots=True)
class DeltaTarget:
    """A Delta table: its log as the protocol says, its files by DuckDB. Rows are in the order of versions."""

    folder: Path
    _counts: list[int] = field(default_factory=list)

    def begin(self) -> None:
        """The sink makes the table."""

    def sink(self) -> Mapping[str, Any]:
        return {"type": "write_delta", "config": {"path": str(self.folder), "compact_every": 0}}

    def count(self) -> int:
        while (log := self._log(len(self._counts))).exists():
            self._counts.append(sum(json.loads(add["stats"])["numRecords"] for add in self._added(log)))
        return sum(self._counts)

    def records(self) -> list[Record]:
        paths: list[str] = []
        while (log := self._log(len(paths))).exists():
            (add,) = self._added(log)
            paths.append(str(self.folder / add["path"]))
        query = "select id, k, v, twice from read_parquet($1, file_row_number = true) order by file_row_number"
        made: list[Record] = []
        with duckdb.connect() as connection:
            for path in paths:
                for values in connection.execute(query, [path]).fetchall():
                    row = dict(zip(("id", "k", "v", "twice"), values, strict=True))
                    made.append({"partition": 0, "offset": len(made), "key": row["k"], "payload": json.dumps(row)})
        return made

    def _log(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020d}.json"

    def _added(self, log: Path) -> list[dict[str, Any]]:
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        assert not any("remove" in action for action in actions)
        return [action["add"] for action in actions if "add" in action]

    def kills(self) -> Mapping[str, Callable[[float], None]]:
        return {}

    def close(self) -> None:
        """Nothing runs."""
