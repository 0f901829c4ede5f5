"""Rows on file of which some are kept in memory, and the fits that read the needed rows only."""

import threading

import numpy as np
import pytest

from helpers.marks import slow
from helpers.problems import walk
from helpers.sources import N_USERS, D, npy_source, parquet_source, tall_lists
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.data.file_rows import FileRows
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.oracles.thresholds import Thresholds
from structsvm_papk.solvers.result import Status

BATCH = 100 * D * 8  # bytes of a few rows, so that there are many batches


def test_what_is_kept_is_not_read_again_and_makes_room_when_it_is_idle():
    X, read = np.random.default_rng(0).normal(size=(1000, D)), []

    def reader(start, out):
        read.append(len(out))
        out[:] = X[start : start + len(out)]

    rows = FileRows(reader, X.shape, X.dtype, 120, BATCH)
    for wanted, times in ((np.arange(100), 3), (np.arange(500, 600), 6)):
        for _ in range(times):  # the others are given up for these
            rows[wanted]
            rows.keep(wanted[:20])
        if times == 3:
            assert rows.rows_read == sum(read) == 100
    read.clear()
    rows[wanted]
    assert not read
    rows[np.arange(0, 1000, 3)]  # those between are read along
    assert max(read) <= 100 and len(read) < 20


WEIGHTS = np.arange(1.0, N_USERS + 1)


@pytest.mark.parametrize(
    ("name", "depth", "weight"),
    [
        ("avg", None, "equal"),
        ("max", 8, "positives"),
        ("avg", 0.02, WEIGHTS),
        slow("max", 0.02, "equal"),
    ],
)
def test_cuts_are_to_the_bit_those_of_the_fit_in_memory(tmp_path, name, depth, weight):
    surrogate, (X, y, groups) = make_surrogate(name, 5, depth), tall_lists(np.float32)
    data = RankingData.from_groups(X, y, groups, user_weight=weight)
    source = npy_source(tmp_path, X, y, groups)
    risk = StreamedRisk(surrogate, source, 1.5 * X.nbytes, user_weight=weight, batch_bytes=BATCH)
    found, expected = risk.with_blocks(4), EmpiricalRisk(surrogate, data).with_blocks(4)
    assert not isinstance(found, PartitionedRisk)
    assert len(risk.parts.rows.kept) < 0.8 * data.rows.size
    assert found.n_blocks == expected.n_blocks
    for w in walk(D)[:-4]:
        one, other = found.cuts(w), expected.cuts(w)
        assert one.value == other.value
        for field in ("slopes", "intercepts", "errors"):
            assert np.array_equal(getattr(one, field), getattr(other, field))
    assert found.rows_scored == expected.rows_scored
    assert np.array_equal(found.blocks(w)[1], other.slopes)
    assert risk(w)[0] == pytest.approx(found(w)[0], rel=1e-12)  # whole partitions, lent memory
    assert found.cuts(w).value == one.value


@pytest.mark.parametrize("source", [npy_source, parquet_source])
def test_a_fit_is_that_in_memory_and_ends_without_reading(tmp_path, source):
    surrogate, (X, y, groups) = make_surrogate("ts", 5), tall_lists()
    files = source(tmp_path, X, y, groups)
    before = set(threading.enumerate())
    risk = StreamedRisk(surrogate, files, 0.9 * X.nbytes, batch_bytes=BATCH)
    read = []
    solver = CuttingPlane(1e-3, tol=1e-9, n_blocks=8)
    found = solver.solve(risk, callback=lambda _: read.append(risk.parts.rows.rows_read))
    expected = solver.solve(EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups)))
    assert np.array_equal(found.w, expected.w)
    assert found.lower_bound == pytest.approx(expected.lower_bound, abs=1e-10)
    assert np.array_equal(found.curve("rows_scored"), expected.curve("rows_scored"))
    assert expected.objective < 0.9
    assert read[-1] == read[-5] < 0.5 * groups.size * len(read)
    assert risk.gain(found.w) > 0.5
    assert set(threading.enumerate()) <= before
    assert np.array_equal(solver.solve(risk).w, found.w)
    assert 0.05 < risk.share_in_memory < 0.5


@pytest.mark.parametrize("weight", ["positives", slow("equal")])
def test_a_sample_of_the_users_is_that_of_a_fit_in_memory(tmp_path, weight):
    low = Thresholds(sample_rows=1000, sample_users_per_feature=1)
    rng, n_users, n_items = np.random.default_rng(0), 420, 60
    X = rng.normal(size=(n_users * n_items, 16))
    groups = np.repeat(rng.permutation(n_users), n_items)
    y = (X.sum(axis=1) + rng.normal(size=groups.size) > 5.0) & (groups % 10 > 0)  # some have none
    surrogate, source = make_surrogate("ts", 3), npy_source(tmp_path, X, y, groups)
    small = {"user_weight": weight, "batch_bytes": BATCH, "thresholds": low}
    risk = StreamedRisk(surrogate, source, X.nbytes, **small)
    data = RankingData.from_groups(X, y, groups, user_weight=weight)
    assert risk.n_users < n_users and risk.sample.n_users == -(-risk.n_users // 20)
    solver, w = CuttingPlane(1e-3, tol=1e-8), rng.normal(size=16)
    own = EmpiricalRisk(surrogate, risk.sample.data)
    for u, user in enumerate(own.data.users):
        rows = own.data.X[own.data.rows[own.data.indptr[u] : own.data.indptr[u + 1]]]
        assert sorted(map(tuple, rows)) == sorted(map(tuple, X[groups == user]))
    found, expected = (
        solver.solve(risk),
        solver.solve(EmpiricalRisk(surrogate, data, thresholds=low)),
    )
    assert found.status is expected.status is Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=2e-8)
    assert risk.sample(w)[0] == own(w)[0]
    little = StreamedRisk(surrogate, source, X.nbytes // 3, **small)
    assert little.sample is None
    assert solver.solve(little).objective == pytest.approx(expected.objective, rel=2e-8)


@pytest.mark.parametrize(("offset", "budget"), [(0.0, 0.5), (1e9, 1.0)])
def test_without_room_for_short_lists_or_with_large_offsets_everything_is_read(
    tmp_path, offset, budget
):
    X, y, groups = tall_lists()
    X[:, 3] += offset
    surrogate, source = make_surrogate("ts", 5), npy_source(tmp_path, X, y, groups)
    risk = StreamedRisk(surrogate, source, budget * X.nbytes, batch_bytes=BATCH)
    assert isinstance(risk.with_blocks(3), PartitionedRisk)
    own = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups))
    assert risk(np.ones(D))[0] == pytest.approx(own(np.ones(D))[0], rel=1e-12)
