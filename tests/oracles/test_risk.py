"""The risk along a line, users that it leaves out; the blocks of one long list."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from helpers import problems
from helpers.own import PowerPairs
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.one_list import OneListCuts
from structsvm_papk.solvers.solver import Status, relative_gap
from structsvm_papk.surrogates.losses import Avg


def lists(n_users=3, n_rows=400, d=10, n_pos=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_rows, d)) * np.geomspace(0.1, 10.0, d) + rng.normal(size=d)
    y = np.zeros((n_users, n_rows), dtype=bool)
    y[:, :n_pos] = True
    groups = np.repeat(np.arange(n_users), n_rows)
    order = rng.permutation(groups.size)
    return X[order], y.ravel()[order], groups[order]


@pytest.mark.parametrize("n_users", [1, 5])
def test_threads_do_not_change_a_bit(n_users):
    data = RankingData.from_groups(*lists(n_users=n_users, n_rows=140_000 // n_users))  # in chunks
    surrogate = make_surrogate("ts", 5)
    oracles = [EmpiricalRisk(surrogate, data, n_threads=n).with_blocks(6) for n in (1, 2, 4)]
    for w in problems.walk(data.n_features)[:8]:
        first, *others = [oracle.cuts(w) for oracle in oracles]
        for cuts in others:
            assert cuts.value == first.value
            assert np.array_equal(cuts.slopes, first.slopes)


def test_scores_that_overflow_are_refused():
    X, y, groups = lists(n_users=1)
    X[7] *= 1e200
    oracle = EmpiricalRisk(make_surrogate("ts", 5), RankingData.from_groups(X, y, groups))
    with pytest.raises(InputError, match="finite"):
        oracle.with_blocks(6).cuts(1e150 * np.ones(10))


def test_the_history_counts_the_rows_that_were_scored():
    data = RankingData.from_groups(*lists(n_users=2))
    result = CuttingPlane(1e-2).solve(EmpiricalRisk(make_surrogate("ts", 5), data))
    visits = result.curve("rows_scored")
    assert np.array_equal(visits, data.rows.size * result.curve("data_passes"))


def test_left_out_users_are_reported_and_do_not_count():
    data = RankingData(np.eye(5), [1, 0, 0, 1, 1], [0, 3, 5])
    oracle = EmpiricalRisk(make_surrogate("avg", 2), data)
    assert oracle.n_users == 1
    assert oracle.exclusions.n_excluded == 1
    assert problems.risk("avg", n_users=4).with_blocks(100).n_blocks == 4  # one a user at most
    with pytest.raises(InputError, match="at least 1"):
        EmpiricalRisk(make_surrogate("avg", 2), data, n_blocks=0)


def terms(name, p, q, k):
    """The terms f_i in the order of the items, how many count, and r, as in the manual."""
    beta = min(p.size, k)
    if name == "max":
        top = np.sort(q)[::-1][:k]
        return np.maximum(1 - p[:, None] + top, 0).sum(axis=1), beta, k
    if name == "avg":
        return np.maximum(1 - p.mean() + q, 0), k, 1
    t = np.sort(p)[::-1] - (np.arange(p.size) < beta)
    t = IsotonicRegression(increasing=False).fit_transform(np.arange(p.size), t)
    return np.maximum(q[:, None] - t, 0).sum(axis=1), k, beta


def blocks_at(name, scores, n_pos, k, s, n_blocks):
    """Value of every block at (w, s): s itself belongs to the first."""
    f, m, r = terms(name, scores[:n_pos], scores[n_pos:], k)
    excess = np.maximum(f / r - s, 0) / m
    edges = np.linspace(0, f.size, n_blocks + 1).astype(int)
    values = np.array([excess[a:b].sum() for a, b in pairwise(edges)])
    values[0] += s
    return values


@pytest.mark.parametrize("name", ["avg", "max", "ts"])
def test_cuts_are_below_their_blocks_and_s_lies_between_0_and_the_risk(name):
    rng = np.random.default_rng(0)
    shared = largest = 0
    for _ in range(30):
        n_pos, n_neg = rng.integers(2, 7, 2)
        k, d, n_blocks = int(rng.integers(1, n_neg + 1)), 3, 2
        X = rng.integers(-2, 3, (n_pos + n_neg, d)) / 2
        data = RankingData.from_groups(X, np.repeat([1, 0], [n_pos, n_neg]))
        X = X[data.rows]
        oracle = EmpiricalRisk(make_surrogate(name, k), data).with_blocks(n_blocks)
        w = rng.normal(size=d)
        cuts, scores = oracle.cuts(w), X @ w
        f, m, r = terms(name, scores[:n_pos], scores[n_pos:], k)
        risk = np.sort(f)[::-1][:m].mean() / r
        assert cuts.value == pytest.approx(risk)
        if cuts.point.size == d:  # every term counts
            assert m == f.size
            continue
        shared += 1
        s = cuts.point[-1]
        assert s == pytest.approx(np.sort(f)[::-1][m - 1] / r)
        assert 0 <= s <= risk + 1e-12
        largest = max(largest, s * r - risk)
        for _ in range(8):
            other = w + rng.normal(size=d) * rng.choice([0.1, 1, 10])
            at = float(rng.choice([0, s, 3 * abs(rng.normal())]))
            heights = cuts.slopes @ np.append(other, at) + cuts.intercepts
            values = blocks_at(name, X @ other, n_pos, k, at, n_blocks)
            assert (heights <= values + 1e-9).all()
    assert shared >= 10
    if name != "avg":  # without its scale, s can be far above the risk: a bound from that is false
        assert largest > 0.5


class Anew(Avg):
    def evaluate(self, *lists):
        super().evaluate(*lists)


def test_the_blocks_add_up_to_the_risk():
    rng = np.random.default_rng(1)
    data = RankingData.from_groups(rng.normal(size=(12, 3)), np.arange(12) < 4)
    for name in ("avg", "max", "ts", "pauc"):
        risk, w = EmpiricalRisk(make_surrogate(name, 2), data), rng.normal(size=3)
        oracle = risk.with_blocks(3)
        assert isinstance(oracle, OneListCuts) and oracle.n_blocks == 3
        value, slope = oracle(w)
        assert value == pytest.approx(risk(w)[0])
        np.testing.assert_allclose(slope, risk(w)[1], atol=1e-12)
    for own in (PowerPairs(2), Anew(2)):  # whose terms are not known
        oracle = EmpiricalRisk(own, data).with_blocks(3)
        assert oracle.n_blocks == 1 and not isinstance(oracle, OneListCuts)
    deep, wide = make_surrogate("avg", 2, depth=7), make_surrogate("avg", 7)  # as long sums
    slopes = [EmpiricalRisk(each, data).with_blocks(2).rounding().slopes for each in (deep, wide)]
    np.testing.assert_array_equal(*slopes)


@pytest.mark.parametrize("name", ["avg", "ts"])
def test_a_tolerance_below_rounding_is_given_up_soon(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5200, 10))
    X[:200] += 2.0
    data = RankingData.from_groups(X, np.arange(5200) < 200, np.zeros(5200, dtype=int))
    risk = EmpiricalRisk(make_surrogate(name, 50), data)
    result = CuttingPlane(1e-4, tol=1e-15).solve(risk)
    assert result.status is Status.STALLED and "rounding" in result.message
    assert result.gap < 1e-9
    gaps = [relative_gap(entry.objective, entry.lower_bound) for entry in result.history]
    assert sum(gap <= 1.5 * result.gap for gap in gaps) <= 15
