"""Traffic equations: arrival rate and visits of every operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from headgate.errors import Infeasible
from headgate.queueing.network import Network

__all__ = ["Traffic", "routing_matrix", "solve_traffic", "visit_covariance"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Traffic:
    """The solution of the traffic equations; arrays follow the order of the operators."""

    external_rate_per_s: float
    """lambda_0."""

    rates_per_s: Floats
    """lambda_i."""

    routing: Floats
    """R."""

    @property
    def visits(self) -> Floats:
        """How often a tuple from outside, with all that is made of it, comes by each operator: lambda_i / lambda_0."""
        return self.rates_per_s / self.external_rate_per_s


def routing_matrix(network: Network) -> Floats:
    """R: mean tuples sent to j (column) per tuple served at i (row)."""
    matrix = np.zeros((len(network.operators), len(network.operators)))
    for route in network.routes:
        matrix[network.index[route.source], network.index[route.target]] = route.mean
    return matrix


def solve_traffic(network: Network) -> Traffic:
    r"""Solve the traffic equations of an open network.

    .. math:: \lambda = \lambda^{ext} + R^T \lambda

    :math:`\lambda_i` (tuples/s) is what arrives at operator i, :math:`R_{ij}` the mean number of tuples sent from i to
    j per tuple served at i, which may exceed 1. There is a finite solution for every :math:`\lambda^{ext}` exactly when
    the spectral radius of R is below 1; it is that of R's worst strongly connected component, so the loop at fault can
    be named. Raises :class:`~headgate.errors.Infeasible` for such a loop, and if nothing arrives at all.

    >>> from headgate.queueing.network import Network, Operator, Route
    >>> detect = Network(
    ...     (Operator("generate", 100, arrival_rate_per_s=6), Operator("detect", 100)),
    ...     (Route("generate", "detect", 2), Route("detect", "detect", 0.25)),
    ... )
    >>> solve_traffic(detect).rates_per_s.tolist()
    [6.0, 16.0]

    Reference: J. R. Jackson 1957, *Networks of Waiting Lines*; DRS (Fu et al. 2017), Sec. III-A.
    """
    external = np.array([operator.arrival_rate_per_s for operator in network.operators])
    total = float(external.sum())
    if not total > 0:
        raise Infeasible(
            "NO_ARRIVALS", "no tuples arrive from outside: give at least one operator an arrival rate above 0"
        )
    routing = routing_matrix(network)
    _check_loops(network, routing)
    rates = np.linalg.solve(np.eye(len(external)) - routing.T, external)
    return Traffic(total, np.maximum(rates, 0.0), routing)


def _check_loops(network: Network, routing: Floats) -> None:
    count, component = connected_components(csr_matrix(routing), directed=True, connection="strong")
    sizes = np.bincount(component, minlength=count)
    loops = set(component[np.diag(routing) > 0]) | set(np.flatnonzero(sizes > 1))
    for loop in sorted(loops):
        members = np.flatnonzero(component == loop)
        radius = float(np.abs(np.linalg.eigvals(routing[np.ix_(members, members)])).max())
        if radius >= 1 - 1e-12:
            names = [network.operators[member].name for member in members]
            message = " -> ".join(_round_trip(routing, members, network.names))
            raise Infeasible(
                "UNSTABLE_LOOP",
                f"the loop {message} makes {radius:.4g} tuples of each one that enters it, so it never empties; "
                "send less than 1 back",
                {"operators": names, "spectral_radius": radius},
            )


def _round_trip(routing: Floats, members: npt.NDArray[np.int64], names: tuple[str, ...]) -> list[str]:
    """One way round a strongly connected component, through its strongest route back to its first operator."""
    start = int(members[0])
    before: dict[int, int] = {}
    reached = [start]
    for here in reached:
        for there in members[routing[here, members] > 0]:
            if int(there) == start:
                trip = [here]
                while trip[-1] != start:
                    trip.append(before[trip[-1]])
                return [names[place] for place in [*reversed(trip), start]]
            if int(there) not in before:
                before[int(there)] = here
                reached.append(int(there))
    return [names[int(place)] for place in members]


def visit_covariance(network: Network, traffic: Traffic) -> Floats:
    r"""Covariances of how often one tuple from outside comes by each operator.

    With :math:`N = (I - R)^{-1}`, whose row i holds the mean visits after a start at i, the law of total covariance
    over the first step gives for a start at i a linear equation, :math:`S_i = D_i + \sum_j R_{ij} S_j`, where
    :math:`D_i` is the covariance of the first step's outcome seen through N:

    - one of the routes is taken: :math:`D_i = \sum_j R_{ij} n_j n_j^T - m_i m_i^T`, :math:`m_i = \sum_j R_{ij} n_j`,
      :math:`n_j` the row j of N as a column;
    - each route is taken on its own, :math:`\lfloor R_{ij} \rfloor` times or once more: :math:`D_i = \sum_j f (1 - f)
      n_j n_j^T` with f the fraction of :math:`R_{ij}`.

    The start is drawn in proportion to the external rates, which adds the covariance between starts. All zeros for a
    chain: every tuple comes by once.
    """
    size = len(network.operators)
    mean_visits = np.linalg.inv(np.eye(size) - traffic.routing)
    outer = np.einsum("ja,jb->jab", mean_visits, mean_visits)
    first_step = np.zeros((size, size, size))
    for place, operator in enumerate(network.operators):
        row = traffic.routing[place]
        if network.chooses[operator.name]:
            mean = row @ mean_visits
            first_step[place] = np.einsum("j,jab->ab", row, outer) - np.outer(mean, mean)
        else:
            fraction = row - np.floor(row)
            first_step[place] = np.einsum("j,jab->ab", fraction * (1 - fraction), outer)
    by_start = np.einsum("ij,jab->iab", mean_visits, first_step)
    share = np.array([operator.arrival_rate_per_s for operator in network.operators]) / traffic.external_rate_per_s
    mean = share @ mean_visits
    between = np.einsum("i,iab->ab", share, outer) - np.outer(mean, mean)
    covariance: Floats = np.einsum("i,iab->ab", share, by_start) + between
    return np.where(np.abs(covariance) < 1e-12, 0.0, covariance)
