"""The oracle: mean over users, independent of order, storage, blocks and threads."""

import numpy as np
import pytest
from scipy import sparse

from helpers import problems
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import SURROGATES


@pytest.mark.parametrize("name", SURROGATES)
def test_storage_order_of_rows_and_of_users_do_not_matter(name):
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(300, 6)), rng.normal(size=6)
    y, groups = rng.random(300) < 0.3, rng.integers(0, 15, 300)
    surrogate = make_surrogate(name, 4)
    value, slope = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups))(w)
    order = rng.permutation(300)
    variants = [
        (X[order], y[order], groups[order]),
        (np.asfortranarray(X), y, -groups),
        (sparse.csr_array(X), y, groups.astype(str)),
    ]
    for variant in variants:
        other = EmpiricalRisk(surrogate, RankingData.from_groups(*variant))(w)
        assert other[0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(other[1], slope, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", SURROGATES)
def test_blocks_add_up_and_threads_change_nothing(name):
    data, w = problems.ranking_data(n_users=30), np.array([1.0, -0.5, 2.0, 0.1])
    value, slope = EmpiricalRisk(make_surrogate(name, 3), data)(w)
    answers = [
        EmpiricalRisk(make_surrogate(name, 3), data, n_blocks=7, n_threads=n).blocks(w)
        for n in (1, 2, 4)
    ]
    for values, slopes in answers:
        assert values.shape == (7,)
        assert values.sum() == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(slopes.sum(axis=0), slope, atol=1e-13)
        np.testing.assert_array_equal(values, answers[0][0])
        np.testing.assert_array_equal(slopes, answers[0][1])


def test_line_agrees_with_the_risk_and_its_slope():
    oracle = problems.risk("ts")
    w, d = np.array([1.0, -0.5, 2.0, 0.1]), np.array([0.3, 0.2, -1.0, 1.0])
    line = oracle.along(oracle.scores(w), oracle.scores(d))
    value, slope = line(0.7)
    assert value == pytest.approx(oracle(w + 0.7 * d)[0])
    assert slope == pytest.approx(oracle(w + 0.7 * d)[1] @ d)


def test_left_out_users_are_reported_and_do_not_count():
    data = RankingData(np.eye(5), [1, 0, 0, 1, 1], [0, 3, 5])
    oracle = EmpiricalRisk(make_surrogate("avg", 2), data)
    assert oracle.n_users == 1
    assert oracle.exclusions.n_excluded == 1
    assert oracle.with_blocks(1).exclusions.n_excluded == 1
    assert problems.risk("avg", n_users=4).with_blocks(100).n_blocks == 4  # one a user at most
    with pytest.raises(InputError, match="at least 1"):
        EmpiricalRisk(make_surrogate("avg", 2), data, n_blocks=0)
