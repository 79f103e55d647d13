"""The errors of Headgate and the faults they carry.

The tree, by who can fix it::

    HeadgateError
    +-- InputError          the user's files or arguments; exit status 2
    |   +-- InvalidDataflow     a dataflow with faults, all of them at once
    +-- Infeasible          the request cannot be met; the message says what is missing
    +-- PluginError         a package that adds task types is broken

Every error is a triple of ``condition`` (a stable name that programs may test), ``message`` (a sentence for people)
and ``parameters``. A :class:`Fault` is the same triple for one place in a user's file. What checks a single value and
knows neither file nor line raises :class:`BadValue`, of which a fault is made.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

__all__ = [
    "BadValue",
    "Fault",
    "HeadgateError",
    "Infeasible",
    "InputError",
    "InvalidDataflow",
    "NameFinder",
    "Notice",
    "Place",
    "PluginError",
    "counted",
    "missing_package",
    "nearest",
    "os_reason",
    "printable",
    "refused_write",
    "shorten",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the user wrote something: a file, and within it a line and a column (both from 1)."""

    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Write the place as editors and compilers do.

        >>> str(Place("flow.yaml", 3, 5)), str(Place("flow.yaml")), str(Place())
        ('flow.yaml:3:5', 'flow.yaml', '<dataflow>')
        """
        parts = [self.file or "<dataflow>"]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a dataflow, described so that its author can fix it.

    ``expected`` says what would be right, ``nearest`` is the valid name closest to the one that was written.
    """

    condition: str
    message: str
    place: Place = field(default_factory=Place)
    task: str | None = None
    expected: str | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        """Write the fault as one line: place, task, what is wrong, what would be right.

        >>> print(
        ...     Fault(
        ...         "UNKNOWN_TASK_TYPE",
        ...         "unknown task type 'fliter'",
        ...         Place("f.yaml", 4),
        ...         "clean",
        ...         "a registered task type",
        ...         "filter",
        ...     )
        ... )
        f.yaml:4: task 'clean': unknown task type 'fliter'; expected a registered task type; did you mean 'filter'?
        """
        where = f"{self.place}: " + (f"task '{self.task}': " if self.task else "")
        what = self.message
        if self.expected:
            what += f"; expected {self.expected}"
        if self.nearest:
            what += f"; did you mean '{self.nearest}'?"
        return printable(where + what)

    def at(self, place: Place) -> Fault:
        """The same fault at another place."""
        return replace(self, place=place)

    def as_dict(self) -> dict[str, object]:
        """The fault for ``--json``; absent parts are null."""
        return {
            "condition": self.condition,
            "message": printable(self.message),
            "file": None if self.place.file is None else printable(self.place.file),
            "line": self.place.line,
            "column": self.place.column,
            "task": None if self.task is None else printable(self.task),
            "expected": None if self.expected is None else printable(self.expected),
            "nearest": None if self.nearest is None else printable(self.nearest),
        }


class Notice(Fault):
    """Something the author should know although nothing is wrong."""

    __slots__ = ()


class HeadgateError(Exception):
    """The root of every error that Headgate raises on purpose."""

    def __init__(self, condition: str, message: str, parameters: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.parameters = dict(parameters or {})


class InputError(HeadgateError):
    """The user's input cannot be used; the message names the place and the remedy."""


class InvalidDataflow(InputError):
    """A dataflow has faults. All of them are in ``faults``, in the order of their lines."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        ordered = sorted(
            faults, key=lambda fault: (fault.place.file or "", fault.place.line or 0, fault.place.column or 0)
        )
        self.faults = tuple(ordered)
        super().__init__("INVALID_DATAFLOW", "\n".join(map(str, self.faults)), {"faults": len(self.faults)})


class Infeasible(HeadgateError):
    """The request cannot be met. This is an answer, not a failure: the message says what is missing."""


class PluginError(HeadgateError):
    """A package that registers task types cannot be loaded or registers something unusable."""


class BadValue(ValueError):
    """A value is not valid: why, and where it helps what would be valid and the nearest valid name."""

    def __init__(self, message: str, expected: str | None = None, nearest: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.nearest = nearest

    @property
    def sentence(self) -> str:
        """The whole of it in one sentence.

        >>> BadValue("unknown forecaster 'holtt'", "one of holt, naive", "holt").sentence
        "unknown forecaster 'holtt'; expected one of holt, naive; did you mean 'holt'?"
        """
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{self}{expected}" + (f"; did you mean '{self.nearest}'?" if self.nearest else "")


def unknown(condition: str, message: str, name: str, valid: Iterable[str]) -> InputError:
    """An error for a name that does not exist; it adds the nearest valid name, or else the first few.

    >>> print(unknown("UNKNOWN_PLANNER", "unknown algorithm 'exat'", "exat", ["exact", "greedy"]))
    unknown algorithm 'exat'; did you mean 'exact'?
    >>> print(unknown("UNKNOWN_PLANNER", "unknown algorithm 'x'", "x", ["exact", "greedy"]))
    unknown algorithm 'x'; choose one of exact, greedy
    """
    names = list(valid)
    near = nearest(name, names) if len(names) <= 10_000 else None
    hint = f"choose one of {', '.join(names[:12])}" if names else "there are none"
    if near is not None:
        hint = f"did you mean '{near}'?"
    return InputError(condition, f"{message}; {hint}", {"name": name, "nearest": near})


def missing_package(condition: str, purpose: str, package: str | ModuleNotFoundError, extra: str) -> InputError:
    """An error for a package that is not installed.

    >>> print(missing_package("NO_PLOTS", "drawing plots", "matplotlib", "plots"))
    drawing plots needs the package 'matplotlib'; install headgate[plots]
    """
    name = package if isinstance(package, str) else (package.name or "").partition(".")[0]
    message = f"{purpose} needs the package '{name}'; install headgate[{extra}]"
    return InputError(condition, message, {"package": name})


def os_reason(error: Exception) -> str:
    """Why the system refused to read or write a file.

    >>> os_reason(FileNotFoundError(2, "No such file or directory", "x.csv"))
    'no such file or directory'
    """
    return str(getattr(error, "strerror", None) or error).lower()


REFUSALS = frozenset(
    getattr(errno, name, 0)
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "EPERM", "EFBIG", "ESTALE", "ENOTCONN", "ENXIO")
)
"""Why a file system may refuse to write, for a while."""


def refused_write(error: BaseException) -> InputError | None:
    """A write that the file system has refused, as a sentence; ``None`` for other errors.

    >>> print(refused_write(OSError(errno.ENOSPC, "No space left on device", "state/1.json")))
    cannot write state/1.json: no space left on device; free some room, or mend the file system
    """
    if not isinstance(error, OSError) or error.errno not in REFUSALS:
        return None
    place = error.filename or "to the state directory"
    return InputError("NO_ROOM", f"cannot write {place}: {os_reason(error)}; free some room, or mend the file system")


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name closest to ``name``, if one is close enough to be a slip.

    >>> nearest("fliter", ["filter", "select"]), nearest("Select", ["filter", "select"]), nearest("zzz", ["filter"])
    ('filter', 'select', None)
    """
    if len(name) > 200:
        return None
    by_folded = {candidate.casefold(): candidate for candidate in valid}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


class NameFinder:
    """Finds the nearest names within one file, with a limit on the number of comparisons."""

    def __init__(self, comparisons: int = 30_000) -> None:
        self.comparisons = comparisons

    def nearest(self, name: str, valid: Collection[str]) -> str | None:
        self.comparisons -= len(valid)
        return nearest(name, valid) if self.comparisons >= 0 else None


def shorten(value: object, limit: int = 60) -> str:
    """Write a value the user gave, cut so that a message stays one line; however large it is, only its start is read.

    >>> shorten("x" * 100, 12), shorten(["y"] * 10**6, 12)
    ("'xxxxxxxx...", "['y', 'y'...")
    """
    try:
        text = repr(_beginning(value, limit))
    except Exception:  # a whole number with more digits than Python will write, or an object with a broken repr
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _beginning(value: object, most: int, depth: int = 0) -> object:
    if isinstance(value, (str, bytes)):
        return value[:1_000]
    if isinstance(value, (Mapping, list, tuple)) and depth > 3:
        return ...
    if isinstance(value, Mapping):
        return {key: _beginning(item, most // 2, depth + 1) for key, item in islice(value.items(), most)}
    if isinstance(value, (list, tuple)):
        return [_beginning(item, most // 2, depth + 1) for item in islice(value, most)]
    return value


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "task"), counted(1200, "task")
    ('1 task', '1,200 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Write a text from a file on one line, with what a terminal must not get escaped.

    >>> printable("a\\x1b[31mb\\ud800\\nc")
    'a\\\\x1b[31mb\\\\ud800\\\\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
