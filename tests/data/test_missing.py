"""Candidates with missing scores: ``missing="lowest"``, against definitions written out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.data.columns.missing import Filling
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import make_surrogate

N_LISTS, SIZE, N_FEATURES = 12, 40, 4


def candidates(seed=0, cut=0.6):
    """Lists of four sources, of which the first three return their best only."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(N_LISTS), SIZE))  # lists in no order
    relevance = rng.normal(size=groups.size)
    X = relevance[:, None] + rng.normal(size=(groups.size, N_FEATURES)) * [1.0, 1.5, 2.0, 2.0]
    X *= [1.0, 10.0, 0.01, 1.0]
    for user in range(N_LISTS):
        for column in range(3):
            of_user = groups == user
            returned = X[:, column] >= np.quantile(X[of_user, column], cut)
            X[of_user & ~returned, column] = np.nan
    X[groups == 3, 1] = np.nan  # a source that returned nothing for this list
    X[groups == 5, :3] = np.nan
    return X, relevance > 1.0, groups


X, Y, GROUPS = candidates()


def by_hand(X, groups, nothing=0.0):
    """The columns filled list by list, with `nothing` where a list has none, and the holes."""
    out = np.array(X, dtype=float)
    for user in np.unique(groups):
        for column in range(X.shape[1]):
            rows = np.flatnonzero(groups == user)
            values = out[rows, column]
            there = ~np.isnan(values)
            if there.any():
                values[~there] = values[there].min()
            else:
                values[:] = nothing
            out[rows, column] = values
    return out, np.isnan(X)


def ranker(**settings):
    return PAPKRanker(
        **{"k": 3, "policy": "cap", "tol": 1e-9, "missing": "lowest", "curves": None, **settings}
    )


def test_holes_are_the_lowest_of_what_is_there():
    right, holes = by_hand(X, GROUPS)
    lists = RankingData.from_groups(X, Y, GROUPS, missing="lowest")
    for filled in (Filling("lowest").of_rows(X, GROUPS), Filling("lowest").of_lists(lists)):
        np.testing.assert_array_equal(filled.X, right)
        assert (filled.holes == holes).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_problem_is_that_of_columns_made_by_hand(standardize, positive):
    filled, holes = by_hand(X, GROUPS)
    beside = np.hstack([filled, -1.0 * holes[:, :3] if positive else holes[:, :3]])
    settings = {"standardize": standardize, "positive": positive}
    often = np.arange(len(Y)) % 4 == 0
    liked = Y | (holes[:, 0] & often & positive)  # holes would count for a row if they could
    plain = ranker(missing=None, depth=0.5, **settings).fit(beside, liked, GROUPS)
    fitted = ranker(**settings).fit(X, liked, GROUPS)
    assert fitted.coef_.shape == fitted.missing_coef_.shape == (N_FEATURES,)
    np.testing.assert_allclose(fitted.result_.objective, plain.result_.objective, rtol=1e-8)
    np.testing.assert_allclose(
        fitted.coef_, plain.coef_[:N_FEATURES], atol=1e-4 * abs(plain.coef_).max()
    )
    of_holes = -plain.coef_[N_FEATURES:] if positive else plain.coef_[N_FEATURES:]
    np.testing.assert_allclose(
        fitted.missing_coef_[:3], of_holes, atol=1e-4 * abs(plain.coef_).max()
    )
    assert fitted.missing_coef_[3] == 0.0  # no hole in training
    scores = filled @ fitted.coef_ + holes @ fitted.missing_coef_
    np.testing.assert_allclose(fitted.predict(X, GROUPS), scores, rtol=1e-9, atol=1e-9)
    assert fitted.result_.gap <= 1e-9


def as_frame(kind):
    frame = pd.DataFrame(X, columns=["bm25", "dense", "splade", "full"])
    if kind == "None":
        return frame.astype(object).where(frame.notna(), None)
    if kind == "NA":
        return frame.convert_dtypes()
    if kind == "NA objects":
        return frame.astype(object).where(frame.notna(), pd.NA)
    return frame


@pytest.mark.parametrize("kind", ["NaN", "None", "NA", "NA objects"])
def test_every_spelling_of_missing(kind):
    frame = as_frame(kind)
    plain = ranker().fit(X, Y, GROUPS)
    fitted = ranker().fit(frame, Y, GROUPS)
    assert (fitted.coef_ == plain.coef_).all()
    assert (fitted.missing_coef_ == plain.missing_coef_).all()
    assert fitted.feature_names_in_.tolist() == list(frame)
    assert (fitted.predict(frame, GROUPS) == plain.predict(X, GROUPS)).all()
    model = fitted.to_model()
    shuffled = frame[["splade", "full", "bm25", "dense"]]
    assert (model.predict(shuffled, GROUPS) == plain.predict(X, GROUPS)).all()
    rows = [[None if np.isnan(x) else x for x in row] for row in X.tolist()]
    assert (plain.predict(rows, GROUPS) == plain.predict(X, GROUPS)).all()


def test_a_hole_at_prediction_where_training_had_none():
    fitted = ranker().fit(X, Y, GROUPS)
    holed = X.copy()
    holed[::3, 3] = np.nan
    filled, holes = by_hand(holed, GROUPS)
    right = filled @ fitted.coef_ + holes @ fitted.missing_coef_
    np.testing.assert_allclose(fitted.predict(holed, GROUPS), right, atol=1e-9)
    no_holes = ranker().fit(by_hand(X, GROUPS)[0], Y, GROUPS)
    assert not no_holes.missing_coef_.any()
    np.testing.assert_allclose(no_holes.predict(X, GROUPS), filled_scores(no_holes), atol=1e-9)


def filled_scores(fitted):
    return by_hand(X, GROUPS)[0] @ fitted.coef_


def test_of_one_list_without_holes_the_lowest_of_training_stands_in_all_the_same():
    fitted = ranker(monotonic_cst=[0, -1, 0, 0]).fit(filled := by_hand(X, GROUPS)[0], Y, "one_list")
    new = X[:6].copy()
    new[0, 1] = np.nan
    right = np.where(
        np.isnan(new), [filled[:, 0].min(), filled[:, 1].max(), *filled.min(0)[2:]], new
    )
    each = [fitted.predict(row[None])[0] for row in new]
    np.testing.assert_allclose(each, right @ fitted.coef_, atol=1e-9)
    np.testing.assert_array_equal(fitted.to_model().predict(new), each)


def test_a_column_and_a_list_that_are_all_holes():
    holed = X.copy()
    holed[:, 1] = np.nan
    holed[GROUPS == 7] = np.nan
    fitted = ranker().fit(holed, Y, GROUPS)
    assert fitted.coef_[1] == fitted.missing_coef_[1] == 0.0
    scores = fitted.predict(holed, GROUPS)
    assert np.isfinite(scores).all()
    assert np.unique(scores[GROUPS == 7]).size == 1  # nothing is known of it: all tie
    with pytest.warns(UserWarning):
        nothing = ranker().fit(np.full_like(X, np.nan), Y, GROUPS)
    assert not nothing.coef_.any()


@pytest.mark.parametrize("call", ["decision_function", "predict", "Model.predict", "Model.top"])
def test_forgotten_groups_are_asked_for(call):
    fitted = ranker().fit(X, Y, GROUPS)
    model = fitted.to_model()
    task = {"Model.predict": model.predict, "Model.top": model.top}.get(call)
    with pytest.raises(InputError, match="groups="):
        (task or getattr(fitted, call))(X)


def test_refusals_name_row_column_and_setting():
    frame = as_frame("NaN")
    row = int(np.flatnonzero(np.isnan(X).any(axis=1))[0])
    column = list(frame)[int(np.flatnonzero(np.isnan(X[row]))[0])]
    message = rf"NaN at row {row}, column '{column}'.*missing=\"lowest\""
    for data in (frame, as_frame("None"), as_frame("NA")):
        with pytest.raises(InputError, match=message):
            PAPKRanker(k=3, missing=None).fit(data, Y, GROUPS)
    plain = PAPKRanker(k=3, missing=None).fit(frame.fillna(0.0), Y, GROUPS)
    with pytest.raises(InputError, match=message):
        plain.predict(frame)
    with pytest.raises(InputError, match=message):
        plain.to_model().predict(frame)
    infinite = X.copy()
    infinite[4, 2] = np.inf
    for task in (ranker().fit, ranker().fit(X, Y, GROUPS).score):
        with pytest.raises(InputError, match="inf at row 4, column 2"):
            task(infinite, Y, GROUPS)
    with pytest.raises(InputError, match="needs a dense X"):
        ranker().fit(sparse.csr_matrix(np.nan_to_num(X)), Y, GROUPS)
    with pytest.raises(InputError, match="needs a dense X"):
        ranker().fit(X, Y, GROUPS).predict(sparse.csr_matrix(np.nan_to_num(X)), GROUPS)
    with pytest.raises(InputError, match="missing='mean' is not known"):
        ranker(missing="mean").fit(X, Y, GROUPS)
    with pytest.raises(InputError, match="missing"):
        RankingData.from_groups(X, Y, GROUPS)
    lists = RankingData.from_groups(X, Y, GROUPS, missing="lowest")
    with pytest.raises(InputError, match="missing"):
        lists.scores(np.ones(N_FEATURES))
    with pytest.raises(InputError, match="missing"):
        PAPKRanker(k=3, missing=None).fit_lists(lists)


def test_half_of_the_negatives_count_where_holes_are_filled():
    """The optimum of depth 0.5, of the strength that the rule has at any depth; given ones stay."""
    fitted = ranker().fit(X, Y, GROUPS)
    half = ranker(depth=0.5).fit(X, Y, GROUPS)
    most = ranker(depth=0.9).fit(X, Y, GROUPS)
    assert (fitted.coef_ == half.coef_).all() and (fitted.coef_ != most.coef_).any()
    assert fitted.alpha_ == half.alpha_ == most.alpha_
    assert fitted.to_model().depth == 0.5 and most.to_model().depth == 0.9
    assert PAPKRanker(k=3, missing=None).make_surrogate().depth == 0.9
    surrogate = make_surrogate("ts", 3, 7)
    assert ranker(k=None, surrogate=surrogate).make_surrogate() == surrogate
    assert ranker(surrogate=make_surrogate("ts", 3)).make_surrogate().depth == 0.5
