"""What a policy sees of the future: rates and machines for the next timesteps, or the present alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.model.arrays import Floats

__all__ = ["Outlook", "Predictor", "PresentOnly", "usual_share"]


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What is expected of the timesteps from the coming one on.

    An outlook of one step is the present: what was observed last, with nothing known of the future. It is what there is
    with a horizon of one step, and what is left when a forecaster fails.
    """

    external: Floats
    """Messages per second from outside, steps × tasks."""

    speed: Floats
    """Power of one core, steps × machines that are there."""

    usual: float = 1.0
    """What a machine that is still to come does of what it is rated for."""

    trouble: str = ""
    """Why there is no more than the present, where there should be; a sentence without its end."""

    @property
    def steps(self) -> int:
        return len(self.external)


class Predictor(Protocol):
    """Looks ahead, once for every decision; it remembers what it saw."""

    def predict(self, now: ClusterView) -> Outlook:
        """What is expected, from what is the case now and was before."""


@dataclass(frozen=True, slots=True)
class PresentOnly:
    """Sees what is the case and nothing else."""

    def predict(self, now: ClusterView) -> Outlook:
        return Outlook(now.external[None, :].copy(), now.speed[None, :].copy(), usual_share(now))


def usual_share(now: ClusterView) -> float:
    """What machines do of what they are rated for, from those that are measured; 1 where none is."""
    working = now.starts_s <= 0
    if not working.any():
        return 1.0
    rated = np.array([each.core_power for each in now.cloud.classes])[now.kind[: now.held]]
    return float((now.speed[: now.held][working] / rated[working]).mean())
