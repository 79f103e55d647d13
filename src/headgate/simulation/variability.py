"""How well machines perform, from machine to machine and over time: coefficients of their rated performance.

A :class:`TracePool` holds traces of speed, bandwidth and latency. A simulated machine follows one of them from a random
moment on. The pool is recorded (:mod:`headgate.simulation.traces`) or made by a :class:`Generator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue

__all__ = ["EC2", "FUTUREGRID", "GENERATORS", "STEADY", "Generator", "Noise", "TracePool"]

Floats = npt.NDArray[np.float64]
SLOT_S = 300.0


@dataclass(frozen=True, slots=True, eq=False)
class TracePool:
    """Coefficients in (0, 1], a row for each trace and a column for each ``every_s``; 1 is the rated performance."""

    speed: Floats
    bandwidth: Floats
    latency: Floats
    """Best latency over present latency, so that 1 is best here too."""

    every_s: float
    source: str = "steady"

    def __post_init__(self) -> None:
        for name in ("speed", "bandwidth", "latency"):
            values = getattr(self, name)
            if values.ndim != 2 or values.size == 0:
                raise BadValue(f"no traces of {name}", "at least one trace with one value")
            if values.shape != self.speed.shape:
                raise BadValue(f"traces of {name} have another shape than those of speed", "as many of each")
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise BadValue(f"traces of {name} with values that are not above 0", "coefficients in (0, 1]")

    def every(self, interval_s: float) -> TracePool:
        """The same as means over intervals of another length.

        >>> pool = TracePool(np.array([[1.0, 0.5]]), np.ones((1, 2)), np.ones((1, 2)), every_s=60.0)
        >>> pool.every(30.0).speed.tolist(), pool.every(120.0).speed.tolist()
        ([[1.0, 1.0, 0.5, 0.5]], [[0.75]])
        """
        if interval_s == self.every_s:
            return self
        return TracePool(
            _means(self.speed, self.every_s, interval_s),
            _means(self.bandwidth, self.every_s, interval_s),
            _means(self.latency, self.every_s, interval_s),
            interval_s,
            self.source,
        )


def _means(values: Floats, every_s: float, interval_s: float) -> Floats:
    length = values.shape[1] * every_s
    count = max(1, int(length / interval_s + 1e-9))
    edges = np.minimum(np.arange(count + 1) * interval_s, length)
    total = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1) * every_s], axis=1)
    at = edges / every_s
    low = np.minimum(at.astype(np.int64), values.shape[1] - 1)
    upto = total[:, low] + (at - low) * every_s * values[:, low]
    return np.asarray(np.ascontiguousarray(np.diff(upto, axis=1) / np.diff(edges)))


STEADY = TracePool(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), SLOT_S)
"""Machines that always perform as rated."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How one coefficient behaves.

    A machine has a level of its own, normal about ``level`` with ``level_spread``; every slot wobbles about it by
    ``wobble``; and now and then neighbours take a share: a slot is disturbed with a chance of the machine's own
    (``disturbed`` in the mean, Beta-distributed with concentration ``alike``), stays so into the next slot with chance
    ``stays``, and then loses a share that is uniform between ``loss_least`` and ``loss_most``.
    """

    level: float
    level_spread: float
    wobble: float
    disturbed: float
    stays: float
    loss_least: float
    loss_most: float
    alike: float = 4.0

    def draw(self, rng: np.random.Generator, traces: int, slots: int) -> Floats:
        level = rng.normal(self.level, self.level_spread, traces)
        chance = rng.beta(self.disturbed * self.alike, (1 - self.disturbed) * self.alike, traces)
        chance = np.minimum(chance, 0.9)
        # Two states, of which the second is left with chance 1 - stays and has probability `chance` in the long run.
        enters = np.minimum(chance * (1 - self.stays) / (1 - chance), 1.0)
        lot = rng.random((slots, traces))
        states = np.empty((slots, traces), dtype=np.bool_)
        state = lot[0] < chance
        for slot in range(slots):
            if slot:
                state = np.where(state, lot[slot] < self.stays, lot[slot] < enters)
            states[slot] = state
        loss = rng.uniform(self.loss_least, self.loss_most, (slots, traces))
        wobble = rng.normal(0.0, self.wobble, (slots, traces))
        drawn: Floats = (level * (1 + wobble) * np.where(states, 1 - loss, 1.0)).T
        return np.ascontiguousarray(np.clip(drawn, 0.05, 1.0))


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes traces of a kind of cloud, in slots of five minutes."""

    name: str
    speed: Noise
    bandwidth: Noise
    latency: Noise

    def pool(self, seed: int, traces: int = 100, hours: float = 96.0) -> TracePool:
        """Some traces; one seed gives one result."""
        rng = np.random.default_rng([seed, 0x7261])
        slots = max(1, round(hours * 3_600 / SLOT_S))
        speed, bandwidth, latency = (
            noise.draw(rng, traces, slots) for noise in (self.speed, self.bandwidth, self.latency)
        )
        return TracePool(speed, bandwidth, latency, SLOT_S, self.name)


EC2 = Generator(
    "ec2",
    speed=Noise(0.93, 0.03, 0.02, 0.232, 0.58, 0.18, 0.60),
    bandwidth=Noise(0.93, 0.03, 0.03, 0.23, 0.56, 0.18, 0.60),
    latency=Noise(0.82, 0.05, 0.04, 0.50, 0.80, 0.28, 0.48),
)
"""Amazon EC2 as PLAN-AHEAD measured it (Sec. II, Fig. 1 and 2)."""

FUTUREGRID = Generator(
    "futuregrid",
    speed=Noise(0.95, 0.02, 0.01, 0.07, 0.5, 0.15, 0.40),
    bandwidth=Noise(0.95, 0.02, 0.02, 0.08, 0.5, 0.15, 0.40),
    latency=Noise(0.90, 0.03, 0.03, 0.15, 0.5, 0.15, 0.50),
)
"""The private cloud of the same section: less than 10 % below 0.8."""

GENERATORS: Mapping[str, Generator] = {each.name: each for each in (EC2, FUTUREGRID)}
