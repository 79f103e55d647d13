"""Computations from row to row within a key, for all keys at once: first rows, then second rows, ...

Keys with many rows are few: when only some are left, they are finished one by one. Either way each key's values are
taken in order, so results do not depend on which other keys there are, nor on how the rows are cut into epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.tasks.chains.grouping import Groups
from headgate.tasks.heavy import np

__all__ = ["running", "stepped"]

_FEW = 16
"""With so few keys left, a loop in Python is faster than NumPy's calls."""

Step = Callable[[Sequence[Any], Any], tuple[Sequence[Any], Any]]
"""From a state and a value to the new state and a result, by plain arithmetic: of numbers, and of arrays of them."""


def running(function: Any, values: Any, groups: Groups) -> Any:
    """A NumPy function of two arguments (such as ``np.add``), accumulated over the sorted values of each group."""
    result, lengths = values.copy(), groups.lengths
    longest = np.argsort(-lengths, kind="stable")
    for place in range(1, int(lengths.max(initial=0))):
        active = longest[: np.searchsorted(-lengths[longest], -place, "left")]
        if len(active) <= _FEW:
            for group in active:
                own = slice(groups.starts[group] + place - 1, groups.starts[group] + lengths[group])
                result[own] = function.accumulate(result[own])
            break
        at = groups.starts[active] + place
        result[at] = function(result[at - 1], result[at])
    return result


def stepped(step: Step, state: Sequence[Any], values: Any, groups: Groups) -> Any:
    """The result of each sorted value; ``state`` has an array for each part, an item for each group, and is updated."""
    results, lengths = np.empty(len(values)), groups.lengths
    longest = np.argsort(-lengths, kind="stable")
    for place in range(int(lengths.max(initial=0))):
        active = longest[: np.searchsorted(-lengths[longest], -place, "left")]
        if len(active) <= _FEW:
            for group in active:
                start = groups.starts[group]
                _finished(step, state, group, values, results, range(start + place, start + lengths[group]))
            break
        at = groups.starts[active] + place
        new, results[at] = step([part[active] for part in state], values[at])
        for part, values_of_part in zip(state, new, strict=True):
            part[active] = values_of_part
    return results


def _finished(step: Step, state: Sequence[Any], group: int, values: Any, results: Any, rows: range) -> None:
    """The rest of one group's values."""
    own: Sequence[Any] = [float(part[group]) for part in state]
    made = []
    for value in values[rows.start : rows.stop].tolist():
        own, result = step(own, value)
        made.append(result)
    results[rows.start : rows.stop] = made
    for part, number in zip(state, own, strict=True):
        part[group] = number
