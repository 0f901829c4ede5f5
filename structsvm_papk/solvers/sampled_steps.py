"""The first points of a solve, from a small sample of the risk.

Where a risk is a mean over many users and has few features, a sample R' of the users knows its
curvature well. Then the minimiser of the sample that is tilted to the risk's slope g at the best
point v,

    argmin_w  alpha/2 ||w||^2 + R'(w) + (g - R''s slope at v) . (w - v),

is a Newton step but for what the sample does not know, and costs a fraction of one evaluation.

Shamir, Srebro, Zhang, "Communication-efficient distributed optimization using an approximate
Newton-type method", ICML 2014.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk.solvers.oracle import BlockOracle, Oracle
from structsvm_papk.solvers.result import Status, relative_gap

if TYPE_CHECKING:
    from structsvm_papk._types import Array
    from structsvm_papk.solvers.cutting_plane_run import CuttingPlaneRun
    from structsvm_papk.solvers.oracle import Cuts

_FIRST = 1e-3  # gap of the sample's own optimum
_PAYS = 0.7  # of the gap may be left after a step, for another one
_CLOSER = 0.02  # of the gap: how exactly a tilted sample is solved


class SampledSteps:
    """Proposals for a run."""

    def __init__(self, run: CuttingPlaneRun, sample: Oracle) -> None:
        self.run, self.sample = run, sample
        self._gap = np.inf

    def pays(self) -> bool:
        """Whether the last steps have closed the gap fast."""
        gap, before = relative_gap(self.run.best, self.run.lower_bound), self._gap
        self._gap = gap
        return not gap > _PAYS * before

    def first(self) -> Array:
        """The sample's minimiser."""
        return self._minimise(self.sample, None, _FIRST)

    def next(self) -> Array:
        """The step from the best point."""
        run, d = self.run, self.run.oracle.n_features
        slope, origin = run.evaluation.slopes.sum(axis=0)[:d], run.best_w
        tilted = _Tilted(self.sample, slope - self.sample(origin)[1], origin)
        gap = _CLOSER * relative_gap(run.best, run.lower_bound)
        return self._minimise(tilted, origin, min(max(gap, 0.1 * run.config.tol), _FIRST))

    def _minimise(self, oracle, start, tol):
        limit = self.run.seconds_left()
        config = replace(self.run.config, tol=tol, n_blocks=None, time_limit=limit)
        result = config.solve(oracle, start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result.w


class _Tilted(BlockOracle):
    """A risk plus ``tilt . (w - origin)``."""

    def __init__(self, risk: Oracle, tilt: Array, origin: Array, n_blocks: int = 1) -> None:
        self._risk, self._tilt, self._origin = risk.with_blocks(n_blocks), tilt, origin
        self.n_features, self.n_blocks = risk.n_features, self._risk.n_blocks

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        return _Tilted(self._risk, self._tilt, self._origin, n_blocks)

    def cuts(self, w: Array) -> Cuts:
        cuts, share = self._risk.cuts(w), self._tilt / self.n_blocks
        risen = float(self._tilt @ (w - self._origin))
        intercepts = cuts.intercepts - share @ self._origin
        return replace(
            cuts, value=cuts.value + risen, slopes=cuts.slopes + share, intercepts=intercepts
        )

    def blocks(self, w: Array) -> tuple[Array, Array]:
        cuts = self.cuts(w)
        return cuts.slopes @ w + cuts.intercepts, cuts.slopes
