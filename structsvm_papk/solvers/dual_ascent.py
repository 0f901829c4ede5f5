"""Exact block-coordinate ascent on the dual, with a certificate, for convex risks of many features.

The blocks are updated in random order. Each update maximises the dual over one block alone and
moves w by what that changes, so no cut over all features is ever stored; see
`structsvm_papk.solvers.oracle.DualBlocks` for the problem and what is asked of a risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.cut_model import default_blocks
from structsvm_papk.solvers.oracle import DualOracle, DualPoint, Oracle, needed
from structsvm_papk.solvers.solver import (
    RISK_SCALE,
    Run,
    Solver,
    SolverResult,
    Start,
    Status,
    WarmStart,
    finite_start,
)

_SWEEPS = 8  # of the active rows, at most, for each look at all of them
_WORTH = 0.2  # of what the look at all of them gained, that such a sweep has to gain
_CERTIFY = 0.25  # of the last certified gap, to which the gaps have to fall for the next pass
_OPTIMAL = 0.1  # of the tolerance: a block with so small a gap is not updated
_STALL = 50  # iterations without any progress before the solver gives up
_NO_DUALS = (
    "{} offers no dual blocks, which Avg has where their matrices take less than half a gigabyte: "
    "use CuttingPlane, which asks for cuts only"
)


@dataclass(frozen=True)
class DualAscent(Solver[SolverResult]):
    """Certified minimiser of ``alpha/2 ||w||^2 + R(w)`` for convex R, by ascent on the dual.

    For risks of Avg with many blocks and features, above all sparse ones: `CuttingPlane` stores
    dense cuts and needs ever more of them there. It asks for a `DualOracle`, and works in one
    thread. Its cuts are a warm start of `CuttingPlane`.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when the relative gap ``(F - lower_bound) / max(F, 1e-3)`` is at most this.
    max_iter : int
        Limit on iterations; each looks at all rows once, but for those of blocks that are optimal,
        and a few times at the rows that have dual variables.
    time_limit : float, optional
        Seconds.
    seed : int
        Of the order in which the blocks are updated.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale
    linear SVM", ICML 2008. Lacoste-Julien, Jaggi, Schmidt, Pletscher, "Block-coordinate Frank-Wolfe
    optimization for structural SVMs", ICML 2013. Shah, Kolmogorov, Lampert, "A multi-plane
    block-coordinate Frank-Wolfe algorithm for training structural SVMs with a costly max-oracle",
    CVPR 2015. Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien, "Minding the gaps for block
    Frank-Wolfe optimization of structured SVMs", ICML 2016.
    """

    tol: float = 1e-6
    max_iter: int = 2000
    time_limit: float | None = None
    seed: int = 0

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> _DualAscentRun:
        risk = needed(oracle, DualOracle, _NO_DUALS.format(oracle))
        duals = None if warm_start is None else warm_start._warm_start.duals
        if w_init is None and warm_start is not None:
            at_this_alpha = warm_start.alpha == self.alpha  # else its point is far from the optimum
            w_init = warm_start.w if duals is None or at_this_alpha else None
        w = None if w_init is None else finite_start(w_init, risk.n_features, "the start")
        return _DualAscentRun(self, risk, w, duals)


class _DualAscentRun(Run[DualAscent, DualOracle, SolverResult]):
    """State of one solve."""

    blocks: Any = None
    moved = False  # since the last certificate

    def __init__(self, config: DualAscent, oracle: DualOracle, w: Array | None, duals: Any) -> None:
        super().__init__(config, oracle)
        self.start = w
        self.duals = duals

    def begin(self) -> None:
        start = self.start if self.duals is None else self.duals
        self.blocks = self.oracle.dual_blocks(self.config.alpha, start)
        if self.blocks is None:
            raise InputError(_NO_DUALS.format(self.oracle))
        if self.start is not None:
            self._take(self.blocks.point(self.start))
        self._certify()

    def loop(self) -> Status:
        status = self._judge(self._record())
        while status is None:
            gap = self._sweeps()
            wanted = max(self.config.tol, _CERTIFY * self.gap()) * self._scale()
            last = len(self.history) + 1 >= self.config.max_iter
            if gap <= wanted or last or self.clock.late():
                self._certify()
            status = self._judge(self._record())
            if status is None:
                self.keep_result()
        return status

    def result(self, status: Status, notes: tuple[str, ...]) -> SolverResult:
        if self.moved and status in (Status.INTERRUPTED, Status.STOPPED):
            self._certify()
        if status is Status.CONVERGED:
            zero = np.zeros_like(self.best_w)
            at_zero = float(self.oracle(zero)[0])
            if self.no_better_than_zero(at_zero):
                self.best_w = zero
                self.best = at_zero
        n_blocks = self.oracle.n_blocks
        n_blocks = n_blocks if n_blocks > 1 else default_blocks(self.oracle)
        kept = WarmStart(self.blocks.cuts(n_blocks), duals=self.blocks.duals)
        return self.outcome(status, notes=notes, _warm_start=kept)

    def _sweeps(self) -> float:
        """Look at all blocks that are not optimal, then a few times at what is active in them."""
        blocks = self.blocks
        tol = self.config.tol * self._scale()
        order = np.random.default_rng([self.config.seed, len(self.history)])
        open_blocks = np.flatnonzero(blocks.gaps > _OPTIMAL * tol / blocks.n_blocks)
        first = blocks.sweep(order.permutation(open_blocks), True)
        self.moved = True
        gap = float(blocks.gaps.sum())
        for _ in range(_SWEEPS):
            gained = blocks.sweep(order.permutation(open_blocks), False)
            if gained <= _WORTH * first or self.clock.late():
                break
        return gap

    def _certify(self) -> None:
        point = self.blocks.certificate()
        self.moved = False
        self.lower_bound = max(self.lower_bound, point.lower_bound)
        if self.best_w is None or point.objective < self.best:
            self._take(point)

    def _take(self, point: DualPoint) -> None:
        self.best_w = point.w
        self.best = point.objective
        self.best_error = point.error

    def _record(self) -> bool:
        self.passes = self.blocks.passes
        return self.record(self.blocks.n_atoms, rows_scored=self.blocks.rows_scored)

    def _judge(self, stop: bool) -> Status | None:
        status = self.judge(self.gap(), stop)
        stalled = len(self.history) - self.last_progress >= _STALL and not self.moved
        return Status.STALLED if status is None and stalled else status

    def _scale(self) -> float:
        return max(self.best, RISK_SCALE)
