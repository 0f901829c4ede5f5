"""The methods that the paper compares with, against naive definitions and other libraries."""

from dataclasses import replace
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.paper.baselines import (
    GreedyPAPK,
    LambdaRank,
    Logistic,
    PairwiseLogistic,
    PrecAtKAvg,
    SelectPAPK,
    SGDAtKAvg,
    scores_of,
)
from benchmarks.paper.baselines.common import mean_pap_at_k
from benchmarks.paper.baselines.select import selected
from helpers.problems import at_one_list, uneven
from helpers.reference_metrics import metric
from structsvm_papk import EmpiricalRisk, RankingData, SubgradientDescent
from structsvm_papk.datasets import engagement_lists, linear_lists

pytestmark = pytest.mark.study


def prec_avg(p, q, k):
    """Kar et al. (2015), by enumeration of every set of k items put on top.

    1/k max over tops of [ false positives + their scores - (beta - h)/(n_pos - h) * sum of the
    positives left out ], h the number of positives on top, beta = min(n_pos, k). With fewer
    positives than k some are left out.
    """
    items, beta = [*((s, 1) for s in p), *((s, 0) for s in q)], min(len(p), k)
    values = [0.0] if len(p) >= k else []  # k positives on top
    for top in combinations(range(len(items)), k):
        h = sum(items[i][1] for i in top)
        if h < beta:
            missed = sum(s for i, (s, positive) in enumerate(items) if positive and i not in top)
            wrong = sum(1 + items[i][0] for i in top if not items[i][1])
            values.append(wrong - (beta - h) / (len(p) - h) * missed)
    return max(values) / k


def toy(positives, negatives):
    """Ranking data of one user, from rows of features."""
    X = np.vstack([positives, negatives]).astype(float)
    return RankingData.from_groups(X, np.repeat([1, 0], [len(positives), len(negatives)]))


@pytest.fixture(scope="module")
def lists():
    drawn = linear_lists(n_users=30, n_items=30, n_features=5, noise=0.3, seed=4)
    return RankingData.from_groups(drawn.X, drawn.y, drawn.groups)


def test_prec_avg_against_enumeration():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n_pos, n_neg = rng.integers(1, 5), rng.integers(2, 5)
        k = int(rng.integers(1, n_neg + 1))
        p, q = np.round(2 * rng.standard_normal(n_pos), 1), np.round(rng.standard_normal(n_neg), 1)
        value, coef = at_one_list(PrecAtKAvg(k), p, q)
        assert value == pytest.approx(prec_avg(p, q, k), abs=1e-12)
        other = rng.standard_normal(n_pos + n_neg)
        there = at_one_list(PrecAtKAvg(k), other[:n_pos], other[n_pos:])[0]
        assert there >= value + coef @ (other - [*p, *q]) - 1e-12  # the subgradient inequality
        rows = [*((s, True, 1) for s in p), *((s, False, 0) for s in q)]
        assert n_pos < k or value >= 1 - metric(f"precision@{k}", rows, {"ties": "loss"}) - 1e-12
        balanced = [at_one_list(PrecAtKAvg(k, balanced=True), p + c, q + c)[0] for c in (0, 3)]
        assert balanced[0] == pytest.approx(balanced[1])  # a constant changes nothing


def test_stochastic_steps_approach_the_full_descent(lists):
    risk = EmpiricalRisk(PrecAtKAvg(4), lists)
    full = SGDAtKAvg(0.01, eta=0.5, max_iter=300, start_scale=0.0).solve(lists, 4)
    alone = SubgradientDescent(0.01, 0.5, 300, start_scale=0.0).solve(risk)
    assert np.array_equal(full.w, alone.w) and full.lower_bound == -np.inf
    part = SGDAtKAvg(0.01, 0.5, 300, batch_users=8, start_scale=0.0)
    result = part.solve(lists, 4)
    value = risk(result.w)[0] + 0.005 * result.w @ result.w
    assert result.objective == pytest.approx(value)  # judged on all the data
    assert abs(result.objective - full.objective) < 0.05 and full.objective < 0.5


def test_greedy_combines_two_rankers_that_fail_alone(lists):
    # each feature ranks one positive above all negatives; only their sum ranks both
    data = toy([[3, 0], [0, 3]], [[1, 0], [0, 1]])
    weak = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    assert [mean_pap_at_k(w, data, 2) for w in weak] == [0.5, 0.5]
    result = GreedyPAPK(grid=3).merge(weak, data, 2)
    assert result.objective == 0 and mean_pap_at_k(result.w, data, 2) == 1
    assert (result.w > 0).all()
    train, merging = GreedyPAPK(merge_share=0.2)._split(lists, np.random.default_rng(0))
    assert train.n_users == 24 and {*train.users} | {*merging.users} == {*lists.users}


def test_selected_by_hand():
    data = toy([[3.0], [1.0], [2.0]], [[0.0], [9.0], [4.0]])
    assert selected(data, data.scores([1.0]), 2).tolist() == [0, 2, 4, 5]
    assert selected(data, data.scores([-1.0]), 1).tolist() == [1, 3]


def test_logistic_agrees_with_scikit_learn():
    drawn = engagement_lists(n_users=12, n_features=4, noise=0.3, seed=2)
    data = RankingData.from_groups(drawn.X, drawn.y, drawn.groups)
    X, y = data.X[data.rows], data.labels
    theirs = LogisticRegression(C=20 / y.size, tol=1e-10, max_iter=1000).fit(X, y)
    ours = Logistic(0.05, max_iter=500).solve(data)
    assert ours.w == pytest.approx(theirs.coef_[0], abs=1e-3)
    centred = (
        X - (np.add.reduceat(X, data.indptr[:-1]) / data.sizes[:, None])[data.user_of_position]
    )
    theirs.fit(centred, y)
    ours = Logistic(0.05, centred=True, max_iter=500).solve(data)
    assert ours.w == pytest.approx(theirs.coef_[0], abs=1e-3)


def test_pairwise_logistic_is_at_its_optimum():
    """With every pair drawn often it is the regression on all differences, without an intercept."""
    data, losses, w = uneven(3), [], cp.Variable(4)
    for rows, n_pos in zip(np.split(data.X[data.rows], data.indptr[1:-1]), data.n_pos, strict=True):
        for positive in rows[:n_pos]:
            losses.append(cp.sum(cp.logistic((rows[n_pos:] - positive) @ w)) / (len(rows) - n_pos))
    loss = sum(losses) / len(losses) + 0.05 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    result = PairwiseLogistic(alpha=0.1, n_negatives=3000, max_iter=500).solve(data)
    assert result.w == pytest.approx(w.value, abs=0.02)


@pytest.mark.parametrize("baseline", [SGDAtKAvg(0.01, 0.5), GreedyPAPK(), SelectPAPK(), Logistic()])
def test_baselines_learn(baseline, lists):
    result = baseline.solve(lists, 4)
    assert mean_pap_at_k(result.w, lists, 4) > 0.75
    assert np.array_equal(scores_of(result, lists), lists.scores(result.w))


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg", "binary"])
def test_boosted_trees_learn(lists, objective):
    pytest.importorskip("lightgbm")
    result = LambdaRank(n_trees=30, n_leaves=7, objective=objective).solve(lists, 4)
    assert f"objective={objective}" in result.booster.model_to_string()
    scores = scores_of(result, lists)
    assert (scores[lists.labels] > np.quantile(scores, 0.7)).mean() > 0.7
    first = scores_of(replace(result, n_trees=1), lists)
    assert np.unique(first).size <= 7 < np.unique(scores).size
