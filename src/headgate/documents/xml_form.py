"""Dataflows as XML, in the form of DYN's Fig. 1.

::

    <dataflow name="tweets">
      <PE id="classifier">
        <in id="cleaned_twt" type="string"/>
        <out id="tpc_twt" type="string"/>
        <alternate impl="Classifier.Bayes" value="0.65"/>
        <alternate impl="Classifier.LDA" value="0.70"/>
      </PE>
      <edge source="parser:cleaned" sink="classifier:cleaned_twt"/>
    </dataflow>

``impl`` is a task type; one that is not registered but reads like an import path means a task of type ``python`` with
that function. What the figure lacks is added in its spirit: options of an alternate, routing and feedback on an edge,
the service level. Document type declarations are refused, and with them every entity: nothing is expanded or fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from headgate.documents import json_form
from headgate.documents.located import Located, MarkedDict, MarkedList
from headgate.documents.xml_element import PE_ATTRIBUTES, XmlElement, form_faults, parse_elements
from headgate.errors import Fault, InvalidDataflow, NameFinder, Place, nearest, shorten
from headgate.model.task import Ports
from headgate.tasks.functions import is_import_path
from headgate.tasks.registry import Registry

__all__ = ["read", "write"]

_UNSAFE = re.compile("[^\\t\\n\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""What XML cannot carry, or would change when read back."""


def read(data: bytes | str, registry: Registry, file: str | None = None) -> Located:
    """Parse XML into the document that all formats share; raises :class:`InvalidDataflow` when it is not XML at all."""
    root = parse_elements(data, file)
    if root.name != "dataflow":
        fault = Fault(
            "NOT_A_DATAFLOW", f"the root element is <{root.name[:60]}>", Place(file, *root.mark), expected="<dataflow>"
        )
        raise InvalidDataflow([fault])
    translation = _Translation(registry, file)
    document = translation.dataflow(root)
    return Located(document, file, lambda: document, (*form_faults(root, file), *translation.faults))


class _Translation:
    def __init__(self, registry: Registry, file: str | None) -> None:
        self.registry = registry
        self.file = file
        self.faults: list[Fault] = []
        self.task: str | None = None
        """The id of the task that is being translated."""

        self.nearest = NameFinder().nearest

    def _fault(
        self, condition: str, message: str, element: XmlElement, expected: str | None = None, near: str | None = None
    ) -> None:
        place = Place(self.file, *element.mark)
        self.faults.append(Fault(condition, message, place, self.task, expected, near))

    def dataflow(self, root: XmlElement) -> MarkedDict:
        document = _marked(root, "name", "owner", "share", "start")
        if "version" in root.attributes:
            version = root.attributes["version"]
            document.put("version", int(version) if re.fullmatch("[0-9]{1,9}", version) else version, root.mark)
        for name in ("description", "service_level"):
            for element in root.all(name):
                if name in document:
                    message = f"<{name}> is given twice, first on line {document.marks[name][0]}"
                    self._fault("DUPLICATE_KEY", message, element, f"one <{name}>")
                elif name == "description":
                    document.put(name, self._text(element), element.mark)
                else:
                    document.put(name, _marked(element, *element.attributes), element.mark)
        tasks = MarkedList(root.mark)
        by_id: dict[str, MarkedDict] = {}
        for element in root.all("PE"):
            self.task = element.task
            task = self._task(element)
            tasks.put(task, element.mark)
            by_id.setdefault(element.attributes.get("id", ""), task)
        for element in root.all("edge"):
            self.task = element.task
            self._edge(element, by_id)
        document.put("tasks", tasks, root.mark)
        return document

    def _task(self, element: XmlElement) -> MarkedDict:
        task = _marked(element, *PE_ATTRIBUTES)
        alternates = element.all("alternate")
        if len(alternates) == 1 and not {"name", "value"} & set(alternates[0].attributes):
            self._work(alternates[0], task)
        else:
            listed = MarkedList(element.mark)
            for alternate in alternates:
                item = _marked(alternate, "name", "value")
                self._work(alternate, item)
                if item["type"] != alternate.attributes.get("impl") and "name" not in item:
                    item.put("name", alternate.attributes.get("impl"), alternate.mark)
                listed.put(item, alternate.mark)
            task.put("alternates", listed, element.mark)
        ports = MarkedDict(element.mark)
        for side, tag in (("inputs", "in"), ("outputs", "out")):
            named = MarkedList(element.mark)
            for port in element.all(tag):
                item = _marked(port, "gather", id="name", type="columns")
                if "name" in item:
                    named.put(item, port.mark)
            if named:
                ports.put(side, named, element.mark)
        if ports:
            task.put("ports", ports, element.mark)
        return task

    def _work(self, alternate: XmlElement, into: MarkedDict) -> None:
        if "impl" not in alternate.attributes:
            # That is a fault already; with a type that takes anything it does not become two.
            into.put("type", "opaque", alternate.mark)
            return
        impl = alternate.attributes["impl"]
        config = MarkedDict(alternate.mark)
        if impl not in self.registry and is_import_path(impl):
            config.put("function", impl, alternate.mark)
            impl = "python"
        into.put("type", impl, alternate.mark)
        for option in alternate.all("option"):
            name = option.attributes.get("name")
            if name is not None and name in config:
                message = f"option {shorten(name)} is given twice, first on line {config.marks[name][0]}"
                self._fault("DUPLICATE_KEY", message, option, "each option once")
            elif name is not None:
                config.put(name, self._text(option), option.mark)
        if config:
            into.put("config", config, alternate.mark)
        _put(into, alternate, {"cost_s": "cost_s", "selectivity": "selectivity"})

    def _edge(self, element: XmlElement, by_id: dict[str, MarkedDict]) -> None:
        sink, _, port = element.attributes.get("sink", "").partition(":")
        task = by_id.get(sink)
        if task is None:
            if "sink" in element.attributes:
                self.task = None
                message = f"an edge enters {shorten(sink)}, which is no PE here"
                self._fault("UNKNOWN_TASK", message, element, "the id of a PE", self.nearest(sink, by_id))
            return
        if "source" not in element.attributes:
            return
        feed = _marked(element, "where", "feedback", source="from")
        if port:
            feed.put("to", port, element.mark)
        keys = [key.attributes["column"] for key in element.all("key") if "column" in key.attributes]
        if keys:
            feed.put("key", keys, element.mark)
        if "inputs" not in task:
            task.put("inputs", MarkedList(element.mark), element.mark)
        task["inputs"].put(feed, element.mark)

    def _text(self, element: XmlElement) -> object:
        kind = element.attributes.get("type", "text")
        if kind == "json":
            return self._json(element, element.text)
        if kind != "text":
            self._fault(
                "BAD_VALUE", f"type is {shorten(kind)}", element, "text or json", nearest(kind, ("text", "json"))
            )
        return element.text

    def _json(self, element: XmlElement, text: str) -> object:
        """A value in JSON; a fault inside it is a fault of the element."""
        try:
            located = json_form.read(text)
        except InvalidDataflow as error:
            faults = error.faults
        else:
            if not located.faults:
                return located.value
            faults = located.faults
        for fault in faults:
            self._fault(fault.condition, f"{fault.message}, in {shorten(text)}", element, fault.expected)
        return None


def _marked(element: XmlElement, *same: str, **fields: str) -> MarkedDict:
    """Attributes as fields of the document: some under their own names, some under others."""
    mapping = MarkedDict(element.mark)
    _put(mapping, element, {**{name: name for name in same}, **fields})
    return mapping


def _put(mapping: MarkedDict, element: XmlElement, fields: Mapping[str, str]) -> None:
    for attribute, field in fields.items():
        if attribute in element.attributes:
            mapping.put(field, element.attributes[attribute], element.mark)


def write(document: dict[str, Any], ports_of: dict[str, Ports]) -> str:
    """Write a document as XML; ``ports_of`` gives the ports of each task."""
    own = ("name", "owner", "share", "start", "version")
    root = ElementTree.Element("dataflow", {name: str(document[name]) for name in own if name in document})
    if "description" in document:
        _put_text(ElementTree.SubElement(root, "description"), document["description"])
    if "service_level" in document:
        limits = {name: repr(value) for name, value in document["service_level"].items()}
        ElementTree.SubElement(root, "service_level", limits)
    for task in document["tasks"]:
        _write_task(root, task, ports_of[task["id"]])
    for task in document["tasks"]:
        for feed in task.get("inputs", ()):
            _write_edge(root, task["id"], {"from": feed} if isinstance(feed, str) else feed)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _write_task(root: ElementTree.Element, task: dict[str, Any], ports: Ports) -> None:
    attributes = {name: task[name] for name in PE_ATTRIBUTES if name in task}
    element = ElementTree.SubElement(root, "PE", attributes)
    for tag, side in (("in", ports.inputs), ("out", ports.outputs)):
        for port in side:
            schema = {"type": str(port.schema)} if port.schema else {}
            gather = {"gather": port.gather.value} if tag == "in" and port.gather.value != "interleave" else {}
            ElementTree.SubElement(element, tag, {"id": port.name} | schema | gather)
    for alternate in task.get("alternates", [task]):
        names = {"name": "name", "type": "impl", "value": "value", "cost_s": "cost_s", "selectivity": "selectivity"}
        attributes = {xml: str(alternate[name]) for name, xml in names.items() if name in alternate}
        if "alternates" in task:
            attributes.setdefault("name", alternate["type"])
        inner = ElementTree.SubElement(element, "alternate", attributes)
        for name, value in alternate.get("config", {}).items():
            _put_text(ElementTree.SubElement(inner, "option", {"name": name}), value)


def _write_edge(root: ElementTree.Element, target: str, feed: dict[str, Any]) -> None:
    sink = f"{target}:{feed['to']}" if "to" in feed else target
    attributes = {"source": feed["from"], "sink": sink}
    if "where" in feed:
        attributes["where"] = feed["where"]
    if feed.get("feedback"):
        attributes["feedback"] = "true"
    element = ElementTree.SubElement(root, "edge", attributes)
    for column in feed.get("key", ()):
        ElementTree.SubElement(element, "key", {"column": column})


def _put_text(element: ElementTree.Element, value: object) -> None:
    if isinstance(value, str) and not _UNSAFE.search(value):
        element.text = value
    else:
        element.set("type", "json")
        element.text = json.dumps(value)
