"""What holds for the package as a whole: names, sizes, and where Spark's private parts may be touched."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "headgate"
LONGEST_FILE = 400

PRIVATE = re.compile(r'\b_(jvm|jsc|jdf|jsparkSession|jsq|jc|jo|gateway)\b|py4j|__dict__\["schema"\]|StateMessage_pb2')


@cache
def _sources() -> dict[str, str]:
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))}


@cache
def _trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in _sources().items()}


def _names(tree: ast.AST) -> Iterator[str]:
    """Names that the code defines or uses: variables, arguments, attributes, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def _is_vague(name: str) -> bool:
    return bool({"told", "found"} & set(name.split("_")))


def test_no_two_public_classes_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file)
    doubles = {name: files for name, files in places.items() if len(files) > 1}
    assert doubles == {}


def test_nothing_is_named_told_or_found() -> None:
    counts: Counter[str] = Counter()
    for file, tree in _trees().items():
        counts[file.partition("/")[0]] += sum(map(_is_vague, _names(tree)))
    assert {room: count for room, count in counts.items() if count} == {}


def test_files_and_functions_are_small() -> None:
    lengths = {file: text.count("\n") for file, text in _sources().items()}
    assert {file for file, lines in lengths.items() if lines > LONGEST_FILE} == set()
    assert statistics.median(lengths.values()) <= 110
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in _trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    assert statistics.median(functions) <= 9


def test_only_spark_internals_touches_private_parts_of_spark() -> None:
    touching = {
        file
        for file, text in _sources().items()
        if PRIVATE.search(text) and not file.startswith("runtime/spark_internals/")
    }
    assert touching == set()
