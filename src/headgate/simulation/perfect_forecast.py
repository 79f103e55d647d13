"""PLAN-AHEAD's oracle in a simulated world: it knows future rates and machine speeds, up to set errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.outlook import Outlook, PresentOnly
from headgate.forecasting.oracle import Oracle
from headgate.model.arrays import Floats, Shape
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import Simulator

__all__ = ["PerfectForecast", "SimulatedReplication"]


@dataclass(frozen=True, slots=True)
class PerfectForecast:
    """Predicts one replication from its true future; new machines are expected to have the mean speed."""

    oracle: Oracle
    simulator: Simulator
    row: int
    steps: int

    def predict(self, now: ClusterView) -> Outlook:
        present = PresentOnly().predict(now)
        if self.steps == 1:
            return present
        sim, fleet = self.simulator, self.simulator.fleet
        sources = list(sim.shape.sources)
        coming = np.minimum(sim.step + np.arange(self.steps), sim.setting.intervals - 1)
        rates = sim.external[self.row, coming, : len(sources)].T
        slots = fleet.working(self.row, sim.now_s)
        moments = fleet.offset[self.row, slots][:, None] + sim.step + np.arange(self.steps)
        speeds = sim.pool.speed[fleet.trace[self.row, slots][:, None], moments % sim.pool.speed.shape[1]]
        speeds = speeds * fleet.power[self.row, slots][:, None]
        # One draw for all series of a moment: rates first, so that they err alike whatever machines there are.
        forecast = self.oracle.forecast_at(np.concatenate([rates, speeds]), sim.step)
        external = np.zeros((self.steps, sim.shape.tasks))
        external[:, sources] = forecast[: len(sources)].T
        return Outlook(external, forecast[len(sources) :].T, present.usual)


@dataclass(frozen=True, slots=True)
class SimulatedReplication:
    """One replication of a simulator, as policies that look ahead are made for it."""

    simulator: Simulator
    number: int

    @property
    def world(self) -> Setting:
        return self.simulator.setting

    @property
    def shape(self) -> Shape:
        return self.simulator.shape

    def true_rates(self) -> Floats:
        return np.asarray(self.simulator.external[self.number].T[: len(self.shape.sources)])

    def perfect_forecast(self, oracle: Oracle, steps: int) -> PerfectForecast:
        return PerfectForecast(oracle, self.simulator, self.number, steps)
