"""Training depth: more negatives in the surrogate than the metric counts; and weights of users."""

import math
from itertools import product

import numpy as np
import pytest

from helpers import problems, reference
from structsvm_papk import (
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.surrogates import CONVEX, SURROGATES


def one_list(seed, n_pos, n_neg):
    """Scores of one user on a grid, so that ties are common."""
    rng = np.random.default_rng(seed)
    return rng.integers(-6, 7, n_pos + n_neg) / 2, n_pos


def value(name, k, depth, scores, n_pos):
    surrogate = make_surrogate(name, k, depth)
    return surrogate.value_and_subgradient(scores, np.array([0, scores.size]), np.array([n_pos]))


@pytest.mark.parametrize("name", SURROGATES)
def test_values_match_the_definition_at_every_depth(name):
    depths = [(k, depth) for k in (1, 2, 3) for depth in range(k, 6)]
    for seed, (k, depth) in product(range(12), depths):
        scores, n_pos = one_list(seed, n_pos=1 + seed % 3, n_neg=4)
        p, q = scores[:n_pos].tolist(), scores[n_pos:].tolist()
        expected = reference.SURROGATES[name](p, q, k, min(depth, 4))
        assert value(name, k, depth, scores, n_pos)[0][0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SURROGATES)
def test_subgradients_are_derivatives_at_every_depth(name):
    rng = np.random.default_rng(3)
    scores, direction = rng.normal(size=11), rng.normal(size=11)
    for depth in (2, 5, 0.6):
        coef = value(name, 2, depth, scores, 4)[1]
        step = 1e-7
        ahead = value(name, 2, depth, scores + step * direction, 4)[0][0]
        behind = value(name, 2, depth, scores - step * direction, 4)[0][0]
        assert (ahead - behind) / (2 * step) == pytest.approx(coef @ direction, abs=1e-6)


@pytest.mark.parametrize("name", SURROGATES)
def test_depth_k_is_the_paper_to_the_bit(name):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=60)
    for given in (5, None):
        plain, own = value(name, 5, None, scores, 17), value(name, 5, given, scores, 17)
        assert plain[0] == own[0] and (plain[1] == own[1]).all()


def test_a_share_is_rounded_up_and_never_below_k():
    surrogate = make_surrogate("avg", 5, 0.1)
    assert surrogate.negatives_counted([3, 5, 30, 31, 100]).tolist() == [3, 5, 5, 5, 10]
    for n_neg in range(1, 500):
        for percent in (10, 20, 30, 55, 90):
            expected = max(min(5, n_neg), -(-percent * n_neg // 100))
            counted = make_surrogate("avg", 5, percent / 100).negatives_counted([n_neg])[0]
            assert counted == expected, (percent, n_neg)


def test_an_infinite_depth_counts_all_negatives():
    data, w = uneven(), np.arange(4.0)
    everything = EmpiricalRisk(make_surrogate("avg", 3, math.inf), data, "exclude")
    assert everything.n_users == data.n_users
    deep = EmpiricalRisk(make_surrogate("avg", 3, int(data.n_neg.max())), data, "cap")
    assert everything(w)[0] == deep(w)[0]


def test_a_number_is_capped_at_the_negatives_of_a_user():
    assert make_surrogate("ts", 2, 7).negatives_counted([1, 6, 7, 8]).tolist() == [1, 6, 7, 7]


@pytest.mark.parametrize(
    ("depth", "words"),
    [
        (4, "at least k=5"),
        (0, "at least k=5"),
        (-1, "at least k=5"),
        (7.5, "whole number of at least k=5"),
        (math.nan, "at least k=5"),
        ("deep", "whole number, a share"),
        (True, "whole number, a share"),
        (1.0, "at least k=5"),
    ],
)
def test_depths_that_cannot_be(depth, words):
    with pytest.raises(InputError, match=words):
        make_surrogate("ts", 5, depth)


def uneven(seed=0, n_features=4):
    """Users with 3 to 30 negatives."""
    rng = np.random.default_rng(seed)
    n_neg = rng.integers(3, 31, 15)
    n_pos = rng.integers(1, 9, 15)
    groups = np.repeat(np.arange(15), n_pos + n_neg)
    y = np.concatenate([np.arange(p + n) < p for p, n in zip(n_pos, n_neg, strict=True)])
    X = rng.normal(size=(y.size, n_features))
    X[y, 0] += 1.0
    return RankingData.from_groups(X, y, groups)


def test_policies_about_users_with_fewer_negatives():
    data = uneven()
    surrogate = make_surrogate("avg", 3, 12)
    enough = int((data.n_neg >= 12).sum())
    assert 0 < enough < data.n_users
    assert EmpiricalRisk(surrogate, data, "exclude").n_users == enough
    assert EmpiricalRisk(surrogate, data, "cap").n_users == data.n_users
    with pytest.raises(InputError, match="fewer than depth=12"):
        EmpiricalRisk(surrogate, data, "raise")
    share = make_surrogate("avg", 3, 0.5)
    assert EmpiricalRisk(share, data, "exclude").n_users == data.n_users


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("depth", [6, 0.7])
def test_the_risk_is_the_mean_over_capped_lists(name, depth):
    data, k = uneven(), 3
    risk = EmpiricalRisk(make_surrogate(name, k, depth), data, "cap", n_blocks=4)
    w = np.random.default_rng(1).normal(size=data.n_features)
    scores = data.scores(w)
    expected = []
    for u in range(data.n_users):
        own = scores[data.indptr[u] : data.indptr[u + 1]].tolist()
        p, q = own[: data.n_pos[u]], own[data.n_pos[u] :]
        m = min(depth, len(q)) if depth >= 1 else max(math.ceil(depth * len(q)), min(k, len(q)))
        single = make_surrogate(name, k, m if m >= k else None)
        expected.append(
            single.value_and_subgradient(
                np.array(own), np.array([0, len(own)]), np.array([len(p)])
            )[0][0]
            if name == "ts"
            else reference.SURROGATES[name](p, q, k, m)
        )
    assert risk(w)[0] == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("depth", [40, 0.1])
def test_short_lists_and_one_list_agree_with_all_rows(name, depth):
    """Rows are skipped, and a single list is split, at any depth: the same optimum."""
    long = problems.one_user_risk(name, k=5, n_neg=700)
    surrogate = make_surrogate(name, 5, depth)
    solver = CuttingPlane(0.1, tol=1e-8)
    results = [
        solver.solve(EmpiricalRisk(surrogate, long.data, "cap", skip_rows=skip))
        for skip in (True, False)
    ]
    plain = CuttingPlane(0.1, tol=1e-7, method="line_search").solve(
        EmpiricalRisk(surrogate, long.data, "cap", skip_rows=False)
    )
    assert all(result.converged for result in (*results, plain))
    for result in results:
        assert result.lower_bound <= plain.objective + 1e-12
        assert result.objective == pytest.approx(plain.objective, abs=1e-6)


@pytest.mark.parametrize("name", ["avg", "max", "ts", "pauc"])
def test_certified_optimum_at_a_depth_is_that_of_the_full_programme(name):
    risk = EmpiricalRisk(
        make_surrogate(name, 2, 4), problems.ranking_data(n_users=4, n_items=10), "cap"
    )
    result = CuttingPlane(0.05, tol=1e-9).solve(risk)
    assert result.objective == pytest.approx(problems.full_problem(risk, 0.05), abs=1e-6)


def weighted_pair():
    """A data set with whole weights, and the same with each user repeated as often."""
    data, rng = uneven(5), np.random.default_rng(0)
    weight = rng.integers(1, 4, data.n_users)
    X, y, groups = [], [], []
    for u in range(data.n_users):
        rows = data.rows[data.indptr[u] : data.indptr[u + 1]]
        for copy in range(weight[u]):
            X.append(data.X[rows])
            y.append(np.arange(rows.size) < data.n_pos[u])
            groups.append(np.full(rows.size, 10 * u + copy))
    repeated = RankingData.from_groups(np.vstack(X), np.concatenate(y), np.concatenate(groups))
    return data.weighted(weight), repeated


@pytest.mark.parametrize("name", SURROGATES)
def test_a_weight_of_two_is_the_user_twice(name):
    weighted, repeated = weighted_pair()
    surrogate = make_surrogate(name, 3, 0.6)
    risks = [EmpiricalRisk(surrogate, data, "cap", n_blocks=3) for data in (weighted, repeated)]
    w = np.random.default_rng(4).normal(size=weighted.n_features)
    (value, slope), (other, other_slope) = (risk(w) for risk in risks)
    assert value == pytest.approx(other, abs=1e-12)
    np.testing.assert_allclose(slope, other_slope, atol=1e-12)


def test_weights_in_certificates_and_lines():
    weighted, repeated = weighted_pair()
    surrogate = make_surrogate("ts", 3, 0.6)
    for method in ("bundle", "line_search"):
        solver = CuttingPlane(0.05, tol=1e-8, method=method)
        results = [solver.solve(EmpiricalRisk(surrogate, d, "cap")) for d in (weighted, repeated)]
        assert all(result.converged for result in results)
        assert results[0].objective == pytest.approx(results[1].objective, abs=1e-7)


def test_weights_by_positives_and_wrong_weights():
    data = uneven()
    np.testing.assert_array_equal(data.weighted("positives").user_weight, data.n_pos)
    assert data.weighted("equal").user_weight is None
    assert data.weighted("positives").fingerprint() != data.fingerprint()
    for wrong, words in [
        ("negatives", "unknown user_weight"),
        ([1.0], "15 users"),
        (np.zeros(15), "above zero"),
        (np.full(15, np.nan), "finite"),
        (["a"] * 15, "numbers"),
    ]:
        with pytest.raises(InputError, match=words):
            data.weighted(wrong)


# what depth.md proves


@pytest.mark.parametrize("name", ["ramp", "clipped_ramp"])
def test_boxes_at_a_depth_with_weights(name):
    """Centres are objectives, and no point of a box is below its bound."""
    data = uneven(n_features=2).weighted("positives")
    risk = EmpiricalRisk(make_surrogate(name, 3, 0.7), data, "cap")
    rng, alpha = np.random.default_rng(0), 0.05
    centre, half = rng.normal(size=(40, 2)), 10.0 ** rng.uniform(-3, 0.5, (40, 2))
    lower, value, _ = risk.bounds(alpha, centre - half, centre + half)
    for b in range(40):
        assert value[b] == pytest.approx(alpha / 2 * centre[b] @ centre[b] + risk(centre[b])[0])
        for w in centre[b] + half[b] * rng.uniform(-1, 1, (20, 2)):
            assert lower[b] <= alpha / 2 * w @ w + risk(w)[0] + 1e-11


def rows(data):
    """A data set as X, y, groups."""
    return data.X[data.rows], data.labels, data.user_of_position


def test_the_estimator_takes_depth_and_weights(tmp_path):
    data = uneven()
    X, y, users = rows(data)
    options = {"k": 3, "surrogate": "ts", "depth": 0.6, "policy": "cap", "tol": 1e-8}
    options["standardize"] = False
    ranker = PAPKRanker(user_weight="positives", **options).fit(X, y, groups=users)
    risk = EmpiricalRisk(make_surrogate("ts", 3, 0.6), data.weighted("positives"), "cap")
    expected = CuttingPlane(1e-2, tol=1e-8).solve(risk)
    assert ranker.result_.objective == pytest.approx(expected.objective, abs=1e-9)
    by_rows = PAPKRanker(**options)
    by_rows.fit(X, y, groups=users, sample_weight=data.n_pos[users])
    assert by_rows.result_.objective == pytest.approx(expected.objective, abs=1e-9)
    ranker.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert (model.depth, model.user_weight) == (0.6, "positives")


def test_the_estimator_refuses_depths_and_weights_that_do_not_fit():
    X, y, users = rows(uneven())
    with pytest.raises(InputError, match="the most negatives of a user are"):
        PAPKRanker(k=3, depth=500, policy="cap").fit(X, y, groups=users)
    with pytest.raises(InputError, match="the same on all rows of a user"):
        PAPKRanker(k=3).fit(X, y, groups=users, sample_weight=np.arange(1.0, y.size + 1))
    with pytest.raises(InputError, match="not both"):
        PAPKRanker(k=3, user_weight="positives").fit(
            X, y, groups=users, sample_weight=np.ones(y.size)
        )
    with pytest.raises(InputError, match="rows"):
        PAPKRanker(k=3).fit(X, y, groups=users, sample_weight=np.ones(3))
    with pytest.raises(InputError, match="depth='deep' must be a whole number"):
        PAPKRanker(k=3, depth="deep").fit(X, y, groups=users)


def test_weights_of_rows_that_come_in_any_order():
    data = uneven()
    X, y, users = rows(data)
    order = np.random.default_rng(0).permutation(y.size)
    weight = 1.0 + users % 3
    fits = [
        PAPKRanker(k=3, depth="auto", tol=1e-8).fit(
            X[part], y[part], groups=users[part], sample_weight=weight[part]
        )
        for part in (np.arange(y.size), order)
    ]
    assert fits[0].result_.objective == pytest.approx(fits[1].result_.objective, abs=2e-8)


def informative(name, users, k, depth):
    """Whether some w of a single feature has a risk below 1."""
    lists = [np.concatenate([positives, negatives]).astype(float) for positives, negatives in users]
    indptr = np.cumsum([0, *map(len, lists)])
    n_pos = np.array([len(positives) for positives, _ in users])
    surrogate = make_surrogate(name, k, depth=depth)
    steps = np.geomspace(1e-4, 1e4, 100)
    values = [
        surrogate.value_and_subgradient(w * np.concatenate(lists), indptr, n_pos)[0].mean()
        for w in (*steps, *-steps)
    ]
    return min(values) < 1 - 1e-9


def test_counterexamples_to_monotone_degeneracy_where_beta_follows_the_depth():
    far = [([1] * 10, [0] * 20), ([-2], [3] * 10 + [-3] * 10)]
    for name, depths in {"ts": [1, *range(16, 21)], "max": range(16, 21)}.items():
        assert [m for m in range(1, 21) if informative(name, far, m, m)] == list(depths)
    near = [([0, 0, 3], [2, 1, -3]), ([3, 0], [2, 2])]
    for name, verdicts in {"ramp": [1, 0, 1], "max": [0, 0, 1], "clipped_ramp": [1, 1, 1]}.items():
        assert [informative(name, near, m, m) for m in (1, 2, 3)] == verdicts


def test_ts_may_be_degenerate_where_max_is_not():
    users = [([1, 0, 1], [-1]), ([-2], [3])]
    assert not informative("ts", users, 1, 1) and informative("max", users, 1, 1)
