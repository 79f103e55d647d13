"""Predictions beside what was measured a window later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.adaptation.controller.pressure import pressure_of
from headgate.adaptation.controller.records import RecordedDecision, decision_of
from headgate.adaptation.policy import Prediction
from headgate.adaptation.window import Window
from headgate.store.decision_entries import DecisionVerified

__all__ = ["TOLERATED", "WRONG_IN_A_ROW", "Verifier", "compared", "measured_figures"]

TOLERATED = 0.3
"""A prediction that is off by more than this share is wrong."""

LATE_S = 1.0
"""A latency that is off by less is as it was predicted, whatever part of it that is."""

OTHER_DEMAND = 0.2
"""From this relative difference of demand on, other rows came than those that a prediction was made for."""

WRONG_IN_A_ROW = 3
"""After so many wrong predictions a policy decides no longer."""


def measured_figures(seen: Window) -> dict[str, float]:
    """What a prediction is about, as it was measured."""
    pressure, ways = pressure_of(seen), seen.active
    values = seen.shape.value[range(seen.shape.tasks), ways]
    prices = [float(seen.terms.cloud.classes[kind].price_per_h) for kind in seen.machines.kind.tolist()]
    return {
        "omega": seen.omega,
        "gamma": float(values.mean()),
        "cost_per_h": sum(prices),
        "demand": pressure.demand,
        "usable": pressure.coming,
        **{f"latency_s.{name}": value for name, value in seen.latency_s.items()},
    }


def compared(expected: Prediction, measured: Mapping[str, float]) -> tuple[dict[str, float], float | None]:
    """What was predicted, by the names of what was measured; and the largest relative difference.

    What a policy expects holds if as much comes as it has seen: when so much else came that demand is another one, no
    difference says anything about the policy.

    >>> compared(Prediction(0.0, omega=0.9, demand=4.0), {"omega": 0.6, "demand": 4.2})
    ({'omega': 0.9, 'demand': 4.0}, 0.5)
    >>> compared(Prediction(0.0, omega=0.9, demand=4.0), {"omega": 0.6, "demand": 1.0})
    ({'omega': 0.9, 'demand': 4.0}, None)
    """
    known = {name: getattr(expected, name) for name in ("omega", "gamma", "cost_per_h", "demand", "usable")}
    predicted = {name: float(value) for name, value in known.items() if value is not None}
    predicted |= {f"latency_s.{name}": float(value) for name, value in expected.latency_s.items()}
    needed, came = predicted.get("demand"), measured.get("demand")
    if needed is not None and came is not None and abs(needed - came) > OTHER_DEMAND * max(needed, came):
        return predicted, None
    errors = [
        round(abs(value - measured[name]) / max(abs(measured[name]), 1e-9), 6)
        for name, value in predicted.items()
        if name in measured and name != "demand" and max(abs(value), abs(measured[name])) > 0
        if not name.startswith("latency_s.") or abs(value - measured[name]) > LATE_S
    ]
    return predicted, max(errors, default=None)


@dataclass(slots=True)
class Verifier:
    """Compares decisions that are done with what is measured a window later."""

    after_s: float
    pending: list[RecordedDecision] = field(default_factory=list)
    wrong: int = 0
    """Wrong predictions of the policy that decides, in a row."""

    def expect(self, record: RecordedDecision) -> None:
        """Look at a decision that is done, and no longer at those before it: they have not had their time."""
        self.pending = [record]

    def forget(self) -> None:
        """Another policy decides, or the same anew."""
        self.pending, self.wrong = [], 0

    def is_wrong(self) -> bool:
        """Whether the policy has been wrong too often."""
        return self.wrong >= WRONG_IN_A_ROW

    def due(self, now: float) -> RecordedDecision | None:
        """A decision that has had its time."""
        for record in self.pending:
            if record.ended is not None and now >= record.ended.at + self.after_s:
                return record
        return None

    def verified(self, record: RecordedDecision, now: float, seen: Window) -> DecisionVerified | None:
        """Compare a decision with a window after it; none if it expected nothing."""
        self.pending.remove(record)
        expected = decision_of(record.made.guarded).prediction
        if expected is None:
            return None
        measured = measured_figures(seen)
        predicted, error = compared(expected, measured)
        if error is not None:
            self.wrong = self.wrong + 1 if error > TOLERATED else 0
        return DecisionVerified(record.number, now, predicted, measured, error)
