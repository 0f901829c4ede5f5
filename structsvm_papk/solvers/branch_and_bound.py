"""Branch and bound over w, for risks that can be bounded over boxes.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R >= 0, not convex, few features

Where the optimum can be follows from a known value: ``alpha/2 ||w||^2 <= F(w) <= F(w')``. That cube
is cut into boxes. A box is dropped when its bound shows that nothing in it is better than the best
known point by more than the tolerance; the smallest bound that remains is a lower bound of F at any
time. Better points come from `CCCP`, started at the centres. What the risk chooses, such as which
pairs are clipped, is never branched on: within a small box it is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.oracle import BoxedOracle, Oracle, needed
from structsvm_papk.solvers.solver import (
    RISK_SCALE,
    Progress,
    Run,
    Solver,
    SolverResult,
    Start,
    Status,
)

_BATCH = 256
_SHARE = 8  # at least one of so many open boxes is cut in a round
_LOCAL_TOL = 1e-6
_WIDER = 1 + 1e-9  # the cube, for the rounding of the objective that it is made from
_NO_BOUNDS = "branch and bound needs bounds over boxes: a `BoxedOracle`"


@dataclass(frozen=True)
class BoxProgress(Progress):
    """One round: boxes in which the optimum may be (`n_open`), and those bounded so far.

    `data_passes` counts the evaluations of the local searches, and there are no cuts.
    """

    n_open: int = 0
    n_boxes: int = 0


@dataclass(frozen=True)
class BranchAndBound(Solver[SolverResult]):
    """Certified global minimiser of ``alpha/2 ||w||^2 + R(w)``, for few features.

    It asks for a `BoxedOracle`, which refuses too many features or rows before anything is solved.
    Starts, and that of a warm start, are of the first local search.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0.
    tol : float
        Stop when the relative gap ``(F - lower_bound) / max(F, 1e-3)`` is at most this.
    time_limit : float, optional
        Seconds; then the best point so far is returned, with its gap.
    max_boxes : int
        Limit on the boxes that are kept open at once (some 100 bytes each).

    References
    ----------
    Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 28
    (1960); Horst and Tuy, "Global Optimization", Springer (1996), for concave minorants on boxes.
    """

    convex_only: ClassVar[bool] = False
    takes_checkpoints: ClassVar[bool] = False
    tol: float = 1e-4
    time_limit: float | None = 120.0
    max_boxes: int = 5_000_000

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> _BranchAndBoundRun:
        risk = needed(oracle, BoxedOracle, _NO_BOUNDS)
        origin = np.zeros((1, risk.n_features))
        risk.bounds(self.alpha, origin, origin)  # refuses what is too large
        return _BranchAndBoundRun(self, risk, w_init, warm_start)


GlobalRamp = BranchAndBound  # the name by what it is mostly used for


class _BranchAndBoundRun(Run[BranchAndBound, BoxedOracle, SolverResult]):
    """State of one search: the best point, the open boxes, the smallest bound of dropped ones."""

    progress = BoxProgress

    def __init__(
        self,
        config: BranchAndBound,
        oracle: BoxedOracle,
        w_init: Start,
        warm_start: SolverResult | None,
    ) -> None:
        super().__init__(config, oracle)
        self.start = w_init, warm_start
        # the first box, whose sides the first search decides; R >= 0 everywhere
        self.lower_bound = 0.0
        self.boxes = self._no_boxes(1)
        self.dropped = np.inf
        self.n_boxes = 0

    def _no_boxes(self, n: int) -> Array:
        """Room for n boxes: sides, lower bound of F in it, and the coordinate to cut along."""
        side = (float, (self.oracle.n_features,))
        kinds = {"low": side, "high": side, "bound": (float,), "split": (int,)}
        return np.zeros(n, [(name, *kind) for name, kind in kinds.items()])

    def begin(self) -> None:
        limit = self.config.time_limit
        local = CCCP(self.config.alpha, _LOCAL_TOL, time_limit=limit and limit / 4)
        w_init, warm_start = self.start
        result = local.solve(self.oracle, w_init, warm_start=warm_start)
        half = np.sqrt(2 * result.objective / self.config.alpha) * _WIDER
        self.boxes["low"] = -half
        self.boxes["high"] = half
        self._take(result)

    def loop(self) -> Status:
        next_search = 2  # then after 4, 8, .. rounds
        status = self._judge(self._record())
        while status is None:
            centres, values = self._cut_the_lowest()
            self._search_from(centres[np.argmin(values)], values.min())
            if len(self.history) == next_search and self.boxes.size:
                lowest = self.boxes[np.argmin(self.boxes["bound"])]
                self._search_from((lowest["low"] + lowest["high"]) / 2, -np.inf)
                next_search *= 2
            keep = self.boxes["bound"] < self.best - self.config.tol * max(self.best, RISK_SCALE)
            self.dropped = self.boxes["bound"][~keep].min(initial=self.dropped)
            self.boxes = self.boxes[keep]
            status = self._judge(self._record())
        return status

    def _cut_the_lowest(self) -> tuple[Array, Array]:
        """Replace the boxes with the lowest bounds by their halves; return the new centres."""
        boxes = self.boxes
        n = min(boxes.size, max(_BATCH, boxes.size // _SHARE))
        order = np.argpartition(boxes["bound"], n - 1)
        halves = np.tile(boxes[order[:n]], 2)
        rest = boxes[order[n:]]
        rows = np.arange(n)
        f = halves["split"][:n]
        low = halves["low"].copy()
        high = halves["high"].copy()
        middle = (low[rows, f] + high[rows, f]) / 2
        high[rows, f] = middle
        low[n + rows, f] = middle
        bound, centre, split = self.oracle.bounds(self.config.alpha, low, high)
        halves["low"] = low
        halves["high"] = high
        halves["split"] = split
        halves["bound"] = np.maximum(bound, halves["bound"])
        self.n_boxes += 2 * n
        self.boxes = np.concatenate([rest, halves])
        return (low + high) / 2, centre

    def _search_from(self, w: Array, value: float) -> None:
        """Descend from a point that is better than the best, or whose box may be."""
        if value < self.best:
            left = self.clock.left()
            local = CCCP(self.config.alpha, _LOCAL_TOL, time_limit=left)
            self._take(local.solve(self.oracle, w))

    def _take(self, result: SolverResult) -> None:
        self.passes += result.data_passes
        if result.objective < self.best:
            self.best_w = result.w
            self.best = result.objective

    def _record(self) -> bool:
        self.lower_bound = self.boxes["bound"].min(initial=self.dropped)
        return self.record(n_open=self.boxes.size, n_boxes=self.n_boxes)

    def _judge(self, stop: bool) -> Status | None:
        gap = self.gap() if self.boxes.size else 0.0
        return self.judge(gap, stop, self.boxes.size > self.config.max_boxes)
