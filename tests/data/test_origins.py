"""Columns with large offsets, entries stored several times, and what rounding may do to a bound.

The referee computes objectives in `numpy.longdouble` from the definitions, on each user's rows less
the first one: it shares no code with the package.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from helpers import sources
from helpers.catalogue import CONVEX, EXACT, SURROGATES
from helpers.exact_risk import ExactRisk, Wide
from helpers.marks import slow
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.surrogates.losses import Avg


def lists(offset=0.0, n_users=4, n_items=12, d=3, seed=0, dtype=float):
    """X, y and groups; the offset may be a number, one for each column, or one for each row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_items, d))
    score = (X @ rng.normal(size=d) + rng.normal(size=len(X))).reshape(n_users, n_items)
    y = score > np.quantile(score, 0.7, axis=1, keepdims=True)
    return (X + offset).astype(dtype), y.ravel(), np.repeat(np.arange(n_users), n_items)


def a_risk(name, X, y, groups, k=3, **options):
    return EmpiricalRisk(make_surrogate(name, k), RankingData.from_groups(X, y, groups), **options)


def wide_objective(name, k, alpha, X, y, groups, w):
    """``alpha/2 ||w||^2 + R(w)`` of the stored values, in extended precision."""
    risk = ExactRisk(X, y, groups, k).values(SURROGATES[name].formula, w[:, None])[0]
    return Wide(alpha) / 2 * (w.astype(Wide) ** 2).sum() + risk


class FromZero(Avg):
    """Reads scores against zero: it does change when all scores of a user move."""

    name = "from_zero"
    shift_invariant = False


def test_columns_that_cannot_or_need_not_be_shifted_stay():
    X, y, groups = lists(np.array([1e8, 1e8, 0.0]))
    X[5, 1] = 0.0  # sparse columns that are not stored everywhere
    risk = a_risk("avg", sparse.csr_matrix(X), y, groups)
    assert risk.data.spread().shifted.tolist() == [True, False, True]
    w = np.array([1.0, 1e-8, 1.0])
    rows = X[risk.data.rows]
    from_zero = EmpiricalRisk(FromZero(3), RankingData.from_groups(X, y, groups))
    np.testing.assert_allclose(from_zero.scores(w), rows @ w)
    rows[:, [0, 2]] -= rows[risk.data.indptr[:-1]][groups][:, [0, 2]]
    np.testing.assert_allclose(risk.scores(w), rows @ w, rtol=1e-12, atol=1e-12)
    ordinary = a_risk("ts", lists(100.0)[0], y, groups)
    assert ordinary.list_rows().columns is ordinary.data.columns


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("name", CONVEX)
def test_users_that_are_far_apart_have_the_optimum_of_those_that_are_not(storage, name):
    X, y, groups = lists(n_users=6)
    X = np.round(X * 1024) / 1024  # an offset costs these numbers no digit
    far = np.array([1e7, -3e7, 1e8, 4e8, -1e9, 1e9])[groups]
    apart = X + far[:, None] * [1.0, 0.0, 1.0]
    solver = CuttingPlane(1e-2, tol=1e-10)
    result = solver.solve(a_risk(name, storage(apart), y, groups))
    assert result.converged
    expected = solver.solve(a_risk(name, X, y, groups))
    assert result.objective == pytest.approx(expected.objective, abs=1e-9)


class Understated(Avg):
    """Says that it is ten times flatter than it is."""

    name = "understated"

    def l1_bound(self, n_pos):
        return np.full(n_pos.shape, 0.2)


@pytest.mark.parametrize(("one_list", "on_file"), [(False, False), (True, False), (False, True)])
def test_a_surrogate_that_is_steeper_than_it_says_widens_the_bound(one_list, on_file, tmp_path):
    X, y, groups = lists(n_items=90, d=9)
    source = sources.npy_source(tmp_path, X, y, groups)
    data = RankingData.from_groups(X, y, 0 * groups if one_list else groups)

    def make_risk(surrogate):
        return StreamedRisk(surrogate, source, 2e6) if on_file else EmpiricalRisk(surrogate, data)

    risk = make_risk(Understated(1))
    honest = make_risk(Avg(1))
    assert risk.with_blocks(3).cuts(np.zeros(9)).lipschitz_factor == pytest.approx(10.0)
    solver = CuttingPlane(1e-2, n_blocks=3)
    for warm in (None, solver.solve(risk)):
        result = solver.solve(risk, warm_start=warm)
        expected = solver.solve(honest)
        assert result._warm_start.lipschitz_factor == pytest.approx(10.0)
        assert expected._warm_start.lipschitz_factor == 1.0
        assert result.lower_bound == pytest.approx(expected.lower_bound, rel=1e-5)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n_users", [1, 6])
def test_cuts_lie_below_the_risk_in_extended_precision(name, n_users):
    rng = np.random.default_rng(1)
    X, y, groups = lists(1e7, n_users=n_users, n_items=30)
    oracle = a_risk(name, X, y, groups).with_blocks(4)
    bound = oracle.rounding()
    for _ in range(10):
        cuts = oracle.cuts(rng.normal(size=3))
        w = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2)
        true = wide_objective(name, 3, 0.0, X, y, groups, w)
        # one list has one variable more, and its slopes add up to zero
        assert abs(cuts.slopes[:, 3:].sum()) < 1e-12
        height = (cuts.slopes[:, :3] @ w + cuts.intercepts - cuts.errors).sum()
        assert height - bound.slopes @ np.abs(w) <= true


def test_a_column_without_digits_is_refused_by_its_name():
    X, y, groups = lists(np.array([0.0, 3e7, 0.0]), dtype=np.float32)
    frame = pd.DataFrame(X, columns=["price", "seen_at", "stars"])
    with pytest.raises(InputError, match=r"column 'seen_at' has mean 3e\+07, and spreads over 4"):
        PAPKRanker(k=3).fit(frame, y, groups=groups)
    with pytest.raises(InputError, match=r"column 1 of X \(counted"):
        CuttingPlane(1e-2).solve(a_risk("ts", X, y, groups))


@pytest.mark.parametrize("outlier", [1e10, slow(1e15)])
def test_where_digits_do_not_suffice_nothing_is_certified_and_the_column_is_named(outlier):
    X, y, groups = lists(n_users=2)
    X[7, 1] = outlier
    result = CuttingPlane(1e-3).solve(a_risk("ts", X, y, groups))
    assert result.status == "stalled"
    assert "column 1 of X" in result.notes[-1]


@pytest.mark.parametrize("name", [slow("avg"), "ts"])
def test_a_tolerance_below_double_precision_is_no_columns_fault(name):
    X, y, groups = lists()
    result = CuttingPlane(1e-3, tol=1e-15).solve(a_risk(name, X, y, groups))
    assert result.status == "stalled" and result.gap < 1e-8
    assert "tol=1e-15 is below what double precision allows here" in result.message
    assert "column 1" not in result.message


def test_entries_are_added_up_in_double_and_a_flag_older_than_the_arrays_is_not_believed():
    X = sparse.csr_matrix((np.float32([0.1, 0.2, 1.0]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    data = RankingData(X, [1, 0], [0, 2])
    assert data.X.nnz == 2  # a squared part is not a part of the square
    assert float(data.X[0, 0]) == float(np.float32(0.1)) + float(np.float32(0.2))
    X = sparse.csr_matrix(np.ones((2, 2)))
    assert X.has_canonical_format
    X.indices[:] = [0, 0, 1, 0]
    np.testing.assert_array_equal(RankingData(X, [1, 0], [0, 2]).X.toarray(), [[2, 0], [1, 1]])
