"""The task types that are known, built in and added by other packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from headgate.errors import PluginError, nearest
from headgate.model.names import NAME_RULE, is_name
from headgate.model.task_type import Role, State, TaskConfig, TaskType
from headgate.model.work import ChainWork, KeyedWork, SinkWork, SourceWork

__all__ = ["ENTRY_POINT_GROUP", "Registry", "default_registry", "discover"]

ENTRY_POINT_GROUP = "headgate.task_types"


class Registry(Mapping[str, TaskType]):
    """Task types by name.

    >>> from headgate.tasks import BUILT_IN
    >>> registry = Registry(BUILT_IN)
    >>> registry["filter"].stateful, registry.nearest("fliter")
    (False, 'filter')
    """

    __slots__ = ("_types", "problems")

    def __init__(self, types: Iterable[TaskType], problems: Iterable[PluginError] = ()) -> None:
        self._types: dict[str, TaskType] = {}
        self.problems = tuple(problems)
        """What kept a package's task types from being registered; the others are there all the same."""
        for task_type in types:
            if task_type.name in self._types:
                raise ValueError(f"task type '{task_type.name}' is registered twice")
            self._types[task_type.name] = task_type

    def __getitem__(self, name: str) -> TaskType:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def nearest(self, name: str) -> str | None:
        """The registered name that ``name`` may have been meant to be."""
        return nearest(name, self._types)


@lru_cache(maxsize=1)
def default_registry() -> Registry:
    """The built-in task types and those of installed packages."""
    from headgate.tasks import BUILT_IN

    return discover(BUILT_IN, entry_points(group=ENTRY_POINT_GROUP))


def discover(built_in: Iterable[TaskType], points: Iterable[EntryPoint]) -> Registry:
    """Join the built-in task types with those that entry points name.

    An entry point names a :class:`TaskType` or an iterable of them. One that cannot be loaded, or whose types collide
    with others, is left out and described in ``problems``: a broken package is not Headgate's outage.
    """
    types = {task_type.name: task_type for task_type in built_in}
    problems: list[PluginError] = []
    for entry_point in sorted(points, key=lambda point: point.name):
        try:
            loaded = entry_point.load()
            added = (loaded,) if isinstance(loaded, TaskType) else tuple(loaded)
            joined = dict(types)
            for task_type in added:
                _check(task_type, joined)
                joined[task_type.name] = task_type
        except (Exception, SystemExit) as error:
            sentence = f"task types of '{entry_point.value}' are left out: {type(error).__name__}: {error}"
            problems.append(PluginError("PLUGIN_LEFT_OUT", sentence, {"entry_point": entry_point.name}))
        else:
            types = joined
    return Registry(types.values(), problems)


def _check(task_type: object, taken: Mapping[str, TaskType]) -> None:
    if not isinstance(task_type, TaskType):
        raise TypeError(f"expected a headgate TaskType, got {type(task_type).__name__}")
    if not is_name(task_type.name):
        raise ValueError(f"task type name {task_type.name!r}: a name is {NAME_RULE}")
    if task_type.name in taken:
        raise ValueError(f"task type '{task_type.name}' is registered already")
    wanted: type[TaskConfig] = TaskConfig
    if isinstance(task_type.work, KeyedWork):
        from headgate.tasks.keyed_base import KeyedConfig

        wanted = KeyedConfig
    if not issubclass(task_type.config, wanted):
        raise TypeError(f"the options of '{task_type.name}' must be a {wanted.__name__}")
    _check_work(task_type)
    # Raises where options cannot be described; better here than in each command that describes them.
    task_type.config.model_json_schema()


def _check_work(kind: TaskType) -> None:
    """Raise where the work is of another kind than ports and state say."""
    work = kind.work
    if work is None:
        return
    fits = {
        "a source": (isinstance(work, SourceWork), kind.role is Role.SOURCE),
        "a sink": (isinstance(work, SinkWork), kind.role is Role.SINK),
        "of state keyed": (isinstance(work, KeyedWork), kind.state is State.KEYED),
        "of state chained": (isinstance(work, ChainWork), kind.state is State.CHAINED),
    }
    for what, (works_so, is_so) in fits.items():
        if works_so != is_so:
            word = "is" if is_so else "is not"
            raise TypeError(f"task type '{kind.name}' {word} {what}, and its work is a {type(work).__name__}")
