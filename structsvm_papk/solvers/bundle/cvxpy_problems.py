"""Restricted problems by the QP solvers that cvxpy knows, compiled once for many sizes."""

import warnings

import numpy as np

_SOLVERS = ("PIQP", "CLARABEL", "OSQP", "PROXQP", "DAQP", "QPALM", "SCS", "GUROBI", "MOSEK")


def installed_solvers() -> list[str]:
    """Names of the solvers that are installed."""
    import cvxpy as cp

    installed = cp.installed_solvers()
    return [name for name in _SOLVERS if name in installed]


class PaddedProblem:
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

    @classmethod
    def with_room(cls, problems, n_cuts, n_features, n_blocks):
        """The smallest of some problems with room, or one more where that would waste work."""
        room = [p for p in problems if p.fits(n_cuts, n_features, n_blocks)]
        if not room:
            # in the span of the cuts there are as many coordinates as cuts: both will grow
            n_columns = _capacity(n_features) if n_features >= n_cuts else n_features
            room = [cls(_capacity(n_cuts), n_columns, _capacity(n_blocks))]
            problems += room
        return min(room, key=lambda p: p.shape)

    def fits(self, n_cuts, n_features, n_blocks):
        """Whether there is room, and at most twice as much as needed."""
        have, wanted = np.array(self.shape), np.array([n_cuts, n_features, n_blocks])
        return bool((have >= wanted).all() and (have <= 2 * np.maximum(wanted, 8))[:2].all())

    def fill(self, slopes, intercepts, blocks):
        """Write the cuts into the parameters."""
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
        names = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
        return {"backend": "dense", **dict.fromkeys(names, tol)}
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
