"""The step of OCAS: an exact line search from the best point towards each proposal.

    best <- argmin over t in [0, 1] of F(best + t (proposal - best)),    cut a little further on

Scores are linear in w, so a search costs evaluations in score space but no look at X. Franc and
Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization", JMLR 10 (2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from structsvm_papk.solvers.one_slack import OneSlack

if TYPE_CHECKING:
    from structsvm_papk._types import Array, Callback
    from structsvm_papk.solvers.cutting_plane_run import CuttingPlaneRun
    from structsvm_papk.solvers.oracle import LineOracle

_AHEAD = 0.1  # of the way from the best point to the proposal: where the cut is taken
_LINE_STEPS = 20
_ROUNDING = 1e-12  # a difference below this share of F is rounding


class LineSearch(OneSlack):
    """Steps to the best point on the way to the proposal; the oracle is a `LineOracle`."""

    qp_solver = "blocks"

    def __init__(self, run: CuttingPlaneRun) -> None:
        super().__init__(run)
        self.oracle = cast("LineOracle", run.oracle)  # `CuttingPlane.solve` has checked it
        self.settled: Array | None = None  # the best point that was last evaluated anew
        self.at: Array | None = None  # the point of `scores`

    def settle(self) -> None:
        """Evaluate the best point anew: its scores are a sum of steps, and so was its objective."""
        run = self.run
        if self.settled is not run.best_w:
            cuts, before, current = self.oracle.cuts(run.best_w), run.best, self.at is run.best_w
            run.accept(cuts, run.objective(run.best_w, cuts.value))
            self.settled = run.best_w
            if current and abs(run.best - before) <= _ROUNDING * abs(run.best):
                self.at = run.best_w

    def advance(self, w: Array, predicted: float) -> None:
        """Move the best point towards w, and add the cuts a little further on."""
        run = self.run
        if self.at is not run.best_w:
            self._renew()
        proposed = self.oracle.scores(w)
        direction, rise = w - run.best_w, proposed - self.scores
        t, objective = self._minimise(direction, self.oracle.along(self.scores, rise))
        if objective < run.best:
            run.best_w, run.best = run.best_w + t * direction, objective
            self._move(self.scores + t * rise)
        run.centre = run.best_w
        if run.late():
            return
        scores = self.scores + _AHEAD * (proposed - self.scores)
        cuts = run.ask(run.best_w + _AHEAD * (w - run.best_w), scores)
        run.add(cuts)
        value = run.objective(cuts.point, cuts.value)
        if value < run.best:
            run.accept(cuts, value)
            self._move(scores)

    def _renew(self) -> None:
        """Scores of the best point from the data; sums of older ones keep the errors of larger."""
        self.at = self.run.best_w
        self.scores = self.oracle.scores(self.at)
        self.size = np.abs(self.scores).max()

    def _move(self, scores: Array) -> None:
        """Take the scores of a new best point."""
        run = self.run
        self.scores, self.at = scores, run.best_w
        if np.abs(scores).max() < 0.5 * self.size:
            self._renew()
            run.best = run.objective(
                run.best_w, self.oracle.along(self.scores, self.scores)(0.0)[0]
            )

    def _minimise(self, direction: Array, line: Callback) -> tuple[float, float]:
        """Bisect on the sign of the derivative; return t and the objective there."""
        run = self.run
        alpha, w = run.config.alpha, run.best_w

        def along(t: float) -> tuple[float, float]:
            value, slope = line(t)
            point = w + t * direction
            return run.objective(point, value), slope + alpha * (point @ direction)

        low, high, best = 0.0, 1.0, (0.0, run.best)
        for _ in range(_LINE_STEPS):
            if run.late():
                break
            t = (low + high) / 2
            value, slope = along(t)
            if value < best[1]:
                best = (t, value)
            low, high = (t, high) if slope < 0.0 else (low, t)
        return best
