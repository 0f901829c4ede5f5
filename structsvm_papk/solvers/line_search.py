"""Steps of a cutting-plane method by exact line searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.solvers.bundle import Bundle, Step
from structsvm_papk.solvers.result import NO_DECREASE

_AHEAD = 0.1  # of the way from the best point to the proposal: where a line search cuts
_BISECTIONS = 20


class LineSearch(Step):
    """The step of OCAS: an exact line search from the best point towards each proposal.

        best <- argmin over t in [0, 1] of F(best + t (proposal - best)),    cut a little further on

    Scores are linear in w, so a search costs evaluations in score space but no look at X. Franc and
    Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization", JMLR 10
    (2009). The oracle is a `LineOracle`.

    Invariant: while ``self.at == bundle.n_moves``, `scores` are those of the best point, and they
    and its objective are sums of fewer steps than would lose digits. Whoever else moves the best
    point counts up ``bundle.n_moves``, and the scores are computed anew at the next search.
    """

    def __init__(self) -> None:
        self.at = -1  # `Bundle.n_moves` of the point of `scores`
        self.scores: Any = None
        self.size = 0.0  # of the largest score when they were last computed from the data
        self.reevaluated = -1  # `Bundle.n_moves` of the point that was last evaluated anew

    def reevaluate(self, bundle: Bundle) -> None:
        """Evaluate the best point anew: its scores are a sum of steps, and so was its objective."""
        if self.reevaluated == bundle.n_moves:
            return
        cuts = bundle.oracle.cuts(bundle.best_w)
        before = bundle.best
        had_scores = self.at == bundle.n_moves
        bundle.accept(cuts, bundle.objective(bundle.best_w, cuts.value))
        self.reevaluated = bundle.n_moves
        if had_scores and abs(bundle.best - before) <= NO_DECREASE * abs(bundle.best):
            self.at = bundle.n_moves  # it is the same point, and its scores were right

    def advance(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """Move the best point towards w, and add the cuts a little further on."""
        oracle: Any = bundle.oracle  # a `LineOracle`, as `CuttingPlane` has checked
        if self.at != bundle.n_moves:
            self._renew(bundle)
        # 1. the best point of the line
        proposed = oracle.scores(w)
        direction = w - bundle.best_w
        rise = proposed - self.scores
        t, objective = self._minimise(bundle, direction, oracle.along(self.scores, rise))
        if objective < bundle.best:
            bundle.move(bundle.best_w + t * direction, objective)
            self._follow(bundle, self.scores + t * rise)
        bundle.centre = bundle.best_w
        if bundle.clock.late():
            return
        # 2. cuts between it and the proposal, where they say more of what is beyond
        scores = self.scores + _AHEAD * (proposed - self.scores)
        cuts = bundle.ask(bundle.best_w + _AHEAD * (w - bundle.best_w), scores)
        bundle.add(cuts)
        objective = bundle.objective(cuts.point, cuts.value)
        if objective < bundle.best:
            bundle.accept(cuts, objective)
            self._follow(bundle, scores)

    def _renew(self, bundle):
        """Scores of the best point from the data; sums of older ones keep the errors of larger."""
        self.scores = bundle.oracle.scores(bundle.best_w)
        self.size = np.abs(self.scores).max()
        self.at = bundle.n_moves

    def _follow(self, bundle, scores):
        """Take the scores of a new best point."""
        self.scores = scores
        self.at = bundle.n_moves
        if np.abs(scores).max() < 0.5 * self.size:
            self._renew(bundle)
            line = bundle.oracle.along(self.scores, self.scores)
            bundle.best = bundle.objective(bundle.best_w, line(0.0)[0])

    def _minimise(self, bundle, direction, line):
        """Bisect on the sign of the derivative; return t and the objective there."""
        low = 0.0
        high = 1.0
        best_t = 0.0
        best = bundle.best
        for _ in range(_BISECTIONS):
            if bundle.clock.late():
                break
            t = (low + high) / 2
            risk, slope = line(t)
            point = bundle.best_w + t * direction
            value = bundle.objective(point, risk)
            if value < best:
                best_t = t
                best = value
            if slope + bundle.config.alpha * (point @ direction) >= 0.0:
                high = t
            else:
                low = t
        return best_t, best
