"""The pooled within-user deviation against its definition in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from structsvm_papk import RankingData
from structsvm_papk.data.features import scale_of, within_user_deviation

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
    # constant within users, and zero for most of them
    return np.column_stack([X, np.where(USERS == 2, 0.1, np.where(USERS == 5, 0.3, 0.0))])


@pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_it_is_its_definition_in_every_storage(X, form):
    found = deviation(form(X))
    np.testing.assert_allclose(found, definition(X, USERS), rtol=1e-12)
    assert found[4] == found[5] == found[8] == 0.0
    single = np.delete(X, [1, 2, 6], axis=1).astype(np.float32)
    np.testing.assert_allclose(deviation(form(single)), definition(single, USERS), rtol=1e-12)


def test_the_scale_has_an_inverse_and_a_square():
    scale = scale_of(np.array([0.0, 1e-200, 1e-30, 2.0, 1e30, 1e200, np.inf]))
    np.testing.assert_array_equal(scale, [1.0, 1.0, 1e-30, 2.0, 1e30, 1.0, 1.0])
    X = np.random.default_rng(0).normal(size=(5, 3))  # users with one row only
    np.testing.assert_array_equal(scale_of(deviation(X, np.arange(5))), 1.0)
