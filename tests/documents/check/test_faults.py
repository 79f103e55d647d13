"""Every kind of fault by example: the right line, the task, what was expected, the nearest valid name.

In the examples ``<<<`` ends the line on which the fault must be reported; it is taken out before the text is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headgate
from headgate.documents import parse, read
from headgate.errors import Fault, InvalidDataflow
from headgate.model.schema import Schema
from headgate.model.task_type import Inputs, TaskConfig, TaskType
from headgate.tasks.registry import Registry, default_registry
from tests.samples import ENDINGS

MARK = "<<<"


class Careless(TaskConfig):
    """A task type whose author did not test it."""

    def outputs(self, inputs: Inputs) -> dict[str, Schema | None]:
        return {"out": [][0]}


class Careful(TaskConfig):
    """One that fails where it checks its options."""

    size: int = 1

    def model_post_init(self, context: object) -> None:
        del context
        raise ZeroDivisionError("no size will do")


REGISTRY = Registry([*default_registry().values(), TaskType("careless", Careless), TaskType("careful", Careful)])


@dataclass(frozen=True)
class Case:
    """A broken file and the one fault that it has."""

    condition: str
    form: str
    text: str
    task: str | None = None
    nearest: str | None = None
    says: str = ""
    expected: str | None = None

    def __str__(self) -> str:
        return f"{self.condition}-{self.form}-{self.says[:30]}"


CASES = [
    # The text itself.
    Case("NOT_YAML", "yaml", "tasks:\n  - [a, b\n<<<", says="this is not YAML: while parsing a flow sequence"),
    Case("NOT_YAML", "yaml", "name: a\ndescription: \x07 <<<\n", says=r"character '\x07' is not allowed there"),
    Case("NOT_JSON", "json", '{"name": "a",\n "tasks": [}<<<', says="this is not JSON: expecting value"),
    Case(
        "NOT_JSON",
        "json",
        '{"tasks": [{"id": "a", "type": "rate",\n"cost_s": NaN}]}<<<',
        "a",
        says="NaN is not a number",
        expected="a finite number",
    ),
    Case("NOT_XML", "xml", "<dataflow>\n<PE></dataflow><<<", says="this is not XML: mismatched tag"),
    Case("NOT_PYTHON", "python", "from headgate import Flow\nflow = = <<<", says="this is not Python: invalid syntax"),
    Case("PYTHON_RAISED", "python", "x = 1\nx / 0 <<<\n", says="running this file raised ZeroDivisionError"),
    Case("PYTHON_RAISED", "python", "import sys\nsys.exit(3) <<<", says="running this file raised SystemExit: '3'"),
    Case("WRONG_ENCODING", "yaml", "name: a\nowner: \udcfc <<<\n", says="is not UTF-8", expected="text in UTF-8"),
    Case("TWO_DOCUMENTS", "yaml", "name: a\n--- <<<\nname: b\n", expected="one dataflow a file"),
    Case(
        "UNKNOWN_TAG",
        "yaml",
        "name: a\ndescription: !!binary YQ== <<<\ntasks: [{id: a, type: rate}]",
        expected="no tag",
    ),
    Case("UNKNOWN_ALIAS", "yaml", "name: &a x\ntasks: *b <<<", says="alias *b has no finished anchor &b before it"),
    Case("UNKNOWN_ALIAS", "yaml", "name: x\ntasks: &a [\n*a] <<<", says="alias *a"),
    Case(
        "KEY_NOT_TEXT", "yaml", "name: x\n? [a] <<<\n: b\n", says="a key that is a list or a mapping", expected="text"
    ),
    Case(
        "ALIAS_BOMB",
        "yaml",
        f"a: &a [{'x, ' * 30_000}]\ntasks: [*a, *a, *a, *a, *a, *a, *a] <<<",
        says="200,000 values",
    ),
    Case("TOO_DEEP", "yaml", "name: x\ntasks: " + "[" * 120 + "<<<", says="nested deeper than 100 levels"),
    Case("TOO_DEEP", "json", '{"tasks":\n' + "[" * 9_000 + "<<<", says="nested deeper than 100 levels"),
    Case("TOO_DEEP", "xml", "<dataflow>\n" + "<PE>" * 120 + "<<<", says="nested deeper than 100 levels"),
    Case(
        "HUGE_NUMBER", "yaml", f"tasks: [{{id: a, type: rate,\ncost_s: {'9' * 5_000}}}] <<<", "a", says="5,000 digits"
    ),
    Case("HUGE_NUMBER", "json", f'{{"tasks": [{{"id": "a", "type": "rate",\n"cost_s": {"9" * 5_000}}}]}}<<<', "a"),
    Case("DUPLICATE_KEY", "yaml", "name: a\nname: b <<<\ntasks: [{id: a, type: rate}]", says="first on line 1"),
    Case("DUPLICATE_KEY", "json", '{"name": "a",\n"name": "b", <<<\n"tasks": [{"id": "a", "type": "rate"}]}'),
    Case(
        "DUPLICATE_KEY",
        "xml",
        '<dataflow><PE id="a"><alternate impl="rate">\n<option name="rows_per_s" type="json">1</option>\n'
        '<option name="rows_per_s" type="json">2</option><<<\n</alternate></PE></dataflow>',
        task="a",
        says="option 'rows_per_s' is given twice, first on line 2",
    ),
    Case(
        "DUPLICATE_KEY",
        "xml",
        '<dataflow>\n<service_level/>\n<service_level/><<<\n<PE id="a"><alternate impl="rate"/></PE></dataflow>',
        says="<service_level> is given twice, first on line 2",
    ),
    Case("DOCTYPE", "xml", '<?xml version="1.0"?>\n<!DOCTYPE dataflow><<<\n<dataflow/>', expected="no <!DOCTYPE ...>"),
    # Whether it is a dataflow.
    Case(
        "NOT_A_DATAFLOW",
        "yaml",
        "- a <<<\n- b\n",
        says="the file holds a list",
        expected="a mapping with name and tasks",
    ),
    Case("NOT_A_DATAFLOW", "yaml", "<<<", says="the file is empty"),
    Case("NOT_A_DATAFLOW", "json", "3 <<<", says="the file holds a number"),
    Case("NOT_A_DATAFLOW", "xml", "\n<dataflw/> <<<", says="the root element is <dataflw>", expected="<dataflow>"),
    Case("NOT_A_DATAFLOW", "python", "x = 1 <<<", says="no flows made in this file"),
    # Fields.
    Case("UNKNOWN_FIELD", "yaml", "name: a\nonwer: b <<<\ntasks: [{id: a, type: rate}]", nearest="owner"),
    Case(
        "UNKNOWN_FIELD",
        "json",
        '{"name": "a",\n "onwer": "b", <<<\n"tasks": [{"id": "a", "type": "rate"}]}',
        nearest="owner",
    ),
    Case(
        "UNKNOWN_FIELD", "yaml", "tasks:\n- id: a\n  type: rate\n  config:\n    rows_pers: 3 <<<\n", "a", "rows_per_s"
    ),
    Case(
        "UNKNOWN_FIELD",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: union, inputs: [{frm: a, from: a}]} <<<",
        "b",
        "from",
    ),
    Case("UNKNOWN_FIELD", "yaml", "nullable: 1 <<<\ntasks: [{id: a, type: rate}]", says="unknown field 'nullable'"),
    Case(
        "UNKNOWN_FIELD", "xml", '<dataflow>\n<PE id="a" color="b"> <<<\n<alternate impl="rate"/></PE></dataflow>', "a"
    ),
    Case(
        "UNKNOWN_FIELD",
        "xml",
        '<dataflow><PE id="a">\n<altrnate/><<<\n<alternate impl="rate"/></PE></dataflow>',
        "a",
        "alternate",
    ),
    Case(
        "UNKNOWN_FIELD",
        "xml",
        '<dataflow><PE id="a">\n<alternate impl="rate">why?</alternate> <<<\n</PE></dataflow>',
        "a",
    ),
    Case("MISSING_FIELD", "yaml", "tasks:\n- {id: a, type: rate}\n- type: rate <<<\n", says="'id' is missing"),
    Case(
        "MISSING_FIELD",
        "json",
        '{"tasks": [{"id": "a", "type": "rate"},\n{"type": "rate"}]} <<<',
        says="'id' is missing",
    ),
    Case(
        "MISSING_FIELD", "xml", '<dataflow>\n<PE><alternate impl="rate"/></PE> <<<\n</dataflow>', says="'id' is missing"
    ),
    Case(
        "MISSING_FIELD",
        "xml",
        '<dataflow>\n<PE id="a">\n<alternate/> <<<\n</PE></dataflow>',
        "a",
        says="lacks the attribute 'impl'",
    ),
    Case("MISSING_FIELD", "yaml", "name: a <<<\n", says="'tasks' is missing"),
    Case(
        "MISSING_FIELD",
        "yaml",
        "tasks:\n- id: a\n  type: read_socket\n  config: {} <<<\n",
        "a",
        says="'port' is missing",
    ),
    # Values.
    Case("BAD_VALUE", "yaml", "name: a b <<<\ntasks: [{id: a, type: rate}]", says="'a b' is not a name"),
    Case("BAD_VALUE", "yaml", "version: 2 <<<\ntasks: [{id: a, type: rate}]", says="version is 2", expected="1"),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- id: a\n  type: rate\n  config:\n    rows_per_s: many <<<\n",
        "a",
        says="config.rows_per_s is 'many'",
        expected="a whole number",
    ),
    Case(
        "BAD_VALUE",
        "json",
        '{"tasks": [{"id": "a", "type": "rate",\n"config": {\n"rows_per_s": "many"}}]} <<<',
        "a",
        says="config.rows_per_s is 'many'",
        expected="a whole number",
    ),
    Case(
        "BAD_VALUE",
        "xml",
        '<dataflow><PE id="a"><alternate impl="rate">\n'
        '<option name="rows_per_s">many</option> <<<\n</alternate></PE></dataflow>',
        "a",
        says="config.rows_per_s is 'many'",
        expected="a whole number",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n"
        "- {id: b, type: write_files, inputs: [a], config: {path: p,\n  format: jsn}} <<<\n",
        "b",
        "json",
        says="config.format is 'jsn'",
        expected="'json', 'csv', 'parquet' or 'text'",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- id: a\n  type: read_files\n  config:\n    path: p\n    columns: id strng <<<\n",
        "a",
        "string",
        says="config.columns: unknown column type 'strng'",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: filter\n  config:\n    where: value > <<<\n  inputs: [a]\n",
        "b",
        says="not a SQL expression: 'value >' (an operand is missing)",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "service_level:\n  latency_max_s: 0 <<<\ntasks: [{id: a, type: rate}]",
        expected="greater than 0",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "service_level: <<<\n  latency_min_s: 1\ntasks: [{id: a, type: rate}]",
        says="needs latency_max_s",
    ),
    Case("BAD_VALUE", "yaml", "tasks:\n- {id: a} <<<\n", "a", says="neither type nor alternates"),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- {id: a, type: rate, alternates: [{type: rate}]} <<<\n",
        "a",
        says="type beside alternates",
    ),
    Case(
        "BAD_VALUE", "yaml", "tasks:\n- {id: a, type: opaque, ports: {}} <<<\n", "a", says="neither inputs nor outputs"
    ),
    Case("BAD_VALUE", "yaml", "tasks:\n- 7 <<<\n", says="this is 7", expected="a mapping"),
    Case("BAD_VALUE", "yaml", "tasks: [] <<<\n", says="tasks is []"),
    Case(
        "BAD_VALUE",
        "yaml",
        "tasks:\n- id: a\n  type: opaque\n  config: {options: {x: .inf}} <<<\n",
        "a",
        says="not a finite number",
    ),
    Case(
        "BAD_VALUE",
        "python",
        "from headgate import Flow\nflow = Flow('f')\nflow.source('rate', rows_per_s='many') <<<\n",
        "rate",
        says="config.rows_per_s is 'many'",
    ),
    # Tasks.
    Case(
        "UNKNOWN_TASK_TYPE",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: fliter <<<\n  inputs: [a]",
        "b",
        "filter",
    ),
    Case("UNKNOWN_TASK_TYPE", "json", '{"tasks": [{"id": "b",\n"type": "fliter"}]}<<<', "b", "filter"),
    Case(
        "UNKNOWN_TASK_TYPE",
        "xml",
        '<dataflow><PE id="b">\n<alternate impl="fliter"/> <<<\n</PE></dataflow>',
        "b",
        "filter",
    ),
    Case(
        "UNKNOWN_TASK_TYPE",
        "python",
        "from headgate import Flow\nflow = Flow('f')\nflow.source('raet') <<<\n",
        "raet",
        "rate",
    ),
    Case(
        "UNKNOWN_TASK_TYPE",
        "yaml",
        "tasks:\n- id: a\n  alternates:\n  - {type: rate}\n  - type: raet <<<\n",
        "a",
        "rate",
        says="unknown task type 'raet'",
    ),
    Case(
        "DUPLICATE_ID",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: a, type: rate} <<<\n",
        "a",
        says="first on line 2",
    ),
    Case(
        "DUPLICATE_ID",
        "json",
        '{"tasks": [{"id": "a", "type": "rate"},\n{"id": "a", "type": "rate"}]} <<<',
        "a",
        says="first on line 1",
    ),
    Case(
        "DUPLICATE_ID",
        "xml",
        '<dataflow>\n<PE id="a"><alternate impl="rate"/></PE>\n'
        '<PE id="a"><alternate impl="rate"/></PE> <<<\n</dataflow>',
        "a",
        says="first on line 2",
    ),
    Case(
        "DUPLICATE_ALTERNATE", "yaml", "tasks:\n- id: a\n  alternates:\n  - {type: rate}\n  - {type: rate} <<<\n", "a"
    ),
    Case(
        "DUPLICATE_PORT",
        "yaml",
        "tasks:\n- id: a\n  type: opaque\n  ports: {outputs: [x, x]} <<<\n",
        "a",
        says="port 'x' is named twice",
    ),
    Case(
        "PORTS_DIFFER",
        "yaml",
        "tasks:\n- id: a\n  type: rate\n  ports: {outputs: [x]} <<<\n",
        "a",
        says="the ports are in: none; out: x",
        expected="in: none; out: out, as type 'rate' has",
    ),
    Case("PORTS_DIFFER", "yaml", "tasks:\n- id: a\n  alternates: <<<\n  - {type: rate}\n  - {type: union}\n", "a"),
    Case(
        "TASK_TYPE_FAILED",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: careless, inputs: [a]} <<<",
        "b",
        says="IndexError",
    ),
    Case(
        "TASK_TYPE_FAILED",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: careful, inputs: [a]} <<<",
        "b",
        says="ZeroDivision",
    ),
    # Streams.
    Case(
        "UNKNOWN_TASK",
        "yaml",
        "tasks:\n- {id: read, type: rate}\n- id: b\n  type: union\n  inputs:\n  - raed <<<\n",
        "b",
        "read",
    ),
    Case(
        "UNKNOWN_TASK",
        "json",
        '{"tasks": [{"id": "read", "type": "rate"},\n{"id": "b", "type": "union", "inputs": [\n"raed"]}]} <<<',
        "b",
        "read",
    ),
    Case(
        "UNKNOWN_TASK",
        "xml",
        '<dataflow><PE id="read"><alternate impl="rate"/></PE><PE id="b"><alternate impl="union"/></PE>\n'
        '<edge source="raed" sink="b"/> <<<\n</dataflow>',
        "b",
        "read",
    ),
    Case(
        "UNKNOWN_TASK",
        "xml",
        '<dataflow><PE id="read"><alternate impl="rate"/></PE>\n<edge source="read" sink="raed"/> <<<\n</dataflow>',
        None,
        "read",
        says="an edge enters 'raed', which is no PE here",
    ),
    Case(
        "NO_SUCH_PORT",
        "yaml",
        "tasks:\n- {id: a, type: opaque, ports: {outputs: [hot, cold]}}\n- id: b\n"
        "  type: union\n  inputs:\n  - a:hto <<<\n",
        "b",
        "hot",
        expected="one of hot, cold",
    ),
    Case(
        "NO_SUCH_PORT",
        "xml",
        '<dataflow><PE id="a"><out id="hot"/><out id="cold"/><alternate impl="opaque"/></PE>'
        '<PE id="b"><alternate impl="union"/></PE>\n<edge source="a:hto" sink="b"/> <<<\n</dataflow>',
        "b",
        "hot",
    ),
    Case(
        "NO_SUCH_PORT",
        "yaml",
        "tasks:\n- {id: a, type: opaque, ports: {outputs: [hot, cold]}}\n- {id: b, type: union, inputs: [a]} <<<\n",
        "b",
        says="task 'a' has 2 output ports",
        expected="one of hot, cold, written task:port",
    ),
    Case(
        "NO_SUCH_PORT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: rate, inputs: [a]} <<<",
        "b",
        says="is a source",
    ),
    Case(
        "NO_SUCH_PORT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: write_console, inputs: [a]}\n"
        "- {id: c, type: union, inputs: [b]} <<<",
        "c",
        says="task 'b' hands its rows over and has no output",
    ),
    Case(
        "INPUT_NOT_FED",
        "yaml",
        "tasks:\n- {id: a, type: union} <<<\n",
        "a",
        says="no streams enter input port 'in'",
        expected="at least 1, listed under inputs",
    ),
    Case(
        "INPUT_NOT_FED",
        "json",
        '{"tasks": [{"id": "a", "type": "opaque"},\n{"id": "b", "type": "join", "config":\n'
        '{"on": ["k"], "time": ["t", "t"], "within": "1s"},\n "inputs": ["a"]}]} <<<',
        "b",
        says="1 stream enters input port 'in'",
        expected="2, listed under inputs",
    ),
    Case(
        "CYCLE",
        "yaml",
        "tasks:\n- {id: s, type: rate}\n- {id: a, type: union, inputs: [s, c]} <<<\n"
        "- {id: b, type: union, inputs: [a]}\n"
        "- {id: c, type: union, inputs: [b]}\n",
        "a",
        says="the streams run in a circle: a -> b -> c -> a",
    ),
    Case(
        "CYCLE",
        "json",
        '{"tasks": [\n{"id": "a", "type": "union", "inputs": ["a"]}]} <<<',
        "a",
        says="a circle: a -> a",
    ),
    Case(
        "CYCLE",
        "xml",
        '<dataflow>\n<PE id="a"><alternate impl="union"/></PE> <<<\n<PE id="b"><alternate impl="union"/></PE>\n'
        '<edge source="a" sink="b"/><edge source="b" sink="a"/></dataflow>',
        "a",
        says="a circle: a -> b -> a",
    ),
    Case(
        "IDLE_FEEDBACK",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: union\n  inputs:\n  - a\n  - {from: a, feedback: true} <<<\n",
        "b",
        says="the stream from 'a' is marked as feedback and closes no loop",
    ),
    Case(
        "TOO_MUCH_FEEDBACK",
        "yaml",
        "tasks:\n- {id: s, type: rate}\n"
        + "".join(f"- {{id: t{n}, type: union, inputs: [s, {{from: t{n}, feedback: true}}]}}\n" for n in range(100))
        + "- {id: u, type: union, inputs: [s, {from: u, feedback: true}]} <<<\n",
        "u",
        says="101 streams are marked as feedback",
    ),
    # Columns.
    Case(
        "COLUMNS_DO_NOT_FIT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: filter\n  config:\n    where: vlaue > 1 <<<\n  inputs: [a]\n",
        "b",
        "value",
        says="where reads column 'vlaue', which is not there",
        expected="one of timestamp, value",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "json",
        '{"tasks": [{"id": "a", "type": "rate"}, {"id": "b", "type": "filter", "inputs": ["a"], "config": {\n'
        '"where": "vlaue > 1"}}]} <<<',
        "b",
        "value",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "xml",
        '<dataflow><PE id="a"><alternate impl="rate"/></PE><PE id="b"><alternate impl="filter">\n'
        '<option name="where">vlaue &gt; 1</option> <<<\n</alternate></PE><edge source="a" sink="b"/></dataflow>',
        "b",
        "value",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "python",
        "from headgate import Flow\nflow = Flow('f')\na = flow.source('rate')\n"
        "b = flow.task('filter', where='vlaue > 1') <<<\na >> b\n",
        "filter",
        "value",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: union\n  inputs:\n  - from: a\n    key: [vlaue] <<<\n",
        "b",
        "value",
        says="key of the stream from 'a' reads column 'vlaue'",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- {id: c, type: read_socket, config: {port: 1}}\n- id: b\n  type: union\n"
        "  inputs: [a, c] <<<\n",
        "b",
        says="the streams that interleave in port 'in' have other columns",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: opaque\n  inputs: [a]\n"
        "  ports: {inputs: [{name: in, columns: value string}]} <<<\n",
        "b",
        says="port 'in' wants column 'value' as string, and it comes as bigint",
    ),
    Case(
        "COLUMNS_DO_NOT_FIT",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  inputs: [a]\n  alternates:\n"
        "  - {type: select, config: {columns: [value]}}\n"
        "  - {type: drop, config: {columns: [value]}} <<<\n",
        "b",
        says="alternate 'drop' does not make value, which 'select' makes",
    ),
    Case(
        "NO_PAST",
        "yaml",
        "start: 6h <<<\ntasks:\n- {id: a, type: rate}\n- {id: b, type: write_console, inputs: [a]}\n",
        "a",
        says="needs a source whose past can be read again, which rate is not",
    ),
    Case(
        "NOTHING_TO_PUBLISH",
        "yaml",
        "tasks:\n- {id: a, type: rate}\n- id: b\n  type: write_console\n  inputs: [a]\n  publish: x <<<\n",
        "b",
        says="needs a task that puts rows out at 'out', which 'b' does not",
    ),
    Case(
        "DUPLICATE_STREAM",
        "yaml",
        "tasks:\n- {id: a, type: rate, publish: x}\n- id: b\n  type: sample\n  config: {share: 0.5}\n  inputs: [a]\n"
        "  publish: x <<<\n- {id: c, type: write_console, inputs: [b]}\n",
        "b",
        says="'x' is published by task 'a' already",
    ),
    Case(
        "BAD_VALUE",
        "yaml",
        "start: soon <<<\ntasks:\n- {id: a, type: rate}\n- {id: b, type: write_console, inputs: [a]}\n",
        says="'soon' is not a start",
    ),
]

CHAIN = "name: long\ntasks:\n- {id: t0, type: rate}\n" + "".join(
    f"- {{id: t{n}, inputs: [t{n - 1}], type: derive, config: {{columns: {{value: value{' + 1' * 380}}}}}}}\n"
    for n in range(1, 3)
)
LAST = f"- {{id: last, inputs: [t2], type: derive, config: {{columns: {{value: value{' + 1' * 380}}}}}}} {MARK}\n"
CASES.append(Case("TOO_LARGE", "yaml", CHAIN + LAST, "last", says="have 1,140 operators"))

OTHERWISE = {
    "UNKNOWN_FORMAT": "test_files_that_cannot_be_read",
    "UNREADABLE_FILE": "test_files_that_cannot_be_read",
    "FED_FROM_OUTSIDE": "test_notices",
    "UNREAD_OUTPUT": "test_notices",
    "TWO_FLOWS": "tests/documents/test_builder.py",
    "NOT_A_TASK": "tests/documents/test_builder.py",
    "NOT_TOML": "tests/cli/test_settings.py",
    "BAD_SETTINGS": "tests/cli/test_settings.py",
    "BAD_CLOUD": "tests/cli/test_simulate.py",
    "BAD_VM_CLASS": "tests/cli/test_simulate.py",
}
"""Conditions that no single text shows, and where they are tested."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fault_is_told_with_its_line_task_and_nearest_name(case: Case) -> None:
    line = case.text[: case.text.index(MARK)].count("\n") + 1
    data = case.text.replace(f" {MARK}", "").replace(MARK, "").encode("utf-8", errors="surrogateescape")
    file = f"broken{ENDINGS[case.form]}"
    with pytest.raises(InvalidDataflow) as told:
        parse(data, case.form, REGISTRY, file)
    (fault,) = told.value.faults
    assert (fault.condition, fault.place.file, fault.place.line) == (case.condition, file, line)
    assert (fault.task, fault.nearest) == (case.task, case.nearest)
    assert case.says in fault.message
    if case.expected is not None:
        assert fault.expected == case.expected
    assert str(fault).startswith(f"{file}:{line}:")


@pytest.mark.parametrize(
    ("form", "text", "tasks"),
    [
        (
            "yaml",
            "name: a\nname: b\ntasks:\n- {id: a, type: rate, type: rate}\n- {id: b, type: !x rate}\nowner: !x o\n",
            "-ab-",
        ),
        (
            "json",
            '{"name": 1, "name": "b", "tasks": [{"id": "a", "type": "rate", "type": "rate"}, 7,\n'
            '{"id": "b", "cost_s": NaN, "type": "rate"}], "owner": "o", "owner": "o"}',
            "-aNb-",
        ),
    ],
)
def test_faults_of_the_text_are_told_with_the_task_in_which_they_stand(form: str, text: str, tasks: str) -> None:
    with pytest.raises(InvalidDataflow) as told:
        parse(text, form)
    expected = [None if name in "-N" else name for name in tasks]
    assert [fault.task for fault in told.value.faults] == expected


def test_every_condition_has_an_example() -> None:
    used = set(_conditions())
    shown = {case.condition for case in CASES} | set(OTHERWISE)
    assert used - shown == set()
    assert shown - used == set()


def _conditions() -> Iterator[str]:
    """The conditions of faults and notices, as they stand in the source of the rooms that check."""
    home = Path(headgate.__file__).parent
    tellers = {"Fault", "ColumnFault", "Notice", "InputError", "fault", "notice", "_fault", "_stop"}
    for path in (home / "documents").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found = node.args[:1] if name in tellers else []
            yield from (part.value for part in found if isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_all_faults_of_a_file_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = """\
onwer: ana
service_level: {throughput_min: 7}
tasks:
- {id: read, type: raed_files}
- {id: rate, type: rate, config: {rows_per_s: -1}}
- {id: clean, type: filter, config: {wher: v > 1}, inputs: [rate]}
- {id: clean, type: union, inputs: [rate]}
- {id: odd id, type: rate}
- {id: good, type: rate}
- {id: dangling, type: union, inputs: [nowhere, goood]}
- {id: wrong, type: filter, config: {where: valu > 1}, inputs: [good]}
- {id: lonely, type: write_console}
- {id: round, type: union, inputs: [trip]}
- {id: trip, type: union, inputs: [round]}
"""
    with pytest.raises(InvalidDataflow) as told:
        parse(text, "yaml", file="f.yaml")
    without_cycle = text.replace("[trip]", "[good]")
    with pytest.raises(InvalidDataflow) as told_too:
        parse(without_cycle, "yaml", file="f.yaml")
    first = [(fault.place.line, fault.condition, fault.task) for fault in told.value.faults]
    second = [(fault.place.line, fault.condition, fault.task) for fault in told_too.value.faults]
    common: list[tuple[int | None, str, str | None]] = [
        (1, "UNKNOWN_FIELD", None),
        (2, "BAD_VALUE", None),
        (4, "UNKNOWN_TASK_TYPE", "read"),
        (5, "BAD_VALUE", "rate"),
        (6, "MISSING_FIELD", "clean"),
        (6, "UNKNOWN_FIELD", "clean"),
        (7, "DUPLICATE_ID", "clean"),
        (8, "BAD_VALUE", "odd id"),
        (10, "UNKNOWN_TASK", "dangling"),
        (10, "UNKNOWN_TASK", "dangling"),
    ]
    assert first == [*common, (12, "INPUT_NOT_FED", "lonely"), (13, "CYCLE", "round")]
    assert second == [*common, (11, "COLUMNS_DO_NOT_FIT", "wrong"), (12, "INPUT_NOT_FED", "lonely")]
    assert told.value.message.count("\n") + 1 == len(told.value.faults)
    assert told.value.condition == "INVALID_DATAFLOW"


def test_what_is_wrong_with_one_task_does_not_bring_up_faults_of_those_that_read_it() -> None:
    text = "tasks:\n- {id: a, type: raet}\n- {id: b, type: filter, config: {where: v > 1}, inputs: [a]}\n"
    with pytest.raises(InvalidDataflow) as told:
        parse(text, "yaml")
    assert [fault.task for fault in told.value.faults] == ["a"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def fault(path: Path) -> Fault:
        with pytest.raises(InvalidDataflow) as told:
            read(path)
        (only,) = told.value.faults
        assert only.place.file == str(path)
        return only

    assert fault(tmp_path / "a.yaml").condition == "UNREADABLE_FILE"
    assert "no such file" in fault(tmp_path / "a.yaml").message
    (tmp_path / "b.yaml").mkdir()
    assert "is a directory" in fault(tmp_path / "b.yaml").message
    assert "no such file" in fault(tmp_path / ("x" * 200) / "c.yaml").message
    assert "too long" in fault(tmp_path / ("x" * 300 + ".yaml")).message
    assert fault(tmp_path / "nul\0.yaml").condition == "UNREADABLE_FILE"
    assert fault(tmp_path / "a.yam").nearest == ".yaml"
    assert fault(tmp_path / "a").message == "a file name without an ending"
    assert fault(tmp_path / "a.toml").expected == "one of .yaml, .yml, .json, .xml, .py"


def test_notices() -> None:
    text = "tasks:\n- {id: a, type: opaque}\n- {id: b, type: rate}\n- {id: c, type: write_console, inputs: [b]}\n"
    notices = parse(text, "yaml", file="f.yaml").notices
    assert [(notice.condition, notice.place.line, notice.task) for notice in notices] == [
        ("FED_FROM_OUTSIDE", 2, "a"),
        ("UNREAD_OUTPUT", 2, "a"),
    ]
