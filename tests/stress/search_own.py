"""Classes of a user's own: oracles with odd habits, surrogates that are wrong here and there.

    python tests/stress/search_own.py --problems 300

`oracle`: maxima of lines, given by functions that change w, fill one array anew, return lists or
single precision, fail or stop being finite; cvxpy knows the optimum. `surrogate`: a right class is
made wrong for some lists. `check_surrogate` has to refuse it, or no fit of it may have a bound
above an objective that is attained.
"""

import sys
import warnings
from dataclasses import dataclass

import numpy as np
from searching import main

from helpers.own import PowerPairs
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, SubgradientDescent
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.surrogates import check_surrogate

_HABITS = ("none", "changes w", "one array", "lists", "fails", "not finite", "column", "number")


def check(seed, report, only=None):
    kind = only or ("oracle", "surrogate")[seed % 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        KINDS[kind](np.random.default_rng(seed), report)


# ---- oracles


class Lines:
    """``max_i a_i . w + b_i``, with a habit."""

    def __init__(self, slopes, heights, habit):
        self.slopes, self.heights, self.habit = slopes, heights, habit
        self.n_features, self.kept, self.calls = slopes.shape[1], np.zeros(slopes.shape[1]), 0

    def __call__(self, w):
        lines = self.slopes @ w + self.heights
        value, slope = float(lines.max()), self.slopes[lines.argmax()]
        self.calls += 1
        if self.habit == "changes w":
            w *= 0
        if self.habit == "fails" and self.calls == 4:
            raise OracleFailure("gone")
        if self.habit == "one array":
            self.kept[:] = slope
            slope = self.kept
        return {
            "lists": (value, slope.tolist()), "column": (value, slope[:, None]), "number": value,
            "not finite": (value if self.calls != 4 else np.nan, slope),
        }.get(self.habit, (value, slope))  # fmt: skip


def _oracle(rng, report):
    shape = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    slopes = rng.normal(size=shape) * 10 ** rng.uniform(-2, 2)
    heights = rng.normal(size=shape[0]) * 10 ** rng.uniform(-2, 2)
    alpha, habit = float(10 ** rng.uniform(-2, 2)), str(rng.choice(_HABITS))
    solver = [
        CuttingPlane(alpha, 1e-7, max_iter=200),
        CuttingPlane(alpha, 1e-7, method="one_slack", max_iter=200),
        SubgradientDescent(alpha, max_iter=20),
    ][rng.integers(3)]
    report.problem = f"{shape} {habit} {solver}"
    report.counts[f"oracle: {habit}"] += 1
    try:
        result = solver.solve(Lines(slopes, heights, habit))
    except InputError:
        report.counts["oracles refused"] += 1
        if habit not in ("not finite", "column", "number"):
            report.add("refused", habit)
        return
    if habit in ("column", "number"):
        report.add("taken", habit)
        return
    best = _least(slopes, heights, alpha)
    scale = max(abs(best), 1e-3, 1e-2 * np.abs(heights).max())
    value = alpha / 2 * (result.w @ result.w) + (slopes @ result.w + heights).max()
    if abs(value - result.objective) > 1e-9 * scale:
        report.add("objective is not that of the point", habit, f"{result.objective} {value}")
    if result.lower_bound > best + 1e-6 * scale:
        report.add("false bound", habit, f"{result.lower_bound} above {best}")
    if result.status == "converged" and value > best + 1e-5 * scale:
        report.add("converged, but is not optimal", habit, f"{value} above {best}")


def _least(slopes, heights, alpha):
    import cvxpy as cp

    w = cp.Variable(slopes.shape[1])
    problem = cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + cp.max(slopes @ w + heights)))
    return problem.solve(solver="CLARABEL")


# ---- surrogates


@dataclass(frozen=True)
class Sabotaged(PowerPairs):
    """Wrong by two factors in lists that a trigger names."""

    trigger: str = "never"
    at: float = 0.0
    of_value: float = 1.0
    of_slope: float = 1.0
    name = "sabotaged"

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        super().evaluate(scores, indptr, n_pos, first, last, values, coef)
        for u in range(first, last):
            own = slice(indptr[u], indptr[u + 1])
            p, q = np.split(scores[own], n_pos[u : u + 1])
            if self._is_meant(u, p, q):
                values[u] *= self.of_value
                coef[own] *= self.of_slope

    def _is_meant(self, u, p, q):
        return {
            "never": False, "many negatives": q.size > self.at, "many positives": p.size > self.at,
            "a high k": self.k > self.at, "zero": not (p.any() or q.any()), "place": u > self.at,
            "high scores": q.max() - p.min() > 3 * self.at, "one positive": p.size == 1,
            "ties": np.unique(q).size < q.size,
        }[self.trigger]  # fmt: skip


_TRIGGERS = ("many negatives", "many positives", "a high k", "zero", "place", "high scores")
_TRIGGERS += ("one positive", "ties", "never")


def _surrogate(rng, report):
    k, trigger = int(rng.integers(1, 8)), str(rng.choice(_TRIGGERS))
    factors = [float(x) for x in 10 ** rng.uniform(-0.7, 0.7, 2)]
    surrogate = Sabotaged(k, 1.5, trigger, float(rng.integers(1, 16)), *factors)
    report.problem = str(surrogate)
    try:
        check_surrogate(surrogate)
    except InputError:
        report.counts[f"refused: {trigger}"] += 1
        if trigger == "never":
            report.add("a right class is refused", trigger)
        return
    report.counts[f"passed: {trigger}"] += 1
    users = np.repeat(np.arange(8), 24)
    X = rng.normal(size=(users.size, 3))
    y = X[:, 0] + rng.normal(size=users.size) > 0.5
    risk = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, users), "cap")
    alpha = float(10 ** rng.uniform(-3, 0))
    result = CuttingPlane(alpha, 1e-6, max_iter=200).solve(risk)
    points = rng.normal(size=(40, 3)) * 10 ** rng.uniform(-2, 1, (40, 1))
    points = [*points, *(result.w * t for t in (0, 0.3, 0.9, 1, 1.1, 3))]
    least = min(alpha / 2 * (w @ w) + risk(w)[0] for w in points)
    report.counts["fits of classes that passed"] += 1
    if result.lower_bound > least * (1 + 1e-9):
        report.add("false bound", trigger, f"{result.lower_bound} above {least}")


KINDS = {"oracle": _oracle, "surrogate": _surrogate}

if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 300))
