"""The DRS policy on a cluster: estimates from observations, actions from decisions.

It has no effects and no clock: it is handed an observation and the time, and answers with actions and a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headgate.adaptation.actions import SetPartitions
from headgate.adaptation.cluster import Cluster
from headgate.adaptation.policies.drs import DrsSettings, Estimates, Resize, ResizeDecision, decide
from headgate.adaptation.rows import between, stream_rows
from headgate.errors import BadValue, Infeasible, nearest
from headgate.model.cluster.observation import Observation, SinkObservation, Sojourn, TaskObservation
from headgate.model.dataflow import Dataflow
from headgate.queueing.fitting.correction import Correction
from headgate.queueing.fitting.estimate import dispersion_of
from headgate.queueing.fitting.fit import NotMeasured, fit_network
from headgate.queueing.fitting.observation import ObservationWindow, OperatorWindow
from headgate.queueing.fitting.smoothing import AlphaWeighted, Smoothing
from headgate.queueing.network import Network, Operator
from headgate.queueing.spark_flow import BatchCosts, SparkFlow

__all__ = ["Answer", "DrsPolicy", "Managed", "act"]

WINDOWS_KEPT = 20

TRUSTED_BELOW = 0.7
"""The utilisation up to which a measured sojourn teaches something about the model."""


@dataclass(frozen=True, slots=True)
class Managed:
    """The dataflow that a policy sizes, and its known properties."""

    dataflow: Dataflow
    operators: tuple[str, ...]
    """The tasks that get processors, by name; the others run with what feeds them."""

    costs: BatchCosts | None = None
    """What micro-batches cost; with it the model is that of micro-batches, without it one of tuples one by one."""

    trigger_s: float = 0.0
    service_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Mean service times that are believed until a task has been measured."""

    service_scv: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Squared coefficient of variation of service times; profiles have means only, so the default is 1."""

    def __post_init__(self) -> None:
        known = [str(task.id) for task in self.dataflow.tasks]
        for name in self.operators:
            if name not in known:
                message = f"dataflow '{self.dataflow.name}' has no task '{name}'"
                raise BadValue(message, f"one of {', '.join(known[:12])}", nearest(name, known))
        if not self.operators:
            raise BadValue("no operators", "the tasks that are to get processors")

    @property
    def feedback(self) -> tuple[tuple[str, str], ...]:
        """The feedback streams from operator to operator."""
        ends = [(str(s.source), str(s.target)) for s in self.dataflow.streams if s.feedback]
        return tuple(edge for edge in ends if set(edge) <= set(self.operators))


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision on an observation, and its actions."""

    at_s: float
    reason: str
    actions: tuple[SetPartitions, ...] = ()
    decision: ResizeDecision | None = None
    """None while too little has been measured to decide anything."""

    estimates: Estimates | None = None


class DrsPolicy:
    """Sizes one dataflow, window by window."""

    def __init__(
        self, managed: Managed, settings: DrsSettings, smoothing: Smoothing | None = None, *, learns: bool = True
    ) -> None:
        if settings.percentile is not None and settings.percentile not in (0.5, 0.95, 0.99):
            raise BadValue(f"percentile {settings.percentile:g}", "0.5, 0.95 or 0.99, which sinks measure")
        self.managed, self.settings = managed, settings
        self.smoothing = smoothing or AlphaWeighted()
        self.learns = learns
        self.correction = Correction()
        self.last_change_s: float | None = None
        self._windows: list[ObservationWindow] = []
        self._interval_s: float | None = None
        """From batch to batch, in the last window that had any."""

        self._behind: int | None = None
        """Rows that had arrived and were not processed when the last window ended; 0 if unknown."""

        self._without_s = 0.0
        """Of windows in which no batch has ended, since one has."""

        self._settled = 0
        """Windows since the last change that were whole: the first of them still has batches of before."""

    def answer(self, seen: Observation, now_s: float) -> Answer:
        """Decide on a window; at ``now_s``, the clock that changes are kept apart by."""
        tasks = self._tasks(seen)
        if tasks is None:
            return Answer(now_s, f"dataflow '{self.managed.dataflow.name}' is not running")
        window = self._window(seen, tasks)
        if window is not None:
            self._windows = [*self._windows, window][-WINDOWS_KEPT:]
        try:
            estimates = self.estimates(seen)
        except NotMeasured as error:
            return Answer(now_s, f"nothing is decided: {error.message}")
        except (BadValue, Infeasible) as error:
            return Answer(now_s, f"nothing is decided: {error}")
        allocation = tuple(tasks[name].partitions for name in self.managed.operators)
        if None in allocation:
            return self._first(tasks, estimates, now_s)
        now = tuple(k for k in allocation if k is not None)
        estimates = self._learnt(estimates, now)
        decision = decide(estimates, now, self.settings, now_s, self.last_change_s)
        if decision.change in (Resize.KEEP, Resize.INFEASIBLE):
            self._settled += 1
            return Answer(now_s, decision.reason, (), decision, estimates)
        return self._changed(tasks, decision, estimates, now_s)

    def estimates(self, seen: Observation) -> Estimates:
        """What is known of the dataflow by now; raises :class:`NotMeasured` if that is too little."""
        fitted = fit_network(self._windows, self.smoothing)
        network = self._with_scv(fitted.network)
        if network.external_rate_per_s <= 0:
            raise NotMeasured("NOT_MEASURED", "no rows came in; wait for the next window")
        sinks = [sink for sink in seen.sinks if self.managed.dataflow.name in sink.dataflows]
        measured = _measured(sinks, self.settings.percentile)
        return Estimates(network, measured, self.correction, self._flow(network))

    def _with_scv(self, network: Network) -> Network:
        """The variability of arrivals as it was measured, once there are windows enough; of services as it is given."""
        operators = tuple(
            replace(
                operator,
                service_scv=self.managed.service_scv.get(operator.name, 1.0),
                arrival_scv=self._arrival_scv(operator),
            )
            for operator in network.operators
        )
        return Network(operators, tuple(route for route in network.routes if route.mean > 0))

    def _arrival_scv(self, operator: Operator) -> float:
        counts = [
            (float(part.external), window.seconds)
            for window in self._windows
            for part in window.operators
            if part.name == operator.name
        ]
        measured = dispersion_of(counts)
        return operator.arrival_scv if measured is None else measured

    def _flow(self, network: Network) -> SparkFlow | None:
        if self.managed.costs is None:
            return None
        routes = {(route.source, route.target) for route in network.routes}
        feedback = tuple(edge for edge in self.managed.feedback if edge in routes)
        return SparkFlow(network, self.managed.costs, self.managed.trigger_s, feedback)

    def _tasks(self, seen: Observation) -> dict[str, TaskObservation] | None:
        """The dataflow's tasks by their names in it; none if it is not there."""
        name = self.managed.dataflow.name
        mine = {task.name.rpartition(".")[2]: task for task in seen.tasks if name in task.dataflows}
        return mine if all(operator in mine for operator in self.managed.operators) else None

    def _window(self, seen: Observation, tasks: Mapping[str, TaskObservation]) -> ObservationWindow | None:
        """An observation as the fitting room knows it; none if no batch has ended."""
        managed = self.managed
        rows = stream_rows(
            managed.dataflow,
            {name: task.rows_in for name, task in tasks.items()},
            {name: task.rows_out for name, task in tasks.items()},
        )
        flows = between(rows, managed.operators)
        if not any(tasks[name].rows_in for name in managed.operators):
            self._without_s += seen.seconds
            return None
        operators = []
        for name in managed.operators:
            profile = tasks[name].profile
            service = managed.service_s.get(name) if profile is None else profile.sojourn_s_per_row
            sent = tuple((to, round(count)) for (source, to), count in flows.items() if source == name)
            served, external = tasks[name].rows_in, round(flows.get(("", name), 0.0))
            times = () if service is None or service <= 0 else (service,)
            operators.append(OperatorWindow(name, served, external, times, sent=sent))
        return ObservationWindow(self._seconds(seen, tasks), tuple(operators))

    def _seconds(self, seen: Observation, tasks: Mapping[str, TaskObservation]) -> float:
        """Over how long the rows of a window's batches came in.

        Rows are counted when their batch has ended. Where the source tells how many have come and are not done, what
        came in the window is what was counted, and by how much that has grown; else a batch has taken in what came
        during the one before it: n batches, the last one of the window before and n - 1 of this one. Divided by the
        window's length, or by its own batches' time, rows would tell what is served when batches grow, and not what
        comes.
        """
        signatures = {task.task for task in tasks.values()}
        sources = [f for f in seen.fragments if f.kind == "source" and f.batches and signatures & set(f.tasks)]
        if not sources:
            return seen.seconds
        busiest = max(sources, key=lambda fragment: fragment.rows_in)
        seconds, self._without_s = seen.seconds + self._without_s, 0.0
        before, behind = self._behind, busiest.rows_behind
        self._behind = behind
        if before is not None and behind is not None and (before or behind):
            came = busiest.rows_in + behind - before
            if busiest.rows_in and came > 0:
                return seconds * busiest.rows_in / came
        interval = max(self.managed.trigger_s, busiest.batch_s / busiest.batches)
        last, self._interval_s = self._interval_s or interval, interval
        return last + (busiest.batches - 1) * interval

    def _learnt(self, estimates: Estimates, allocation: tuple[int, ...]) -> Estimates:
        """Compare what was measured with what is predicted, once a whole window ran under the present allocation."""
        sizer = estimates.sizer(self.settings)
        # Near its capacity a prediction is all amplification: a rate a little too high would be learnt as a factor.
        if self.learns and self._settled >= 2 and estimates.measured_s and sizer.busiest(allocation) < TRUSTED_BELOW:
            predicted = sizer.latency_s(allocation)
            self.correction = self.correction.learn(predicted, estimates.measured_s)
        return replace(estimates, correction=self.correction)

    def _first(self, tasks: Mapping[str, TaskObservation], estimates: Estimates, now_s: float) -> Answer:
        """The first allocation: all processors of the limit, or the fewest that meet the latency."""
        sizer = estimates.sizer(self.settings)
        limit, asked = self.settings.processors_max, self.settings.latency_max_s
        try:
            wanted = sizer.fewest(asked) if asked is not None else sizer.assign(limit or 0)
        except Infeasible as error:
            if limit is None:
                return Answer(now_s, f"no change: {error.message}", (), None, estimates)
            try:
                wanted = sizer.assign(limit)
            except Infeasible as worse:
                return Answer(now_s, f"nothing is changed: {worse.message}", (), None, estimates)
        then_s = sizer.latency_s(wanted)
        split = ":".join(map(str, wanted))
        reason = f"first allocation of processors: ({split}) is predicted to give {then_s:.3g} s"
        decision = ResizeDecision(Resize.ADD, wanted, reason, float("inf"), then_s)
        return self._changed(tasks, decision, estimates, now_s)

    def _changed(
        self, tasks: Mapping[str, TaskObservation], decision: ResizeDecision, estimates: Estimates, now_s: float
    ) -> Answer:
        self.last_change_s, self._settled = now_s, 0
        pairs = zip(self.managed.operators, decision.allocation, strict=True)
        actions = tuple(SetPartitions(tasks[name].task, k) for name, k in pairs if tasks[name].partitions != k)
        return Answer(now_s, decision.reason, actions, decision, estimates)


def act(cluster: Cluster, policy: DrsPolicy, now_s: float) -> Answer:
    """One round of the loop: observe, decide, act."""
    answer = policy.answer(cluster.observe(), now_s)
    if answer.actions:
        cluster.apply(answer.actions)
    return answer


def _measured(sinks: Sequence[SinkObservation], percentile: float | None) -> float | None:
    """The mean sojourn over all rows of a dataflow's sinks; of a percentile, that of the sink where it is longest."""
    sojourns = [(sink.rows, sink.sojourn) for sink in sinks if sink.sojourn is not None and sink.rows]
    if not sojourns:
        return None
    if percentile is None:
        return sum(rows * sojourn.mean_s for rows, sojourn in sojourns) / sum(rows for rows, _ in sojourns)
    return max(_percentile(sojourn, percentile) for _, sojourn in sojourns)


def _percentile(sojourn: Sojourn, p: float) -> float:
    return {0.5: sojourn.p50_s, 0.95: sojourn.p95_s, 0.99: sojourn.p99_s}[p]
