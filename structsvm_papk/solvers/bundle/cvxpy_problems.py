"""Restricted problems by the QP solvers that cvxpy knows, compiled once for many sizes."""

import warnings

import numpy as np

from structsvm_papk._types import Array

_SOLVERS = ("PIQP", "CLARABEL", "OSQP", "PROXQP", "DAQP", "QPALM", "SCS", "GUROBI", "MOSEK")


def installed_solvers() -> list[str]:
    """Names of the solvers that are installed."""
    import cvxpy as cp

    installed = cp.installed_solvers()
    return [name for name in _SOLVERS if name in installed]


class PaddedProblems:
    """Problems of several capacities, filled with the cuts of one after the other."""

    def __init__(self) -> None:
        self._problems: list[PaddedProblem] = []

    def dual(
        self, solver: str, slopes: Array, intercepts: Array, blocks: Array, tol: float
    ) -> Array | None:
        """The multipliers of the cuts, or None where the solver failed."""
        problem = self._with_room(slopes.shape[0], slopes.shape[1], int(blocks.max()) + 1)
        problem.fill(slopes, intercepts, blocks)
        return problem.dual(solver, tol)

    def _with_room(self, n_cuts, n_features, n_blocks):
        """The smallest compiled problem with room, or a new one where that would waste work."""
        room = [p for p in self._problems if p.fits(n_cuts, n_features, n_blocks)]
        if not room:
            # in the span of the cuts there are as many coordinates as cuts: both will grow
            growing = n_features >= n_cuts
            n_columns = _capacity(n_features) if growing else n_features
            room = [PaddedProblem(_capacity(n_cuts), n_columns, _capacity(n_blocks))]
            self._problems += room
        return min(room, key=lambda p: p.shape)


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

    def fits(self, n_cuts, n_features, n_blocks):
        """Whether there is room, and at most twice as much as needed."""
        wanted = n_cuts, n_features, n_blocks
        enough = all(have >= want for have, want in zip(self.shape, wanted, strict=True))
        pairs = zip(self.shape[:2], wanted[:2], strict=True)
        return enough and all(have <= 2 * max(want, 8) for have, want in pairs)

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
