"""Dataflows as YAML.

The text is read with libyaml's event parser and the scalars of YAML 1.2 (so ``on`` and ``no`` are texts, and ``1e3`` is
a number). The events are put together here without recursion, which gives every value its line, bounds the depth, finds
keys that are given twice and counts what aliases would expand to.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from headgate.documents.located import Located, Mark, MarkedDict, MarkedList, with_tasks
from headgate.errors import Fault, InvalidDataflow, Place, shorten

__all__ = ["read", "write"]

MAX_DEPTH = 100
MAX_ALIASED = 200_000
"""How many values, or dozens of characters, the aliases of one document may stand for."""

MAX_DIGITS = 4_300

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_TAGS = {"str", "int", "float", "bool", "null", "map", "seq"}
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, object] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")


def read(text: str, file: str | None = None) -> Located:
    """Parse YAML; raises :class:`InvalidDataflow` when the text is not YAML at all.

    >>> located = read("name: city\\ntasks:\\n- id: a\\n")
    >>> located.value, located.place(["tasks", 0, "id"]).line
    ({'name': 'city', 'tasks': [{'id': 'a'}]}, 3)
    """
    builder = _Builder(file)
    try:
        value = builder.build(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        raise InvalidDataflow([*builder.faults, Fault("NOT_YAML", f"this is not YAML: {message}", place)]) from None
    except (yaml.reader.ReaderError, UnicodeEncodeError):
        # The line that libyaml reports counts bytes as if they were characters.
        match = _FORBIDDEN.search(text)
        message = f"this is not YAML: character {shorten(match.group())} is not allowed there" if match else "not YAML"
        line = text.count("\n", 0, match.start()) + 1 if match else 1
        raise InvalidDataflow([*builder.faults, Fault("NOT_YAML", message, Place(file, line))]) from None
    except yaml.YAMLError:
        raise InvalidDataflow([*builder.faults, Fault("NOT_YAML", "this is not YAML", Place(file, 1))]) from None
    return Located(value, file, lambda: value, with_tasks(builder.faults, value, value))


class _Stop(Exception):
    """Raised inside the builder when going on makes no sense."""


class _Builder:
    """Puts the events of one document together."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.faults: list[Fault] = []
        self.anchors: dict[str, tuple[object, int]] = {}
        self.values = 0
        self.aliased = 0

    def build(self, text: str) -> object:
        loader = _Loader(text)
        try:
            return self._document(loader)
        except _Stop:
            raise InvalidDataflow(self.faults) from None
        finally:
            loader.dispose()

    def _document(self, loader: Any) -> object:
        stack: list[_Open] = []
        root: object = None
        documents = 0
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                # A long text counts as several values, or aliases of one could stand for gigabytes.
                size = 1 + len(event.value) // 12
                self.values += size
                value: object = self._scalar(event)
                if event.anchor:
                    self.anchors[event.anchor] = (value, size)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.values += 1
                stack.append(self._opened(event, len(stack)))
                continue
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                closed = stack.pop()
                value = closed.container
                if closed.anchor:
                    self.anchors[closed.anchor] = (value, self.values - closed.values_before)
                event = closed.event
            elif kind is yaml.AliasEvent:
                value = self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._stop("TWO_DOCUMENTS", "a second document begins here", "one dataflow a file", event)
                continue
            elif kind is yaml.StreamEndEvent:
                return root
            else:
                continue
            if stack:
                self._place(stack[-1], value, event)
            else:
                root = value

    def _opened(self, event: Any, depth: int) -> _Open:
        if depth >= MAX_DEPTH:
            self._stop("TOO_DEEP", f"nested deeper than {MAX_DEPTH} levels", "a flatter document", event)
        self._check_tag(event)
        kind = MarkedDict if isinstance(event, yaml.MappingStartEvent) else MarkedList
        if event.anchor:
            self.anchors.pop(event.anchor, None)
        return _Open(kind(_mark(event)), event, self.values - 1)

    def _place(self, parent: _Open, value: object, event: Any) -> None:
        container = parent.container
        if isinstance(container, MarkedList):
            container.put(value, _mark(event))
        elif parent.key is None:
            parent.key, parent.key_mark = self._key(value, event), _mark(event)
        else:
            if parent.key in container:
                first = container.marks[parent.key][0]
                message = f"key {shorten(parent.key)} is given twice, first on line {first}"
                self.faults.append(
                    Fault("DUPLICATE_KEY", message, Place(self.file, *parent.key_mark), expected="each key once")
                )
            container.put(parent.key, value, parent.key_mark)
            parent.key = None

    def _key(self, value: object, event: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value)
        self._stop("KEY_NOT_TEXT", "a key that is a list or a mapping", "text", event)
        return ""

    def _alias(self, event: Any) -> object:
        if event.anchor not in self.anchors:
            message = f"alias *{event.anchor[:60]} has no finished anchor &{event.anchor[:60]} before it"
            self._stop("UNKNOWN_ALIAS", message, "an anchor before its alias and does not contain it", event)
        value, size = self.anchors[event.anchor]
        self.values += size
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            message = f"the aliases stand for more than {MAX_ALIASED:,} values"
            self._stop("ALIAS_BOMB", message, "the values written out, or fewer of them", event)
        return value

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        tag = event.tag
        if tag is None and not event.implicit[0]:
            return text
        if tag is not None:
            self._check_tag(event)
            if tag.endswith("str") or tag == "!":
                return text
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in "+-.0123456789":
            return text
        return self._number(text, event)

    def _number(self, text: str, event: Any) -> object:
        if _INT.match(text):
            if len(text) > MAX_DIGITS:
                message, expected = f"a number of {len(text):,} digits", f"at most {MAX_DIGITS:,} digits"
                self.faults.append(Fault("HUGE_NUMBER", message, Place(self.file, *_mark(event)), expected=expected))
                return 0
            return int(text, 0 if text[:2] in ("0x", "0o") else 10)
        if _FLOAT.match(text):
            return float(text)
        if _NOT_FINITE.match(text):
            return float(text.replace(".", "").lower())
        return text

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag is not None and tag != "!" and tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            place = Place(self.file, *_mark(event))
            self.faults.append(Fault("UNKNOWN_TAG", f"tag {shorten(tag)} means nothing here", place, expected="no tag"))

    def _stop(self, condition: str, message: str, expected: str, event: Any) -> None:
        self.faults.append(Fault(condition, message, Place(self.file, *_mark(event)), expected=expected))
        raise _Stop


class _Open:
    """A mapping or list whose end has not come yet."""

    __slots__ = ("anchor", "container", "event", "key", "key_mark", "values_before")

    def __init__(self, container: MarkedDict | MarkedList, event: Any, values_before: int) -> None:
        self.container = container
        self.event = event
        self.anchor: str | None = event.anchor
        self.values_before = values_before
        self.key: str | None = None
        self.key_mark: Mark = (1, 1)


def _mark(event: Any) -> Mark:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def write(document: dict[str, Any]) -> str:
    """Write a document as YAML that this module reads back exactly."""
    return str(yaml.dump(document, Dumper=_ExactDumper, sort_keys=False, allow_unicode=True, width=110))


class _ExactDumper(_Dumper):  # type: ignore[misc]
    """Quotes every text that YAML 1.2 or older readers would take for something else."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _text(dumper: Any, text: str) -> Any:
    plain_elsewhere = text in _WORDS or _INT.match(text) or _FLOAT.match(text) or _NOT_FINITE.match(text)
    style = "'" if plain_elsewhere else None
    if any(not (c.isprintable() or c == "\n") for c in text):
        style = '"'
    elif "\n" in text and not text.startswith((" ", "\n")):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _float(dumper: Any, number: float) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(number))


_ExactDumper.add_representer(str, _text)
_ExactDumper.add_representer(float, _float)
