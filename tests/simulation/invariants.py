"""What holds after every interval, whatever was decided."""

from __future__ import annotations

import numpy as np

from headgate.simulation.simulator import Simulator

SLACK = 1e-6


def check(simulator: Simulator) -> None:
    """Messages are conserved, no queue is negative, no core is used twice, no ratio leaves [0, 1]."""
    shape, fleet = simulator.shape, simulator.fleet
    for each in (simulator.queue, simulator.pending, simulator.returning):
        assert (each >= 0).all()
    came = simulator.entered.copy()
    for e, (source, target, share) in enumerate(
        zip(shape.stream_source, shape.stream_target, shape.stream_share, strict=True)
    ):
        came[:, target] += simulator.sent[:, source] * share - simulator.pending[:, e]
    came -= simulator.returning
    np.testing.assert_allclose(came, simulator.finished + simulator.queue, rtol=1e-9, atol=SLACK)
    cores = np.array([each.cores for each in simulator.setting.cloud.classes])
    there = fleet.power > 0
    assert (fleet.placed >= 0).all()
    assert (fleet.placed.sum(axis=2)[there] <= cores[fleet.kind[there]]).all()
    assert (fleet.placed.sum(axis=2)[~there] == 0).all()
    n = simulator.step
    for ratio in (simulator.omega[:, :n], simulator.gamma[:, :n]):
        assert (ratio >= 0).all()
        assert (ratio <= 1 + 1e-12).all()
    assert (np.diff(simulator.mu[:, :n], axis=1) >= -1e-9).all()


def check_bills(simulator: Simulator) -> None:
    """Hours billed are hours held, rounded up; what was billed is what the intervals recorded."""
    run, billing = simulator.run("checked"), simulator.setting.cloud.billing
    for machine in run.machines:
        held_s = machine.released_s - machine.acquired_s
        paid_s = machine.periods * billing.period_s
        assert paid_s >= held_s - SLACK
        assert held_s <= 0 or paid_s < max(held_s, billing.least_s) + billing.period_s
    for row in range(simulator.setting.replications):
        assert abs(float(run.bill(row)) - run.mu[-1, row]) < 1e-6
