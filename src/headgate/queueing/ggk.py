"""The operator as a GI/G/k queue: any variability of arrivals and service, and arrivals in bulk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.queueing.erlang import erlang_c
from headgate.queueing.mmk import wait_mean as mmk_wait_mean

__all__ = ["Bulk", "bulk_delay", "refinement", "wait_mean", "wait_variance"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bulk:
    """A stream into an operator whose tuples come several at a time."""

    share: float
    """Its share of the operator's tuples."""

    mean: float
    scv: float

    @property
    def ahead(self) -> float:
        """How many tuples of its own bulk stand before a tuple, in the mean: (E[B²]/E[B] - 1) / 2."""
        return max(self.mean * (1 + self.scv) - 1, 0.0) / 2


def wait_mean(
    k: npt.ArrayLike,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike,
    arrival_scv: npt.ArrayLike,
    service_scv: npt.ArrayLike,
    refined: bool = False,
) -> Floats:
    r"""Mean time in the queue (s), approximated from the first two moments of arrivals and service.

    .. math:: E[Q_i] \approx \phi \, \frac{c_a^2 + c_s^2}{2} \, E[Q_i](M/M/k_i)

    :math:`c_a^2, c_s^2` are the squared coefficients of variation of inter-arrival and service times. DRS takes
    :math:`\phi = 1`, which is right in heavy traffic; ``refined`` takes Whitt's :math:`\phi(\rho, c_a^2, c_s^2, k)`,
    which corrects few processors and light traffic (see :func:`refinement`). Infinite when unstable.

    >>> round(float(wait_mean(1, 3.0, 4.0, 1.0, 0.0)), 6)  # M/D/1: half of M/M/1, exact
    0.375

    References: DRS (Fu et al. 2017), Eq. 5; W. Whitt 1993, *Approximations for the GI/G/m Queue*, Eq. 2.24.
    """
    ca2, cs2 = np.asarray(arrival_scv, dtype=np.float64), np.asarray(service_scv, dtype=np.float64)
    scaled = (ca2 + cs2) / 2 * mmk_wait_mean(k, arrival_rate, service_rate)
    if not refined:
        return np.asarray(scaled)
    offered = np.asarray(arrival_rate, dtype=np.float64) / np.asarray(service_rate, dtype=np.float64)
    return np.asarray(refinement(k, offered / np.asarray(k), ca2, cs2) * scaled)


def refinement(k: npt.ArrayLike, rho: npt.ArrayLike, arrival_scv: npt.ArrayLike, service_scv: npt.ArrayLike) -> Floats:
    r"""Whitt's factor :math:`\phi` for the GI/G/m queue.

    With :math:`\gamma = \min\{0.24, (1-\rho)(m-1)(\sqrt{4+5m}-2)/(16 m \rho)\}`, :math:`\phi_1 = 1 + \gamma`,
    :math:`\phi_3 = (1 - 4\gamma) e^{-2(1-\rho)/(3\rho)}`, :math:`\phi_4 = \min\{1, (\phi_1+\phi_3)/2\}`, and
    :math:`\psi(c^2) = 1` for :math:`c^2 \ge 1`, else :math:`\phi_4^{2(1-c^2)}`, where :math:`c^2 = (c_a^2+c_s^2)/2`:

    .. math::

        \phi = \begin{cases}
          \frac{4(c_a^2-c_s^2)}{4c_a^2-3c_s^2}\phi_1 + \frac{c_s^2}{4c_a^2-3c_s^2}\psi(c^2) & c_a^2 \ge c_s^2 \\
          \frac{c_s^2-c_a^2}{2c_a^2+2c_s^2}\phi_3 + \frac{c_s^2+3c_a^2}{2c_a^2+2c_s^2}\psi(c^2) & c_a^2 \le c_s^2
        \end{cases}

    It is 1 for M/M/m, and close to the Cosmetatos approximation for M/D/m and to exact values for D/M/m. It depends on
    m through :math:`\rho` too, so the refined wait need not be convex in m: the optimiser does not rely on it.

    >>> refinement([1, 4], 0.8, 1.0, 1.0).tolist()
    [1.0, 1.0]
    >>> float(refinement(4, 0.8, 1.0, 0.0).round(4))  # M/D/4
    1.034

    Reference: W. Whitt 1993, *Approximations for the GI/G/m Queue*, Eqs. 2.16 to 2.25.
    """
    m, load, ca2, cs2 = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (k, rho, arrival_scv, service_scv))
    )
    rho_ = np.clip(load, 1e-12, 1.0)
    gamma = np.minimum(0.24, (1 - rho_) * (m - 1) * (np.sqrt(4 + 5 * m) - 2) / (16 * m * rho_))
    phi1 = 1 + gamma
    phi3 = (1 - 4 * gamma) * np.exp(-2 * (1 - rho_) / (3 * rho_))
    phi4 = np.minimum(1.0, (phi1 + phi3) / 2)
    c2 = (ca2 + cs2) / 2
    psi = np.where(c2 >= 1, 1.0, phi4 ** (2 * np.maximum(1 - c2, 0.0)))
    above = np.where(4 * ca2 - 3 * cs2 > 0, 4 * ca2 - 3 * cs2, 1.0)
    below = np.where(ca2 + cs2 > 0, 2 * (ca2 + cs2), 1.0)
    bursty = 4 * (ca2 - cs2) / above * phi1 + cs2 / above * psi
    smooth = (cs2 - ca2) / below * phi3 + (cs2 + 3 * ca2) / below * psi
    return np.where(c2 == 0, 1.0, np.where(ca2 >= cs2, bursty, smooth))


def bulk_delay(k: npt.ArrayLike, arrival_rate: float, service_rate: float, bulks: tuple[Bulk, ...]) -> Floats:
    r"""Mean wait (s) for tuples of the same bulk, beyond what a tuple that comes alone would wait.

    With B of ``k`` processors busy, a tuple in position J of its bulk finds :math:`k - B` free ones and waits for
    :math:`(J - (k - B))^+` others, one of them at most if it were alone. The GI/G/k formula takes arrivals for a
    renewal process, whose variability covers what bulks do to the others; what they do to themselves comes on top:

    .. math:: \frac{1}{k \mu} E\left[(J - (k - B))^+ - 1_{B = k}\right]

    B is distributed as in M/M/k. For bulks of Poisson arrivals at one processor the sum of both is exact,
    :math:`M^{[X]}/G/1`. J has mean 1 + (E[B²]/E[B] - 1)/2; between fixed sizes (uniform J) and geometric ones
    (geometric J) we interpolate by the scv of the size.

    >>> bulk_delay([1, 2, 3], 1e-9, 10.0, (Bulk(1.0, 3.0, 0.0),)).round(6).tolist()  # bulks of 3: positions 1, 2, 3
    [0.1, 0.016667, 0.0]

    The extension is ours; for one processor see M. L. Chaudhry, J. G. C. Templeton 1983, *Bulk Queues*, Sec. 3.1.
    """
    k_ = np.asarray(k, dtype=np.float64)
    total = np.zeros_like(k_)
    offered = max(arrival_rate / service_rate, 1e-12)
    waits = erlang_c(k_, offered)
    for bulk in bulks:
        if bulk.ahead <= 0:
            continue
        mine = waits * bulk.ahead
        # P(B = k - free), from "all busy and none waiting" downwards.
        chance = waits * np.maximum(1 - offered / k_, 0.0)
        for free in range(1, int(min(k_.max(), 20 * (1 + bulk.ahead))) + 1):
            chance = chance * np.maximum(k_ - free + 1, 0.0) / offered
            mine = mine + chance * _position_beyond(bulk, free)
        total += bulk.share * mine
    return np.asarray(total / (k_ * service_rate))


def _position_beyond(bulk: Bulk, free: int) -> float:
    """E[(J - free)^+] of the position J in a bulk."""
    over = max(bulk.mean - free, 0.0)
    fixed = over * (over + 1) / (2 * bulk.mean)
    geometric = (1 + bulk.ahead) * (bulk.ahead / (1 + bulk.ahead)) ** free
    weight = min(1.0, bulk.scv / (1 - 1 / bulk.mean)) if bulk.mean > 1 else 1.0
    return (1 - weight) * fixed + weight * geometric


def wait_variance(k: npt.ArrayLike, arrival_rate: float, service_rate: float, mean_wait: npt.ArrayLike) -> Floats:
    r"""Variance of the time in the queue (s²), from its mean.

    A tuple waits with probability :math:`\pi \approx C(k, \lambda/\mu)`, and then, as in heavy traffic, exponentially
    long: :math:`Var[Q] = E[Q]^2 (2 - \pi) / \pi`. Exact for M/M/k.

    Reference: W. Whitt 1993, Sec. 4, in its simplest form.
    """
    waits = erlang_c(k, arrival_rate / service_rate)
    mean = np.asarray(mean_wait, dtype=np.float64)
    safe = np.where(waits > 0, waits, 1.0)
    return np.where(waits > 0, mean * mean * (2 - safe) / safe, 0.0)
