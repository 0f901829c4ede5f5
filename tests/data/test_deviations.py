"""The pooled within-user deviation against its definition in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from structsvm_papk import RankingData
from structsvm_papk.data.features import pooled, scale_of, within_user_deviation

SIZES = [1, 7, 12, 3, 1, 20]
USERS = np.repeat(np.arange(len(SIZES)), SIZES)


def definition(X, users):
    total = [Fraction(0)] * X.shape[1]
    for u in np.unique(users):
        for f, column in enumerate(X[users == u].T):
            values = [Fraction(float(v)) for v in column]
            mean = sum(values) / len(values)
            total[f] += sum((v - mean) ** 2 for v in values)
    # squares of 1e-100 have no room as floats: take the power of ten out
    power = [len(str(t.numerator)) - len(str(t.denominator)) for t in total]
    return np.array(
        [
            float(t / len(users) / Fraction(100) ** (p // 2)) ** 0.5 * 10.0 ** (p // 2)
            for t, p in zip(total, power, strict=True)
        ]
    )


def deviation(X, users=USERS):
    y = np.arange(users.size) % 2
    data = RankingData.from_groups(X, y, users)
    return within_user_deviation(data.X, data.rows, data.indptr, data.spread())


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(USERS.size, 8))
    X[:, 1] *= 1e-100
    X[:, 2] *= 1e100
    X[:, 3] += 1e6 * USERS
    X[:, 4] = 0.1 * (USERS + 1)  # constant within users
    X[:, 5] = 0.1
    X[0, 6] = 1e12  # of a user with one row
    X[:, 7] = np.where(rng.random(USERS.size) < 0.7, 0.0, X[:, 7])
    return X


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_it_is_its_definition_in_every_storage(X, form):
    found = deviation(form(X))
    np.testing.assert_allclose(found, definition(X, USERS), rtol=1e-12)
    assert found[4] == found[5] == 0.0


def test_float32(X):
    X = np.delete(X, [1, 2, 6], axis=1).astype(np.float32)
    np.testing.assert_allclose(deviation(X), definition(X, USERS), rtol=1e-12)


def test_a_sparse_column_that_is_constant_within_each_user_has_no_deviation():
    X = np.zeros((USERS.size, 2))
    X[USERS == 2, 0] = 0.1
    X[USERS == 5, 0] = 0.3
    X[:, 1] = np.arange(USERS.size) % 3
    found = deviation(sparse.csr_array(X))
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1], definition(X, USERS)[1], rtol=1e-12)


def test_users_with_one_row_only_leave_the_scale_alone():
    X = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(scale_of(deviation(X, np.arange(5))), 1.0)


def test_parts_together(X):
    first = USERS < 3
    parts = [deviation(X[part], USERS[part]) for part in (first, ~first)]
    together = pooled(parts, [first.sum(), (~first).sum()])
    np.testing.assert_allclose(together, deviation(X), rtol=1e-12)


def test_the_scale_has_an_inverse_and_a_square():
    scale = scale_of(np.array([0.0, 1e-200, 1e-30, 2.0, 1e30, 1e200, np.inf]))
    np.testing.assert_array_equal(scale, [1.0, 1.0, 1e-30, 2.0, 1e30, 1.0, 1.0])
