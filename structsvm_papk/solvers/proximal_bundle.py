"""The step of the proximal bundle: a term around the best point, looser where the model is right.

    propose    argmin_w alpha/2 ||w||^2 + model(w) + prox/2 ||w - best||^2

Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization",
Mathematical Programming 46 (1990).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from structsvm_papk.solvers.one_slack import OneSlack
from structsvm_papk.solvers.result import RISK_SCALE
from structsvm_papk.solvers.sampled_steps import SampledSteps

if TYPE_CHECKING:
    from structsvm_papk._types import Array
    from structsvm_papk.solvers.cutting_plane_run import CuttingPlaneRun
    from structsvm_papk.solvers.oracle import Cuts

_SERIOUS = 0.1  # share of the predicted decrease that makes a step serious
_SMALLEST_PROX = 1e-3  # of alpha
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress


class ProximalBundle(OneSlack):
    """Steps that are kept short as long as the model promises too much."""

    max_idle = 12
    qp_solver = "blocks"

    def __init__(self, run: CuttingPlaneRun) -> None:
        super().__init__(run)
        sample = run.oracle.sample
        self.sampled = None if sample is None else SampledSteps(self.run, sample)

    def start(self) -> Array:
        """The optimum of the sample, where there is one."""
        return super().start() if self.sampled is None else self.sampled.first()

    def begin(self, cuts: Cuts) -> None:
        """Curvature at which the first step is Polyak's for an optimum of zero.

        Hardly any as long as the steps come from a sample: the model is asked for its bound alone.
        """
        run, alpha = self.run, self.run.config.alpha
        gradient = cuts.slopes.sum(axis=0)[: run.best_w.size] + alpha * run.best_w
        self.prox = max(10 * alpha, gradient @ gradient / max(abs(run.best), RISK_SCALE))
        if self.sampled is not None:
            self.prox = _SMALLEST_PROX * alpha

    def advance(self, w: Array, predicted: float) -> None:
        """Steps from the sample as long as they close the gap fast, then the model's own."""
        if self.sampled is not None and not self.sampled.pays():
            self.sampled = None
            self.begin(self.run.evaluation)
        elif self.sampled is not None:
            super().visit(self.sampled.next(), predicted)
            return
        self.visit(w, predicted)

    def visit(self, w: Array, predicted: float) -> float:
        """As `OneSlack.visit`, and adapt the proximal term."""
        decrease = super().visit(w, predicted)
        self._adapt(decrease, predicted)
        return decrease

    def _adapt(self, decrease: float, predicted: float) -> None:
        """Looser after good steps, tighter when the model keeps promising what R does not give."""
        run, smallest = self.run, _SMALLEST_PROX * self.run.config.alpha
        if decrease >= _SERIOUS * predicted:
            shrink = 0.25 if decrease >= 0.5 * predicted else 0.5
            self.prox, self.nulls = max(shrink * self.prox, smallest), 0
        elif predicted <= _PINNED * (run.best - run.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            self.prox = max(0.25 * self.prox, smallest)
        else:
            self.nulls += 1
            if -decrease > 3.0 * predicted or (self.nulls > 1 and -decrease > 0.5 * predicted):
                self.prox, self.nulls = 2.0 * self.prox, 0
