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
    X = np.random.default_rng(0).normal(size=(1000, D))
    read = []

    def reader(start, out):
        read.append(len(out))
        out[:] = X[start : start + len(out)]

    rows = FileRows(reader, X.shape, X.dtype, 120, BATCH)
    first = np.arange(100)
    for _ in range(3):
        rows[first]
        rows.keep(first[:20])
    assert rows.rows_read == sum(read) == 100
    second = np.arange(500, 600)
    for _ in range(6):  # the others are given up for these
        rows[second]
        rows.keep(second[:20])
    read.clear()
    rows[second]
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
    surrogate = make_surrogate(name, 5, depth)
    X, y, groups = tall_lists(np.float32)
    data = RankingData.from_groups(X, y, groups, user_weight=weight)
    source = npy_source(tmp_path, X, y, groups)
    risk = StreamedRisk(surrogate, source, 1.5 * X.nbytes, user_weight=weight, batch_bytes=BATCH)
    on_file = risk.with_blocks(4)
    in_memory = EmpiricalRisk(surrogate, data).with_blocks(4)
    assert not isinstance(on_file, PartitionedRisk)
    assert len(risk.parts.rows.kept) < 0.8 * data.rows.size
    assert on_file.n_blocks == in_memory.n_blocks
    for w in walk(D)[:-4]:
        cuts = on_file.cuts(w)
        expected = in_memory.cuts(w)
        assert cuts.value == expected.value
        for field in ("slopes", "intercepts", "errors"):
            assert np.array_equal(getattr(cuts, field), getattr(expected, field))
    assert on_file.rows_scored == in_memory.rows_scored
    assert np.array_equal(on_file.blocks(w)[1], expected.slopes)
    assert risk(w)[0] == pytest.approx(on_file(w)[0], rel=1e-12)  # whole partitions, lent memory
    assert on_file.cuts(w).value == cuts.value


@pytest.mark.parametrize("source", [npy_source, parquet_source])
def test_a_fit_is_that_in_memory_and_ends_without_reading(tmp_path, source):
    surrogate = make_surrogate("ts", 5)
    X, y, groups = tall_lists()
    files = source(tmp_path, X, y, groups)
    before = set(threading.enumerate())
    risk = StreamedRisk(surrogate, files, 0.9 * X.nbytes, batch_bytes=BATCH)
    read = []
    solver = CuttingPlane(1e-3, tol=1e-9, n_blocks=8)
    result = solver.solve(risk, callback=lambda _: read.append(risk.parts.rows.rows_read))
    expected = solver.solve(EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups)))
    assert np.array_equal(result.w, expected.w)
    assert result.lower_bound == pytest.approx(expected.lower_bound, abs=1e-10)
    assert np.array_equal(result.curve("rows_scored"), expected.curve("rows_scored"))
    assert expected.objective < 0.9
    assert read[-1] == read[-5] < 0.5 * groups.size * len(read)
    assert risk.gain(result.w) > 0.5
    assert set(threading.enumerate()) <= before
    assert np.array_equal(solver.solve(risk).w, result.w)
    assert 0.05 < risk.share_in_memory < 0.5


@pytest.mark.parametrize("weight", ["positives", slow("equal")])
def test_a_sample_of_the_users_is_that_of_a_fit_in_memory(tmp_path, weight):
    low = Thresholds(sample_rows=1000, sample_users_per_feature=1)
    rng = np.random.default_rng(0)
    n_users = 420
    n_items = 60
    X = rng.normal(size=(n_users * n_items, 16))
    groups = np.repeat(rng.permutation(n_users), n_items)
    y = (X.sum(axis=1) + rng.normal(size=groups.size) > 5.0) & (groups % 10 > 0)  # some have none
    surrogate = make_surrogate("ts", 3)
    source = npy_source(tmp_path, X, y, groups)
    small = {"user_weight": weight, "batch_bytes": BATCH, "thresholds": low}
    risk = StreamedRisk(surrogate, source, X.nbytes, **small)
    data = RankingData.from_groups(X, y, groups, user_weight=weight)
    assert risk.n_users < n_users and risk.sample.n_users == -(-risk.n_users // 20)
    solver = CuttingPlane(1e-2, tol=1e-8)
    w = rng.normal(size=16)
    sample = risk.sample.data
    for u, user in enumerate(sample.users):
        rows = sample.X[sample.rows[sample.indptr[u] : sample.indptr[u + 1]]]
        assert sorted(map(tuple, rows)) == sorted(map(tuple, X[groups == user]))
    result = solver.solve(risk)
    expected = solver.solve(EmpiricalRisk(surrogate, data, thresholds=low))
    assert result.status is expected.status is Status.CONVERGED
    assert result.objective == pytest.approx(expected.objective, rel=2e-8)
    assert risk.sample(w)[0] == EmpiricalRisk(surrogate, sample)(w)[0]
    little = StreamedRisk(surrogate, source, X.nbytes // 3, **small)
    assert little.sample is None
    assert solver.solve(little).objective == pytest.approx(expected.objective, rel=2e-8)


@pytest.mark.parametrize(("offset", "budget"), [(0.0, 0.5), (1e9, 1.0)])
def test_without_room_for_short_lists_or_with_large_offsets_everything_is_read(
    tmp_path, offset, budget
):
    X, y, groups = tall_lists()
    X[:, 3] += offset
    surrogate = make_surrogate("ts", 5)
    source = npy_source(tmp_path, X, y, groups)
    risk = StreamedRisk(surrogate, source, budget * X.nbytes, batch_bytes=BATCH)
    assert isinstance(risk.with_blocks(3), PartitionedRisk)
    in_memory = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups))
    assert risk(np.ones(D))[0] == pytest.approx(in_memory(np.ones(D))[0], rel=1e-12)
