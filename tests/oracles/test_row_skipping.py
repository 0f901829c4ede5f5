"""Short lists found by bounds: the same lists, values and cuts as a full pass."""

import numpy as np
import pytest
from scipy import sparse

from helpers.own import PowerPairs
from helpers.problems import walk
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.oracles import short_lists as row_skipping
from structsvm_papk.surrogates import CONVEX


def lists(n_users=3, n_rows=400, d=10, n_pos=6, kind="normal", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_rows, d)) * np.geomspace(0.1, 10.0, d) + rng.normal(size=d)
    if kind == "tied":
        X = np.sign(X) * (rng.random(X.shape) < 0.5)
    if kind == "repeated":
        X = X[rng.integers(0, 20, X.shape[0])]
    y = np.zeros((n_users, n_rows), dtype=bool)
    y[:, :n_pos] = True
    groups = np.repeat(np.arange(n_users), n_rows)
    order = rng.permutation(groups.size)
    return X[order], y.ravel()[order], groups[order]


def both(name, data, k=5, n_blocks=6, n_threads=1):
    plain = EmpiricalRisk(make_surrogate(name, k), data, skip_rows=False, n_threads=n_threads)
    skipping = EmpiricalRisk(make_surrogate(name, k), data, n_threads=n_threads)
    return plain.with_blocks(n_blocks), skipping.with_blocks(n_blocks)


FORMATS = {
    "rows": lambda X: X,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: sparse.csr_array(np.where(np.abs(X) > 0.05, X, 0.0)),
}


@pytest.mark.parametrize("n_users", [1, 4])
@pytest.mark.parametrize(("name", "format"), list(zip(CONVEX, FORMATS, strict=True)))
def test_cuts_are_those_of_a_full_pass(name, n_users, format):
    X, y, groups = lists(n_users=n_users, d=12, n_pos=90 if name == "max" else 6)
    plain, skipping = both(name, RankingData.from_groups(FORMATS[format](X), y, groups))
    assert skipping.n_blocks == plain.n_blocks
    for w in walk(X.shape[1])[:-4]:
        one, other = plain.cuts(w), skipping.cuts(w)
        scale = np.abs(one.slopes).max()
        assert other.value == pytest.approx(one.value, rel=1e-12)
        assert other.point == pytest.approx(one.point, rel=1e-12)
        if name == "max" and not w.any():
            continue  # all positives tie: another choice of the lowest, another subgradient
        assert np.abs(other.slopes - one.slopes).max() <= 1e-12 * scale
        size = 1e-12 * max(1.0, one.value + scale * np.linalg.norm(one.point))
        assert np.abs(other.intercepts - one.intercepts).max() <= size


def test_rows_are_left_out_and_the_history_says_how_many():
    X, y, groups = lists(n_users=2, n_rows=3000, d=10, n_pos=20)
    X[y, 9] += 30.0
    data, surrogate = RankingData.from_groups(X, y, groups), make_surrogate("ts", 5)
    risks = [EmpiricalRisk(surrogate, data, skip_rows=skip) for skip in (False, True)]
    results = [CuttingPlane(1e-2, tol=1e-8).solve(risk) for risk in risks]
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-7)
    assert 0.0 < results[0].objective < 0.999
    n_rows = groups.size
    visits = results[0].curve("rows_scored")
    assert np.array_equal(visits, n_rows * results[0].curve("data_passes"))
    visits = results[1].curve("rows_scored")
    assert (np.diff(visits) >= 0).all()
    assert 0 < visits[-1] < 0.5 * n_rows * results[1].data_passes


def test_old_references_constant_features_and_features_that_the_sample_misses(monkeypatch):
    monkeypatch.setattr(row_skipping, "_MOST_REFERENCES", 8)
    X, y, groups = lists(n_users=1, n_rows=5000, d=10)
    X[:, 0], X[:, 1], X[:, 2] = 7.0, 0.0, 0.0
    X[1, 1] = 1e6  # between the rows of the sample
    points, turn = walk(10)[:-4], np.linspace(0.0, 6.0, 80)[:, None]
    around = np.cos(turn) * points[1] + np.sin(turn) * points[2]
    for rows, some in (((X, y, groups), points), (lists(n_users=2), around)):
        plain, skipping = both("avg", RankingData.from_groups(*rows))
        for w in some:
            assert skipping.cuts(w).value == pytest.approx(plain.cuts(w).value, rel=1e-12)
    X[7] *= 1e200
    for oracle in both("ts", RankingData.from_groups(X, y, groups)):
        with pytest.raises(InputError, match="finite"):  # scores that overflow
            oracle.cuts(1e150 * np.ones(10))


@pytest.mark.parametrize("n_users", [1, 5])
def test_threads_do_not_change_a_bit(n_users, monkeypatch):
    monkeypatch.setattr(row_skipping, "_CHUNK_ROWS", 128)  # so that a list is cut into pieces
    X, y, groups = lists(n_users=n_users)
    data = RankingData.from_groups(X, y, groups)
    oracles = [both("ts", data, n_threads=n)[1] for n in (1, 2, 4)]
    for w in walk(X.shape[1])[:30]:
        first, *others = [oracle.cuts(w) for oracle in oracles]
        for cuts in others:
            assert cuts.value == first.value
            assert np.array_equal(cuts.slopes, first.slopes)
    assert len({oracle.rows_scored for oracle in oracles}) == 1


class Undeclared(PowerPairs):
    top_negatives_only = False


def test_nothing_is_skipped_where_it_cannot_pay():
    X, y, groups = lists(n_rows=60)
    few_rows = EmpiricalRisk(make_surrogate("ts", 5), RankingData.from_groups(X, y, groups))
    X, y, groups = lists(d=4)
    few_features = EmpiricalRisk(make_surrogate("ts", 5), RankingData.from_groups(X, y, groups))
    undeclared = EmpiricalRisk(Undeclared(5), RankingData.from_groups(*lists()))
    for risk in (few_rows, few_features, undeclared):
        assert type(risk.with_blocks(2)) is EmpiricalRisk
