"""Ranking data: any order, any label type, no copies, errors that name the place."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from structsvm_papk import RankingData
from structsvm_papk.data.columns.units import scale_of
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.portable

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 1, 0])
GROUPS = ["b", "a", "b", "a", "b", "a"]


def test_rows_are_listed_by_user_positives_first_and_x_is_not_copied():
    data = RankingData.from_groups(X, Y, GROUPS)
    assert data.X is X
    for name, expected in {
        "users": ["a", "b"], "rows": [1, 3, 5, 4, 0, 2], "indptr": [0, 3, 6], "n_pos": [2, 1],
        "n_neg": [1, 2], "labels": [1, 1, 0, 1, 0, 0], "user_of_position": [0, 0, 0, 1, 1, 1],
    }.items():  # fmt: skip
        assert getattr(data, name).tolist() == expected, name


@pytest.mark.parametrize(
    "groups",
    [
        np.array([2.5, 1.5] * 3),
        np.array(["y", "x"] * 3, dtype=object),
        pd.Series(["y", "x"] * 3, index=range(5, 11)),
        pd.Series(["y", "x"] * 3, dtype="category"),
        pl.Series([True, False] * 3),
        pd.to_datetime(["2026-02-01", "2026-01-01"] * 3),
    ],
    ids=["float", "object", "pandas", "category", "polars", "dates"],
)
def test_group_labels_of_any_type(groups):
    data = RankingData.from_groups(X, Y, groups)
    assert list(data.rows) == [1, 3, 5, 4, 0, 2]


@pytest.mark.parametrize(
    "matrix",
    [
        X,
        np.asfortranarray(X),
        X.astype(np.float32),
        X.astype(int),
        np.repeat(X, 2, axis=1)[:, ::2],
        sparse.csr_array(X),
        sparse.coo_matrix(X),
        pd.DataFrame(X),
        pl.DataFrame(X),
    ],
    ids=["C", "F", "float32", "int", "strided", "csr", "coo", "pandas", "polars"],
)
def test_products_with_every_kind_of_matrix(matrix):
    data = RankingData.from_groups(matrix, Y, GROUPS)
    w = np.array([0.5, -2.0])
    coef = np.array([1.0, 0.0, -1.0, 2.0, 0.0, 3.0])
    np.testing.assert_allclose(data.scores(w), (X @ w)[data.rows])
    np.testing.assert_allclose(data.rmatvec(coef), X[data.rows].T @ coef)


def test_usable_users_and_the_report():
    data = RankingData.from_groups(X, [0, 1, 0, 1, 0, 0], GROUPS)
    assert str(data.exclusions(1)) == (
        "1 of 2 users used; left out: 1 without a positive, 0 without a negative"
    )
    usable = data.usable(1)
    both = RankingData.from_groups(X, Y, GROUPS)
    assert usable.users.tolist() == ["a"] and usable.rows.tolist() == [1, 3, 5]
    assert usable.X is X and both.usable(1) is both
    for lists, needed, policy, message in (
        (data, 1, "raise", r"user .*b.* has no positive.*policy='exclude'"),
        (both, 2, "raise", r"user .*a.* has 1 negatives, fewer than k=2"),
        (data, 2, "exclude", "at most 1"),
        (data, 1, "drop", "exclude, raise"),
        (data, 1.5, "exclude", "whole number"),
    ):
        with pytest.raises(InputError, match=message):
            lists.usable(needed, policy)


@pytest.mark.parametrize(
    ("labels", "groups", "message"),
    [
        (Y, np.arange(6), "every user has one row"),
        ([1, 1, 1, 1, 0, 0], [1, 1, 2, 2, 3, 3], "no user has both a positive and a negative"),
        (np.zeros(6), GROUPS, "no user has a positive: all labels are of one class"),
        (np.ones(6), GROUPS, "no user has a negative: all labels are of one class"),
    ],
)
def test_no_user_with_both_classes(labels, groups, message):
    with pytest.raises(InputError, match=message):
        RankingData.from_groups(X, labels, groups).usable(2)


def _with(value, row=4, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


def _csr(part, beyond):
    """A matrix of which an index leads out of its arrays."""
    bad = sparse.csr_matrix(X + 1)
    getattr(bad, part)[3] = beyond
    return bad


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": _with(np.nan)}, "NaN at row 4, column 1"),
        ({"X": sparse.csr_array(_with(-np.inf))}, "-inf at row 4, column 1"),
        ({"X": X[:0], "y": Y[:0]}, "empty"),
        ({"X": X.ravel()}, "two dimensions"),
        ({"X": np.array([["a", "b"]] * 6)}, "text is no number"),
        ({"X": X + 1j}, "Complex data not supported"),
        ({"X": np.ma.array(X, mask=X > 3)}, "masked"),
        ({"X": [[1, 2], [3]]}, "regular array"),
        ({"y": Y[:5]}, "6 rows"),
        ({"y": [0, 1, 2, 3, 4, 0]}, "threshold"),
        ({"y": [None, 1, 0, 1, 0, 0]}, "NaN or infinite in row 0"),
        *(({"indptr": w}, "indptr") for w in ([0, 5], [1, 6], [0.0, 6.0], [0], [[0, 6]])),
        ({"indptr": np.array([0, 5, 3, 6], dtype=np.uint64)}, "must rise"),
        ({"indptr": [[0], [1, 2]]}, "regular array"),
        ({"users": [[1], [2, 3]]}, "regular array"),
        ({"users": ["a", "b", "c"]}, "3 labels"),
        ({"X": _csr("indices", 10**8)}, "not a valid CSR matrix"),
        ({"X": _csr("indptr", 10**7)}, "not a valid CSR matrix"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        RankingData(**({"X": X, "y": Y, "indptr": [0, 3, 6]} | changes))
    with pytest.raises(InputError, match="one label per row"):
        RankingData.from_groups(X, Y, GROUPS[:5])
    with pytest.raises(InputError, match="2 features"):
        RankingData(X, Y, [0, 6]).scores(np.zeros(3))


SIZES = [1, 7, 12, 3, 1, 20]
USERS = np.repeat(np.arange(len(SIZES)), SIZES)


def definition(X, users):
    total = [Fraction(0)] * X.shape[1]
    for u in np.unique(users):
        for f, column in enumerate(X[users == u].T):
            values = [Fraction(float(v)) for v in column]
            mean = sum(values) / len(values)
            total[f] += sum((v - mean) ** 2 for v in values)
    return np.array([float(t / len(users)) ** 0.5 for t in total])


def deviation(X, users=USERS):
    y = np.arange(users.size) % 2
    return RankingData.from_groups(X, y, users).deviation()


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(USERS.size, 8))
    X[:, 1] *= 1e-100
    X[:, 2] *= 1e100
    X[:, 3] += 1e6 * USERS
    X[:, 4] = 0.1 * (USERS + 1)  # constant within users
    X[:, 5] = 0.1
    X[0, 6] = 1e12  # of a user with one row
    X[:, 7] = np.where(rng.random(USERS.size) < 0.7, 0.0, X[:, 7])
    # constant within users, and zero for most of them
    return np.column_stack([X, np.where(USERS == 2, 0.1, np.where(USERS == 5, 0.3, 0.0))])


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_the_deviation_within_users_is_its_definition_in_every_storage(columns, form):
    X = columns
    computed = deviation(form(X))
    np.testing.assert_allclose(computed, definition(X, USERS), rtol=1e-12)
    assert computed[4] == computed[5] == computed[8] == 0.0
    single = np.delete(X, [1, 2, 6], axis=1).astype(np.float32)
    np.testing.assert_allclose(deviation(form(single)), definition(single, USERS), rtol=1e-12)


def test_the_scale_has_an_inverse():
    scale = scale_of(np.array([0.0, 1e-200, 1e-30, 2.0, 1e30, 1e200, np.inf]))
    np.testing.assert_array_equal(scale, [1.0, 1.0, 1e-30, 2.0, 1e30, 1e200, 1.0])
    X = np.random.default_rng(0).normal(size=(5, 3))  # users with one row only
    np.testing.assert_array_equal(scale_of(deviation(X, np.arange(5))), 1.0)
