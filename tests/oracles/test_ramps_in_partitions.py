"""Ramps of data in partitions: the starts and optima of the same data in memory."""

import numpy as np
import pytest

from helpers.marks import slow
from helpers.problems import partitioned
from helpers.sources import npy_source
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.oracles.list_risk import Thresholds
from structsvm_papk.solvers.cccp import CCCP, starts_of

ALPHA = 1e-2
# users, items, features, noise
SETS = [(40, 20, 4, 2.5), (40, 20, 4, 0.5), (120, 30, 8, 1.0), (300, 12, 3, 4.0), (10, 60, 6, 1.5)]


def some_lists(number):
    n_users, n_items, n_features, noise = SETS[number]
    made = linear_lists(n_users, n_items, n_features, noise=noise, seed=number + 1)
    return made.X, made.y, made.groups


@pytest.mark.parametrize("number", [0, *map(slow, (1, 2, 3, 4))])
def test_the_optimum_on_files_is_that_in_memory(number, tmp_path):
    surrogate, lists = make_surrogate("clipped_ramp", 3), some_lists(number)
    expected = CCCP(ALPHA).solve(EmpiricalRisk(surrogate, RankingData.from_groups(*lists)))
    found = CCCP(ALPHA).solve(StreamedRisk(surrogate, npy_source(tmp_path, *lists), 1 << 20))
    assert found.status == expected.status
    assert [start.name for start in found.starts] == [start.name for start in expected.starts]
    # critical points, which depend on the last bits of their starts
    assert found.objective == pytest.approx(expected.objective, rel=1e-3) and found.objective < 1.0


@pytest.mark.parametrize("weight", [None, "positives"])
def test_starts_are_made_of_the_same_users(weight):
    few = Thresholds(start_rows=300, start_rows_per_feature=10)
    data = RankingData.from_groups(*some_lists(2), user_weight=weight)  # 3600 rows
    surrogate = make_surrogate("clipped_ramp", 3, 8)
    expected = starts_of(EmpiricalRisk(surrogate, data, thresholds=few), ALPHA)
    found = starts_of(partitioned(surrogate, data, 7, few), ALPHA)
    assert list(found) == list(expected)
    for name, w in expected.items():
        np.testing.assert_allclose(found[name], w, rtol=0, atol=1e-9)


def test_starts_of_sparse_features_and_of_little_memory(tmp_path):
    from scipy import sparse

    X, y, groups = some_lists(1)
    surrogate = make_surrogate("ramp", 3)
    dense, csr = (RankingData.from_groups(each, y, groups) for each in (X, sparse.csr_array(X)))
    expected = starts_of(EmpiricalRisk(surrogate, dense), ALPHA, ["logistic"])["logistic"]
    found = starts_of(partitioned(surrogate, csr, 3), ALPHA, ["logistic"])["logistic"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    little = StreamedRisk(surrogate, npy_source(tmp_path, X, y, groups), 12_000)
    some = EmpiricalRisk(surrogate, dense.some_of(15))  # 12 kB, of which 15%
    expected = starts_of(some, ALPHA, ["logistic"])["logistic"]
    found = starts_of(little, ALPHA, ["logistic"])["logistic"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
