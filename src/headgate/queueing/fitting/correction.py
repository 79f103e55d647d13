"""A learnt correction of the model's error, as a factor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, isfinite, log

__all__ = ["Correction"]


@dataclass(frozen=True, slots=True)
class Correction:
    r"""The factor by which measured sojourns exceed predicted ones.

    A model leaves things out, the network above all, and so errs mostly by a factor that stays. Ratios of measured to
    predicted are averaged as logarithms, alpha-weighted, so that twice too much and half too much cancel:

    .. math:: \log f(n) = \alpha \log f(n-1) + (1-\alpha) \log(\hat T / E[T])

    One measurement counts by no more than a factor of 10 either way. Until there is one, the factor is 1.

    >>> learnt = Correction().learn(predicted_s=1.0, measured_s=2.0).learn(predicted_s=1.0, measured_s=2.0)
    >>> round(learnt.factor, 6), learnt.samples
    (2.0, 2)

    Reference: DRS (Fu et al. 2017), end of Sec. III, asks for a correction by what is measured; the form is ours.
    """

    factor: float = 1.0
    samples: int = 0
    alpha: float = 0.7

    def learn(self, predicted_s: float, measured_s: float) -> Correction:
        """The correction after one more measurement; zero and infinity are ignored."""
        if not (isfinite(predicted_s) and isfinite(measured_s) and predicted_s > 0 and measured_s > 0):
            return self
        ratio = min(max(log(measured_s / predicted_s), -log(10)), log(10))
        old = log(self.factor) if self.samples else ratio
        return replace(self, factor=exp(self.alpha * old + (1 - self.alpha) * ratio), samples=self.samples + 1)
