"""What n users buy: the risk of new users, bounded by how little one user moves the optimum.

Proofs: docs/math/proofs.md, "Stability". The risk may be in memory, on files or on a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import increasing_order, top_k
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number, check_type
from structsvm_papk.solvers.solver import SolverResult
from structsvm_papk.surrogates import Surrogate

_STEPS = 64  # of the sum of weights, on each of which the largest slope is bounded
_ROWS = 1 << 14  # read at a time
_LARGEST_GRAM = 256  # above it, an eigenvalue is bounded by the Frobenius norm
_ROUNDING = 1e-9  # what distances are widened by, relative


@dataclass(frozen=True)
class StabilityBound:
    """What `stability` returns.

    Attributes
    ----------
    k : int
    alpha : float
    n_users : int
        Users of the mean that was minimised.
    risk : float
        Mean pAp@k risk of these users at the trained weights.
    bound : float
        Their mean leave-one-user-out risk is at most this, and so is, in expectation over the
        users, the risk of a new user under weights trained on one user less.
    values : ndarray of shape (n_users,)
        The bound is their mean: each user's risk under the least favourable weights near by.
    distances : ndarray of shape (n_users,)
        How far the trained weights are at most from the exact optimum without the user.
    from_gap : float
        The part of each distance that is due to the gap of the certificate.
    note : str
        What the statement about new users takes as fixed besides; empty without anything.
    """

    k: int
    alpha: float
    n_users: int
    risk: float
    bound: float
    values: Array = field(repr=False)
    distances: Array = field(repr=False)
    from_gap: float
    note: str
    _lists: tuple[Array, ...] = field(repr=False)

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing, as no risk is above 1."""
        return self.bound >= 1.0

    def at(self, n_users: float) -> float:
        """The bound that so many users of the same kind would give at this optimum and alpha."""
        shift = (self.distances - self.from_gap) * (self.n_users / n_users) + self.from_gap
        return float(_worst_risks(*self._lists, shift, self.k).mean())

    def users_for(self, target: float) -> float:
        """About how many users of the same kind bring the bound to `target`; inf: none do.

        A projection, no guarantee: it takes optimum and users as they are here.
        """
        check_number("half_width", target, above=0, below=1)
        low = 1.0
        high = 1e12
        if self.at(high) > target:
            return np.inf
        while high / low > 1.01:
            middle = np.sqrt(low * high)
            low, high = (low, middle) if self.at(middle) <= target else (middle, high)
        return float(high)

    def as_dict(self) -> dict[str, Any]:
        """The numbers, without those of each user, as plain values."""
        plain = {name: getattr(self, name) for name in ("k", "alpha", "n_users", "risk", "bound")}
        return plain | {
            "largest_distance": float(self.distances.max()),
            "from_gap": self.from_gap, "in_expectation": True, "vacuous": self.vacuous,
            "note": self.note,
        }  # fmt: skip


def stability(risk: Any, result: SolverResult) -> StabilityBound:
    """Bound of the pAp@k risk of new users, from a certified fit and its own training users.

    Without user u the exact optimum lies within ``d_u = v_u G_u / (alpha sum v) + sqrt(2 e /
    alpha)`` of the trained weights: v are the users' weights, e the gap of the certificate, G_u the
    largest slope of the user's loss. So no leave-one-user-out risk exceeds the user's risk with
    each positive's score lowered and each negative's raised by d_u times its distance from the mean
    row, and the mean of these is the bound. It needs neither held-out users nor refits, and
    contains no dimension.

    For the users at hand this is certain. For users drawn independently it bounds the expected risk
    of a new user under weights trained on one user less, with the same ``alpha sum v``; alpha,
    surrogate, depth, and whether columns are curves must not have been chosen by these users. The
    columns' scale and the knots of curves, which training takes from them, count as fixed: `note`.
    So do levels of text, cells of pairs, and what stands in for missing values.

    Parameters
    ----------
    risk : EmpiricalRisk, StreamedRisk or DaskRisk
        Of Avg, pAUC, Max or TS at any depth: what was minimised.
    result : SolverResult
        Of a solver with a certificate.

    Returns
    -------
    StabilityBound
        ``bound``, ``risk``, ``values``, ``distances``; ``users_for(target)``.

    Raises
    ------
    InputError
        No certificate, a surrogate that is not convex or not known in this respect, a single user,
        or a result that is not of this risk.
    """
    _check(risk, result)
    scale = risk.units.scale
    if scale is None:
        scale = np.ones(risk.n_features)
    task = partial(_geometry, surrogate=risk.surrogate, w=result.w, scale=scale)
    parts = list(zip(*risk.on_each_partition(task), strict=True))
    scores, radii, slopes, sizes, n_pos, weight = (np.concatenate(part) for part in parts)
    gap = max(result.objective - result.lower_bound, 0.0) + 1e-14 * result.objective
    from_gap = float(np.sqrt(2 * gap / result.alpha))
    distances = weight * slopes / (result.alpha * weight.sum()) * (1 + _ROUNDING) + from_gap
    lists = scores, radii, np.concatenate([[0], np.cumsum(sizes)]), n_pos
    k = risk.surrogate.k
    values = _worst_risks(*lists, distances, k)
    fixed = ["the columns' scale"] * (risk.units.scale is not None)
    fixed += ["the knots of the curves"] * (risk.of_users.knots is not None)
    fixed += ["alpha times the sum of the users' weights"] * bool(np.ptp(weight))
    return StabilityBound(
        k, result.alpha, n_pos.size, float(_worst_risks(*lists, np.zeros(n_pos.size), k).mean()),
        float(values.mean()), values, distances, from_gap, " and ".join(fixed), lists,
    )  # fmt: skip


def _check(risk: Any, result: SolverResult) -> None:
    if not hasattr(risk, "on_each_partition"):
        raise InputError("risk must be an EmpiricalRisk, StreamedRisk or DaskRisk")
    check_type("result", result, SolverResult, "a SolverResult")
    if not risk.surrogate.convex:
        raise InputError(
            f"stability is for convex surrogates, and {risk.surrogate.name!r} is not; fit avg, "
            "pauc, max or ts"
        )
    if risk.surrogate.weight_shares(np.ones(1), np.ones(1)) is None:
        raise InputError(f"the slopes of surrogate {risk.surrogate.name!r} are not known")
    if risk.of_users.label_gain is not None:
        raise InputError("stability is for binary labels: give the risk at one relevance_threshold")
    if risk.n_users < 2:
        raise InputError("stability needs several users: this risk has one")
    if not np.isfinite(result.lower_bound):
        raise InputError("the result has no certificate: fit with CuttingPlane or DualAscent")
    if result.w.shape != (risk.n_features,):
        raise InputError(
            f"the result has {result.w.size} weights, the risk {risk.n_features} features"
        )
    objective = result.alpha / 2 * float(result.w @ result.w) + risk(result.w)[0]
    if abs(objective - result.objective) > 1e-8 * max(abs(objective), 1e-3):
        raise InputError(
            f"the result is not of this risk: its objective is {result.objective:.9g}, and here "
            f"{objective:.9g}; give data, surrogate, depth, users' weights and scaling of the fit"
        )


def _geometry(partition: Any, *, surrogate: Surrogate, w: Array, scale: Array) -> tuple[Array, ...]:
    """Of each row its score and distance from the user's mean row, of each user the slope."""
    data = partition.data
    found = [
        _spread(rows, starts, n_pos, w[columns], scale[columns])
        for rows, columns, starts, n_pos in _dense_lists(data)
    ]
    scores, radii, apart, var_pos, var_neg = map(np.concatenate, zip(*found, strict=True))
    shares = surrogate.weight_shares(data.n_pos, data.n_neg)
    assert shares is not None  # `_check` asked
    share_pos, share_neg = shares
    slopes = _largest_slopes(apart, (var_pos, share_pos), (var_neg, share_neg))
    slopes *= surrogate.l1_bound(data.n_pos) / 2
    return scores, radii, slopes, data.sizes, data.n_pos, data.weight_of_user


def _dense_lists(data: Any) -> Iterator[tuple[Array, ...]]:
    """Some users' rows at a time, as floats; their columns; where each user starts; n_pos."""
    several = 1 if data.is_sparse else max(_ROWS * data.n_users // data.rows.size, 1)
    for first in range(0, data.n_users, several):
        starts = data.indptr[first : first + several + 1]
        weights, rows = data.columns.written_out(data.rows[starts[0] : starts[-1]])
        yield rows, weights, starts - starts[0], data.n_pos[first : first + several]


@kernel
def _spread(
    rows: Array, starts: Array, n_pos: Array, w: Array, scale: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Of each row its score and distance from the user's mean row; overwrites the rows.

    Of each user the distance of the positives' mean from the negatives', and the largest variance
    in any direction of either.
    """
    scores = np.empty(len(rows))
    radii = np.empty(len(rows))
    apart = np.zeros(n_pos.size)
    var_pos = np.empty(n_pos.size)
    var_neg = np.empty(n_pos.size)
    for u in range(n_pos.size):
        first = starts[u]
        middle = starts[u] + n_pos[u]
        last = starts[u + 1]
        _centre(rows[first:last])
        for i in range(first, last):
            scores[i] = 0.0
            radii[i] = 0.0
            for f in range(w.size):
                x = rows[i, f] = rows[i, f] / scale[f]
                scores[i] += x * w[f]
                radii[i] += x * x
            radii[i] = math.sqrt(radii[i])
        difference = _centre(rows[first:middle]) - _centre(rows[middle:last])
        apart[u] = math.sqrt((difference * difference).sum())
        var_pos[u] = _top_eigenvalue(rows[first:middle]) / n_pos[u]
        var_neg[u] = _top_eigenvalue(rows[middle:last]) / (last - middle)
    return scores, radii, apart, var_pos, var_neg


@kernel
def _centre(rows: Array) -> Array:
    """Take the mean off the rows; returns it."""
    mean = np.zeros(rows.shape[1])
    for row in rows:
        mean += row
    mean /= len(rows)
    for row in rows:
        row -= mean
    return mean


@kernel
def _top_eigenvalue(rows: Array) -> float:
    """Of ``rows' rows``, or a little more."""
    gram = rows.T @ rows if rows.shape[1] <= rows.shape[0] else rows @ rows.T
    if len(gram) > _LARGEST_GRAM:
        return math.sqrt((gram * gram).sum())
    return max(np.linalg.eigvalsh(gram)[-1], 0.0)


def _largest_slopes(apart: Array, *sides: tuple[Array, Array]) -> Array:
    """Largest ``|sum c_j x_j - sum c_i x_i|`` over weights that spread over shares of the rows.

    Where each side's weights add up to t <= 1 it is ``t apart + sum_sides sqrt(var (t / share -
    t^2))`` at most, var the largest variance in any direction; this is bounded on steps of t.
    """
    low = np.arange(_STEPS) / _STEPS
    high = np.arange(1, _STEPS + 1) / _STEPS
    slopes = np.multiply.outer(apart, high)
    for var, share in sides:
        inverse = 1 / share[:, None]
        t = np.clip(inverse / 2, low, high)
        slopes += np.sqrt(var[:, None] * np.maximum(t * inverse - t**2, 0.0))
    return slopes.max(axis=1)


@kernel
def _worst_risks(
    scores: Array, radii: Array, indptr: Array, n_pos: Array, distances: Array, k: int
) -> Array:
    """Risk of each user with positives lowered and negatives raised by distance times radius."""
    risks = np.empty(n_pos.size)
    for u in range(n_pos.size):
        first = indptr[u]
        middle = indptr[u] + n_pos[u]
        last = indptr[u + 1]
        p = _largest(scores[first:middle] - distances[u] * radii[first:middle], k)
        q = _largest(scores[middle:last] + distances[u] * radii[middle:last], k)
        wrong = 0
        above = 0
        for positive in p:  # the lower the positive, the more negatives are not below it
            while above < q.size and q[above] >= positive:
                above += 1
            wrong += above
        risks[u] = wrong / (p.size * q.size)
    return risks


@kernel
def _largest(values: Array, k: int) -> Array:
    chosen = values[top_k(values, min(k, values.size))]
    return chosen[increasing_order(chosen)[::-1]]
