"""Many small messages are a fluid: the queueing event simulator and the dataflow simulator then see the same."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.model.cluster.deployment import Deployment, Machine
from headgate.queueing.network import Network, Operator, Route
from headgate.simulation.policies import Deployed
from headgate.simulation.simulator import Simulator, simulate
from headgate_benchmarks.event_simulator.distribution import Distribution
from headgate_benchmarks.event_simulator.queueing_network import simulate as simulate_events
from tests.simulation.simulated_cluster import SimulatedCluster
from tests.simulation.worlds import cloud, dataflow, each_alone, setting


def test_an_overloaded_task_has_the_same_backlog_and_throughput() -> None:
    """Served one by one, 50,000 messages through 4 processors that do 200 a second when 250 come."""
    network = Network((Operator("a", 50.0, arrival_rate_per_s=250.0),))
    constant = {"a": Distribution.exponential(1 / 50)}
    events = simulate_events(network, [4], 50_000, seed=3, warm_up=0, service=constant)
    # The last one came at 50,000 / 250 = 200 s and waited for those before it.
    flow = dataflow({"a": (1 / 50, 1.0)})
    fluid = setting(flow, 250.0, interval_s=1.0, intervals=200, counts_queues=False)
    seen = simulate(fluid, Deployed(each_alone({"a": 4})))
    assert 50_000 / events.simulated_s == pytest.approx(float(seen.output_per_s.mean()), rel=0.02)
    backlog = float(seen.queues[-1, 0, 0])
    waited = float(np.mean(events.sojourns_s[-500:]))
    assert waited == pytest.approx(backlog / 200.0, rel=0.05)


@pytest.mark.parametrize("split", [(3, 2, 2), (4, 3, 3)])
def test_a_chain_that_keeps_up_serves_as_many_at_each_task(split: tuple[int, int, int]) -> None:
    network = Network(
        (Operator("a", 50.0, arrival_rate_per_s=100.0), Operator("b", 100.0), Operator("c", 40.0)),
        (Route("a", "b", 1.0), Route("b", "c", 0.5)),
    )
    events = simulate_events(network, list(split), 100_000, seed=5)
    flow = dataflow({"a": (0.02, 1.0), "b": (0.01, 0.5), "c": (0.025, 1.0)}, [("a", "b"), ("b", "c")])
    seen = Simulator(setting(flow, 100.0, interval_s=10.0, intervals=100))
    seen.deploy(each_alone(dict(zip("abc", split, strict=True))))
    seen.advance(100)
    served = seen.finished[0] / 1_000.0
    visits = events.operator_visits / events.operator_visits[0] * 100.0
    assert served == pytest.approx(visits, rel=0.02)
    # Without waiting, the time through is the work itself: the fluid's lower bound of what events see.
    sink = SimulatedCluster(seen).observe().sinks[0]
    assert sink.sojourn is not None
    assert sink.sojourn.mean_s == pytest.approx(0.02 + 0.01 + 0.025, rel=0.05)
    assert sink.sojourn.mean_s < events.operator_sojourns_s.sum()


def test_the_sojourn_of_a_backlog_is_what_waits_over_what_is_done() -> None:
    flow = dataflow({"a": (0.5, 1.0), "b": (0.1, 1.0)}, [("a", "b")])
    seen = Simulator(setting(flow, 3.0, cloud=cloud(boot_s=0.0)))
    seen.deploy(Deployment((Machine("small", {"a": 1}), Machine("small", {"b": 1}))))
    seen.advance(10)
    sink = SimulatedCluster(seen).observe().sinks[0]
    assert sink.sojourn is not None
    waits = 1.0 * 120 * 10 / 2.0
    assert sink.sojourn.mean_s == pytest.approx(waits + 0.5 + 0.1 + 0.0005, rel=1e-9)
