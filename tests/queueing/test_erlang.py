"""Erlang's formulas against exact arithmetic and against their own laws."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.queueing.erlang import erlang_b, erlang_c

RHOS = (0.01, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999)
KS = (1, 2, 3, 4, 5, 8, 10, 15, 16, 17, 31, 64, 100, 500, 1_000, 3_000)


def exact_c(k: int, offered: float) -> Fraction:
    """Erlang C by the recursion of Erlang B in rational arithmetic: no rounding anywhere."""
    a, blocked = Fraction(offered), Fraction(1)
    for servers in range(1, k + 1):
        blocked = a * blocked / (servers + a * blocked)
    return blocked / (1 - a / k * (1 - blocked))


def precise_c(k: int, offered: float) -> mpmath.mpf:
    """Erlang C in 60 digits, by sums of Poisson terms."""
    with mpmath.workdps(60):
        a = mpmath.mpf(offered)
        cumulated = mpmath.gammainc(k + 1, a, regularized=True)
        blocked = mpmath.exp(k * mpmath.log(a) - a - mpmath.loggamma(k + 1)) / cumulated
        return blocked / (1 - a / k * (1 - blocked))


@pytest.mark.parametrize("rho", RHOS)
def test_equals_rational_arithmetic_for_few_processors(rho: float) -> None:
    for k in range(1, 41):
        exact = exact_c(k, rho * k)
        error = abs(Fraction(float(erlang_c(k, rho * k))) / exact - 1)
        assert error < Fraction(1, 10**12), (k, rho, float(error))


@pytest.mark.parametrize("rho", RHOS)
def test_right_to_ten_digits_up_to_a_hundred_thousand_processors(rho: float) -> None:
    for k in (*KS, 10_000, 31_623, 100_000):
        exact = precise_c(k, rho * k)
        computed = float(erlang_c(k, rho * k))
        if exact < mpmath.mpf("1e-300"):
            assert computed < 1e-299
        else:
            assert abs(computed / exact - 1) < 1e-10, (k, rho)


@pytest.mark.parametrize("rho", [1e-15, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3, 0.0999, 0.1001, 0.8999, 0.9001])
def test_hardly_any_load_and_where_the_series_ends(rho: float) -> None:
    for k in KS:
        exact = precise_c(k, rho * k)
        if exact > mpmath.mpf("1e-300"):
            assert abs(float(erlang_c(k, rho * k)) / exact - 1) < 1e-11, k


def test_the_two_exact_computations_agree() -> None:
    assert (
        abs(precise_c(37, 30.5) / mpmath.mpf(exact_c(37, 30.5).numerator) * exact_c(37, 30.5).denominator - 1) < 1e-40
    )


@given(k=st.integers(1, 2_000), rho=st.floats(0.001, 0.9999))
def test_the_recursion_holds(k: int, rho: float) -> None:
    a = rho * k
    before, now = erlang_b([k, k + 1], a)
    assert now == pytest.approx(a * before / (k + 1 + a * before), rel=1e-11, abs=1e-300)


@given(k=st.integers(1, 500), rho=st.floats(0.01, 0.999))
def test_one_more_processor_lessens_the_chance_to_wait_and_does_so_less_and_less(k: int, rho: float) -> None:
    waits = erlang_c([k, k + 1, k + 2], rho * k) / (np.array([k, k + 1, k + 2]) - rho * k)
    assert waits[0] >= waits[1] >= waits[2]
    assert waits[0] - waits[1] >= (waits[1] - waits[2]) * (1 - 1e-9)


def test_arrays_give_what_single_values_give() -> None:
    ks, loads = np.array([1, 7, 50_000]), np.array([0.2, 6.9, 49_000.0])
    assert erlang_c(ks, loads).tolist() == [float(erlang_c(k, a)) for k, a in zip(ks, loads, strict=True)]
    assert erlang_c(ks[:, None], loads).shape == (3, 3)


def test_no_load_never_waits_and_too_much_always() -> None:
    assert erlang_c([1, 5], 0.0).tolist() == [0.0, 0.0]
    assert erlang_c([1, 5, 5], [1.0, 5.0, 80.0]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("k", "a"), [(0, 1.0), (2, -1.0), (2, float("nan")), (2, 3.0)])
def test_nonsense_is_refused(k: int, a: float) -> None:
    with pytest.raises(ValueError, match="k >= 1"):
        erlang_b(k, a)
