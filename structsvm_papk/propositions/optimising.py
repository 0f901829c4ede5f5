"""Consistency by optimising: does the certified optimum for alpha -> 0 have zero risk?

A margin condition says that *some* w has zero loss; what a user gets is the minimiser. For an upper
bound of the risk the two agree: ``risk <= R(w) <= F(w)``, and F at the optimum is at most
``alpha/2 |w_m|^2`` for a w_m that realises the margin, which is made smaller than the smallest
positive risk ``1/(n_users beta k)``. For Avg, which is no upper bound, they need not agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.datasets.margin_conditions import margin_lists
from structsvm_papk.margins import find_scorer
from structsvm_papk.margins.conditions import CONDITIONS
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.propositions.search import Claim, Drawn, Effort
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.surrogates import make_surrogate

SLACK = 1e-3  # alpha/2 |w_m|^2 as a share of the smallest positive mean risk
_scorer = partial(find_scorer, time_limit=5, largest_margin=False)


@dataclass(frozen=True)
class Solved:
    """The user of largest risk at the certified optimum of a data set, ready to be shown."""

    risk: float
    size: float
    shown: dict[str, Any]

    def described(self, _: Sequence[str]) -> dict[str, Any]:
        """One user at the optimum, as ranked lists, with the data when they are few."""
        return self.shown


def _optimum(surrogate: str, condition: str) -> Drawn:
    """On data with a margin condition, the certified optimum of a surrogate has zero risk."""

    def draw(seed: int, effort: Effort) -> Iterator[Solved]:
        """Of data sets that realise the condition: of `margin_lists`, and small ones."""
        seed %= 10**6
        for n in range(effort.n_data[0]):
            lists = margin_lists(
                condition, n_users=3, n_pos=8, n_neg=15, n_features=3, k=3, exclude="any",
                seed=seed + n,
            )  # fmt: skip
            data = RankingData.from_groups(lists.X, lists.y, lists.groups)
            yield from _solved(data, lists.w_true, surrogate, 3)
        rng = np.random.default_rng(seed)
        for _ in range(effort.n_data[1]):
            X, y, k = _small_data(rng)
            scorer = _scorer(X, y, k, condition)
            stronger = CONDITIONS[1:] if condition == "weak" and scorer.w is not None else ()
            alone = all(_scorer(X, y, k, c).answer == "no" for c in stronger)
            if scorer.w is not None and alone:
                data = RankingData.from_groups(X, y)
                yield from _solved(data, scorer.w / scorer.margin, surrogate, k)

    words = "{n} data sets solved to a certified optimum, {n_bad} with positive risk"
    return Drawn(lambda solved: solved.risk, draw, words, size=lambda solved: solved.size)


def _claim(surrogate: str, condition: str, proposition: str = "") -> Claim:
    name = surrogate
    enough = ""
    control = _optimum(surrogate, "weak")
    control_words = "data that realise the weak margin only (no w realises more)"
    source = f"follows from {proposition} ({surrogate} is an upper bound of the risk)"
    if surrogate == "avg":
        name = "Avg"
        enough = "n_pos >= 2 beta - 1"
        control = _optimum("max", "strong")
        control_words = "Max under the strong margin"
        source = "suggested by Proposition 3; Avg(w) = 0 only needs mean(p) >= max q + 1"
    return Claim(
        id=f"optimum-{surrogate}-{condition}",
        title=f"Optimum of {surrogate} under the {condition} margin",
        claim=f"Where some w realises the {condition} margin{enough and f' (and {enough})'}, the "
        f"certified optimum of {name} for small alpha has zero risk.",
        formula=f"argmin alpha/2 |w|^2 + {name}(w), alpha -> 0, has risk = 0",
        hypothesis=f"data realise the {condition} margin (certified){enough and f', {enough}'}",
        source=source,
        statement=_optimum(surrogate, condition),
        control=control,
        control_words=control_words,
    )


CLAIMS = (
    _claim("max", "strong", "Proposition 6"),
    _claim("ts", "moderate", "Proposition 4"),
    _claim("avg", "beta"),
    _claim("avg", "strong"),
)


def _small_data(rng: np.random.Generator) -> tuple[Array, Array, int]:
    """Draw one user with a few whole-number points in the plane, one positive sometimes far off."""
    n_pos = 3
    n_neg = int(rng.integers(2, 4))
    k = 2
    X = rng.integers(-3, 4, (n_pos + n_neg, 2)).astype(float)
    X[:n_pos] += rng.integers(0, 6, 2)
    if rng.random() < 0.5:
        X[0] = rng.integers(-30, 31, 2)
    return X, np.repeat([1, 0], [n_pos, n_neg]), k


def _solved(data: RankingData, w_margin: Array, surrogate: str, k: int) -> Iterator[Solved]:
    """Solve with an alpha so small that alpha/2 |w_m|^2 cannot hide a positive risk."""
    beta = int(np.minimum(data.n_pos, k).max())
    alpha = 2 * SLACK / (data.n_users * beta * k) / float(w_margin @ w_margin)
    risk = EmpiricalRisk(make_surrogate(surrogate, k), data, "exclude")
    result = CuttingPlane(alpha=alpha, tol=1e-6, max_iter=500).solve(risk)
    if result.objective - result.lower_bound > 1e-6:
        return
    scores = data.scores(result.w)
    risks = list_risks(data, scores, k)
    user = int(np.argmax(risks))
    start = data.indptr[user]
    n = data.n_pos[user]
    stop = data.indptr[user + 1]
    X = np.asarray(data.X)
    sides = {"positives": slice(start, start + n)}
    sides["negatives"] = slice(start + n, stop)
    few = {side: X[data.rows[rows]].tolist() for side, rows in sides.items()}
    p, q = (np.sort(scores[rows])[::-1] for rows in sides.values())
    tied = bool((np.abs(p[:, None] - q) < 1e-6).any())
    values = {"risk": float(risks.max()), surrogate: float(result.objective)}
    shown = {
        "k": k,
        "lists": [{"positives": p.tolist(), "negatives": q.tolist()}],
        "values": values,
        "data": few | {"w": result.w.tolist()} if data.n_users == 1 and stop <= 8 else None,
    }
    yield Solved(values["risk"], float(np.abs(X).sum()) + 1000.0 * tied, shown)


def list_risks(data: RankingData, scores: Array, k: int) -> Array:
    """Definition 1 for each user, from the scores at the list positions."""
    table = metrics.evaluate(f"pap@{k}", scores, data.labels, indptr=data.indptr)
    return 1.0 - table.values[:, 0]
