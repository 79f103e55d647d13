"""Traffic equations: against adding up generations of tuples, and against a branching process."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import BadValue, Infeasible
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.traffic import solve_traffic, visit_covariance
from headgate_benchmarks.random_networks import general_network, jackson_network


@pytest.mark.parametrize("seed", range(20))
def test_rates_are_the_sum_over_generations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = (jackson_network(rng) if seed % 2 else general_network(rng)).network
    traffic = solve_traffic(network)
    generation = np.array([operator.arrival_rate_per_s for operator in network.operators])
    total = np.zeros(len(generation))
    for _ in range(3_000):
        total, generation = total + generation, traffic.routing.T @ generation
    assert traffic.rates_per_s == pytest.approx(total, rel=1e-9)


def test_visits_and_their_covariance_are_those_of_tuples_followed_one_by_one() -> None:
    network = Network(
        (Operator("a", 1, arrival_rate_per_s=3), Operator("b", 1, arrival_rate_per_s=1), Operator("c", 1)),
        (
            Route("a", "b", 0.5),
            Route("a", "c", 0.3),
            Route("b", "b", 0.25),
            Route("b", "c", 1.6),
        ),
    )
    traffic = solve_traffic(network)
    rng = np.random.default_rng(1)
    routing, chooses = traffic.routing, [network.chooses[name] for name in network.names]
    counts = np.zeros((40_000, 3))
    for row in counts:
        waiting = [int(rng.random() < 0.25)]
        while waiting:
            here = waiting.pop()
            row[here] += 1
            if chooses[here]:
                there = int(np.searchsorted(np.cumsum(routing[here]), rng.random(), side="right"))
                waiting += [there] if there < 3 else []
            else:
                for there in range(3):
                    whole = int(routing[here, there])
                    waiting += [there] * (whole + int(rng.random() < routing[here, there] - whole))
    assert counts.mean(axis=0) == pytest.approx(traffic.visits, rel=0.03)
    assert np.cov(counts.T) == pytest.approx(visit_covariance(network, traffic), rel=0.08, abs=0.01)


def test_a_chain_is_visited_once_without_chance() -> None:
    chain = Network((Operator("a", 1, arrival_rate_per_s=1), Operator("b", 1)), (Route("a", "b"),))
    assert visit_covariance(chain, solve_traffic(chain)).tolist() == [[0, 0], [0, 0]]


def test_an_unstable_loop_is_named_by_its_operators_and_no_others() -> None:
    network = Network(
        tuple(Operator(name, 1, arrival_rate_per_s=float(name == "read")) for name in ("read", "grow", "back", "calm")),
        (
            Route("read", "grow"),
            Route("grow", "back", 2),
            Route("back", "grow", 0.5),
            Route("calm", "calm", 0.9),
        ),
    )
    with pytest.raises(Infeasible, match="grow -> back -> grow") as caught:
        solve_traffic(network)
    assert caught.value.condition == "UNSTABLE_LOOP"
    assert caught.value.parameters["operators"] == ["grow", "back"]
    assert caught.value.parameters["spectral_radius"] == pytest.approx(1.0)


def test_a_loop_just_below_one_is_stable() -> None:
    loop = Network((Operator("a", 1, arrival_rate_per_s=1),), (Route("a", "a", 0.999),))
    assert solve_traffic(loop).rates_per_s.tolist() == pytest.approx([1_000])


def test_no_arrivals_are_told() -> None:
    with pytest.raises(Infeasible) as caught:
        solve_traffic(Network((Operator("a", 1),)))
    assert caught.value.condition == "NO_ARRIVALS"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Operator("a", 0.0), "service rate of 'a' is 0"),
        (lambda: Operator("a", -1.0), "service rate of 'a' is -1"),
        (lambda: Operator("a", float("nan")), "service rate of 'a' is nan"),
        (lambda: Operator("a", 1.0, arrival_rate_per_s=-2.0), "arrival rate of 'a' is -2"),
        (lambda: Operator("a", 1.0, arrival_rate_per_s=float("inf")), "arrival rate of 'a' is inf"),
        (lambda: Operator("a", 1.0, processors_min=3, processors_max=2), "most processors of 'a' is 2"),
        (lambda: Operator("a", 1.0, speeds=(1.0, 0.0)), "speed of a processor of 'a' is 0"),
        (lambda: Route("a", "b", float("nan")), "tuples from 'a' to 'b' is nan"),
        (lambda: Network(()), "without operators"),
        (lambda: Network((Operator("a", 1), Operator("a", 1))), "two operators are called 'a'"),
        (lambda: Network((Operator("a", 1),), (Route("a", "b"),)), "'b', which is not there"),
        (
            lambda: Network((Operator("a", 1),), (Route("a", "a", 0.1), Route("a", "a", 0.2))),
            "two routes",
        ),
    ],
)
def test_nonsense_is_refused_with_its_place(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(BadValue, match=message.replace("(", r"\(")):
        make()
