"""Whether w = 0 is optimal for Ramp and ClippedRamp, which are not convex: see `zero_test`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.convex_test import Slopes, Verdict, ZeroTest, convex_test
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.starts import logistic_regression
from structsvm_papk.surrogates.convex import Avg

_NO_FALL = 1e-12  # ClippedRamp this close to 1 may be 1
_ROUNDS = 20


def ramp_test(risk: EmpiricalRisk, tol: float, users: Sequence[ZeroTest]) -> ZeroTest:
    """Every positive inside K_N proves degeneracy; a direction, from freezing, disproves it."""
    if risk.surrogate.is_convex_on(risk.data.n_pos):  # convex on these lists
        return convex_test(Slopes(risk), tol)
    if users and all(test.verdict == Verdict.DEGENERATE for test in users):
        largest = max(test.distance for test in users)
        return ZeroTest(Verdict.DEGENERATE, largest, 0.0)
    start = convex_test(Slopes(_as_avg(risk)), tol)
    if start.verdict == Verdict.INFORMATIVE:  # Ramp falls at least as fast as Avg
        return start
    directions = [logistic_regression(risk.data, centred=True)]
    if risk.n_users == 1:
        directions = _positives_outside(risk, tol)
        if not directions:
            return ZeroTest(Verdict.DEGENERATE, start.distance, 0.0)
    for w in directions:
        test = _freeze_and_test(risk, w, tol)
        if test.verdict == Verdict.INFORMATIVE:
            return test
    return ZeroTest(Verdict.UNDECIDED, start.distance, 0.0)


def _freeze_and_test(risk: EmpiricalRisk, w: Array, tol: float) -> ZeroTest:
    """Freeze the best positives at w, find the steepest descent of that majorant, and repeat.

    The majorant's slope is never below the slope of Ramp, so its directions of descent are
    directions of descent of Ramp, and freezing at them again is never less steep.
    """
    best = ZeroTest(Verdict.UNDECIDED, np.nan, 0.0)
    for _ in range(_ROUNDS):
        test = convex_test(Slopes(risk.majorant(w)), tol)
        if test.direction is None or test.lower_bound <= best.lower_bound * (1 + 1e-9):
            return best
        best, w = test, test.direction
    return best


def _positives_outside(risk: EmpiricalRisk, tol: float) -> list[Array]:
    """For each positive of a single user outside K_N, a direction that separates it from K_N."""
    data, avg = risk.data, _as_avg(risk).surrogate
    n_pos = int(data.n_pos[0])
    directions = []
    for i in range(n_pos):
        rows = np.concatenate([data.rows[i : i + 1], data.rows[n_pos:]])
        indptr = np.array([0, rows.size])
        one = np.array([1])
        alone = RankingData.from_parts(
            data.X, rows, indptr, one, data.users, column_scale=data.column_scale
        )
        slopes = Slopes(EmpiricalRisk(avg, alone, "cap"))
        test = convex_test(slopes, tol)
        if test.verdict != Verdict.DEGENERATE:
            directions.append(test.direction)
    return [w for w in directions if w is not None]


def _as_avg(risk: EmpiricalRisk) -> EmpiricalRisk:
    surrogate = Avg(risk.surrogate.k, depth=risk.surrogate.depth)
    return EmpiricalRisk(surrogate, risk.data, "cap", risk.n_blocks, risk.n_threads)


def clipped_test(risk: EmpiricalRisk) -> ZeroTest:
    """Look for any w that puts a selected positive above a selected negative."""
    best = ZeroTest(Verdict.UNDECIDED, np.nan, 0.0)
    for w in _candidates(risk.data):
        norm = np.linalg.norm(w)
        if norm > 0.0:
            slope = _clipped_slope(risk, w / norm)
            if slope < -best.lower_bound:
                best = ZeroTest(Verdict.INFORMATIVE, np.nan, -slope, w / norm)
    return best


def _candidates(data: RankingData) -> Iterator[Array]:
    """A few likely directions, both ways; then the positives of one user, one by one."""
    sides = [data.rmatvec(side / max(side.sum(), 1)) for side in (data.labels, ~data.labels)]
    difference = sides[0] - sides[1]
    yield from (difference, -difference)
    logistic = logistic_regression(data, centred=True, max_iter=20)
    yield from (logistic, -logistic)
    if data.n_users == 1:
        for i in range(min(int(data.n_pos[0]), 50)):
            one = np.zeros(data.rows.size)
            one[i] = 1.0
            yield data.rmatvec(one) - sides[1]


def _clipped_slope(risk: EmpiricalRisk, w: Array) -> float:
    """``D(w)``, from the value at a scale where no hinge has ended."""
    scores = risk.scores(w)
    largest = np.abs(scores).max()
    if largest == 0.0:
        return 0.0
    values, _ = risk.user_values(scores * (0.25 / largest))
    fall = 1.0 - risk.mean_over_users(values)
    return -fall * largest / 0.25 if fall > _NO_FALL else 0.0
