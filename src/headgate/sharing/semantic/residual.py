"""What is left to do on a wider stream to get a narrower one."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.config import Config
from headgate.model.names import TaskId
from headgate.model.task import Alternate, Task
from headgate.sharing.semantic.form import Known, NormalForm, WindowForm
from headgate.sharing.semantic.implication import all_implied, implied
from headgate.sharing.semantic.term import NotNormal, Term, rendered

__all__ = ["Residual", "residual"]


@dataclass(frozen=True, slots=True)
class Residual:
    """Tasks to put one after the other behind the wider stream; none when the two are equal."""

    works: tuple[tuple[str, Config], ...] = ()
    """Type and config of each."""

    conjuncts: int = 0
    """How many conditions the rows of the wider stream must still meet."""

    def tasks(self, name: TaskId) -> list[Task]:
        """The tasks; the last one is called as the task that they stand for."""
        last = len(self.works) - 1
        return [
            Task(name if n == last else TaskId(f"{name}.{kind}"), (Alternate(kind, kind, config),))
            for n, (kind, config) in enumerate(self.works)
        ]


def residual(wide: Known, wish: Known) -> Residual | None:
    """What makes the wished rows of a wider task's; ``None`` when they cannot be had from it."""
    try:
        if wide.form is not None and wish.form is not None:
            return _of_rows(wide.form, wish.form)
        if wide.window is not None and wish.window is not None:
            return _of_windows(wide.window, wish.window)
    except NotNormal:
        return None
    return None


def _of_rows(wide: NormalForm, wish: NormalForm) -> Residual | None:
    if (wide.base, wide.scope) != (wish.base, wish.scope) or not all_implied(wish.conjuncts, wide.conjuncts):
        return None
    names: dict[Term, str] = {}
    for name, term in wide.columns:
        names.setdefault(term, name)
    left = [term for term in wish.conjuncts if not implied(wide.conjuncts, term)]
    works: list[tuple[str, Config]] = []
    if left:
        works.append(("filter", Config({"where": " and ".join(rendered(term, names) for term in left)})))
    return Residual((*works, *_projection(wide.columns, wish.columns, names)), len(left))


def _of_windows(wide: WindowForm, wish: WindowForm) -> Residual | None:
    if wide.group != wish.group:
        return None
    made = {term: name for name, term in reversed(wide.columns)}
    if any(term not in made for _, term in wish.columns):
        return None
    kept: list[tuple[str, Term]] = [(name, ("kept", name)) for name in ("window_start", "window_end", *wide.keys)]
    names = {term: name for name, term in (*kept, *((made[term], term) for _, term in wish.columns))}
    return Residual(_projection((*kept, *wide.columns), (*kept, *wish.columns), names))


def _projection(
    wide: tuple[tuple[str, Term], ...], wish: tuple[tuple[str, Term], ...], names: dict[Term, str]
) -> tuple[tuple[str, Config], ...]:
    """From the wide columns to the wished ones: those that are not there under their name are derived, all at once."""
    if wide == wish:
        return ()
    there = {name.casefold(): (name, term) for name, term in wide}
    derived = {name: rendered(term, names) for name, term in wish if there.get(name.casefold(), ("", None))[1] != term}
    works: list[tuple[str, Config]] = [("derive", Config({"columns": derived}))] if derived else []
    works.append(("select", Config({"columns": [name for name, _ in wish]})))
    return tuple(works)
