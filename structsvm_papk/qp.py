"""The restricted problem of a cutting-plane method, solved with cvxpy.

Standard form, with blocks j of cuts i, weight > 0 and centre 0:

    minimise over v, xi    weight/2 ||v||^2 + sum_j xi_j
    subject to             a_i . v + b_i <= xi_j        for every cut i of block j

Its dual lives on a product of simplices, one for each block, and that is what `solve` returns:

    maximise over theta    b . theta - ||A' theta||^2 / (2 weight)
    subject to             theta >= 0,  sum of theta over each block = 1

The dual point is clipped and rescaled, so that it is feasible to rounding whatever the QP solver
did: a certificate never rests on a solver's word.
"""

import warnings

import cvxpy as cp
import numpy as np

from structsvm_papk.errors import InputError

FALLBACKS = ("PIQP", "CLARABEL", "OSQP")
_MIN_TOLERANCE = 1e-11


class RestrictedQP:
    """Solve restricted problems of changing size, with solvers that stand in for each other.

    Parameters
    ----------
    solver : str
        Name of an installed cvxpy QP solver, tried before the others.

    Attributes
    ----------
    notes : list of str
        One entry for each solver that failed and was replaced.

    Raises
    ------
    InputError
        The solver is not installed.
    """

    def __init__(self, solver="PIQP"):
        installed = cp.installed_solvers()
        name = str(solver).upper()
        if name not in installed:
            raise InputError(
                f"QP solver {solver!r} is not installed; available: {', '.join(sorted(installed))}"
            )
        self._solvers = [name, *(s for s in FALLBACKS if s in installed and s != name)]
        self._problems = {}
        self.notes = []

    def solve(self, slopes, intercepts, blocks, weight, tol):
        """Return a feasible dual point.

        Parameters
        ----------
        slopes : ndarray of shape (n_cuts, n_features)
        intercepts : ndarray of shape (n_cuts,)
        blocks : ndarray of int, shape (n_cuts,)
            Block of each cut; every block that is named has at least one cut.
        weight : float
            Curvature of the quadratic term, > 0.
        tol : float
            Absolute accuracy asked of the QP solver, relative to objective values.

        Returns
        -------
        theta : ndarray of shape (n_cuts,)
            Non-negative, sums to 1 over each block; None where every solver failed.
        """
        _, blocks, sizes = np.unique(blocks, return_inverse=True, return_counts=True)
        theta = np.ones(blocks.size)
        several = sizes[blocks] > 1  # a block with one cut has no choice
        if not several.any():
            return theta
        fixed = slopes[~several].sum(axis=0)
        _, inner = np.unique(blocks[several], return_inverse=True)
        part = self._solve_choice(
            slopes[several], intercepts[several], inner, fixed, weight, max(tol, _MIN_TOLERANCE)
        )
        if part is None:
            return None
        theta[several] = part
        return theta

    def _solve_choice(self, slopes, intercepts, blocks, fixed, weight, tol):
        if slopes.shape[0] < slopes.shape[1]:
            slopes, fixed = _in_span(slopes, fixed)
        problem = self._problem(slopes.shape, blocks.max() + 1)
        problem.fill(slopes / np.sqrt(weight), intercepts, blocks, fixed / np.sqrt(weight))
        while self._solvers:
            theta = problem.dual(self._solvers[0], tol)
            if theta is not None:
                return _onto_simplices(theta, blocks)
            self.notes.append(
                f"QP solver {self._solvers[0]} failed on {blocks.size} cuts and was replaced."
            )
            self._solvers.pop(0)
        return None

    def _problem(self, shape, n_blocks):
        n_cuts, n_features = shape
        size = (_capacity(n_cuts), n_features, _capacity(n_blocks))
        if size not in self._problems:
            self._problems = {size: _Problem(*size)}  # smaller ones are not needed again
        return self._problems[size]


class _Problem:
    """The primal form at fixed capacities, compiled once and filled with parameters (DPP).

    Unused cuts read ``0 <= 1``; unused blocks read ``-xi <= 0``.
    """

    def __init__(self, n_cuts, n_features, n_blocks):
        self.v, self.xi = cp.Variable(n_features), cp.Variable(n_blocks)
        self.slopes = cp.Parameter((n_cuts + n_blocks, n_features))
        self.member = cp.Parameter((n_cuts + n_blocks, n_blocks))
        self.limits = cp.Parameter(n_cuts + n_blocks)
        self.linear = cp.Parameter(n_features)
        self.cuts = self.slopes @ self.v - self.member @ self.xi <= self.limits
        objective = cp.sum_squares(self.v) / 2 + self.linear @ self.v + cp.sum(self.xi)
        self.problem = cp.Problem(cp.Minimize(objective), [self.cuts])
        self.shape = n_cuts, n_features, n_blocks

    def fill(self, slopes, intercepts, blocks, linear):
        n_cuts, n_features, n_blocks = self.shape
        used = blocks.size
        padded = np.zeros((n_cuts + n_blocks, n_features))
        padded[:used] = slopes
        member = np.zeros((n_cuts + n_blocks, n_blocks))
        member[np.arange(used), blocks] = 1.0
        unused = np.arange(blocks.max() + 1, n_blocks)
        member[n_cuts + unused, unused] = 1.0
        limits = np.ones(n_cuts + n_blocks)
        limits[:used] = -intercepts
        limits[n_cuts + unused] = 0.0
        self.slopes.value, self.member.value = padded, member
        self.limits.value, self.linear.value = limits, linear
        self.used = used

    def dual(self, solver, tol):
        """Return the multipliers of the cuts, or None where the solver failed."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate solution is as good as its dual point
            try:
                self.problem.solve(solver=solver, **_options(solver, tol))
            except (cp.SolverError, ArithmeticError, ValueError):
                return None
        theta = self.cuts.dual_value
        if theta is None or not np.isfinite(theta[: self.used]).all():
            return None
        return theta[: self.used]


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


def _in_span(slopes, fixed):
    """Coordinates of the slopes and of `fixed` in an orthonormal basis of the slopes' span.

    The part of `fixed` outside the span only shifts the objective.
    """
    basis, factor = np.linalg.qr(slopes.T)
    return factor.T, basis.T @ fixed


def _onto_simplices(theta, blocks):
    """Clip and rescale each block to a probability vector (uniform where nothing is left)."""
    theta = np.maximum(theta, 0.0)
    sums = np.bincount(blocks, weights=theta)
    sizes = np.bincount(blocks)
    empty = (sums <= 0.0)[blocks]
    return np.where(empty, 1.0 / sizes[blocks], theta / np.where(empty, 1.0, sums[blocks]))
