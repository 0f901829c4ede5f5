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

A distance depends on the units of the features, the question whether it is zero does not: for an
invertible matrix T, 0 is in K exactly if it is in T'K. So that no small feature is lost beside a
large one, 0 counts as in K only where it is so to the tolerance in coordinates in which the items
of a user spread about equally in all directions (`Coordinates`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.bundle_test import bundle_test, distance_from_zero
from structsvm_papk.diagnosis.convex_test import Slopes, Verdict, ZeroTest, convex_test, rounding_of
from structsvm_papk.diagnosis.coordinates import Coordinates
from structsvm_papk.diagnosis.ramp_test import clipped_test, ramp_test
from structsvm_papk.errors import InputError, check_number, check_type
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.solvers.cutting_plane import default_blocks
from structsvm_papk.surrogates import SURROGATES as ALL_SURROGATES
from structsvm_papk.surrogates import Surrogate, make_surrogate

_TOL = 1e-8


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
        return {
            "surrogate": self.surrogate,
            "k": self.k,
            "n_users": self.n_users,
            "zero_is_optimal": self.zero_is_optimal,
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


def diagnose(risk: EmpiricalRisk, per_user: bool | int = True, tol: float = _TOL) -> Diagnosis:
    """Find out whether w = 0 is optimal, for all users jointly and for users alone.

    Parameters
    ----------
    risk : EmpiricalRisk
        Of any surrogate but 'ts_alg2'.
    per_user : bool or int
        Also test every user alone (some milliseconds each), or this many, evenly spread.
    tol : float
        0 counts as an element of the subdifferential where its distance is at most `tol` times the
        largest subgradient that was met, both in the given coordinates and in such where the items
        of a user spread equally in all directions. Scaling or mixing features changes nothing.

    Returns
    -------
    Diagnosis
        For convex surrogates every verdict is proven: by a subgradient at 0 of norm zero (up to
        `tol`), or by a direction of descent. For Ramp, 'degenerate' is proven by showing every
        positive of every user to lie in K_N, 'informative' by a direction, which is searched by
        freezing the best positives; for ClippedRamp 'informative' is proven by a direction.

    Raises
    ------
    InputError
        Surrogate 'ts_alg2', which is not convex and not bounded by its slope at 0.
    """
    check_type("risk", risk, (EmpiricalRisk, PartitionedRisk), "an EmpiricalRisk")
    check_number("tol", tol, above=0)
    if not has_test(risk.surrogate):
        raise InputError(
            f"no diagnosis of surrogate {risk.surrogate.name!r}; choose from "
            f"{', '.join(SURROGATES)}"
        )
    if not isinstance(per_user, bool):
        check_number("per_user", per_user, least=0)
    n = risk.n_users if per_user is True else min(per_user, risk.n_users)
    alone = np.linspace(0, risk.n_users - 1, n).astype(np.int64)
    users = tuple(_test(_one_user(risk, u), tol) for u in alone)
    joint = _test(risk, tol, users if n == risk.n_users else ())
    name, k = risk.surrogate.name, risk.surrogate.k
    return Diagnosis(name, k, risk.n_users, joint, users, risk.data.users[alone], risk.convex)


def diagnose_over_k(
    data: RankingData,
    ks: Sequence[int],
    surrogates: Sequence[str] = SURROGATES,
    per_user: bool | int = True,
    callback: Callable[[Diagnosis], Any] | None = None,
    depth: int | float | None = None,
) -> list[Diagnosis]:
    """Diagnose several surrogates at every k, over the users that have k negatives."""
    answers = []
    for k in ks:
        for name in surrogates:
            risk = EmpiricalRisk(make_surrogate(name, k, depth), data)
            answers.append(diagnose(risk, per_user))
            if callback is not None:
                callback(answers[-1])
    return answers


def _one_user(risk: EmpiricalRisk, u: int) -> EmpiricalRisk:
    data = risk.data
    rows = data.rows[data.indptr[u] : data.indptr[u + 1]]
    indptr, users = np.array([0, rows.size]), data.users[u : u + 1]
    part = RankingData.from_parts(
        data.X, rows, indptr, data.n_pos[u : u + 1], users, column_scale=data.column_scale
    )
    return EmpiricalRisk(risk.surrogate, part, "cap")


def _test(risk: EmpiricalRisk, tol: float, users: Sequence[ZeroTest] = ()) -> ZeroTest:
    if risk.convex:
        coordinates = Coordinates(risk.data)
        test = _joint_test(risk, tol, coordinates)
        if test.verdict is Verdict.UNDECIDED:
            return convex_test(Slopes(risk), tol, coordinates)
        return test if test.direction is None else _with_distance(risk, test, test.direction)
    return clipped_test(risk) if risk.surrogate.clipped else ramp_test(risk, tol, users)


def is_zero_optimal(
    risk: EmpiricalRisk,
    tol: float = _TOL,
    max_iter: int | None = None,
    coordinates: Coordinates | None = None,
) -> tuple[Verdict, Array | None]:
    """Verdict about w = 0 for all users jointly, and a direction of descent where there is one.

    As `diagnose`, but without the distance: the first direction that is met ends the search.
    """
    if not risk.convex:
        test = _test(risk, tol)
    else:
        coordinates = coordinates or Coordinates(risk.data)
        test = _joint_test(risk, tol, coordinates)
        if test.verdict is Verdict.UNDECIDED:
            test = convex_test(Slopes(risk), tol, coordinates, max_iter, any_direction=True)
    return test.verdict, test.direction


def _joint_test(risk: EmpiricalRisk, tol: float, coordinates: Coordinates) -> ZeroTest:
    """By cuts of blocks of users; undecided for a single user, who has one block."""
    if risk.n_users == 1:
        return ZeroTest(Verdict.UNDECIDED, np.nan, 0.0)
    slopes, noise = _slopes_of_blocks(risk), rounding_of(risk)
    scaled_noise = coordinates.noise(noise)
    answer = bundle_test(coordinates.of(slopes), risk.n_features, scaled_noise)
    if answer.direction is not None:
        w = coordinates.T @ answer.direction
        w /= np.linalg.norm(w)
        return ZeroTest(Verdict.INFORMATIVE, np.nan, float(-slopes(w).sum(axis=0) @ w), w)
    assert answer.point is not None
    distance, scale = (
        float(np.linalg.norm(coordinates.back(x))) for x in (answer.point, answer.first)
    )
    inside = bool(np.linalg.norm(answer.point) <= tol * np.linalg.norm(answer.first))
    inside &= distance <= 10 * tol * scale
    inside &= bool((noise <= 10 * tol * coordinates.scale).all())
    return ZeroTest(Verdict.DEGENERATE if inside else Verdict.UNDECIDED, distance, 0.0)


def _with_distance(risk: EmpiricalRisk, test: ZeroTest, direction: Array) -> ZeroTest:
    """An informative test with the distance, and with a steeper direction where one was met."""
    slopes = _slopes_of_blocks(risk)
    distance, w = distance_from_zero(slopes, direction)
    if w.any():
        w /= np.linalg.norm(w)
        if (fall := float(-slopes(w).sum(axis=0) @ w)) > test.lower_bound:
            test = ZeroTest(Verdict.INFORMATIVE, distance, fall, w)
    return replace(test, distance=max(distance, test.lower_bound))


def _slopes_of_blocks(risk: EmpiricalRisk) -> Callable[[Array], Array]:
    """Support points as sums over blocks of users: few, for the least squares of `bundle_test`."""
    n_blocks, n_threads = min(default_blocks(risk), 2 * risk.n_features + 32), risk.n_threads
    blocks = ListRisk(risk.surrogate, risk.data, "cap", n_blocks, n_threads, skip_rows=False)
    return Slopes(blocks).of_blocks


def falls_along(risk: EmpiricalRisk, w: Array) -> bool:
    """Whether a convex risk falls from w = 0 along w, beyond what rounding may have done."""
    slopes = Slopes(risk)
    return bool(slopes(w) @ w < -rounding_of(risk) @ np.abs(w))
