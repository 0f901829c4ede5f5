"""Consistency by optimising: does the certified optimum for alpha -> 0 have zero risk?

A margin condition says that *some* w has zero loss; what a user gets is the minimiser. For an upper
bound of the risk the two agree: ``risk <= R(w) <= F(w)``, and F at the optimum is at most
``alpha/2 |w_m|^2`` for a w_m that realises the margin, which is made smaller than the smallest
positive risk ``1/(n_users beta k)``. For Avg, which is no upper bound, they need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.datasets.margin_conditions import margin_lists
from structsvm_papk.margins import find_scorer
from structsvm_papk.margins.scores import CONDITIONS
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.propositions.search import Claim, Effort, Found
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.result import SolverResult
from structsvm_papk.surrogates import make_surrogate

SLACK = 1e-3  # alpha/2 |w_m|^2 as a share of the smallest positive mean risk


@dataclass
class OptimumOutcome(Found):
    """Data sets solved, the largest risk at a certified optimum, and the simplest bad data set."""

    n_bad: int = 0

    def drawn_words(self) -> str:
        """How many data sets were solved."""
        return (
            f"{self.instances} data sets solved to a certified optimum, {self.n_bad} with positive "
            "risk"
        )

    def described(self, _: Sequence[str]) -> dict[str, Any] | None:
        """The simplest bad data set; its values are kept with it."""
        return self.example and {k: v for k, v in self.example.items() if k != "size"}


@dataclass(frozen=True)
class Optimum:
    """On data with a margin condition, the certified optimum of a surrogate has zero risk."""

    surrogate: str
    condition: str

    def search(self, seed: int, effort: Effort) -> OptimumOutcome:
        """Solve data sets that realise the condition: of `margin_lists`, and small ones."""
        outcome, condition, seed = OptimumOutcome(), self.condition, seed % 10**6
        for n in range(effort.n_data[0]):
            lists = margin_lists(
                condition, n_users=3, n_pos=8, n_neg=15, n_features=3, k=3, exclude="any",
                seed=seed + n,
            )  # fmt: skip
            data = RankingData.from_groups(lists.X, lists.y, lists.groups)
            _record(data, lists.w_true, self.surrogate, 3, outcome)
        rng = np.random.default_rng(seed)
        for _ in range(effort.n_data[1]):
            X, y, k = _small_data(rng)
            scorer = find_scorer(X, y, k, condition, time_limit=5, largest_margin=False)
            stronger = condition == "weak" and scorer.answer == "yes" and _more_than_weak(X, y, k)
            if scorer.w is not None and not stronger:
                data = RankingData.from_groups(X, y)
                _record(data, scorer.w / scorer.margin, self.surrogate, k, outcome)
        return outcome


def _upper_bound(surrogate: str, condition: str, proposition: str) -> Claim:
    return Claim(
        id=f"optimum-{surrogate}-{condition}",
        title=f"Optimum of {surrogate} under the {condition} margin",
        claim=f"Where some w realises the {condition} margin, the certified optimum of "
        f"{surrogate} for small alpha has zero risk.",
        formula=f"argmin alpha/2 |w|^2 + {surrogate}(w), alpha -> 0, has risk = 0",
        source=f"follows from {proposition} ({surrogate} is an upper bound of the risk)",
        hypothesis=f"data realise the {condition} margin (certified)",
        statement=Optimum(surrogate, condition),
        control=Optimum(surrogate, "weak"),
        control_words="data that realise the weak margin only (no w realises more)",
    )


def _of_avg(condition: str) -> Claim:
    return Claim(
        id=f"optimum-avg-{condition}",
        title=f"Optimum of avg under the {condition} margin",
        claim=f"Where some w realises the {condition} margin (and n_pos >= 2 beta - 1), the "
        "certified optimum of Avg for small alpha has zero risk.",
        formula="argmin alpha/2 |w|^2 + Avg(w), alpha -> 0, has risk = 0",
        source="suggested by Proposition 3; Avg(w) = 0 only needs mean(p) >= max q + 1",
        hypothesis=f"data realise the {condition} margin (certified), n_pos >= 2 beta - 1",
        statement=Optimum("avg", condition),
        control=Optimum("max", "strong"),
        control_words="Max under the strong margin",
    )


CLAIMS = (
    _upper_bound("max", "strong", "Proposition 6"),
    _upper_bound("ts", "moderate", "Proposition 4"),
    _of_avg("beta"),
    _of_avg("strong"),
)


def _more_than_weak(X: Array, y: Array, k: int) -> bool:
    others = ("beta", "moderate", "strong")
    return any(
        find_scorer(X, y, k, c, time_limit=5, largest_margin=False).answer != "no" for c in others
    )


def _small_data(rng: np.random.Generator) -> tuple[Array, Array, int]:
    """Draw one user with a few whole-number points in the plane, one positive sometimes far off."""
    n_pos, n_neg, k = 3, int(rng.integers(2, 4)), 2
    X = rng.integers(-3, 4, (n_pos + n_neg, 2)).astype(float)
    X[:n_pos] += rng.integers(0, 6, 2)
    if rng.random() < 0.5:
        X[0] = rng.integers(-30, 31, 2)
    return X, np.repeat([1, 0], [n_pos, n_neg]), k


def _record(
    data: RankingData, w_margin: Array, surrogate: str, k: int, outcome: OptimumOutcome
) -> None:
    """Solve with an alpha so small that alpha/2 |w_m|^2 cannot hide a positive risk."""
    beta = int(np.minimum(data.n_pos, k).max())
    alpha = 2 * SLACK / (data.n_users * beta * k) / float(w_margin @ w_margin)
    risk = EmpiricalRisk(make_surrogate(surrogate, k), data)
    result = CuttingPlane(alpha=alpha, tol=1e-6, max_iter=500).solve(risk)
    if result.objective - result.lower_bound > 1e-6:
        return
    risks = list_risks(data, data.scores(result.w), k)
    outcome.instances += 1
    outcome.worst = max(outcome.worst, float(risks.max()))
    if risks.max() <= 0:
        return
    outcome.n_bad += 1
    example = _example(data, result, k, surrogate, int(np.argmax(risks)), float(risks.max()))
    if outcome.example is None or example["size"] < outcome.example["size"]:
        outcome.example = example


def regimes(
    seed: int = 0, n_steps: int = 10, k: int = 3, alpha: float = 1e-4
) -> list[dict[str, Any]]:
    """Move the negatives up, step by step: which conditions survive, and who still has zero risk?

    One user whose scores along ``w*`` are spread out; in step i all negatives move by ``i/2`` along
    ``w*``, so that first strong, then moderate and beta, then weak are lost.

    Returns ``shift``; ``conditions``, condition to "yes", "no" or "undecided" for any linear w;
    ``risk``, surrogate to the risk at its certified optimum.
    """
    rng = np.random.default_rng(seed)
    w_star = np.array([1.0, 0.0, 0.0])
    pos = rng.standard_normal((8, 3)) * 0.5 + np.outer(np.arange(8) * 0.6 + 2.0, w_star)
    neg = rng.standard_normal((20, 3)) * 0.5
    y = np.repeat([1, 0], [8, 20])
    return [
        {"shift": step / 2, **_regime(np.vstack([pos, neg + step / 2 * w_star]), y, k, alpha)}
        for step in range(n_steps)
    ]


def _regime(X: Array, y: Array, k: int, alpha: float) -> dict[str, Any]:
    data = RankingData.from_groups(X, y)
    conditions = {
        c: find_scorer(X, y, k, c, time_limit=10, largest_margin=False).answer for c in CONDITIONS
    }
    risk = {}
    for surrogate in ("max", "ts", "avg"):
        oracle = EmpiricalRisk(make_surrogate(surrogate, k), data)
        w = CuttingPlane(alpha=alpha, tol=1e-6, max_iter=500).solve(oracle).w
        risk[surrogate] = float(list_risks(data, data.scores(w), k)[0])
    return {"conditions": conditions, "risk": risk}


def list_risks(data: RankingData, scores: Array, k: int) -> Array:
    """Definition 1 for each user, from the scores at the list positions."""
    risks = np.empty(data.n_users)
    for u, (start, n, stop) in enumerate(
        zip(data.indptr[:-1], data.n_pos, data.indptr[1:], strict=True)
    ):
        p = -np.sort(-scores[start : start + n])[: min(n, k)]
        q = -np.sort(-scores[start + n : stop])[:k]
        risks[u] = (p[:, None] <= q).mean()
    return risks


def _example(
    data: RankingData, result: SolverResult, k: int, surrogate: str, user: int, risk: float
) -> dict[str, Any]:
    """One user at the optimum, as ranked lists, with the data when they are few."""
    start, n, stop = data.indptr[user], data.n_pos[user], data.indptr[user + 1]
    scores = data.scores(result.w)
    X = np.asarray(data.X)
    lists = {
        "positives": np.sort(scores[start : start + n])[::-1].tolist(),
        "negatives": np.sort(scores[start + n : stop])[::-1].tolist(),
    }
    few = data.n_users == 1 and stop - start <= 8
    return {
        "k": k,
        "lists": [lists],
        "values": {"risk": risk, surrogate: float(result.objective)},
        "data": {
            "positives": X[data.rows[start : start + n]].tolist(),
            "negatives": X[data.rows[start + n : stop]].tolist(),
            "w": result.w.tolist(),
        }
        if few
        else None,
        "size": float(np.abs(X).sum()) + (1000.0 if _has_tie(lists) else 0.0),
    }


def _has_tie(lists: dict[str, list[float]]) -> bool:
    p, q = np.array(lists["positives"]), np.array(lists["negatives"])
    return bool((np.abs(p[:, None] - q) < 1e-6).any())
