"""Is w = 0 the optimum? What a surrogate can say about data, before any training.

Every surrogate has R(0) = 1, and near 0 every hinge is active, so that there
``R(w) = 1 + D(w)`` with D positively homogeneous. With K_N the convex hull of the means of
k negatives of a user, K_P the one of the means of beta positives, and h_K the support function of K
(all averaged over users):

    Avg, pAUC    D(w) = h_{K_N}(w) - mean(p) . w
    TS           the same, each user weighing n_pos / beta
    Max          D(w) = h_{K_N}(w) + h_{-K_P}(w)
    Ramp         D(w) = h_{K_N}(w) - h_{K_P}(w)                  not convex
    ClippedRamp  D(w) = -(mean of (p_(i) - q_(j))_+ over the selected pairs)

For the first five ``R(w) >= 1 + D(w)`` everywhere. So w = 0 minimises ``alpha/2 ||w||^2 + R(w)``,
for every alpha > 0, if and only if D >= 0; otherwise every w with D(w) < 0 is a way down from 0.
For the convex ones that is whether 0 lies in the subdifferential K of R at 0, and its distance
from there says how much there is to gain: by strong duality

    min_w alpha/2 ||w||^2 + 1 + D(w)  =  1 - dist(0, K)^2 / (2 alpha)  <=  min_w F(w)

ClippedRamp has R(0) = 1 as the largest value it can take: 0 is a minimiser only if no w puts any
selected positive above any selected negative.

For an invertible matrix T, 0 is in K exactly if it is in T'K. So that no small feature is lost
beside a large one, 0 counts as in K only where it is so to the tolerance in coordinates in which
the items of a user spread about equally in all directions (`Coordinates`).

`critical_depth` is the smallest training depth at which w = 0 is not the optimum. With m_u <= m'_u
negatives counted, a surrogate is nowhere below itself at m'_u, and 1 at w = 0 for both: where zero
is optimal at a depth it is so at every smaller one (docs/math/depth.md). So it is found by
bisection with the test at zero, without training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.convex_test import (
    Coordinates,
    Slopes,
    Verdict,
    ZeroTest,
    convex_test,
    rounding_of,
)
from structsvm_papk.errors import InputError, check_number, check_type
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk, logistic_regression
from structsvm_papk.solvers.solver import SolverResult, Status
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.losses import SURROGATES as ALL_SURROGATES
from structsvm_papk.surrogates.losses import Avg

_TOL = 1e-8
_NO_FALL = 1e-12  # ClippedRamp this close to 1 may be 1
_ROUNDS = 20


def has_test(surrogate: Surrogate | type[Surrogate]) -> bool:
    """Whether its slope at 0 says if w = 0 is optimal."""
    return surrogate.above_slope_at_zero and (surrogate.convex or surrogate.boxed)


SURROGATES = tuple(name for name, cls in ALL_SURROGATES.items() if has_test(cls))


@dataclass(frozen=True)
class Diagnosis:
    """Answer of `diagnose`.

    Attributes
    ----------
    surrogate : str
    k : int
    n_users : int
    joint : ZeroTest
        All users with one w.
    users : tuple of ZeroTest
        Users alone, each with a w of its own; empty if not asked for.
    labels : ndarray
        The labels of those users.
    convex : bool
        Whether the surrogate is.
    """

    surrogate: str
    k: int
    n_users: int
    joint: ZeroTest
    users: tuple[ZeroTest, ...] = field(default=(), repr=False)
    labels: Array | None = field(default=None, repr=False)
    convex: bool = True

    @property
    def zero_is_optimal(self) -> bool | None:
        """True, False, or None where it is undecided."""
        answers = {Verdict.DEGENERATE: True, Verdict.INFORMATIVE: False}
        return answers.get(self.joint.verdict)

    def share(self, verdict: Verdict = Verdict.DEGENERATE) -> float:
        """Share of the users with this verdict; nan where users were not tested."""
        hits = [test.verdict == verdict for test in self.users]
        return float(np.mean(hits)) if hits else np.nan

    def objective_bound(self, alpha: float) -> float:
        """``max(0, 1 - distance^2 / (2 alpha))``: no w has a smaller objective (if convex)."""
        if not self.convex:
            raise InputError(f"surrogate {self.surrogate!r} is not convex: there is no such bound")
        return max(0.0, 1.0 - self.joint.distance**2 / (2 * alpha))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("surrogate", "k", "n_users", "zero_is_optimal")
        return {name: getattr(self, name) for name in names} | {
            "verdict": str(self.joint.verdict),
            "distance": self.joint.distance,
            "distance_lower_bound": self.joint.lower_bound,
            "users": {str(v): float(self.share(v)) for v in Verdict} if self.users else None,
        }

    def __str__(self) -> str:
        words = {
            Verdict.DEGENERATE: "w = 0 is optimal for every alpha",
            Verdict.INFORMATIVE: "w = 0 is not optimal",
            Verdict.UNDECIDED: "no direction improves on w = 0 as far as was searched",
        }
        text = f"{self.surrogate} at k={self.k}: {words[self.joint.verdict]}"
        if self.users:
            text += f"; alone, it is for {self.share():.0%} of {len(self.users)} users"
        return text


def diagnose(risk: EmpiricalRisk, per_user: bool | int = True) -> Diagnosis:
    """Find out whether w = 0 is optimal, for all users jointly and for users alone.

    Parameters
    ----------
    risk : EmpiricalRisk
        Of any surrogate but 'ts_alg2'.
    per_user : bool or int
        Also test every user alone (some milliseconds each), or this many, evenly spread.
    Returns
    -------
    Diagnosis
        For convex surrogates every verdict is proven: by a subgradient at 0 of norm zero, or by a
        direction of descent. For Ramp, 'degenerate' is proven by showing every
        positive of every user to lie in K_N, 'informative' by a direction, which is searched by
        freezing the best positives; for ClippedRamp 'informative' is proven by a direction.

    Raises
    ------
    InputError
        Surrogate 'ts_alg2', which is not convex and not bounded by its slope at 0.
    """
    check_type("risk", risk, EmpiricalRisk, "an EmpiricalRisk, which has all data in one place")
    if not has_test(risk.surrogate):
        raise InputError(
            f"no diagnosis of surrogate {risk.surrogate.name!r}; choose from "
            f"{', '.join(SURROGATES)}"
        )
    if per_user is not True and per_user is not False:
        check_number("per_user", per_user, least=0)
    n = risk.n_users if per_user is True else min(per_user, risk.n_users)
    alone = np.linspace(0, risk.n_users - 1, n).astype(np.int64)
    users = tuple(test_at_zero(_one_user(risk, u)) for u in alone)
    alone_too = users if n == risk.n_users else ()
    joint = test_at_zero(risk, users=alone_too, with_distance=True)
    name = risk.surrogate.name
    k = risk.surrogate.k
    return Diagnosis(name, k, risk.n_users, joint, users, risk.data.users[alone], risk.convex)


def _one_user(risk: EmpiricalRisk, u: int) -> EmpiricalRisk:
    rows = risk.data.rows[risk.data.indptr[u] : risk.data.indptr[u + 1]]
    return EmpiricalRisk(risk.surrogate, _one_list(risk.data, rows, u, risk.data.n_pos[u]), "cap")


def _one_list(data: RankingData, rows: Array, user: int, n_pos: int) -> RankingData:
    """Some rows of a user, positives first."""
    lists = data.to_change()
    lists.rows = rows
    lists.indptr = np.array([0, rows.size])
    lists.n_pos = np.array([n_pos])
    lists.users = data.users[user : user + 1]
    lists.user_weight = None
    return lists


def test_at_zero(
    risk: EmpiricalRisk,
    tol: float = _TOL,
    users: Sequence[ZeroTest] = (),
    coordinates: Coordinates | None = None,
    with_distance: bool = False,
) -> ZeroTest:
    """The test of all users jointly; those of `users` alone help with Ramp.

    0 counts as an element of the subdifferential where its distance is at most `tol` times the
    largest subgradient that was met, both in the given coordinates and in such where the items of a
    user spread equally in all directions. Scaling or mixing features changes nothing.
    """
    if risk.convex:
        return convex_test(risk, tol, coordinates, with_distance)
    return clipped_test(risk) if risk.surrogate.clipped else ramp_test(risk, tol, users)


def beside_zero(
    risk: EmpiricalRisk, solver: Any, result: SolverResult, callback: Callback | None = None
) -> tuple[SolverResult, bool]:
    """The result of a solve, and whether zero is proved to be optimal where it ended there.

    Where the test at zero finds a direction along which the risk falls, the solver starts there.
    """
    if result.w.any() or result.status is not Status.CRITICAL or not has_test(risk.surrogate):
        return result, False
    test = test_at_zero(risk)
    if test.direction is None:
        return result, test.verdict is Verdict.DEGENERATE
    again = solver.solve(risk, test.direction, callback)
    return (again if again.objective < result.objective else result), False


def falls_along(risk: EmpiricalRisk, w: Array) -> bool:
    """Whether a convex risk falls from w = 0 along w, beyond what rounding may have done."""
    return bool(Slopes(risk).fall(w) > rounding_of(risk) @ np.abs(w))


def ramp_test(risk: EmpiricalRisk, tol: float, users: Sequence[ZeroTest]) -> ZeroTest:
    """Every positive inside K_N proves degeneracy; a direction, from freezing, disproves it."""
    if risk.surrogate.is_convex_on(risk.data.n_pos):  # convex on these lists
        return convex_test(risk, tol)
    if users and all(test.verdict == Verdict.DEGENERATE for test in users):
        largest = max(test.distance for test in users)
        return ZeroTest(Verdict.DEGENERATE, largest, 0.0)
    start = convex_test(_as_avg(risk), tol)
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
        test = convex_test(risk.majorant(w), tol)
        if test.direction is None or test.lower_bound <= best.lower_bound * (1 + 1e-9):
            return best
        best = test
        w = test.direction
    return best


def _positives_outside(risk: EmpiricalRisk, tol: float) -> list[Array]:
    """For each positive of a single user outside K_N, a direction that separates it from K_N."""
    data = risk.data
    avg = _as_avg(risk).surrogate
    n_pos = int(data.n_pos[0])
    directions = []
    for i in range(n_pos):
        rows = np.concatenate([data.rows[i : i + 1], data.rows[n_pos:]])
        test = convex_test(EmpiricalRisk(avg, _one_list(data, rows, 0, 1), "cap"), tol)
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


# --- from which depth on zero is not optimal ------------------------------------------------------


_DEPTH_TOL = 1e-6  # of the distance of zero from the subdifferential


@dataclass(frozen=True)
class CriticalDepth:
    """Answer of `critical_depth`.

    Attributes
    ----------
    surrogate : str
    k : int
    degenerate_to : int
        Depth up to which w = 0 is optimal for every alpha, to the tolerance of the test; 0 if it is
        not even at depth k.
    informative_from : int or None
        Depth from which w = 0 is not optimal, proved by a direction; None where none was found.
    deepest : int
        Largest number of negatives of a user: all negatives count from there on.
    direction : ndarray or None
        Along which the surrogate falls from zero at depth `informative_from`.
    """

    surrogate: str
    k: int
    degenerate_to: int
    informative_from: int | None
    deepest: int
    direction: Array | None = field(default=None, repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether no depth is left undecided."""
        end = self.deepest + 1 if self.informative_from is None else self.informative_from
        return max(self.degenerate_to, min(self.k, self.deepest) - 1) >= end - 1

    def as_dict(self) -> dict[str, int | bool | str | None]:
        """Plain values for JSON."""
        names = ("surrogate", "k", "degenerate_to", "informative_from", "deepest")
        return {name: getattr(self, name) for name in names} | {"exact": self.is_exact}

    def __str__(self) -> str:
        if self.informative_from is None:
            proved = f"up to {self.degenerate_to}" if self.degenerate_to else "nowhere proved"
            return (
                f"{self.surrogate}: no depth was found at which w = 0 is not optimal "
                f"(optimal {proved}, all negatives are {self.deepest})"
            )
        if self.informative_from == self.k:
            return f"{self.surrogate}: w = 0 is not optimal at depth k={self.k} already"
        kind = "critical depth" if self.is_exact else "critical depth at most"
        return f"{self.surrogate}: {kind} {self.informative_from} (of {self.deepest})"


def critical_depth(risk: EmpiricalRisk) -> CriticalDepth:
    """Find the smallest depth m >= k at which w = 0 does not minimise a risk.

    Every user counts ``min(m, n_neg)`` negatives; the depth of the risk's own surrogate does not
    enter.

    Parameters
    ----------
    risk : EmpiricalRisk
        Of any surrogate but 'ts_alg2'.

    References
    ----------
    docs/math/depth.md, "Degeneracy is monotone in the depth".
    """
    check_type("risk", risk, EmpiricalRisk, "an EmpiricalRisk, which has all data in one place")
    k = risk.surrogate.k
    deepest = int(risk.data.n_neg.max())
    degenerate_to = 0
    informative_from = None
    direction = None
    coordinates = Coordinates(risk.data)
    # the answer is in low, .., high; high: none
    low = min(k, deepest)
    high = deepest + 1
    m = low  # the depth of the paper first
    while low < high:
        surrogate = replace(risk.surrogate, depth=max(m, k))
        at_m = EmpiricalRisk(surrogate, risk.data, "cap", n_threads=risk.n_threads)
        verdict = Verdict.INFORMATIVE
        if direction is None or not at_m.convex or not falls_along(at_m, direction):
            test = test_at_zero(at_m, _DEPTH_TOL, coordinates=coordinates)
            verdict = test.verdict
            if test.direction is not None:
                direction = test.direction
        if verdict is Verdict.INFORMATIVE:
            high = informative_from = m
        else:
            if verdict is Verdict.DEGENERATE:
                degenerate_to = m
            low = m + 1
        m = (low + high) // 2
    name = risk.surrogate.name
    return CriticalDepth(name, k, degenerate_to, informative_from, deepest, direction)
