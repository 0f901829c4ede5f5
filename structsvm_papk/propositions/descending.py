"""The rate of Algorithm 1: so many steps of projected subgradient descent for so small a gap.

With steps ``eta / sqrt(t)`` and projection on a ball W of diameter D that holds the minimiser, for
subgradients of norm G at most,

    min over t <= T of F(w_t) - F*  <=  (D^2 / (2 eta) + eta G^2) / sqrt(T)

(Zinkevich, ICML 2003): O(1/eps^2) steps for a gap of eps. The gap is measured from a certified
optimum. With the printed Algorithm 2 for TS the objective is not convex, and nothing of this
follows: a descent may stay at a local minimum. There the gap is measured from a point that is known
to be lower.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.datasets.generators import linear_lists
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.propositions.claims import PAPER
from structsvm_papk.propositions.search import Claim, Drawn, Effort
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.surrogates import make_surrogate

_STEPS = 200
_MANY_STEPS = 3000  # after which the rate allows less than what the local minimum costs
_ALPHA = 1e-3


@dataclass(frozen=True)
class Descent:
    """The smallest gap after each number of steps, and the constant of its bound."""

    gaps: Array
    constant: float
    n_features: int

    def above(self, power: float) -> float:
        """By how much a gap is above ``constant / T^power``, at most."""
        steps = np.arange(1, self.gaps.size + 1)
        return float((self.gaps - self.constant / steps**power).max())

    def described(self, _: Sequence[str]) -> dict[str, Any]:
        """The last gap; the data are too many to show."""
        values = {
            "steps": float(self.gaps.size),
            "gap": float(self.gaps[-1]),
            "constant": self.constant,
        }
        return {"k": "none", "lists": [], "values": values}


def descent(
    risk: EmpiricalRisk, alpha: float, radius: float, least: float, n_steps: int = _STEPS
) -> Descent:
    """Run Algorithm 1 from w = 0 on the ball of a radius; gaps are measured from `least`."""
    w = np.zeros(risk.n_features)
    eta = np.sqrt(2.0) * radius / float(np.linalg.norm(risk(w)[1]))
    largest = 0.0
    objectives = []
    for t in range(1, n_steps + 1):
        value, slope = risk(w)
        slope = slope + alpha * w
        largest = max(largest, float(np.linalg.norm(slope)))
        objectives.append(value + alpha / 2 * float(w @ w))
        w = w - eta / np.sqrt(t) * slope
        w = w * (radius / max(float(np.linalg.norm(w)), radius))
    constant = float(2 * radius**2 / eta + eta * largest**2)
    return Descent(np.minimum.accumulate(objectives) - least, constant, risk.n_features)


def _draw(seed: int, effort: Effort) -> Iterator[Descent]:
    """Of Avg, Max and TS on random lists; and of the largest of many scores, which is hard."""
    for n in range(effort.n_data[0]):
        lists = linear_lists(n_users=5, n_items=20, n_features=5, noise=0.5, seed=seed % 10**6 + n)
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        for name in ("avg", "max", "ts"):
            risk = EmpiricalRisk(make_surrogate(name, 3), data, "exclude")
            optimum = CuttingPlane(_ALPHA).solve(risk)
            if optimum.w.any():
                yield descent(risk, _ALPHA, float(np.linalg.norm(optimum.w)), optimum.lower_bound)
    yield _largest_of(_STEPS)


def _largest_of(n: int) -> Descent:
    """One positive at 0, negatives at the unit vectors, k = 1: ``R(w) = (1 + max_j w_j)_+``.

    F is no smaller than at 0 as long as a coordinate was never touched (Nesterov). With alpha = 1/n
    the minimiser is -1 in each, where F is 1/2.
    """
    X = np.vstack([np.zeros((1, n)), np.eye(n)])
    data = RankingData.from_groups(X, np.arange(n + 1) == 0)
    risk = EmpiricalRisk(make_surrogate("avg", 1), data)
    return descent(risk, 1.0 / n, float(np.sqrt(n)), 0.5)


def _on_three_users(name: str) -> Iterator[Descent]:
    """Of TS at k = 1 on users whose descents end at w = (c, 0) by Algorithm 2: (1/10, 1) is lower.

    Positives (1, 0) and (0, 1); -9/10 and 0; 10 and 0; each with a negative at 0. The first user
    gains as much from either coordinate, and the third draws w along the first, where the second
    loses.
    """
    X = np.array([[1, 0], [0, 1], [0, 0], [-0.9, 0], [0, 0], [10, 0], [0, 0]])
    y = np.array([1, 1, 0, 1, 0, 1, 0])
    data = RankingData.from_groups(X, y, [0, 0, 0, 1, 1, 2, 2])
    risk = EmpiricalRisk(make_surrogate(name, 1), data)
    low = np.array([0.1, 1.0])
    radius = float(np.linalg.norm(low))
    least = risk(low)[0] + _ALPHA / 2 * radius**2
    if risk.convex:
        optimum = CuttingPlane(_ALPHA).solve(risk)
        radius = max(radius, float(np.linalg.norm(optimum.w)))
        least = optimum.lower_bound
    yield descent(risk, _ALPHA, radius, least, _MANY_STEPS)


def _rate(power: float) -> Drawn:
    words = "{n} descents of " + str(_STEPS) + " steps, {n_bad} of them slower than this"
    return Drawn(lambda run: run.above(power), _draw, words, size=lambda run: run.n_features)


def _rate_of_ts(name: str) -> Drawn:
    words = f"{{n}} descent of {_MANY_STEPS} steps on three users, {{n_bad}} slower than this"
    draw = partial(_on_three_users, name)
    return Drawn(
        lambda run: run.above(0.5), lambda *_: draw(), words, size=lambda run: run.n_features
    )


CLAIMS = (
    Claim(
        id="algorithm1-rate",
        title="The rate of Algorithm 1",
        claim="On Avg, Max and the exact TS projected subgradient descent with steps eta / sqrt(t) "
        "has a gap of eps after O(1/eps^2) steps.",
        formula="min_{t <= T} F(w_t) - F* <= (D^2/(2 eta) + eta G^2) / sqrt(T)",
        source=f"{PAPER}, Algorithm 1",
        hypothesis="a convex surrogate; W, of diameter D, holds the minimiser; |subgradient| <= G",
        statement=_rate(0.5),
        control=_rate(1.0),
        control_words="O(1/eps) steps, with the same constant",
    ),
    Claim(
        id="algorithm1-ts",
        title="Algorithm 1 for TS, with Algorithm 2",
        claim="Descent on what Algorithm 2 computes for TS has a gap of eps after O(1/eps^2) "
        "steps, too.",
        formula="min_{t <= T} F(w_t) - F* <= (D^2/(2 eta) + eta G^2) / sqrt(T), R = TS_alg2",
        source=f"{PAPER}, section 5",
        hypothesis="k = 1, three lists with a negative (0, 0) each, and the positives (1, 0) and "
        "(0, 1); (-9/10, 0); (10, 0)",
        statement=_rate_of_ts("ts_alg2"),
        control=_rate_of_ts("ts"),
        control_words="the exact TS, which is convex",
    ),
)
