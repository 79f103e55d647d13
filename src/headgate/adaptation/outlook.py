"""What a policy knows of the future: rates and machine speeds for the next timesteps, or only the present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.model.arrays import Floats

__all__ = ["Outlook", "Predictor", "PresentOnly", "usual_share"]


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Expected rates and speeds from the next timestep on.

    An outlook of one step is the last observation. It is used with a horizon of one step and when a forecaster fails.
    """

    external: Floats
    """Messages per second from outside, steps × tasks."""

    speed: Floats
    """Power of one core, steps × machines that are there."""

    usual: float = 1.0
    """Expected relative speed of a new machine."""

    trouble: str = ""
    """Why the outlook is only the present although a forecast was wanted."""

    @property
    def steps(self) -> int:
        return len(self.external)


class Predictor(Protocol):
    """Predicts once per decision; it keeps what it has observed."""

    def predict(self, now: ClusterView) -> Outlook:
        """The outlook, from the present and earlier observations."""


@dataclass(frozen=True, slots=True)
class PresentOnly:
    """Predicts that the present continues."""

    def predict(self, now: ClusterView) -> Outlook:
        return Outlook(now.external[None, :].copy(), now.speed[None, :].copy(), usual_share(now))


def usual_share(now: ClusterView) -> float:
    """Mean relative speed of the measured machines; 1 if there is none."""
    working = now.starts_s <= 0
    if not working.any():
        return 1.0
    rated = np.array([each.core_power for each in now.cloud.classes])[now.kind[: now.held]]
    return float((now.speed[: now.held][working] / rated[working]).mean())
