"""Branch and bound over w, for risks that can be bounded over boxes.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R >= 0, not convex, few features

Where the optimum can be follows from a known value: ``alpha/2 ||w||^2 <= F(w) <= F(w')``. That cube
is cut into boxes. A box is dropped when its bound shows that nothing in it is better than the best
known point by more than the tolerance; the smallest bound that remains is a lower bound of F at any
time. Better points come from `CCCP`, started at the centres. What the risk chooses, such as which
pairs are clipped, is never branched on: within a small box it is decided.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk.errors import InputError, check_number
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.oracle import BoxedOracle
from structsvm_papk.solvers.result import RISK_SCALE, Progress, SolverResult, relative_gap
from structsvm_papk.solvers.solver import Run, Solver

_BATCH = 256
_SHARE = 8  # at least one of so many open boxes is cut in a round
_LOCAL_TOL = 1e-6
_WIDER = 1 + 1e-9  # the cube, for the rounding of the objective that it is made from


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
    Starts, those of a warm start or checkpoint too, are of the first local search.

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

    tol: float = 1e-4
    time_limit: float | None = 120.0
    max_boxes: int = 5_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("max_boxes", self.max_boxes, least=1)

    def _run(self, oracle, w_init, warm_start):
        if not isinstance(oracle, BoxedOracle):
            raise InputError("branch and bound needs bounds over boxes: a `BoxedOracle`")
        origin = np.zeros((1, oracle.n_features))
        oracle.bounds(self.alpha, origin, origin)  # refuses what is too large
        return _Run(self, oracle, w_init, warm_start)


GlobalRamp = BranchAndBound  # the name by what it is mostly used for


class _Run(Run[SolverResult]):
    """State of one search: the best point, the open boxes, the smallest bound of dropped ones."""

    def __init__(self, config, oracle, w_init, warm_start):
        super().__init__(config, oracle)
        self.start = w_init, warm_start
        self.w: Any = None
        self.objective, self.dropped = np.inf, np.inf
        self.bound, self.n_boxes = np.zeros(1), 0  # R >= 0 everywhere

    def has_point(self):
        return self.w is not None

    def begin(self):
        limit = self.config.time_limit
        # ties are left to the boxes, which look everywhere
        local = CCCP(self.config.alpha, _LOCAL_TOL, time_limit=limit and limit / 4, max_ties=0)
        w_init, warm_start = self.start if self.saved is None else (None, self.saved)
        self._take(local.solve(self.oracle, w_init, warm_start=warm_start))
        self._open_cube()

    def loop(self):
        next_search = 1
        while True:
            status = self._record_and_judge()
            if status is not None:
                return status
            centres, values = self._cut_the_lowest()
            self._search_from(centres[np.argmin(values)], values.min())
            if len(self.history) == next_search and self.bound.size:
                lowest = np.argmin(self.bound)
                self._search_from((self.low[lowest] + self.high[lowest]) / 2, -np.inf)
                next_search *= 2
            self._drop()

    def result(self, status, notes):
        return self.outcome(self.w, self.objective, self._lower_bound(), status, notes=notes)

    def _open_cube(self):
        d = self.oracle.n_features
        half = np.sqrt(2 * self.objective / self.config.alpha) * _WIDER
        self.low, self.high = np.full((1, d), -half), np.full((1, d), half)
        self.bound, self.split = np.zeros(1), np.zeros(1, dtype=np.int64)

    def _cut_the_lowest(self):
        """Replace the boxes with the lowest bounds by their halves; return the new centres."""
        n = min(self.bound.size, max(_BATCH, self.bound.size // _SHARE))
        order = np.argpartition(self.bound, n - 1)
        cut, rest = order[:n], order[n:]
        rows, f = np.arange(n), self.split[cut]
        middle = (self.low[cut, f] + self.high[cut, f]) / 2
        low, high = np.tile(self.low[cut], (2, 1)), np.tile(self.high[cut], (2, 1))
        high[rows, f], low[n + rows, f] = middle, middle
        bound, centre, split = self.oracle.bounds(self.config.alpha, low, high)
        bound = np.maximum(bound, np.tile(self.bound[cut], 2))
        self.n_boxes += 2 * n
        self.low, self.high = np.vstack([self.low[rest], low]), np.vstack([self.high[rest], high])
        self.bound = np.concatenate([self.bound[rest], bound])
        self.split = np.concatenate([self.split[rest], split])
        return (low + high) / 2, centre

    def _search_from(self, w, value):
        """Descend from a point that is better than the best, or whose box may be."""
        if value < self.objective:
            left = self.clock.left()
            local = CCCP(self.config.alpha, _LOCAL_TOL, time_limit=left, rescale=False, max_ties=0)
            self._take(local.solve(self.oracle, w))

    def _take(self, result):
        self.passes += result.data_passes
        if result.objective < self.objective:
            self.w, self.objective = result.w, result.objective

    def _drop(self):
        keep = self.bound < self.objective - self.config.tol * max(self.objective, RISK_SCALE)
        if not keep.all():
            self.dropped = min(self.dropped, self.bound[~keep].min())
            self.low, self.high = self.low[keep], self.high[keep]
            self.bound, self.split = self.bound[keep], self.split[keep]

    def _lower_bound(self):
        return min(self.dropped, self.objective, self.bound.min(initial=np.inf))

    def _record_and_judge(self):
        config, lower = self.config, float(self._lower_bound())
        boxes = {"n_open": self.bound.size, "n_boxes": self.n_boxes}
        stop = self.record(self.objective, lower, kind=BoxProgress, **boxes)
        gap = relative_gap(self.objective, lower) if self.bound.size else 0.0
        return self.judge(gap, stop, self.bound.size > config.max_boxes)
