import builtins

import cvxpy as cp
import numpy as np
import pytest

from helpers.reference import risk
from helpers.reference_baselines import prec_avg_by_subsets, prec_avg_few_positives, precision_risk
from structsvm_papk import EmpiricalRisk, RankingData, SolverResult, Status
from structsvm_papk.baselines import (
    GreedyPAPK,
    LambdaRank,
    Logistic,
    PairwiseLogistic,
    PrecAtKAvg,
    SelectPAPK,
    SGDAtKAvg,
    scores_of,
)
from structsvm_papk.baselines.cross_entropy import CrossEntropy
from structsvm_papk.baselines.select import selected
from structsvm_papk.baselines.sgd_at_k_avg import part_of_lists
from structsvm_papk.datasets import engagement_lists, linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.rankers.solver_race import mean_pap_at_k

pytestmark = pytest.mark.study


def one_list(p, q, k):
    """Value and coefficients of one list."""
    scores = np.array([*p, *q], dtype=float)
    bounds = np.array([0, scores.size])
    return PrecAtKAvg(k).value_and_subgradient(scores, bounds, np.array([len(p)]))


def toy(positives, negatives, users=None):
    """Ranking data of one user, from rows of features."""
    X = np.vstack([positives, negatives]).astype(float)
    y = np.repeat([1, 0], [len(positives), len(negatives)])
    return RankingData.from_groups(X, y, users)


@pytest.fixture(scope="module")
def lists():
    found = linear_lists(n_users=30, n_items=30, n_features=5, noise=0.3, seed=4)
    return RankingData.from_groups(found.X, found.y, found.groups)


# ----------------------------------------------------------------- the surrogate of precision@k


def test_prec_avg_by_hand():
    # k = 2, p = (1, 0), q = (1/2, -1): tops h = 0: 2 - 1/2 - 1 = 1/2; h = 1: 1 + 1/2 - 0 = 3/2;
    # h = 2: 0. So 3/4.
    value, coef = one_list([1, 0], [0.5, -1], 2)
    assert value[0] == 0.75
    assert coef.tolist() == [0, -0.5, 0.5, 0]


def test_prec_avg_is_one_at_zero_and_nought_beyond_the_margin():
    assert one_list([0, 0, 0], [0, 0, 0], 2)[0][0] == 1
    assert one_list([5, 5, 5], [0, 0, 0], 2)[0][0] == 0


@pytest.mark.parametrize("seed", range(40))
def test_prec_avg_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    n_pos, n_neg = rng.integers(1, 5), rng.integers(2, 5)
    k = int(rng.integers(1, n_neg + 1))
    p, q = np.round(2 * rng.standard_normal(n_pos), 1), np.round(rng.standard_normal(n_neg), 1)
    naive = prec_avg_by_subsets if n_pos >= k else prec_avg_few_positives
    value, coef = one_list(p, q, k)
    assert value[0] == pytest.approx(naive(p.tolist(), q.tolist(), k), abs=1e-12)
    other = rng.standard_normal(n_pos + n_neg)
    there = one_list(other[:n_pos], other[n_pos:], k)[0]
    assert there[0] >= value[0] + coef @ (other - [*p, *q]) - 1e-12  # the subgradient inequality


@pytest.mark.parametrize("seed", range(10))
def test_balanced_prec_avg_ignores_a_constant(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.standard_normal(2), rng.standard_normal(6)

    def value(shift, balanced):
        scores = np.array([*p, *q]) + shift
        surrogate = PrecAtKAvg(4, balanced=balanced)
        return surrogate.value_and_subgradient(scores, np.array([0, 8]), np.array([2]))[0][0]

    assert value(0.0, True) == pytest.approx(prec_avg_few_positives(p, q, 4, weight=4))
    assert value(3.0, True) == pytest.approx(value(0.0, True))
    assert value(3.0, False) == pytest.approx(value(0.0, False) + 3.0 * (4 - 2) / 4)


@pytest.mark.parametrize("seed", range(20))
def test_prec_avg_is_above_the_precision_risk(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.standard_normal(5), rng.standard_normal(6)
    for k in (1, 3, 5):
        assert one_list(p, q, k)[0][0] >= precision_risk(p, q, k) - 1e-12


# ----------------------------------------------------------------- SVM-pAUC and SGD@k-avg


def test_first_step_of_sgd_at_k_by_hand():
    # from w = 0 with k = 1: h = 0 is active, subgradient = best negative - mean positive = -1
    data = toy([[2.0], [0.0]], [[0.0], [0.0]])
    result = SGDAtKAvg(0.0, eta=0.5, max_iter=2, start_scale=0.0).solve(data, 1)
    assert result.w[0] == pytest.approx(0.5)
    assert result.objective == pytest.approx(0.5)  # 1 - mean positive = 1 - 1/2; h = 1: 0
    assert result.lower_bound == -np.inf


def test_stochastic_steps_approach_the_full_descent(lists):
    full = SGDAtKAvg(0.01, eta=0.5, max_iter=300, start_scale=0.0).solve(lists, 4)
    part = SGDAtKAvg(0.01, 0.5, 300, batch_users=8, batch_share=0.6, start_scale=0.0)
    found = part.solve(lists, 4)
    risk = EmpiricalRisk(PrecAtKAvg(4), lists)
    value = risk(found.w)[0] + 0.005 * found.w @ found.w
    assert found.objective == pytest.approx(value)  # judged on all the data
    assert abs(found.objective - full.objective) < 0.05
    assert full.objective < 0.5
    assert np.array_equal(part.solve(lists, 4).w, found.w)


def test_part_of_lists_keeps_the_shares(lists):
    data, k = part_of_lists(lists, 4, 0.5, np.random.default_rng(0))
    assert k == 2
    assert (data.n_pos == 3).all() and (data.n_neg == 12).all()
    rows = {tuple(row) for row in lists.X[lists.rows[lists.labels]]}
    assert {tuple(row) for row in data.X[data.rows[data.labels]]} <= rows


# ----------------------------------------------------------------- Greedy and Select


def test_greedy_combines_two_rankers_that_fail_alone():
    # each feature ranks one positive above all negatives; only their sum ranks both
    data = toy([[3, 0], [0, 3]], [[1, 0], [0, 1]])
    weak = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    assert [mean_pap_at_k(w, data, 2) for w in weak] == [0.5, 0.5]
    result = GreedyPAPK(grid=3).merge(weak, data, 2)
    assert result.objective == 0 and mean_pap_at_k(result.w, data, 2) == 1
    assert (result.w > 0).all()


def test_greedy_never_falls_below_its_best_ranker():
    data = toy([[3, 0], [2, 0]], [[1, 5], [0, 1]])
    good, bad = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    result = GreedyPAPK().merge([bad, good], data, 1)
    assert result.objective == 0
    assert np.array_equal(result.w, good)


def test_selected_by_hand():
    data = toy([[3.0], [1.0], [2.0]], [[0.0], [9.0], [4.0]])
    assert selected(data, data.scores([1.0]), 2).tolist() == [0, 2, 4, 5]
    assert selected(data, data.scores([-1.0]), 1).tolist() == [1, 3]


def test_select_stops_where_the_selection_repeats():
    data = toy([[2.0], [3.0]], [[0.0], [1.0], [-1.0]])
    result = SelectPAPK(alpha=0.1, rounds=50).solve(data, 1)
    assert result.w[0] > 0 and result.objective == 0
    assert result.n_iter < 50


# ----------------------------------------------------------------- logistic regression, trees


def test_cross_entropy_gradient():
    rng = np.random.default_rng(0)
    loss = CrossEntropy(rng.standard_normal((20, 3)), rng.random(20) < 0.5, 0.3)
    point, step = rng.standard_normal(4), 1e-6
    slope = [(loss(point + e)[0] - loss(point - e)[0]) / (2 * step) for e in step * np.eye(4)]
    assert loss(point)[1] == pytest.approx(slope, abs=1e-8)


def test_logistic_agrees_with_scikit_learn(lists):
    from sklearn.linear_model import LogisticRegression

    alpha = 0.01
    X, y = lists.X[lists.rows], lists.labels
    theirs = LogisticRegression(C=1 / (alpha * y.size), tol=1e-10, max_iter=1000).fit(X, y)
    ours = Logistic(alpha, max_iter=500).solve(lists)
    assert ours.w == pytest.approx(theirs.coef_[0], abs=1e-3)


def test_users_of_unequal_lists_can_weigh_the_same():
    from sklearn.linear_model import LogisticRegression

    found = engagement_lists(n_users=12, n_features=4, noise=0.3, seed=2)
    data = RankingData.from_groups(found.X, found.y, found.groups)
    share = np.repeat(1 / (data.n_users * data.sizes), data.sizes)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000)
    theirs.fit(data.X[data.rows], data.labels, sample_weight=share / 0.05)
    ours = Logistic(0.05, equal_users=True, max_iter=500).solve(data)
    assert ours.w == pytest.approx(theirs.coef_[0], abs=1e-3)
    assert Logistic(0.05, max_iter=500).solve(data).w != pytest.approx(ours.w, abs=1e-2)


def test_greedy_merges_on_users_it_did_not_learn_from(lists):
    train, merging = GreedyPAPK(merge_share=0.2)._split(lists, np.random.default_rng(0))
    assert (train.n_users, merging.n_users) == (24, 6)
    assert not set(train.users) & set(merging.users)


def test_centred_logistic_ignores_what_a_user_shares(lists):
    shift = np.random.default_rng(0).standard_normal((lists.n_users, 5))
    moved = lists.X.copy()
    moved[lists.rows] += np.repeat(shift, lists.sizes, axis=0)
    bounds = np.arange(0, moved.shape[0] + 1, 30)
    y = np.empty(moved.shape[0])
    y[lists.rows] = lists.labels
    first = Logistic(centred=True).solve(lists).w
    second = Logistic(centred=True).solve(RankingData(moved, y, bounds)).w
    assert second == pytest.approx(first, abs=1e-4)
    assert Logistic().solve(RankingData(moved, y, bounds)).w != pytest.approx(first, abs=1e-2)


LINEAR = [
    SGDAtKAvg(0.01, eta=0.5),
    GreedyPAPK(),
    SelectPAPK(),
    Logistic(),
    Logistic(centred=True, equal_users=True),
]


@pytest.mark.parametrize("baseline", LINEAR, ids=lambda b: type(b).__name__)
def test_every_baseline_learns_and_gives_the_same_type(baseline, lists):
    seen = []
    result = baseline.solve(lists, 4, callback=seen.append)
    assert isinstance(result, SolverResult)
    assert mean_pap_at_k(result.w, lists, 4) > 0.75
    assert len(seen) == result.n_iter > 0
    assert np.array_equal(scores_of(result, lists), lists.scores(result.w))


@pytest.mark.parametrize("baseline", LINEAR, ids=lambda b: type(b).__name__)
def test_a_callback_stops_every_baseline(baseline, lists):
    result = baseline.solve(lists, 4, callback=lambda progress: True)
    assert result.status is Status.STOPPED and result.n_iter == 1


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg", "binary"])
def test_boosted_trees_learn(lists, objective):
    pytest.importorskip("lightgbm")
    result = LambdaRank(n_trees=30, n_leaves=7, objective=objective).solve(lists, 4)
    assert f"objective={objective}" in result.booster.model_to_string()
    scores = scores_of(result, lists)
    naive = [
        risk(scores[lo : lo + n], scores[lo + n : hi], 4)
        for lo, hi, n in zip(lists.indptr[:-1], lists.indptr[1:], lists.n_pos, strict=True)
    ]
    assert result.objective == pytest.approx(np.mean(naive))
    assert result.objective < 0.3
    assert result.n_iter == 30 and isinstance(result, SolverResult)


def test_an_unknown_loss_of_trees_is_refused():
    with pytest.raises(InputError, match="unknown objective 'huber'; choose from lambdarank"):
        LambdaRank(objective="huber")


def test_lambdarank_says_what_is_missing(lists, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "lightgbm":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install lightgbm"):
        LambdaRank().solve(lists, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SGDAtKAvg(-1.0),
        lambda: SGDAtKAvg(0.1, batch_users=0),
        lambda: SGDAtKAvg(0.1, batch_share=0.0),
        lambda: GreedyPAPK(n_rankers=0),
        lambda: GreedyPAPK(merge_share=1.0),
        lambda: SelectPAPK(rounds=0),
        lambda: SelectPAPK(alpha=-1),
        lambda: Logistic(np.nan),
    ],
)
def test_wrong_settings_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_pairwise_logistic_is_at_its_optimum_and_counts_pairs():
    """With every pair drawn often it is the regression on all differences, without an intercept."""
    data = uneven_lists()
    result = PairwiseLogistic(alpha=0.1, n_negatives=3000, max_iter=500).solve(data)
    differences = np.vstack(
        [
            data.X[data.rows[i]] - data.X[data.rows[j]]
            for u in range(data.n_users)
            for i in range(data.indptr[u], data.indptr[u] + data.n_pos[u])
            for j in range(data.indptr[u] + data.n_pos[u], data.indptr[u + 1])
        ]
    )
    weights = np.concatenate(
        [
            np.full(p * n, 1.0 / (n * data.n_pos.sum()))
            for p, n in zip(data.n_pos, data.n_neg, strict=True)
        ]
    )
    w = cp.Variable(data.n_features)
    loss = weights @ cp.logistic(-differences @ w) + 0.05 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    np.testing.assert_allclose(result.w, w.value, atol=0.02)


def test_pairwise_logistic_weighs_users_the_same_on_request():
    data = uneven_lists()
    positives, _, weight = PairwiseLogistic(equal_users=True)._pairs(data)
    users = data.user_of_position[positives]
    np.testing.assert_allclose(np.bincount(users, weight), np.full(data.n_users, 1 / data.n_users))
    _, negatives, _ = PairwiseLogistic()._pairs(data)
    assert not data.labels[negatives].any() and data.labels[positives].all()
    assert (data.user_of_position[negatives] == users).all()


def test_pairwise_logistic_without_pairs():
    with pytest.raises(InputError, match="no user has both"):
        PairwiseLogistic().solve(RankingData(np.eye(3), [1, 1, 0], [0, 2, 3]))


def uneven_lists():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(6), [5, 7, 9, 6, 12, 8])
    X = rng.normal(size=(groups.size, 3))
    y = X[:, 0] + rng.normal(size=groups.size) > 0.5
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    y[first], y[first + 1] = True, False
    return RankingData.from_groups(X, y, groups)
