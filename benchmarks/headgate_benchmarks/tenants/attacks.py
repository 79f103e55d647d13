"""What a hostile author writes into a dataflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headgate_benchmarks.tenants.attack import Attack, Expected, flow, submission
from headgate_benchmarks.tenants.program import MODULE

__all__ = ["dataflow_attacks"]

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
    "a text that doubles": "length(aggregate(sequence(1, 45 + id), k, (a, x) -> concat(a, a)))",
    "a query": "(select 1)",
    "1,500 terms": " + ".join(["id"] * 1_500),
    "1,000 brackets": "(" * 1_000 + "id" + ")" * 1_000,
    "a pattern for ever": "date(" * 60 + "id" + ")" * 60,
    "a million characters": "'" + "x" * 1_000_000 + "'",
    "a control character": "'\x1b[2J'",
    "a secret in an expression": "concat(k, '${secret:HONEST}')",
    "letters that look alike": "\uff52eflect('java.lang.System', 'exit', 3)",
    "a function by a variable": "${env:HOME}",
    "a session's variable": "system.session.x",
    "sleep by java": "java_method('java.lang.Thread', 'sleep', 100000L)",
    "a regular expression to split by": "split(k, '(a+)+b')",
}
"""Refused where they are checked."""

GREEDY = {
    "an array of gigabytes": "size(sequence(1, 900000000 + id))",
    "an array of days": "size(sequence(date'0001-01-01', date_add(date'9999-01-01', cast(id as int))))",
    "an array of arrays": "size(transform(sequence(1, 90000 + id), x -> sequence(1, 90000)))",
    "a text of gigabytes": "length(repeat(k, 2000000000 + cast(id as int)))",
    "spaces of gigabytes": "length(space(2000000000 + cast(id as int)))",
    "padding of gigabytes": "length(lpad(k, 2000000000 + cast(id as int), 'x'))",
    "an array that repeats": "size(array_repeat(array_repeat(k, 90000), 90000 + cast(id as int)))",
    "a distance of ages": "levenshtein(repeat(k, 200000 + cast(id as int)), repeat('b', 900000))",
    "an error by row": "raise_error(repeat('x', 100000 + cast(id as int)))",
    "a division": "1 div (id - id)",
    "bytes of gigabytes": "length(encode(repeat(k, 1000000 + cast(id as int)), 'UTF-32'))",
    "an array in an array": "size(flatten(transform(sequence(1, 1000), x -> sequence(1, 1000))))",
    "a map of all": "size(map_from_entries(transform(sequence(1, 99999), x -> struct(x, repeat(k, 9)))))",
    "a row of rows": "explode(sequence(1, 100000))",
    "a full disk in words": "raise_error('OSError: [Errno 28] No space left on device')",
    "a source in words": "raise_error('UnreadableSourceError: gone')",
    "a late worker in words": "raise_error('Python worker failed to connect back')",
    "another's task in words": "raise_error('TaskRaised: [task 0af3] ValueError: no')",
    "a dead letter of megabytes": "raise_error(repeat('x', 900000))",
}
"""Accepted or not; where they are, rows that ask for too much fail."""

QUERIES = {
    "a file in a query": "select * from csv.`/etc/passwd`",
    "a file in a part of a query": "with a as (select * from text.`/etc/passwd`) select * from a",
    "a file in a condition": "select * from `in` where k in (select value from text.`/etc/passwd`)",
    "a program": "select transform(k) using 'touch {mark}' from `in`",
    "a generator": "select * from range(1000000000)",
    "a table of the catalog": "select * from default.t",
    "a table by an expression": "select * from identifier('text.`/etc/passwd`')",
    "another's view": "select * from `out`",
    "a hint": "select /*+ broadcast(a) */ * from `in` a",
    "setting something": "set spark.executor.killOnFatalError.depth = 9",
    "two statements": "select 1 from `in`; drop table `in`",
    "a view": "create temporary view honest as select 1",
    "a function of its own": "create function f as 'java.lang.Runtime'",
    "java in a query": "select reflect('java.lang.System', 'exit', 3) from `in`",
}
JOINS = {
    "a cross join": "select a.id from `in` a cross join `in` b cross join `in` c cross join `in` d",
    "an endless recursion": "with recursive a as (select 1 as x union all select x + 1 from a) select * from a",
}
"""Accepted or not; where they are, they make more rows than there is time for."""

FUNCTIONS = (
    *("end_process", "leave", "end_thread", "refuse", "grow", "spin", "look", "fork", "run_a_program", "crash"),
    *("connect", "ask_the_engine", "read_files", "write_files", "look_at_processes", "kill_others", "fill_disk"),
    *("lie", "patch", "flood"),
)
"""All of the hostile module; each raises, ends, or returns what it has got hold of."""

MODULES = ("os.system", "subprocess.run", "builtins.exec", "shutil.rmtree", "importlib.import_module")


def dataflow_attacks(folder: str) -> Iterator[Attack]:
    """All of them; honest dataflows read ``folder/in`` and write below ``folder/honest``."""
    for name, text in EXPRESSIONS.items():
        yield _derived(folder, name, text, Expected.REFUSED)
    for name, text in QUERIES.items():
        query = text.format(mark=f"{folder}/breach")
        yield _of(folder, name, {"type": "sql", "config": {"query": query}})
    for name, query in JOINS.items():
        yield _of(folder, name, {"type": "sql", "config": {"query": query}}, expected=Expected.EITHER)
    for function in MODULES:
        yield _of(folder, f"module {function}", {"type": "python", "config": {"function": function}})
    yield from _places(folder)
    yield from _shapes(folder)
    for function in FUNCTIONS:
        config = {"function": f"{MODULE}.{function}", "options": {"folder": folder}}
        call = {"type": "python", "config": config, "time_budget": "2s"}
        yield _of(folder, f"python {function}", call, expected=Expected.EITHER)
    folded = {"function": f"{MODULE}.remember", "key": ["k"], "takes": ["v"], "columns": "w double"}
    yield _of(folder, "a memory of code", {"type": "fold", "config": folded}, expected=Expected.EITHER)
    for name, text in GREEDY.items():
        yield _derived(folder, name, text, Expected.EITHER)


def _derived(folder: str, name: str, text: str, expected: Expected) -> Attack:
    return _of(folder, name, {"type": "derive", "config": {"columns": {"x": text}}}, expected=expected)


def _of(folder: str, name: str, *steps: Mapping[str, Any], expected: Expected = Expected.REFUSED) -> Attack:
    return submission(name, flow(folder, name, *steps), expected)


def _files(path: str) -> dict[str, Any]:
    return {"type": "write_files", "config": {"path": path}}


def _table(url: str) -> dict[str, Any]:
    return {"type": "write_table", "config": {"url": url, "table": "t"}}


def _places(folder: str) -> Iterator[Attack]:
    """Places, hosts, secrets and names that are another's."""
    state = f"{folder}/state"
    for path in (state, f"{state}/journal", f"{folder}/in/../state", f"{folder}/honest/a", f"{folder}/honest", folder):
        yield submission(f"writes {path[len(folder) :]}", flow(folder, "writes", sink=_files(path)), Expected.REFUSED)
    yield submission("writes to what it reads", flow(folder, "circle", sink=_files(f"{folder}/in")), Expected.REFUSED)
    for url in (f"sqlite:///{state}/x.db", "postgresql://127.0.0.1/city", f"sqlite:///{folder}/mallory/../honest/x.db"):
        yield submission(f"a table in {url[:30]}", flow(folder, "db", sink=_table(url)), Expected.REFUSED)
    secret = _table(f"sqlite:///{folder}/mallory/${{secret:HONEST}}.db")
    yield submission("another team's secret", flow(folder, "secret", sink=secret), Expected.REFUSED)
    for path in (
        *("/etc/passwd", f"{state}/*", "/proc/self/environ", f"file://{state}/journal", f"{folder}/*", f"{folder}/**"),
        *(
            f"{folder}/{{in,state}}/*",
            f"{folder}/in/../honest/a",
            f"{folder}/headgate.toml",
            "s3://bucket/in",
            "~/.ssh",
        ),
    ):
        source = {"id": "in", "type": "read_files", "config": {"path": path, "format": "text"}}
        own = {"id": "out", **_files(f"{folder}/mallory/reads"), "inputs": ["in"]}
        document = {"name": "mallory_reads", "owner": "mallory", "tasks": [source, own]}
        yield submission(f"reads {path.removeprefix(folder)}", document, Expected.REFUSED)
    socket = {"id": "in", "type": "read_socket", "config": {"port": 22}}
    own = {"id": "out", **_files(f"{folder}/mallory/socket"), "inputs": ["in"]}
    document = {"name": "mallory_connects", "owner": "mallory", "tasks": [socket, own]}
    yield submission("connects to a port", document, Expected.REFUSED)
    yield submission("another owner", {**flow(folder, "owner"), "owner": "honest"}, Expected.REFUSED)
    yield submission("another's name", {**flow(folder, "x"), "name": "a"}, Expected.REFUSED, replace=True)


def _shapes(folder: str) -> Iterator[Attack]:
    """Dataflows that are too deep, too wide, too many or too much."""
    long = {"type": "derive", "config": {"columns": {"v": "v" + " + 1" * 390}}}
    yield _of(folder, "a long chain", *[long] * 4)
    slide = {"time": "t", "kind": "sliding", "size": "30d", "slide": "1ms", "columns": {"n": "count(*)"}}
    yield _of(folder, "windows without end", {"type": "window", "config": slide})
    many = {"name": "mallory_many", "owner": "mallory", "tasks": [{"id": "a", "type": "rate"}] * 100_001}
    yield submission("tasks without end", many, Expected.REFUSED)
    select = {"type": "select", "config": {"columns": ["id", "k", "v"]}}
    yield _of(folder, "more than its quota", *[select] * 300)
    wide = {"type": "derive", "config": {"columns": {f"x{n}": "id" for n in range(20_000)}}}
    yield _of(folder, "columns without end", wide)
    year = {"type": "python", "config": {"function": f"{MODULE}.spin"}, "time_budget": "24h"}
    yield _of(folder, "a year of time", year)
    doubling = {"type": "derive", "config": {"columns": {"k": "concat(k, k)"}}}
    yield _of(folder, "a chain that doubles", *[doubling] * 34)
    making = {"type": "derive", "config": {"columns": {"x": "sequence(1, 50000)"}}}
    exploding = {"type": "explode", "config": {"column": "x"}, "time_budget": "5s"}
    yield _of(folder, "a flood of rows", *[making, exploding] * 3, expected=Expected.EITHER)
    keys = {"type": "count", "config": {"key": ["x"]}}
    numbers = {"type": "explode", "config": {"column": "x"}}
    yield _of(folder, "a flood of keys", making, numbers, keys, expected=Expected.EITHER)
    rate = {"id": "in", "type": "rate", "config": {"rows_per_s": 1_000_000_000}}
    own = {"id": "out", **_files(f"{folder}/mallory/rate"), "inputs": ["in"]}
    yield submission(
        "a billion rows a second", {"name": "mallory_rate", "owner": "mallory", "tasks": [rate, own]}, Expected.REFUSED
    )
