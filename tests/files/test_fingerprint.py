import numpy as np
import pytest
from scipy import sparse

from structsvm_papk.data import RankingData
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.surrogates.losses import Avg, Max

pytestmark = pytest.mark.portable


def make(change=None, order="C", dtype=np.float64):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.tile([1, 0, 0, 0, 0], 12)
    if change == "X":
        X[59, 2] = np.nextafter(X[59, 2], 1)
    if change == "y":
        y[:2] = 0, 1
    groups = np.repeat(np.arange(6), 5 if change == "groups" else 10)
    groups = np.append(groups, np.full(60 - groups.size, 6))
    return RankingData.from_groups(np.asarray(X, dtype, order), y, groups)


def test_the_same_data_has_the_same_fingerprint_whatever_its_memory_order():
    assert make().fingerprint() == make(order="F").fingerprint()
    risk = EmpiricalRisk(Avg(2), make())
    assert risk.with_blocks(3).fingerprint() == risk.fingerprint()


@pytest.mark.parametrize("change", ["X", "y", "groups"])
def test_one_change_changes_the_fingerprint(change):
    assert make(change).fingerprint() != make().fingerprint()


def test_dtype_surrogate_k_and_users_matter():
    data = make()
    found = {
        EmpiricalRisk(Avg(2), data).fingerprint(),
        EmpiricalRisk(Avg(3), data).fingerprint(),
        EmpiricalRisk(Max(2), data).fingerprint(),
        EmpiricalRisk(Avg(2), make(dtype=np.float32)).fingerprint(),
        EmpiricalRisk(Avg(2), data.subset(np.arange(6) < 5)).fingerprint(),
    }
    assert len(found) == 5


def test_pieces_do_not_show_and_parts_do_not_run_together(monkeypatch):
    matrix = sparse.random_array((50, 7), density=0.3, rng=1, format="csr")
    array = np.arange(60.0).reshape(20, 3)
    whole = fingerprint_of(array, matrix)
    monkeypatch.setattr("structsvm_papk.files.fingerprint._CHUNK_BYTES", 50)
    assert fingerprint_of(array, matrix) == whole
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc")
    assert fingerprint_of(np.arange(4)) != fingerprint_of(np.arange(4).reshape(2, 2))
    assert fingerprint_of(np.empty((0, 3))) != fingerprint_of(np.empty((3, 0)))


def test_one_list_in_blocks_has_the_fingerprint_of_its_risk():
    X, y = np.random.default_rng(1).normal(size=(40, 2)), np.arange(40) < 10
    risk = EmpiricalRisk(Max(3), RankingData.from_groups(X, y))
    assert risk.with_blocks(4).fingerprint() == risk.fingerprint()
