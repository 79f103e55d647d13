"""Whether dataflows may touch what they touch: within the roots that are allowed, apart from what is another's."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.access.authority import AccessRefused
from headgate.access.principal import AccessRole, Principal
from headgate.access.rules import TenantRules
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import cycles
from headgate.model.names import TaskId
from headgate.model.touching import Touch, Touched
from headgate.tasks.file_paths import is_url
from headgate.tasks.registry import Registry

__all__ = ["TouchedPlace", "TouchedPlaces", "check_places"]


@dataclass(frozen=True, slots=True)
class TouchedPlace:
    """Something that a task touches, and where that is once links are followed; a folder for files."""

    task: str
    touched: Touched
    place: Path | None
    """Of files on this machine only."""

    below: bool = False
    """Whether it is about folders in that place too, as a pattern may be."""

    def __str__(self) -> str:
        return f"option '{self.touched.option}' of task '{self.task}', {self.touched.what[:200]!r},"


@dataclass(frozen=True, slots=True)
class TouchedPlaces:
    """What a dataflow touches."""

    dataflow: str
    owner: str
    places: tuple[TouchedPlace, ...]

    def files(self, how: Touch) -> frozenset[Path]:
        """The files and folders that it reads or writes."""
        return frozenset(one.place for one in self.places if one.touched.how is how and one.place is not None)


def check_places(
    principal: Principal,
    rules: TenantRules,
    state: Path,
    dataflows: Iterable[Dataflow],
    running: Iterable[Dataflow],
    registry: Registry,
) -> None:
    """Raise :class:`InputError` if new dataflows touch what they may not, or get in the way of others."""
    new = [places_of(dataflow, registry) for dataflow in dataflows]
    for one in new:
        for place in one.places:
            _check_state(one, place, state)
            _check_allowed(principal, rules, one, place)
    if not any(one.files(Touch.READ) or one.files(Touch.WRITE) for one in new):
        return
    everything = [*(places_of(dataflow, registry) for dataflow in running), *new]
    for one in new:
        _check_apart(one, everything)
    _check_no_cycle(everything, {one.dataflow for one in new})


def places_of(dataflow: Dataflow, registry: Registry) -> TouchedPlaces:
    """What the tasks of a dataflow touch, whichever alternate is active."""
    return TouchedPlaces(dataflow.name, dataflow.owner, tuple(_places(dataflow, registry)))


def _places(dataflow: Dataflow, registry: Registry) -> Iterator[TouchedPlace]:
    for task in dataflow.tasks:
        for alternate in task.alternates:
            options = registry[alternate.type].config.model_validate(alternate.config.as_dict())
            for touched in options.touches():
                files = touched.how in (Touch.READ, Touch.WRITE)
                place = _local(touched.what) if files else None
                yield TouchedPlace(task.id, touched, place, place is not None and _looks_below(touched.what))


def _local(text: str) -> Path | None:
    """The file or folder that a path, or a URL of one, is in; links are followed, patterns left out.

    >>> _local("sqlite:////srv/city.db"), _local("/srv/in/*.json"), _local("s3://bucket/in")
    (PosixPath('/srv/city.db'), PosixPath('/srv/in'), None)
    """
    if is_url(text):
        parts = urlsplit(text)
        scheme = parts.scheme.partition("+")[0]
        if scheme == "sqlite":
            text = unquote(text.partition(":///")[2].partition("?")[0])
        elif scheme == "file":
            text = unquote(parts.path)
        else:
            return None
        if text in ("", ":memory:"):
            return None
    return Path(os.path.realpath(_before_pattern(text)))


def _before_pattern(text: str) -> str:
    parts = Path(text).parts
    fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(Path(*parts[:fixed])) if fixed else "."


def _looks_below(text: str) -> bool:
    parts = Path(text).parts
    return any(glob.has_magic(part) for part in parts[:-1]) or "**" in text


def _check_state(flow: TouchedPlaces, place: TouchedPlace, state: Path) -> None:
    home = Path(os.path.realpath(state))
    if place.place is not None and place.place.is_relative_to(home):
        message = f"{place} of dataflow '{flow.dataflow}' is in the state directory of the engine"
        raise InputError(
            "NOT_ALLOWED", f"{message}; choose another folder", {"dataflow": flow.dataflow, "task": place.task}
        )


def _check_allowed(principal: Principal, rules: TenantRules, flow: TouchedPlaces, place: TouchedPlace) -> None:
    how = place.touched.how
    roots = rules.allow.get(how.value)
    if roots is None:
        if principal.is_at_least(AccessRole.OPERATOR):
            return
        reason = "nothing is allowed to those who are no operators"
    elif any(_is_within(place, root.replace("{owner}", flow.owner)) for root in roots):
        return
    else:
        reason = f"allowed is {', '.join(roots)[:300] or 'nothing'}"
    facts = {"owner": flow.owner, "dataflow": flow.dataflow, "task": place.task, "option": place.touched.option}
    message = f"{place} may not be used by dataflow '{flow.dataflow}' of '{flow.owner}': {reason}"
    raise AccessRefused("NOT_ALLOWED", f"{message}; see {how.value} in [allow] of headgate.toml", facts)


def _is_within(place: TouchedPlace, root: str) -> bool:
    what = place.touched.what
    if place.touched.how is Touch.MODULES:
        return fnmatchcase(what.replace(":", "."), f"{root}.*")
    if place.touched.how is Touch.HOSTS:
        return fnmatchcase(what.lower(), root.lower()) or fnmatchcase(what.lower(), f"{root.lower()}:*")
    if place.place is not None:
        return not is_url(root) and place.place.is_relative_to(os.path.realpath(root))
    return is_url(root) and _is_within_url(what, root)


def _is_within_url(what: str, root: str) -> bool:
    """Whether a URL is a root or below it, whoever it says to be.

    >>> _is_within_url("postgresql://app:${secret:CITY_DB}@db/city", "postgresql://db/city")
    True
    >>> _is_within_url("postgresql://db/city?host=other", "postgresql://db/city")
    False
    >>> _is_within_url("s3://bucket/in/../../x", "s3://bucket/in"), _is_within_url("s3://bucket/in/a", "s3://bucket/i*")
    (False, True)
    """
    scheme, _, rest = what.partition("://")
    authority, slash, path = rest.partition("/")
    plain = f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
    if any(part in ("..", ".") for part in unquote(path).split("/")):
        return False
    below = plain == root or plain.startswith(f"{root.rstrip('/')}/")
    return (below and "?" not in plain) or ("*" in root and fnmatchcase(plain, root))


def _check_apart(flow: TouchedPlaces, everything: Iterable[TouchedPlaces]) -> None:
    """Nobody writes where another owner does."""
    for place in flow.places:
        if place.touched.how is not Touch.WRITE or place.place is None:
            continue
        for other in everything:
            if other.owner == flow.owner:
                continue
            for theirs in other.files(Touch.WRITE):
                if theirs.is_relative_to(place.place) or place.place.is_relative_to(theirs):
                    message = f"{place} of dataflow '{flow.dataflow}' is where another owner's dataflow writes"
                    raise InputError("TARGET_TAKEN", f"{message}; choose another folder", {"task": place.task})


def _check_no_cycle(everything: Iterable[TouchedPlaces], new: Iterable[str]) -> None:
    """No dataflow reads, by way of others or not, what it has written."""
    flows = {flow.dataflow: flow for flow in everything}
    writers = [flow for flow in flows.values() if flow.files(Touch.WRITE)]
    feeds = {
        TaskId(name): [TaskId(other.dataflow) for other in writers if _feeds(other, flow)]
        for name, flow in flows.items()
    }
    for circle in cycles(feeds):
        if set(circle) & set(new):
            way = " -> ".join(f"'{name}'" for name in circle[:8])
            message = f"dataflow {way} would read the files that it writes, for ever; write to another folder"
            raise InputError("CYCLE_OF_FILES", message, {"dataflows": list(circle)})


def _feeds(writer: TouchedPlaces, reader: TouchedPlaces) -> bool:
    """Whether one writes files where the other looks for some."""
    made = [one.place for one in writer.places if one.touched.how is Touch.WRITE and one.touched.makes_files]
    looked = [(one.place, one.below) for one in reader.places if one.touched.how is Touch.READ]
    return any(
        place is not None and there is not None and (place == there or (below and place.is_relative_to(there)))
        for place in made
        for there, below in looked
    )
