"""The restricted problem of a cutting-plane method.

Standard form, with cuts i of blocks j:

    minimise over v, xi    1/2 ||v||^2 + sum_j xi_j
    subject to             a_i . v + b_i <= xi_j        for every cut i of block j

Its dual lives on a product of simplices, one for each block, and that is what `solve` returns:

    maximise over theta    b . theta - 1/2 ||A' theta||^2
    subject to             theta >= 0,  sum of theta over each block = 1

Two kinds of solver: BLOCKS, an interior-point method that eliminates the xi, and every QP solver
that cvxpy knows. Whatever they answer is clipped and rescaled to a feasible dual point, and its gap
is evaluated here: a certificate never rests on a solver's word.
"""

from __future__ import annotations

import warnings

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.bundle import interior_point as _interior_point
from structsvm_papk.solvers.bundle.interior_point import duality_gap, onto_simplices

BLOCKS = "BLOCKS"
_CVXPY_SOLVERS = ("PIQP", "CLARABEL", "OSQP", "PROXQP", "DAQP", "QPALM", "SCS", "GUROBI", "MOSEK")
_FALLBACKS = (BLOCKS, "PIQP", "CLARABEL")
_MIN_TOLERANCE = 1e-11
_CLOSE_ENOUGH = 10.0  # times the tolerance: below, an answer is not worth asking again


def available_solvers() -> list[str]:
    """Names that `RestrictedQP` accepts here."""
    import cvxpy as cp

    installed = cp.installed_solvers()
    return [BLOCKS, *(name for name in _CVXPY_SOLVERS if name in installed)]


class RestrictedQP:
    """Solve restricted problems of changing size, with solvers that stand in for each other.

    'blocks' or the name of an installed cvxpy QP solver comes first; `notes` has a sentence for
    each that failed and was replaced.
    """

    def __init__(self, solver: str = BLOCKS) -> None:
        name = str(solver).upper()
        if name != BLOCKS and name not in available_solvers():
            raise InputError(
                f"QP solver {solver!r} is not available here; choose from "
                f"{', '.join(available_solvers()).lower()}"
            )
        self._solvers = [name, *(s for s in _FALLBACKS if s != name)]
        self._problems: list[_Problem] = []
        self._ask_again = True
        self.notes: list[str] = []

    def solve(self, slopes: Array, intercepts: Array, blocks: Array, tol: float) -> Array | None:
        """A feasible dual point with a duality gap of about `tol`, or the best that was reached.

        `blocks` does not decrease. None where every solver failed.
        """
        _, blocks, sizes = np.unique(blocks, return_inverse=True, return_counts=True)
        theta = np.ones(blocks.size)
        several = sizes[blocks] > 1  # a block with one cut has no choice: it only moves the centre
        if several.any():
            centre = -slopes[~several].sum(axis=0)
            choice = slopes[several]
            heights = intercepts[several] + choice @ centre
            part = self._choose(choice, heights, blocks[several], max(tol, _MIN_TOLERANCE))
            if part is None:
                return None
            theta[several] = part
        return theta

    def _choose(self, slopes, intercepts, blocks, tol):
        _, starts, blocks = np.unique(blocks, return_index=True, return_inverse=True)
        if slopes.shape[0] < slopes.shape[1]:
            slopes = np.asarray(np.linalg.qr(slopes.T, mode="r")).T  # in the span of the cuts
        best, best_gap = None, np.inf
        for solver in tuple(self._solvers):
            theta, gap = self._ask(solver, slopes, intercepts, blocks, starts, tol)
            if not np.isfinite(gap):
                self._replace(solver, blocks.size)
                continue
            if best is not None:  # was a second opinion worth its time?
                self._ask_again = gap < 0.1 * best_gap
            if gap < best_gap:
                best, best_gap = theta, gap
            if best_gap <= _CLOSE_ENOUGH * tol or not self._ask_again:
                break
        return best

    def _ask(self, solver, slopes, intercepts, blocks, starts, tol):
        """A feasible dual point of one solver and its gap, which is infinite on failure."""
        if not (np.isfinite(slopes).all() and np.isfinite(intercepts).all()):
            return None, np.inf  # cuts whose products overflow
        if solver == BLOCKS:
            theta = _interior_point.solve(slopes, intercepts, starts, tol)
        else:
            problem = self._problem(slopes.shape[0], slopes.shape[1], starts.size)
            problem.fill(slopes, intercepts, blocks)
            theta = problem.dual(solver, tol)
        if theta is None or not np.isfinite(theta).all():
            return None, np.inf
        theta = onto_simplices(theta, starts)
        return theta, duality_gap(theta, slopes, intercepts, starts)

    def _replace(self, solver, n_cuts):
        if len(self._solvers) > 1:
            self._solvers.remove(solver)
            self.notes.append(
                f"QP solver {solver.lower()} failed on {n_cuts} cuts; "
                f"{self._solvers[0].lower()} took over."
            )

    def _problem(self, n_cuts, n_features, n_blocks):
        """The smallest compiled problem with room, or a new one where that would waste work."""
        room = [p for p in self._problems if p.fits(n_cuts, n_features, n_blocks)]
        if not room:
            # in the span of the cuts there are as many coordinates as cuts: both will grow
            growing = n_features >= n_cuts
            n_columns = _capacity(n_features) if growing else n_features
            room = [_Problem(_capacity(n_cuts), n_columns, _capacity(n_blocks))]
            self._problems += room
        return min(room, key=lambda p: p.shape)


class _Problem:
    """The primal form at fixed capacities, compiled once and filled with parameters (DPP).

    Unused cuts read ``0 <= 1``; unused blocks read ``-xi <= 0``; unused coordinates of v are in the
    objective only.
    """

    def __init__(self, n_cuts, n_features, n_blocks):
        import cvxpy as cp  # a second and 70 MB: only where one of its solvers is asked

        self.v, self.xi = cp.Variable(n_features), cp.Variable(n_blocks)
        self.slopes = cp.Parameter((n_cuts + n_blocks, n_features))
        self.member = cp.Parameter((n_cuts + n_blocks, n_blocks))
        self.limits = cp.Parameter(n_cuts + n_blocks)
        self.cuts = self.slopes @ self.v - self.member @ self.xi <= self.limits
        objective = cp.sum_squares(self.v) / 2 + cp.sum(self.xi)
        self.problem = cp.Problem(cp.Minimize(objective), [self.cuts])
        self.shape = n_cuts, n_features, n_blocks

    def fits(self, n_cuts, n_features, n_blocks):
        """Whether there is room, and at most twice as much as needed."""
        wanted = n_cuts, n_features, n_blocks
        enough = all(have >= want for have, want in zip(self.shape, wanted, strict=True))
        pairs = zip(self.shape[:2], wanted[:2], strict=True)
        return enough and all(have <= 2 * max(want, 8) for have, want in pairs)

    def fill(self, slopes, intercepts, blocks):
        n_cuts, n_features, n_blocks = self.shape
        used = blocks.size
        padded = np.zeros((n_cuts + n_blocks, n_features))
        padded[:used, : slopes.shape[1]] = slopes
        member = np.zeros((n_cuts + n_blocks, n_blocks))
        member[np.arange(used), blocks] = 1.0
        unused = np.arange(blocks.max() + 1, n_blocks)
        member[n_cuts + unused, unused] = 1.0
        limits = np.ones(n_cuts + n_blocks)
        limits[:used] = -intercepts
        limits[n_cuts + unused] = 0.0
        self.slopes.value, self.member.value = padded, member
        self.limits.value = limits
        self.used = used

    def dual(self, solver, tol):
        """Return the multipliers of the cuts, or None where the solver failed."""
        from cvxpy import SolverError

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate solution is as good as its dual point
            try:
                self.problem.solve(solver=solver, **_options(solver, tol))
            except (SolverError, ArithmeticError, ValueError):
                return None
        theta = self.cuts.dual_value
        return None if theta is None else theta[: self.used]


def _options(solver, tol):
    if solver == "PIQP":
        return {
            "backend": "dense",
            "eps_abs": tol,
            "eps_rel": tol,
            "eps_duality_gap_abs": tol,
            "eps_duality_gap_rel": tol,
        }
    if solver == "CLARABEL":
        return {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
    if solver in ("OSQP", "SCS"):
        return {"eps_abs": max(tol, 1e-9), "eps_rel": max(tol, 1e-9), "max_iter": 100_000}
    return {}


def _capacity(n):
    """Room for n, in steps that grow by half: few recompilations, little padding."""
    size = 8
    while size < n:
        size += size // 2
    return size
