"""What a hostile submitter sends: dataflows and requests, each with what would be a breach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["COLUMNS", "Attack", "attacks"]

COLUMNS = "id bigint, k string, v double"
FUNCTIONS = "headgate_benchmarks.tenants.hostile_functions"

EXPRESSIONS = {
    "exit by java": "java_method('java.lang.System', 'exit', 3)",
    "exit by reflect": "reflect('java.lang.System', 'exit', 3)",
    "exit by a quoted name": "`reflect`('java.lang.System', 'exit', 3)",
    "exit by a full name": "system.builtin.reflect('java.lang.System', 'exit', 3)",
    "exit by an identifier": "identifier('reflect')('java.lang.System', 'exit', 3)",
    "exit behind a comment": "reflect/**/('java.lang.System', 'exit', 3)",
    "exit behind a raw text": "r'\\' || reflect('java.lang.System', 'exit', 3) || r'\\'",
    "exit behind a nested comment": "1 /* /* */ + reflect('java.lang.System', 'exit', 3) */",
    "a file by its schema": "from_xml(k, 'a int', map('rowValidationXSDPath', '/etc/passwd'))",
    "a file by its descriptor": "from_protobuf(k, 'A', '/etc/passwd')",
    "names of files": "input_file_name()",
    "the catalog": "current_catalog()",
    "a sketch of gigabytes": "theta_sketch_agg(id, 26)",
    "a filter of gigabytes": "headgate_bloom_filter(id, 1000000000L, 8000000000L)",
    "an estimate of gigabytes": "approx_count_distinct(id, 0.0000001)",
    "digits without end": "round(v, 2000000000)",
    "digits by row": "round(v, cast(id as int))",
    "a format of gigabytes": "format_string('%2000000000d', id)",
    "a format by row": "format_string(k, id)",
    "a regular expression that explodes": "k rlike '(a+)+b'",
    "one with two ways": "regexp_replace(k, '(a|a)*b', '')",
    "one by row": "k rlike k",
    "one put together": "k rlike '(a' || '+)+b'",
    "many wildcards": "k like '%a%b%c%d%e%f%g%'",
    "windows in a row": "window(current_timestamp(), '100 days', '1 second')",
    "a query": "(select 1)",
    "1,500 terms": " + ".join(["id"] * 1_500),
    "1,000 brackets": "(" * 1_000 + "id" + ")" * 1_000,
    "a pattern for ever": "date(" * 60 + "id" + ")" * 60,
    "a million characters": "'" + "x" * 1_000_000 + "'",
    "a control character": "'\x1b[2J'",
    "half a character": "'\ud800'",
}
"""Refused where they are checked."""

GREEDY = {
    "an array of gigabytes": "size(sequence(1, 900000000 + id))",
    "an array of days": "size(sequence(date'0001-01-01', date_add(date'9999-01-01', cast(id as int))))",
    "an array of arrays": "size(transform(sequence(1, 90000 + id), x -> sequence(1, 90000)))",
    "a text of gigabytes": "length(repeat(k, 2000000000 + cast(id as int)))",
    "spaces of gigabytes": "length(space(2000000000 + cast(id as int)))",
    "padding of gigabytes": "length(lpad(k, 2000000000 + cast(id as int), 'x'))",
    "a text that doubles": "length(aggregate(sequence(1, 45 + id), k, (a, x) -> concat(a, a)))",
    "an array that repeats": "size(array_repeat(array_repeat(k, 90000), 90000 + cast(id as int)))",
    "a distance of ages": "levenshtein(repeat(k, 200000 + cast(id as int)), repeat('b', 900000))",
    "an error by row": "raise_error(repeat('x', 100000 + cast(id as int)))",
    "a division": "1 div (id - id)",
}
"""Accepted, and failing for the rows that ask for too much."""

QUERIES = {
    "a file in a query": "select * from csv.`/etc/passwd`",
    "a file in a part of a query": "with a as (select * from text.`/etc/passwd`) select * from a",
    "a file in a condition": "select * from `in` where k in (select value from text.`/etc/passwd`)",
    "a program": "select transform(k) using 'touch {mark}' from `in`",
    "a generator": "select * from range(1000000000)",
    "a table of the catalog": "select * from default.t",
    "a table by an expression": "select * from identifier('text.`/etc/passwd`')",
    "another's view": "select * from `out`",
    "java in a query": "select reflect('java.lang.System', 'exit', 3) from `in`",
}


@dataclass(frozen=True, slots=True)
class Attack:
    """A dataflow to submit, whether it may run, and a file that must not be there afterwards."""

    name: str
    document: Mapping[str, Any]
    runs: bool = False
    replace: bool = False


def attacks(folder: Path) -> Iterator[Attack]:
    """All attacks; honest dataflows read ``folder/in`` and write below ``folder/honest``."""
    mark, state = folder / "breach", folder / "state"
    for name, text in EXPRESSIONS.items():
        yield Attack(name, _flow(folder, name, {"type": "derive", "config": {"columns": {"x": text}}}))
    for name, text in GREEDY.items():
        yield Attack(name, _flow(folder, name, {"type": "derive", "config": {"columns": {"x": text}}}), runs=True)
    for name, text in QUERIES.items():
        yield Attack(name, _flow(folder, name, {"type": "sql", "config": {"query": text.format(mark=mark)}}))
    for function in ("end_process", "leave", "end_thread", "refuse", "grow", "spin", "look"):
        call = {"type": "python", "config": {"function": f"{FUNCTIONS}.{function}"}, "time_budget": "2s"}
        yield Attack(f"python: {function}", _flow(folder, function, call), runs=True)
    for function in ("os.system", "subprocess.run", "builtins.exec", "shutil.rmtree"):
        yield Attack(
            f"module: {function}", _flow(folder, function, {"type": "python", "config": {"function": function}})
        )
    for place in (state, state / "journal", folder / "in" / ".." / "state", folder / "honest" / "a", folder / "honest"):
        yield Attack(f"writes {place.relative_to(folder)}", _flow(folder, "writes", sink=_files(place)))
    yield Attack("writes to itself", _flow(folder, "circle", sink=_files(folder / "in")))
    yield Attack("writes to a database", _flow(folder, "db", sink=_table(f"sqlite:///{state}/x.db")))
    yield Attack("another's secret", _flow(folder, "secret", sink=_table("sqlite:////tmp/${secret:HONEST}.db")))
    for path in ("/etc/passwd", f"{state}/*", "/proc/self/environ", f"file://{state}/journal"):
        source = {"type": "read_files", "config": {"path": path, "format": "text"}}
        yield Attack(f"reads {path[:18]}", {"name": "reads", "owner": "mallory", "tasks": [{"id": "in", **source}]})
    yield Attack(
        "connects",
        {
            "name": "mallory_connects",
            "owner": "mallory",
            "tasks": [{"id": "i", "type": "read_socket", "config": {"port": 22}}],
        },
    )
    yield Attack("another owner", {**_flow(folder, "owner"), "owner": "honest"})
    yield Attack("another's name", {**_flow(folder, "a")}, replace=True)
    chain = [{"type": "derive", "config": {"columns": {"v": "v" + " + 1" * 390}}} for _ in range(4)]
    yield Attack("a long chain", _flow(folder, "chain", *chain))
    doubling = [{"type": "derive", "config": {"columns": {"k": "concat(k, k)"}}} for _ in range(34)]
    yield Attack("a chain that doubles", _flow(folder, "doubles", *doubling), runs=True)
    slide = {
        "type": "window",
        "config": {"time": "t", "kind": "sliding", "size": "30d", "slide": "1ms", "columns": {"n": "count(*)"}},
    }
    yield Attack("windows without end", _flow(folder, "windows", slide))
    yield Attack(
        "tasks without end", {"name": "many", "owner": "mallory", "tasks": [{"id": "a", "type": "rate"}] * 100_001}
    )
    many = [{"type": "select", "config": {"columns": ["id", "k", "v"]}} for _ in range(300)]
    yield Attack("more than its quota", _flow(folder, "quota", *many))


def _flow(folder: Path, name: str, *steps: Mapping[str, Any], sink: Mapping[str, Any] | None = None) -> dict[str, Any]:
    tasks: list[dict[str, Any]] = [
        {"id": "in", "type": "read_files", "config": {"path": str(folder / "in"), "columns": COLUMNS}}
    ]
    memory = {"type": "write_memory", "config": {"name": "mallory"}}
    for number, task in enumerate((*steps, sink or memory)):
        tasks.append({"id": f"t{number}", **task, "inputs": [tasks[-1]["id"]]})
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return {"name": plain if name == "a" else f"mallory_{plain}", "owner": "mallory", "tasks": tasks}


def _files(path: Path) -> dict[str, Any]:
    return {"type": "write_files", "config": {"path": str(path)}}


def _table(url: str) -> dict[str, Any]:
    return {"type": "write_table", "config": {"url": url, "table": "t"}}
