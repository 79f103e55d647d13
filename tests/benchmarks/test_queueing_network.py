"""The event simulator against theory, its own laws, and itself without the compiler."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.errors import BadValue, Infeasible
from headgate.queueing.mmk import wait_mean
from headgate.queueing.network import Network, Operator, Route
from headgate_benchmarks.event_simulator import event_loop
from headgate_benchmarks.event_simulator.distribution import Distribution
from headgate_benchmarks.event_simulator.queueing_network import simulate
from headgate_benchmarks.random_networks import general_network, jackson_network
from tests.queueing.exact_mmk import sojourn_percentile


def single(rate: float, **more: float) -> Network:
    return Network((Operator("only", 1.0, arrival_rate_per_s=rate, **more),))  # type: ignore[arg-type]


@pytest.mark.parametrize(("k", "rho"), [(1, 0.5), (3, 0.8), (20, 0.9)])
def test_waits_and_percentiles_of_one_queue_are_exact(k: int, rho: float) -> None:
    seen = simulate(single(rho * k), [k], 400_000, seed=1)
    assert seen.operator_waits_s[0] == pytest.approx(float(wait_mean(k, rho * k, 1.0)), rel=0.05)
    assert seen.percentile_s(0.95) == pytest.approx(sojourn_percentile(0.95, k, rho * k, 1.0), rel=0.03)
    assert abs(seen.mean_s - float(wait_mean(k, rho * k, 1.0)) - 1) < 3 * seen.error_s


@pytest.mark.parametrize(
    "service",
    [
        Distribution.constant(1.0),
        Distribution.uniform(0.0, 2.0),
        Distribution.gamma(1.0, 0.4),
        Distribution.gamma(1.0, 3.0),
        Distribution.lognormal(1.0, 1.5),
        Distribution.hyperexponential(1.0, 4.0),
        Distribution.empirical((0.2, 0.2, 0.6, 3.0)),
    ],
    ids=lambda each: each.kind.name,
)
def test_pollaczek_and_khinchine_for_every_distribution(service: Distribution) -> None:
    rho = 0.6
    seen = simulate(single(rho / service.mean), [1], 300_000, seed=2, service={"only": service})
    exact = service.mean * rho * (1 + service.scv) / (2 * (1 - rho))
    assert seen.operator_waits_s[0] == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize("size", [Distribution.constant(3), Distribution.geometric(4.0)], ids=["three", "geometric"])
def test_bulks_wait_as_theory_says(size: Distribution) -> None:
    rho = 0.6
    seen = simulate(single(rho, bulk_mean=size.mean), [1], 400_000, seed=3, bulks={"only": size})
    exact = rho / (1 - rho) + (size.mean * (1 + size.scv) - 1) / (2 * (1 - rho))
    assert seen.operator_waits_s[0] == pytest.approx(exact, rel=0.06)


@pytest.mark.parametrize("seed", range(6))
def test_laws_that_hold_in_every_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workload = (general_network if seed % 2 else jackson_network)(rng, (0.2, 0.7))
    seen = simulate(workload.network, workload.allocation, 60_000, seed, service=workload.service, bulks=workload.bulks)
    # What a tuple's parts spend at operators is what it spends in all; until the last is done takes no longer.
    assert float(seen.operator_visits @ seen.operator_sojourns_s) == pytest.approx(seen.sojourns_s.sum(), rel=1e-9)
    assert np.all(seen.spans_s <= seen.sojourns_s * (1 + 1e-9))
    assert np.all(seen.sojourns_s > 0)
    service = seen.operator_sojourns_s - seen.operator_waits_s
    rates = np.array([operator.service_rate_per_s for operator in workload.network.operators])
    assert service * rates == pytest.approx(np.ones(len(rates)), rel=0.08)


def test_where_tuples_neither_copy_nor_multiply_the_span_is_the_sojourn() -> None:
    loop = Network((Operator("a", 1.0, arrival_rate_per_s=0.5),), (Route("a", "a", 0.3),))
    seen = simulate(loop, [1], 20_000, seed=1)
    assert seen.spans_s == pytest.approx(seen.sojourns_s)
    assert seen.operator_visits[0] / 20_000 == pytest.approx(1 / 0.7, rel=0.02)


def test_one_seed_gives_one_result_and_another_another() -> None:
    first, again, other = (simulate(single(0.7), [1], 5_000, seed=seed) for seed in (7, 7, 8))
    assert first.sojourns_s.tolist() == again.sojourns_s.tolist()
    assert first.sojourns_s.tolist() != other.sojourns_s.tolist()


def test_without_the_compiler_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = general_network(np.random.default_rng(4))

    def run() -> list[float]:
        service, bulks = workload.service, workload.bulks
        seen = simulate(workload.network, workload.allocation, 300, 1, service=service, bulks=bulks)
        return [float(each) for each in seen.sojourns_s]

    compiled = run()
    for name in ("_draw", "_push", "_pop", "_grown", "run_events"):
        loop = getattr(event_loop, name)
        monkeypatch.setattr(event_loop, name, getattr(loop, "py_func", loop))
    assert run() == pytest.approx(compiled, rel=1e-12)


def test_what_cannot_keep_up_is_told_and_not_run_for_ever() -> None:
    with pytest.raises(Infeasible) as caught:
        simulate(single(3.0), [1], 1_000_000, seed=1, most_in_system=5_000)
    assert caught.value.condition == "OVERLOADED"


@pytest.mark.parametrize("seed", range(3))
def test_the_confidence_interval_holds_the_truth(seed: int) -> None:
    inside = 0
    for part in range(30):
        seen = simulate(single(0.6), [1], 20_000, seed=1_000 * seed + part)
        inside += abs(seen.mean_s - 2.5) <= seen.error_s
    assert inside >= 24


@pytest.mark.parametrize(
    "make",
    [
        lambda: Distribution.exponential(0.0),
        lambda: Distribution.exponential(float("nan")),
        lambda: Distribution.uniform(2.0, 1.0),
        lambda: Distribution.hyperexponential(1.0, 0.5),
        lambda: Distribution.geometric(0.5),
        lambda: Distribution.empirical(()),
    ],
)
def test_distributions_that_make_no_sense_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(BadValue):
        make()
