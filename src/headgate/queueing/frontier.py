"""Exact choice of one item from each of several lists: the least sum of one quantity under a limit on another.

This is what remains where one-at-a-time is not optimal: waits that are not convex in the number of processors (Whitt's
refinement, mixed speeds, micro-batches), or processors with different prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Chosen", "choose"]

Floats = npt.NDArray[np.float64]

MOST_STATES = 2_000_000
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which item was taken of each list, both sums, and how much less the first sum could be at best (0 if exact)."""

    picks: tuple[int, ...]
    value: float
    weight: float
    gap: float


def choose(values: Sequence[Floats], weights: Sequence[Floats], limit: float) -> Chosen | None:
    r"""Pick :math:`j_i` from each list so that :math:`\sum_i x_i(j_i)` is least while :math:`\sum_i y_i(j_i) \le Y`.

    First Lagrange: for a multiplier :math:`\theta` each list is chosen from by itself, :math:`\min_j x_i(j) + \theta
    y_i(j)`, and :math:`D(\theta) = \sum_i \min_j (x_i + \theta y_i) - \theta Y` is a lower bound of every solution. The
    best multiplier also leads to a feasible choice, the incumbent. If the two agree, as they do on convex lists of
    unit steps, the incumbent is optimal. Otherwise the lists are merged one after another, keeping of all partial sums
    those that no other one beats in both quantities (the Pareto frontier) and that the bound does not rule out.

    Returns none if no choice keeps to the limit. Exact, unless more than two million partial sums would have to be
    kept: then the incumbent is returned with the gap that the bound leaves.

    >>> choose([np.array([0.0, 3.0]), np.array([0.0, 2.0])], [np.array([5.0, 1.0]), np.array([4.0, 1.0])], 6.0).picks
    (0, 1)

    References: H. Everett 1963, *Generalized Lagrange Multiplier Method*; G. L. Nemhauser, Z. Ullmann 1969, *Discrete
    Dynamic Programming and Capital Allocation*, for the frontier.
    """
    limit = limit + _SLACK * abs(limit)
    lightest = [float(weight.min()) for weight in weights]
    if sum(lightest) > limit:
        return None
    theta, bound, incumbent = _multiplier(values, weights, limit)
    value = sum(float(x[j]) for x, j in zip(values, incumbent, strict=True))
    if value - bound <= _SLACK * max(abs(value), 1e-300):
        return _chosen(values, weights, incumbent, 0.0)
    # A choice whose reduced value alone exceeds the gap is in no better solution.
    reduced = [x + theta * y for x, y in zip(values, weights, strict=True)]
    allowed = value - bound + _SLACK * abs(value)
    kept = [np.flatnonzero(part - part.min() <= allowed) for part in reduced]
    rest_bound = np.append(np.cumsum([float(part.min()) for part in reduced][::-1])[::-1], 0.0)
    rest_light = np.append(np.cumsum([float(y[k].min()) for y, k in zip(weights, kept, strict=True)][::-1])[::-1], 0.0)
    xs, ys = np.zeros(1), np.zeros(1)
    trail: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for level, (x, y, picks) in enumerate(zip(values, weights, kept, strict=True)):
        if len(xs) * len(picks) > MOST_STATES:
            return _chosen(values, weights, incumbent, value - bound)
        new_x = (xs[:, None] + x[picks]).ravel()
        new_y = (ys[:, None] + y[picks]).ravel()
        hope = new_x + theta * (new_y - limit) + rest_bound[level + 1]
        alive = np.flatnonzero(
            (new_y + rest_light[level + 1] <= limit) & (hope <= value + _SLACK * max(abs(value), 1e-300))
        )
        order = alive[np.lexsort((new_y[alive], new_x[alive]))]
        best_before = np.concatenate(([np.inf], np.minimum.accumulate(new_y[order])[:-1]))
        order = order[new_y[order] < best_before]
        if not len(order):
            return _chosen(values, weights, incumbent, 0.0)
        trail.append((order // len(picks), picks[order % len(picks)]))
        xs, ys = new_x[order], new_y[order]
    if xs[0] >= value:  # sorted by value
        return _chosen(values, weights, incumbent, 0.0)
    place, chosen = 0, []
    for parents, picks in reversed(trail):
        chosen.append(int(picks[place]))
        place = int(parents[place])
    return _chosen(values, weights, tuple(reversed(chosen)), 0.0)


def _multiplier(
    values: Sequence[Floats], weights: Sequence[Floats], limit: float
) -> tuple[float, float, tuple[int, ...]]:
    """The multiplier with the best bound, that bound, and the best feasible choice met on the way."""
    best: tuple[float, tuple[int, ...]] = (float("inf"), ())

    def at(theta: float) -> tuple[float, float, tuple[int, ...]]:
        nonlocal best
        picks, dual, weight, value = [], -theta * limit, 0.0, 0.0
        for x, y in zip(values, weights, strict=True):
            mixed = x + theta * y
            j = int(np.argmin(mixed))
            # Of equals the lightest: it is feasible soonest.
            ties = np.flatnonzero(mixed <= mixed[j] + 1e-15 * abs(mixed[j]))
            j = int(ties[np.argmin(y[ties])]) if len(ties) > 1 else j
            picks.append(j)
            dual, weight, value = dual + float(mixed[j]), weight + float(y[j]), value + float(x[j])
        if weight <= limit and value < best[0]:
            best = (value, tuple(picks))
        return dual, weight, tuple(picks)

    lightest = tuple(int(np.lexsort((x, y))[0]) for x, y in zip(values, weights, strict=True))
    best = (sum(float(x[j]) for x, j in zip(values, lightest, strict=True)), lightest)
    bound, weight, _ = at(0.0)
    if weight <= limit:
        return 0.0, bound, best[1]
    low, high, theta = 0.0, 1.0, 0.0
    while at(high)[1] > limit and high < 1e30:
        low, high = high, high * 16
    for _ in range(80):
        middle = (low + high) / 2
        dual, weight, _ = at(middle)
        if dual > bound:
            bound, theta = dual, middle
        if weight > limit:
            low = middle
        else:
            high = middle
        if high - low <= 1e-14 * high:
            break
    for end in (low, high):
        dual, _, _ = at(end)
        if dual > bound:
            bound, theta = dual, end
    return theta, bound, _filled(values, weights, limit, best[1])


def _filled(
    values: Sequence[Floats], weights: Sequence[Floats], limit: float, picks: tuple[int, ...]
) -> tuple[int, ...]:
    """Improve the choice one list at a time by items that still fit."""
    chosen = list(picks)
    weight = sum(float(y[j]) for y, j in zip(weights, chosen, strict=True))
    for _ in range(1_000):
        best_gain, best_at = 0.0, (-1, -1)
        for i, (x, y) in enumerate(zip(values, weights, strict=True)):
            fits = np.flatnonzero(y - y[chosen[i]] + weight <= limit)
            gains = x[chosen[i]] - x[fits]
            extra = np.maximum(y[fits] - y[chosen[i]], 1e-300)
            j = int(np.argmax(np.where(gains > 0, gains / extra, -1.0)))
            if gains[j] > 0 and gains[j] / extra[j] > best_gain:
                best_gain, best_at = float(gains[j] / extra[j]), (i, int(fits[j]))
        if best_at[0] < 0:
            break
        i, j = best_at
        weight += float(weights[i][j] - weights[i][chosen[i]])
        chosen[i] = j
    return tuple(chosen)


def _chosen(values: Sequence[Floats], weights: Sequence[Floats], picks: tuple[int, ...], gap: float) -> Chosen:
    value = sum(float(x[j]) for x, j in zip(values, picks, strict=True))
    weight = sum(float(y[j]) for y, j in zip(weights, picks, strict=True))
    return Chosen(picks, value, weight, gap)
