"""XML as elements with lines, and which elements and attributes a dataflow may have."""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from headgate.documents.located import Mark
from headgate.errors import Fault, InvalidDataflow, Place, nearest, shorten

__all__ = ["MAX_DEPTH", "PE_ATTRIBUTES", "XmlElement", "form_faults", "parse_elements"]

MAX_DEPTH = 100

_CHILDREN = {
    "dataflow": ("description", "service_level", "PE", "edge"),
    "PE": ("in", "out", "alternate"),
    "alternate": ("option",),
    "edge": ("key",),
}
PE_ATTRIBUTES = ("id", "share", "on_error", "time_budget", "publish")
_ATTRIBUTES = {
    "dataflow": ("name", "owner", "share", "start", "version"),
    "service_level": None,
    "PE": PE_ATTRIBUTES,
    "in": ("id", "type", "gather"),
    "out": ("id", "type"),
    "alternate": ("name", "impl", "value", "cost_s", "selectivity"),
    "option": ("name", "type"),
    "edge": ("source", "sink", "where", "feedback"),
    "key": ("column",),
    "description": ("type",),
}
_REQUIRED = {  # all formats check the id of a task in one place
    "in": ("id",),
    "out": ("id",),
    "alternate": ("impl",),
    "option": ("name",),
    "edge": ("source", "sink"),
    "key": ("column",),
}
_WITH_TEXT = ("option", "description")


class XmlElement:
    """An element with its line."""

    __slots__ = ("attributes", "children", "mark", "name", "texts")

    def __init__(self, name: str, attributes: dict[str, str], mark: Mark) -> None:
        self.name = name
        self.attributes = attributes
        self.mark = mark
        self.children: list[XmlElement] = []
        self.texts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def task(self) -> str | None:
        """The id of the task that the element describes or feeds."""
        if self.name == "edge":
            return self.attributes.get("sink", "").partition(":")[0] or None
        return self.attributes.get("id") if self.name == "PE" else None

    def all(self, name: str) -> list[XmlElement]:
        return [child for child in self.children if child.name == name]


def parse_elements(data: bytes | str, file: str | None) -> XmlElement:
    """The root element; raises :class:`InvalidDataflow` when the text is not XML, or declares a document type."""
    try:
        return _parsed(data, file)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "it cannot be parsed")
        place = Place(file, error.lineno, error.offset + 1)
        raise InvalidDataflow([Fault("NOT_XML", f"this is not XML: {reason}", place)]) from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or does not fit
        raise InvalidDataflow([Fault("NOT_XML", f"this is not XML: {error}", Place(file, 1))]) from None


def _parsed(data: bytes | str, file: str | None) -> XmlElement:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[XmlElement] = []
    roots: list[XmlElement] = []

    def place() -> Mark:
        return parser.CurrentLineNumber, parser.CurrentColumnNumber + 1

    def refuse_doctype(*_: object) -> int:
        message = "a document type declaration, which could bring in entities"
        raise InvalidDataflow([Fault("DOCTYPE", message, Place(file, *place()), expected="no <!DOCTYPE ...>")])

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) >= MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
            raise InvalidDataflow([Fault("TOO_DEEP", message, Place(file, *place()), expected="a flatter document")])
        element = XmlElement(name, attributes, place())
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def text(characters: str) -> None:
        stack[-1].texts.append(characters)

    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.EntityDeclHandler = refuse_doctype
    parser.ExternalEntityRefHandler = refuse_doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = text
    parser.Parse(data, True)
    return roots[0]


def form_faults(root: XmlElement, file: str | None) -> Iterator[Fault]:
    """Elements and attributes that have no meaning where they are, and attributes that are missing."""
    waiting: list[tuple[XmlElement, str | None]] = [(root, None)]
    while waiting:
        element, task = waiting.pop()
        place = Place(file, *element.mark)
        known = _ATTRIBUTES.get(element.name)
        for name in element.attributes:
            if known is not None and name not in known:
                message = f"unknown attribute {shorten(name)} of <{element.name}>"
                yield Fault("UNKNOWN_FIELD", message, place, task, f"one of {', '.join(known)}", nearest(name, known))
        for name in _REQUIRED.get(element.name, ()):
            if name not in element.attributes:
                message = f"<{element.name}> lacks the attribute '{name}'"
                yield Fault("MISSING_FIELD", message, place, task, f'{name}="..."')
        if element.text.strip() and element.name not in _WITH_TEXT:
            message = f"text {shorten(element.text.strip())} inside <{element.name}>"
            yield Fault("UNKNOWN_FIELD", message, place, task, "no text there")
        valid = _CHILDREN.get(element.name, ())
        for child in element.children:
            if child.name in valid:
                waiting.append((child, child.task or task))
                continue
            expected = f"one of <{'>, <'.join(valid)}>" if valid else "no element inside"
            message = f"<{child.name[:60]}> inside <{element.name}>"
            where = Place(file, *child.mark)
            yield Fault("UNKNOWN_FIELD", message, where, task, expected, nearest(child.name, valid))
