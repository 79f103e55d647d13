"""Runs the examples of a documentation page.

What a block's language asks for:

- ``console``: each ``$ COMMAND`` is run and must print what follows it (see :mod:`tests.docs.shell`); ``...`` stands
  for anything, ``$ echo $?`` shows the exit status of the command before, and ``# Ctrl-C`` stops what still runs;
- ``python``: run, as a session when it begins with ``>>>``;
- ``yaml``, ``json``, ``xml``: a dataflow must be valid, and so must a part of one, but for the tasks that it lacks;
  YAML with operators is a file for ``headgate size``, YAML with classes a cloud for ``headgate simulate``,
  YAML with profiles a file for ``headgate deploy``;
- ``toml``: the entry points of a package that adds task types are installed until the page ends.

``sh`` is for what is not run here: set-up and benchmarks. A test checks that their options exist.

A block whose first line is a comment with a file's name is also written to that file, for later blocks to use. Files
called ``broken...`` show faults and need not be valid.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from headgate import InvalidDataflow, default_registry, parse
from headgate.documents.cloud_document import load_cloud
from headgate.service.profile import read_profiles
from headgate.service.size import load_request
from tests.docs.shell import Shell, needs_spark

__all__ = [
    "LANGUAGES_NOT_RUN",
    "LANGUAGES_RUN",
    "blocks",
    "commands",
    "file_name",
    "matches",
    "needs_spark_page",
    "run_page",
]

FLAGS = doctest.ELLIPSIS
LANGUAGES_NOT_RUN = {"sh", "text", "mermaid"}

_FILE_NAME = re.compile(r"(?:#|<!--) ?([\w.-]+\.(?:yaml|json|xml|py|toml))(?: -->)?\n")
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(path: Path) -> int:
    """Evaluate the page's examples in order, in the current folder; returns how many there were."""
    count = 0
    with _what_pages_install(), Shell() as shell:
        for example in _parsed(path).examples():
            example.namespace["shell"] = shell
            if isinstance(example.parsed, str) and (name := file_name(example.parsed)):
                Path(name).write_text(str(example.parsed), encoding="utf-8")
            example.evaluate()
            count += 1
    return count


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of the page's blocks; directives of the documentation's own are left out."""
    every = _BLOCK.findall(path.read_text(encoding="utf-8"))
    return [(language, text) for language, text in every if not language.startswith("{")]


def needs_spark_page(path: Path) -> bool:
    """Whether some block of the page runs on Spark."""
    return any(needs_spark(text) for language, text in blocks(path) if language in LANGUAGES_RUN)


def _parsed(path: Path) -> Document:
    blocks = [CodeBlockParser(language, evaluator) for language, evaluator in _EVALUATORS.items()]
    return Sybil(parsers=[PythonCodeBlockParser(doctest_optionflags=FLAGS), *blocks]).parse(path)


def file_name(text: str) -> str | None:
    """The file that a block is written to, if its first line names one."""
    match = _FILE_NAME.match(text)
    return match.group(1) if match else None


def _run_console(example: Example) -> str | None:
    for command, wanted in commands(example.parsed):
        printed = "".join(f"{line.rstrip()}\n" for line in example.namespace["shell"].run(command).splitlines())
        if not matches(wanted, printed):
            shown = doctest.Example(command, wanted)
            difference = doctest.OutputChecker().output_difference(shown, printed, FLAGS | doctest.REPORT_NDIFF)
            return f"$ {command}\n{difference}"
    return None


def matches(wanted: str, printed: str) -> bool:
    """Whether a command printed what the page shows, in which ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(_settled(wanted), _settled(printed), FLAGS)


def _settled(text: str) -> str:
    """Without the number of task types: one more is not a reason to change every page that shows a slip."""
    return re.sub(r"one of the \d+ that", "one of the many that", text)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what it is to print."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        wanted = wanted.strip("\n")
        yield command.strip(), f"{wanted}\n" if wanted else ""


def _check_yaml(example: Example) -> str | None:
    text = str(example.parsed)
    if re.search(r"^operators:", text, re.MULTILINE):
        return _file_faults(text, "sizing.yaml", load_request)
    if re.search(r"^classes:", text, re.MULTILINE):
        return _file_faults(text, "cloud.yaml", load_cloud)
    if re.search(r"^profiles:", text, re.MULTILINE):
        return _file_faults(text, "profiles.yaml", read_profiles)
    if re.search(r"^tasks:", text, re.MULTILINE):
        return _faults(text, "yaml")
    if re.match(r"(#[^\n]*\n)*- ", text):
        inner = "".join(f"  {line}\n" for line in text.splitlines())
        return _faults(f"tasks:\n{inner}", "yaml", forgiven={"UNKNOWN_TASK", "INPUT_NOT_FED"})
    return _faults(f"{text}\ntasks: [{{id: r, type: rate}}]\n", "yaml")


def _check_json(example: Example) -> str | None:
    return _faults(str(example.parsed), "json") if '"tasks"' in example.parsed else None


def _check_xml(example: Example) -> str | None:
    return _faults(str(example.parsed), "xml")


def _file_faults(text: str, name: str, load: Callable[[Path], object]) -> str | None:
    path = Path(file_name(text) or name)
    path.write_text(text, encoding="utf-8")
    if path.name.startswith("broken"):
        return None
    try:
        load(path)
    except InvalidDataflow as error:
        return "\n".join(map(str, error.faults))
    return None


def _faults(text: str, form: str, forgiven: set[str] | None = None) -> str | None:
    name = file_name(text)
    if name and name.startswith("broken"):
        return None
    try:
        parse(text, form)
    except InvalidDataflow as error:
        faults = [str(fault) for fault in error.faults if fault.condition not in (forgiven or set())]
        return "\n".join(faults) or None
    return None


def _install(example: Example) -> None:
    project: dict[str, Any] = tomllib.loads(str(example.parsed))["project"]
    folder = Path(f"{project['name'].replace('-', '_')}-{project['version']}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(groups) + "\n", encoding="utf-8")
    importlib.invalidate_caches()
    default_registry.cache_clear()


@contextlib.contextmanager
def _what_pages_install() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(Path.cwd()))  # as for a program in this folder
    try:
        yield
    finally:
        for name in set(sys.modules) - modules:
            if (Path.cwd() / f"{name}.py").exists():
                del sys.modules[name]
        sys.path[:] = path
        default_registry.cache_clear()


_EVALUATORS = {
    "console": _run_console,
    "yaml": _check_yaml,
    "json": _check_json,
    "xml": _check_xml,
    "toml": _install,
}
LANGUAGES_RUN = {"python", *_EVALUATORS}
