import numpy as np
import pytest
from scipy import sparse

from structsvm_papk.data import RankingData
from structsvm_papk.data.fingerprint import fingerprint_of
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.surrogates.losses import Avg, ClippedRamp, Max

pytestmark = pytest.mark.portable


def make(change=None, order="C", dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.tile([1, 0, 0, 0, 0], 12)
    if change == "X":
        X[59, 2] = np.nextafter(X[59, 2], 1)
    if change == "y":
        y[:2] = 0, 1
    groups = np.repeat(np.arange(6), 5 if change == "groups" else 10)
    groups = np.append(groups, np.full(60 - groups.size, 6))
    return RankingData.from_groups(np.asarray(X, dtype, order), y, groups)


def test_the_same_data_has_the_same_fingerprint_whatever_its_memory_order():
    assert make().fingerprint() == make(order="F").fingerprint()
    X = np.random.default_rng(1).normal(size=(40, 2))
    y = np.arange(40) < 10
    one_list = EmpiricalRisk(Max(3), RankingData.from_groups(X, y))
    for risk in (EmpiricalRisk(Avg(2), make()), one_list):
        assert risk.with_blocks(3).fingerprint() == risk.fingerprint()


def test_every_change_changes_the_fingerprint():
    data = make()
    risks = [Avg(2), Avg(3), Max(2)]
    others = [*map(make, ("X", "y", "groups")), make(dtype=np.float32)]
    others.append(data.subset(np.arange(6) < 5))
    fingerprints = {EmpiricalRisk(surrogate, data).fingerprint() for surrogate in risks}
    fingerprints |= {EmpiricalRisk(Avg(2), other).fingerprint() for other in others}
    ramp = EmpiricalRisk(ClippedRamp(2), data)
    fingerprints |= {ramp.majorant(w).fingerprint() for w in np.eye(3)}
    assert len(fingerprints) == len(risks) + len(others) + 3


def test_pieces_do_not_show_and_parts_do_not_run_together():
    matrix = sparse.random_array((50, 7), density=0.3, rng=1, format="csr")
    array = np.arange(60.0).reshape(20, 3)
    assert fingerprint_of(array, matrix, chunk_bytes=50) == fingerprint_of(array, matrix)
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc")
    assert fingerprint_of(np.arange(4)) != fingerprint_of(np.arange(4).reshape(2, 2))
    assert fingerprint_of(np.empty((0, 3))) != fingerprint_of(np.empty((3, 0)))
