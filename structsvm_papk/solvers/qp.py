"""The restricted problem of a cutting-plane method.

Standard form, with cuts i of blocks j:

    minimise over v, xi    1/2 ||v||^2 + sum_j xi_j
    subject to             a_i . v + b_i <= xi_j        for every cut i of block j

Its dual lives on a product of simplices, one for each block, and that is what `solve` returns:

    maximise over theta    b . theta - 1/2 ||A' theta||^2
    subject to             theta >= 0,  sum of theta over each block = 1

OWN is Mehrotra's predictor-corrector with every xi_j eliminated by hand, so that a step costs
one Cholesky factorisation of size features, however many blocks there are; the QP solvers that
cvxpy knows factorise systems of size features + blocks. Whatever they answer is clipped and
rescaled to a feasible dual point: a certificate never rests on a solver's word.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, lapack, qr, solve_triangular

from structsvm_papk._rounding import EPS
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError

DEFAULT_SOLVER = "interior_point"
OWN = DEFAULT_SOLVER.upper()  # inside, names stand in capitals, as cvxpy has them
_REFUSED = {
    "HIGHS": "prints on standard output, whatever its options say",
    "SCIPY": "solves linear programs only",
}
_MIN_TOLERANCE = 1e-11
_MAX_STEPS = 50
_TO_BOUNDARY = 0.995
_PATIENCE = 5  # steps without progress before rounding is blamed
_CLOSE_ENOUGH = 10.0  # times the tolerance: below, an answer is not worth asking again


class RestrictedQP:
    """Solve restricted problems of changing size, by OWN or by a solver of cvxpy.

    Where the latter ends too early, OWN is asked as well, and in its place once it has failed;
    `notes` says so.
    """

    def __init__(self, solver: str = DEFAULT_SOLVER) -> None:
        name = str(solver).upper()
        if name != OWN:
            reason = _why_not(name)
            if reason:
                raise InputError(f"QP solver {solver!r} {reason}")
        self._solver = name
        self._problems: list[PaddedProblem] = []  # compiled
        self.notes: list[str] = []

    def solve(self, slopes: Array, intercepts: Array, blocks: Array, tol: float) -> Array | None:
        """A feasible dual point with a duality gap of about `tol`, or the best that was reached.

        `blocks` does not decrease. None where the products of the cuts overflow.
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

    def _choose(self, slopes: Array, intercepts: Array, blocks: Array, tol: float) -> Array | None:
        _, starts, blocks = np.unique(blocks, return_index=True, return_inverse=True)
        if slopes.shape[0] < slopes.shape[1]:
            slopes = np.asarray(np.linalg.qr(slopes.T, mode="r")).T  # in the span of the cuts
        best = None
        best_gap = np.inf
        for solver in dict.fromkeys((self._solver, OWN)):
            theta, gap = self._ask(solver, slopes, intercepts, blocks, starts, tol)
            if gap < best_gap:
                best = theta
                best_gap = gap
            elif solver != OWN:
                self._solver = OWN
                self.notes.append(
                    f"QP solver {solver.lower()} failed on {blocks.size} cuts; "
                    f"{DEFAULT_SOLVER} took over."
                )
            if best_gap <= _CLOSE_ENOUGH * tol:
                break
        return best

    def _ask(
        self,
        solver: str,
        slopes: Array,
        intercepts: Array,
        blocks: Array,
        starts: Array,
        tol: float,
    ) -> tuple[Array | None, float]:
        """A feasible dual point of one solver and its gap, which is infinite on failure."""
        if not (np.isfinite(slopes).all() and np.isfinite(intercepts).all()):
            return None, np.inf  # cuts whose products overflow
        if solver == OWN:
            theta = interior_point(slopes, intercepts, starts, tol)
        else:
            problem = self._with_room(blocks.size, slopes.shape[1], starts.size)
            theta = problem.dual(solver, tol, slopes, intercepts, blocks)
        if theta is None or not np.isfinite(theta).all():
            return None, np.inf
        theta = onto_simplices(theta, starts)
        return theta, duality_gap(theta, slopes, intercepts, starts)

    def _with_room(self, n_cuts: int, n_features: int, n_blocks: int) -> PaddedProblem:
        """The smallest compiled problem with room, but not twice too large, or one more."""
        need = np.array([n_cuts, n_features, n_blocks])
        most = np.append(2 * np.maximum(need[:2], 8), np.inf)
        room = [p for p in self._problems if (need <= p.shape).all() and (p.shape <= most).all()]
        if not room:
            # in the span of the cuts there are as many coordinates as cuts: both will grow
            n_columns = _capacity(n_features) if n_features >= n_cuts else n_features
            room = [PaddedProblem(_capacity(n_cuts), n_columns, _capacity(n_blocks))]
            self._problems += room
        return min(room, key=lambda p: p.shape)


# --- the solvers that cvxpy knows ----------------------------------------------------------------


@cache
def _why_not(name: str) -> str:
    """Why cvxpy's solver of that name is not taken; empty where it solves a problem of two cuts."""
    import cvxpy as cp  # a second and 70 MB: only where one of its solvers is asked

    installed = cp.installed_solvers()
    if name not in installed:
        known = ", ".join(s for s in (OWN, *installed) if s not in _REFUSED).lower()
        return f"is not available here; choose from {known}"
    if name in _REFUSED:
        return f"{_REFUSED[name]}; choose another"
    slopes = np.eye(2)
    theta = PaddedProblem(2, 2, 1).dual(name, 1e-6, slopes, np.zeros(2), np.zeros(2, dtype=int))
    if theta is None or not np.allclose(theta, 0.5, atol=1e-2):
        return "does not solve quadratic programs in cvxpy; choose another"
    return ""


class PaddedProblem:
    """The primal form at fixed capacities for cvxpy, compiled once and filled with parameters.

    Unused cuts read ``0 <= 1``; unused blocks read ``-xi <= 0``; unused coordinates of v are in the
    objective only.
    """

    def __init__(self, n_cuts: int, n_features: int, n_blocks: int) -> None:
        import cvxpy as cp

        self.v, self.xi = cp.Variable(n_features), cp.Variable(n_blocks)
        self.slopes = cp.Parameter((n_cuts + n_blocks, n_features))
        self.member = cp.Parameter((n_cuts + n_blocks, n_blocks))
        self.limits = cp.Parameter(n_cuts + n_blocks)
        self.cuts = self.slopes @ self.v - self.member @ self.xi <= self.limits
        objective = cp.sum_squares(self.v) / 2 + cp.sum(self.xi)
        self.problem = cp.Problem(cp.Minimize(objective), [self.cuts])
        self.shape = n_cuts, n_features, n_blocks

    def dual(
        self, solver: str, tol: float, slopes: Array, intercepts: Array, blocks: Array
    ) -> Array | None:
        """Return the multipliers of the cuts, or None where the solver failed."""
        from cvxpy import SolverError

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
        self.slopes.value = padded
        self.member.value = member
        self.limits.value = limits
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate solution is as good as its dual point
            try:
                self.problem.solve(solver=solver, **_options(solver, tol))
            except (SolverError, ArithmeticError, ValueError):
                return None
        theta = self.cuts.dual_value
        return None if theta is None else theta[:used]


def _options(solver: str, tol: float) -> dict[str, Any]:
    if solver == "PIQP":
        names = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
        return {"backend": "dense", **dict.fromkeys(names, tol)}
    if solver == "CLARABEL":
        return {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
    if solver in ("OSQP", "SCS"):
        limit = "max_iter" if solver == "OSQP" else "max_iters"
        return {"eps_abs": max(tol, 1e-9), "eps_rel": max(tol, 1e-9), limit: 100_000}
    return {}


def _capacity(n: int) -> int:
    """Room for n, in steps that grow by half: few recompilations, little padding."""
    size = 8
    while size < n:
        size += size // 2
    return size


# --- the interior-point method --------------------------------------------------------------------


def interior_point(slopes: Array, intercepts: Array, starts: Array, tol: float) -> Array | None:
    """Multipliers whose certified duality gap is at most `tol`, or the best that were reached.

    Cuts stand block after block, from `starts` on; no block is empty.
    """
    state = _State(slopes, intercepts, starts)
    best = None
    best_gap = np.inf
    stalled = 0  # steps without progress
    for _ in range(_MAX_STEPS):
        theta = onto_simplices(state.theta, starts)
        gap = duality_gap(theta, slopes, intercepts, starts)
        stalled = 0 if gap < 0.9 * best_gap else stalled + 1
        if gap < best_gap:
            best = theta
            best_gap = gap
        if best_gap <= tol or stalled > _PATIENCE:
            break
        try:
            state.step()
        except LinAlgError:  # rounding has taken over: the best so far stands
            break
    return best


def duality_gap(theta: Array, slopes: Array, intercepts: Array, starts: Array) -> float:
    """Gap of a feasible theta: the primal objective at ``-A' theta`` less the dual one."""
    heights = intercepts - slopes @ (theta @ slopes)
    return np.maximum.reduceat(heights, starts).sum() - heights @ theta


def onto_simplices(theta: Array, starts: Array) -> Array:
    """Clip and rescale each block to a probability vector, uniform where nothing is left."""
    theta = np.maximum(theta, 0.0)
    sizes = np.diff(np.append(starts, theta.size))
    sums = np.add.reduceat(theta, starts)
    empty = np.repeat(sums <= 0.0, sizes)
    share = theta / np.repeat(np.where(sums > 0.0, sums, 1.0), sizes)
    return np.where(empty, 1.0 / np.repeat(sizes, sizes), share)


def at_corner(theta: Array, slopes: Array, heights: Array, starts: Array) -> Array:
    """Weights of fewer cuts, with the same ``A' theta`` and no lower ``heights . theta``.

    An interior point gives weight to every cut that may have some. Where these depend on each
    other, weight moves along the dependences until no cut is left that depends on the others: of
    d features and J blocks at most d + J.
    """
    used = np.flatnonzero(theta)
    if used.size <= slopes.shape[1] + starts.size:
        return theta
    block = np.searchsorted(starts, used, side="right") - 1
    one_of_block = (block == np.arange(starts.size)[:, None]).astype(np.float64)
    columns = np.vstack([slopes[used].T / np.abs(slopes).max(initial=1.0), one_of_block])
    factor, order = qr(columns, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    sizes = np.abs(np.diagonal(factor))
    rank = np.count_nonzero(sizes > used.size * EPS * sizes[0])
    # each other cut is this combination of those in the basis
    shares = solve_triangular(factor[:rank, :rank], factor[:rank, rank:])
    used = used[order]
    basis = used[:rank]
    theta = theta.copy()
    for j, other in enumerate(used[rank:]):
        share = shares[:, j]
        # the other one rises where that raises the dual, else it falls, at most to 0
        sign = 1.0 if heights[other] > heights[basis] @ share else -1.0
        most = np.inf if sign > 0.0 else theta[other]
        falls = sign * share
        room = np.full(rank, np.inf)
        np.divide(theta[basis], falls, out=room, where=falls > EPS)
        first = int(room.argmin())
        moved = min(room[first], most)
        if not np.isfinite(moved):
            continue  # what rounding has left of slopes is no dependence
        theta[basis] = np.maximum(theta[basis] - moved * falls, 0.0)
        theta[other] += sign * moved
        if moved == most:
            continue
        theta[basis[first]] = 0.0
        basis[first] = other
        entering = shares[first, j + 1 :] / share[first]
        shares[:, j + 1 :] -= np.outer(share, entering)
        shares[first, j + 1 :] = entering
    return theta


class _State:
    """Iterate (v, xi, slack, theta) and the block structure.

    ``a_i . v + b_i + s_i = xi_j`` and ``s_i >= 0`` for every cut i of block j, with multipliers
    theta_i.
    """

    def __init__(self, slopes: Array, intercepts: Array, starts: Array) -> None:
        self.slopes = slopes
        self.intercepts = intercepts
        self.starts = starts
        sizes = np.diff(np.append(starts, intercepts.size))
        self.block = np.repeat(np.arange(starts.size), sizes)
        self.theta = 1.0 / sizes[self.block]
        self.v = -(self.theta @ slopes)
        self.heights = slopes @ self.v + intercepts
        self.xi = np.maximum.reduceat(self.heights, starts)
        spread = self.xi[self.block] - self.heights
        room = max(spread.mean(), 1e-8 * (1.0 + np.abs(self.xi).max()))
        self.xi = self.xi + room
        self.slack = spread + room

    def sums(self, values: Array) -> Array:
        """Sum over the cuts of each block."""
        return np.add.reduceat(values, self.starts)

    def step(self) -> None:
        """One predictor-corrector step."""
        theta = self.theta
        slack = self.slack
        system = _NewtonSystem(self)
        # predictor: straight at the solution; how far it gets says how much to centre
        mean = theta @ slack / theta.size
        affine = system.solve(-theta * slack)
        theta_ahead = theta + _longest(theta, affine.theta) * affine.theta
        slack_ahead = slack + _longest(slack, affine.slack) * affine.slack
        centring = (theta_ahead @ slack_ahead / theta.size / mean) ** 3
        # corrector: towards the central path, with the predictor's term of second order
        move = system.solve(centring * mean - theta * slack - affine.slack * affine.theta)
        length = min(_longest(theta, move.theta), _longest(slack, move.slack))
        self.v = self.v + length * move.v
        self.xi = self.xi + length * move.xi
        self.slack = self.slack + length * move.slack
        self.theta = self.theta + length * move.theta
        self.heights = self.heights + length * move.heights


class _Direction(NamedTuple):
    """How the parts of a `_State` change."""

    v: Array
    xi: Array
    slack: Array
    theta: Array
    heights: Array


class _NewtonSystem:
    """The linear system at one iterate, with the slacks, multipliers and xi eliminated.

    With ratios r_i = theta_i / slack_i and their weighted mean cut of each block, what is left is
    ``I + sum_i r_i c_i c_i'`` for the centred cuts c_i. Centring before squaring matters:
    near the optimum the ratios differ by many orders of magnitude.
    """

    def __init__(self, state: _State) -> None:
        self.state = state
        slopes = state.slopes
        self.ratio = state.theta / state.slack
        self.total = state.sums(self.ratio)
        share = self.ratio / self.total[state.block]
        self.mean = np.add.reduceat(share[:, None] * slopes, state.starts, axis=0)
        self.centred = slopes - self.mean[state.block]
        scaled = np.sqrt(self.ratio)[:, None] * self.centred
        matrix = scaled.T @ scaled
        matrix.flat[:: slopes.shape[1] + 1] += 1.0
        # SciPy's own functions for this take longer than the work, on systems of a few columns
        self.factor, failed = lapack.dpotrf(matrix, overwrite_a=True, clean=False)
        if failed or not np.isfinite(self.factor).all():
            raise LinAlgError("no positive definite matrix")
        self.dual_residual = state.v + state.theta @ slopes
        self.sum_residual = 1.0 - state.sums(state.theta)
        self.primal_residual = state.xi[state.block] - state.heights - state.slack

    def solve(self, complementarity: Array) -> _Direction:
        """Newton direction: ``theta * slack`` changes by `complementarity` to first order."""
        state = self.state
        pull = complementarity / state.slack - self.ratio * self.primal_residual
        level = (state.sums(pull) - self.sum_residual) / self.total
        right = -self.dual_residual - pull @ self.centred - self.sum_residual @ self.mean
        v = right
        if v.size:  # none where every weight is held at zero
            v, _ = lapack.dpotrs(self.factor, right)
        relative = self.centred @ v
        rise = self.mean @ v
        slack = self.primal_residual + level[state.block] - relative
        theta = (complementarity - state.theta * slack) / state.slack
        heights = relative + rise[state.block]
        return _Direction(v=v, xi=level + rise, slack=slack, theta=theta, heights=heights)


def _longest(values: Array, direction: Array) -> float:
    """Longest step in (0, 1] that keeps positive values positive."""
    return 1.0 / max(1.0, (-direction / values).max() / _TO_BOUNDARY)
