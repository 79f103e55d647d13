"""Latency of micro-batches whose epochs share the cores of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

__all__ = ["EpochWork", "epoch_seconds", "saturated_epoch_s", "sojourn_s"]

ROUNDS = 200


@dataclass(frozen=True, slots=True)
class EpochWork:
    """A fragment below its capacity."""

    work: float
    """Reference core-seconds that arrive a second."""

    started: float
    """Core-seconds of an epoch's tasks without rows (h)."""

    power: float
    """Reference cores that its stages can use, alone."""

    fixed_s: float
    trigger_s: float
    planning: float = 0.8
    """What of ``fixed_s`` comes before the work; the rest is the commit."""


def epoch_seconds(fragments: Sequence[EpochWork], cores: float) -> list[float]:
    r"""Seconds that an epoch of each fragment takes, if all begin together and share the cores.

    .. math:: d_g = plan_g + t_g + commit_g, \quad I_g = \max(trigger_g, d_g), \quad w_g = \lambda_g W_g I_g + h_g

    t is the time at which the work w is done under processor sharing, in which nobody uses more than its stages can;
    I by fixed point. Infinite where there is none, as in pools that do not keep up.

    >>> one = EpochWork(work=2.0, started=0.0, power=4.0, fixed_s=0.25, trigger_s=1.0)
    >>> epoch_seconds([one], 4.0), epoch_seconds([one, one], 4.0)
    ([0.75], [inf, inf])

    Reference: L. Kleinrock, Queueing Systems, volume 2 (1976), section 4.4, for processor sharing.
    """
    intervals = [each.trigger_s for each in fragments]
    seconds = intervals
    for _ in range(ROUNDS):
        amounts = [each.work * every + each.started for each, every in zip(fragments, intervals, strict=True)]
        seconds = [
            end + each.fixed_s * (1 - each.planning)
            for each, end in zip(fragments, _shared(fragments, amounts, cores), strict=True)
        ]
        after = [max(each.trigger_s, took) for each, took in zip(fragments, seconds, strict=True)]
        if max(abs(new - old) for new, old in zip(after, intervals, strict=True)) < 1e-9:
            return seconds
        intervals = after
    return [inf] * len(fragments)


def _shared(fragments: Sequence[EpochWork], amounts: Sequence[float], cores: float) -> list[float]:
    """When the work of each is done: it begins after planning, and those at work share what each of them can use."""
    left = list(amounts)
    ends = [0.0] * len(fragments)
    begins = [each.fixed_s * each.planning for each in fragments]
    now, todo = 0.0, set(range(len(fragments)))
    while todo:
        at_work = [place for place in todo if begins[place] <= now + 1e-12]
        speeds, room = {}, cores
        for number, place in enumerate(sorted(at_work, key=lambda one: fragments[one].power)):
            speeds[place] = min(fragments[place].power, room / (len(at_work) - number))
            room -= speeds[place]
        events = [begins[place] - now for place in todo if place not in speeds]
        step = min([*events, *(left[place] / speed for place, speed in speeds.items())])
        now += step
        for place, speed in speeds.items():
            left[place] -= speed * step
            if left[place] <= 1e-12:
                ends[place] = now
                todo.discard(place)
    return ends


def sojourn_s(epoch_s: float, trigger_s: float) -> float:
    r"""Mean seconds from a row's arrival to the end of its epoch: :math:`E[T] = I / 2 + d`, with I = max(trigger, d).

    >>> sojourn_s(0.75, 1.0)
    1.25
    """
    return max(trigger_s, epoch_s) / 2 + epoch_s


def saturated_epoch_s(fixed_s: float, work_s: float, level: float, longest_task_s: float) -> float:
    r"""Seconds of an epoch of a light fragment beside backlogged ones. Cautious: up to 40 % too high was seen.

    .. math:: d_g = f_g + w_g / \theta + 0.6 \tau

    with the level of max-min sharing :math:`\theta` in cores, and the longest task of a backlogged fragment
    :math:`\tau = x_h L / p_h`: the light one waits for cores that others hold. 0.6 was fitted on eight measurements.

    >>> saturated_epoch_s(0.25, 1.0, 2.0, 0.5)
    1.05
    """
    return fixed_s + work_s / level + 0.6 * longest_task_s
