"""M/M/k, GI/G/k, mixed speeds and percentiles against other formulas and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from headgate.queueing import ggk, mmk
from headgate.queueing.ggk import Bulk
from headgate.queueing.heterogeneous import mixed_speeds
from headgate.queueing.network import Network, Operator, Route
from headgate.queueing.percentile import gamma_percentile, gamma_percentile_floor
from headgate.queueing.predict import predict
from headgate.queueing.station import StationModel
from headgate_benchmarks.event_simulator.queueing_network import simulate
from tests.queueing.exact_mmk import sojourn_percentile, sojourn_tail

LOADS = st.tuples(st.integers(1, 60), st.floats(0.05, 0.99))


@given(LOADS)
def test_moments_of_the_sojourn_are_those_of_its_tail(load: tuple[int, float]) -> None:
    k, rho = load
    lam = rho * k

    def tail(t: float) -> float:
        return sojourn_tail(t, k, lam, 1.0)

    far = 60 * max(1.0, 1 / (k - lam))
    mean = quad(tail, 0, far, limit=400, points=[1.0])[0]
    square = quad(lambda t: 2 * t * tail(t), 0, far, limit=400, points=[1.0])[0]
    assert mean == pytest.approx(float(mmk.wait_mean(k, lam, 1.0)) + 1, rel=1e-5)
    assert square - mean**2 == pytest.approx(float(mmk.sojourn_variance(k, lam, 1.0)), rel=1e-4)


@given(LOADS, st.floats(0.5, 0.999))
def test_percentiles_undo_the_tail(load: tuple[int, float], p: float) -> None:
    k, rho = load
    assert sojourn_tail(sojourn_percentile(p, k, rho * k, 1.0), k, rho * k, 1.0) == pytest.approx(1 - p)


def test_an_operator_that_cannot_keep_up_takes_for_ever() -> None:
    assert mmk.wait_mean([1, 2, 3], 2.0, 1.0).tolist()[:2] == [np.inf, np.inf]
    assert sojourn_percentile(0.95, 2, 2.0, 1.0) == np.inf
    assert sojourn_tail(5.0, 2, 3.0, 1.0) == 1.0


@given(st.floats(0.05, 0.99), st.floats(0, 5))
def test_pollaczek_and_khinchine_for_one_processor(rho: float, scv: float) -> None:
    exact = rho * (1 + scv) / (2 * (1 - rho))
    assert float(ggk.wait_mean(1, rho, 1.0, 1.0, scv)) == pytest.approx(exact, rel=1e-9)


@given(LOADS)
def test_the_refinement_leaves_exponential_times_alone(load: tuple[int, float]) -> None:
    k, rho = load
    assert float(ggk.refinement(k, rho, 1.0, 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(("k", "rho"), [(2, 0.5), (2, 0.8), (5, 0.8), (10, 0.9), (25, 0.95)])
def test_constant_service_is_close_to_the_approximation_of_cosmetatos(k: int, rho: float) -> None:
    # Cosmetatos 1976: Wq(M/D/k) = Wq(M/M/k)/2 * (1 + (1 - rho)(k - 1)(sqrt(4 + 5k) - 2) / (16 k rho))
    cosmetatos = 1 + (1 - rho) * (k - 1) * (np.sqrt(4 + 5 * k) - 2) / (16 * k * rho)
    assert float(ggk.refinement(k, rho, 1.0, 0.0)) == pytest.approx(cosmetatos, rel=0.001)


@pytest.mark.parametrize(("ca2", "cs2"), [(0.0, 1.0), (0.3, 0.3), (0.0, 0.5), (2.0, 0.5), (0.5, 2.0)])
def test_the_refinement_comes_closer_to_simulation_in_light_traffic(ca2: float, cs2: float) -> None:
    network = Network((Operator("only", 1.0, cs2, 0.6 * 4, ca2),))
    seen = simulate(network, [4], 150_000, seed=3).operator_waits_s[0]
    plain, refined = (predict(network, [4], model).mean_s - 1 for model in (StationModel.GGK, StationModel.GGK_REFINED))
    assert abs(refined - seen) <= abs(plain - seen) + 0.003
    assert refined == pytest.approx(seen, rel=0.35, abs=0.015)


@pytest.mark.parametrize(("size", "scv"), [(3.0, 0.0), (4.0, 0.75)])
def test_bulks_of_poisson_arrivals_at_one_processor_are_exact(size: float, scv: float) -> None:
    rho = 0.7
    # M[X]/M/1: Wq = rho/(1-rho) + (E[B^2]/E[B] - 1) / (2 (1-rho))
    exact = rho / (1 - rho) + (size * (1 + scv) - 1) / (2 * (1 - rho))
    network = Network((Operator("only", 1.0, 1.0, rho, 1.0, size, scv),))
    assert predict(network, [1], StationModel.GGK).mean_s - 1 == pytest.approx(exact, rel=1e-9)


@given(st.integers(1, 12), st.floats(0.01, 0.95), st.floats(1, 9), st.floats(0, 2))
def test_the_wait_for_ones_own_bulk_falls_with_processors_and_rises_with_load(
    k: int, rho: float, mean: float, scv: float
) -> None:
    bulks = (Bulk(1.0, mean, scv),)
    fewer, more = ggk.bulk_delay([k, k + 1], rho * k, 1.0, bulks)
    assert fewer >= more >= 0
    assert float(ggk.bulk_delay(k, 0.5 * rho * k, 1.0, bulks)) <= fewer * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("k", "rho", "size"), [(3, 0.3, 4), (8, 0.6, 5), (4, 0.85, 3)])
def test_bulks_at_several_processors_wait_as_the_simulator_sees(k: int, rho: float, size: int) -> None:
    network = Network((Operator("only", 1.0, arrival_rate_per_s=rho * k, bulk_mean=size),))
    seen = simulate(network, [k], 200_000, seed=6)
    assert predict(network, [k], StationModel.GGK).mean_s == pytest.approx(seen.mean_s, rel=0.13)
    assert predict(network, [k], StationModel.MMK).mean_s < 0.8 * seen.mean_s


def test_a_busy_operator_behind_a_quiet_one_sees_how_the_arrivals_vary() -> None:
    # The quiet one in front cannot take the burstiness out of hyperexponential arrivals.
    network = Network((Operator("quiet", 3.0, 0.3, 1.0, 6.0), Operator("busy", 1.1, 0.3)), (Route("quiet", "busy"),))
    seen = simulate(network, [1, 1], 400_000, seed=7)
    assert predict(network, [1, 1], StationModel.GGK).mean_s == pytest.approx(seen.mean_s, rel=0.25)


@given(LOADS)
def test_equal_speeds_are_an_ordinary_queue(load: tuple[int, float]) -> None:
    k, rho = min(load[0], 20), load[1]
    mixed = mixed_speeds([2.0] * k, rho * k, 0.5)
    assert mixed.wait_mean_s == pytest.approx(float(mmk.wait_mean(k, rho * k, 1.0)), rel=1e-7, abs=1e-15)
    assert mixed.service_mean_s == pytest.approx(1.0)


@pytest.mark.parametrize("speeds", [(2.0, 0.5), (3.0, 1.0, 1.0, 0.25), (1.5,) * 3 + (0.5,) * 6])
def test_mixed_speeds_are_what_the_simulator_sees(speeds: tuple[float, ...]) -> None:
    lam = 0.75 * sum(speeds)
    network = Network((Operator("only", 1.0, arrival_rate_per_s=lam, speeds=speeds),))
    mixed = mixed_speeds(speeds, lam, 1.0)
    seen = simulate(network, [len(speeds)], 300_000, seed=5)
    assert seen.operator_waits_s[0] == pytest.approx(mixed.wait_mean_s, rel=0.1)
    assert seen.mean_s == pytest.approx(mixed.wait_mean_s + mixed.service_mean_s, rel=0.03)
    assert predict(network, [len(speeds)]).mean_s == pytest.approx(mixed.wait_mean_s + mixed.service_mean_s)


def test_too_many_states_fall_back_on_the_mean_speed() -> None:
    speeds = [1.0, 2.0, 3.0, 4.0] * 10
    mixed = mixed_speeds(speeds, 60.0, 1.0)
    assert mixed.service_mean_s == pytest.approx(0.4)
    assert mixed_speeds([1.0], 2.0, 1.0).wait_mean_s == np.inf
    assert mixed_speeds([1.0, 4.0], 0.0, 1.0).service_mean_s == 0.25


@given(st.floats(0.01, 10), st.floats(0, 100), st.floats(0, 10), st.floats(0, 10), st.sampled_from([0.75, 0.95, 0.99]))
def test_a_percentile_has_a_floor_that_larger_means_and_variances_keep(
    m: float, v: float, longer: float, wider: float, p: float
) -> None:
    here, later = gamma_percentile([m, m], [v, v + wider], p)
    assert later >= here * (1 - 1e-9)
    floor = float(gamma_percentile_floor(m, v, p))
    assert floor <= here
    assert gamma_percentile(m + longer, v + wider, p) >= floor * (1 - 1e-6)


@pytest.mark.parametrize("p", [0.95, 0.99])
def test_percentiles_of_a_line_and_of_a_loop_are_those_of_the_simulator(p: float) -> None:
    line = Network(
        tuple(Operator(f"s{i}", 1.0, arrival_rate_per_s=1.6 * (i == 0)) for i in range(3)),
        tuple(Route(f"s{i}", f"s{i + 1}") for i in range(2)),
    )
    loop = Network(
        (Operator("a", 1.0, arrival_rate_per_s=1.2), Operator("b", 2.0)),
        (Route("a", "b", 0.5), Route("b", "a", 0.6)),
    )
    for network, allocation in ((line, [2, 2, 2]), (loop, [3, 1])):
        seen = simulate(network, allocation, 300_000, seed=2)
        computed = predict(network, allocation)
        assert computed.mean_s == pytest.approx(seen.mean_s, rel=0.03)
        assert computed.percentile_s(p) == pytest.approx(seen.percentile_s(p), rel=0.06)
