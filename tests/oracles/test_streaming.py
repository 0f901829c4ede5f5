"""The risk of data in files, within a memory budget."""

import tempfile
import threading
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from helpers.catalogue import SURROGATES
from helpers.marks import slow
from helpers.sources import N_FEATURES, in_memory, lists, npy_source, parquet_source
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.diagnosis import diagnose
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.sources import Source
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.rankers.solver_race import mean_pap_at_k
from structsvm_papk.solvers import metric
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.solver import Status

X_BYTES = 4000 * N_FEATURES * 8


def streamed(directory, name="ts", budget=X_BYTES, **options):
    return StreamedRisk(make_surrogate(name, 4), npy_source(directory, *lists()), budget, **options)


@pytest.mark.parametrize("name", SURROGATES)
def test_value_and_subgradient_are_those_of_the_risk_in_memory(tmp_path, name):
    oracle, expected = streamed(tmp_path, name), in_memory(name)
    assert len(oracle.partitions.summaries) > 10
    assert 0.0 < oracle.share_in_memory < 0.6
    for w in np.random.default_rng(1).normal(size=(5, N_FEATURES)):
        value, slope = oracle(w)
        assert value == pytest.approx(expected(w)[0], rel=1e-13)
        np.testing.assert_allclose(slope, expected(w)[1], rtol=0, atol=1e-13)
    data = expected.data
    assert oracle.gain(w) == pytest.approx(mean_pap_at_k(data.scores(w), data, 4), rel=1e-13)
    found, expected = oracle.exclusions, expected.exclusions
    assert str(found) == str(expected)
    np.testing.assert_array_equal(found.no_positive, expected.no_positive)
    np.testing.assert_array_equal(found.few_negatives, expected.few_negatives)
    assert any(not each.exclusions.n_used for each in oracle.partitions.summaries)


def test_the_gain_is_over_users_with_k_negatives_though_others_are_trained_on(tmp_path):
    X, y, groups = lists()
    y[(groups < 8) & (np.arange(4000) % 40 > 2)] = True  # the first partition has no others
    w = np.arange(N_FEATURES) / 10
    data = RankingData.from_groups(X, y, groups)
    expected = mean_pap_at_k(data.scores(w), data, 4)
    source = npy_source(tmp_path, X, y, groups)
    oracle = StreamedRisk(make_surrogate("ts", 4), source, X_BYTES // 8, policy="cap")
    assert oracle.n_users > 70 and len(oracle.partitions.summaries) > 3
    assert oracle.gain(w) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n_blocks", [1, 2, 7, 30, 300])
def test_blocks_add_up(tmp_path, n_blocks):
    assert streamed(tmp_path).with_blocks(400).n_blocks < 20  # of a small budget
    oracle = streamed(tmp_path, budget=10 * X_BYTES)
    assert oracle.share_in_memory > 0.75 and oracle.n_users > 20
    w = np.arange(N_FEATURES) / 10
    split = oracle.with_blocks(n_blocks)
    values, slopes = split.blocks(w)
    assert values.size == split.n_blocks <= n_blocks
    assert split.n_blocks >= 0.8 * min(n_blocks, oracle.n_users)
    assert values.sum() == pytest.approx(oracle(w)[0], rel=1e-13)
    np.testing.assert_allclose(slopes.sum(axis=0), oracle(w)[1], rtol=0, atol=1e-13)
    cuts = split.cuts(w)
    np.testing.assert_allclose(cuts.intercepts, values - slopes @ w, rtol=0, atol=1e-15)


def test_threads_and_file_type_change_nothing_and_single_precision_is_summed_in_double(tmp_path):
    w, surrogate = np.arange(N_FEATURES) / 10, make_surrogate("ts", 4)
    source = parquet_source(tmp_path, *lists(), n_files=2, rows=300)
    other = StreamedRisk(surrogate, source, X_BYTES, n_threads=2)
    expected = streamed(tmp_path)
    assert other(w)[0] == expected(w)[0]
    np.testing.assert_array_equal(other(w)[1], expected(w)[1])
    assert other.fingerprint() == expected.fingerprint() != streamed(tmp_path, "max").fingerprint()
    X, y, groups = lists()
    X = X.astype(np.float32)
    found = StreamedRisk(surrogate, npy_source(tmp_path, X, y, groups), X_BYTES // 2)(w)
    expected = EmpiricalRisk(surrogate, RankingData.from_groups(X.astype(float), y, groups))(w)
    assert found[0] == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-13)


@dataclass(frozen=True)
class Decoded(Source):
    """A source that has what it has to have only: `lists` and `rows`."""

    decoded: tuple
    batch_bytes = 333 * N_FEATURES * 8

    @classmethod
    def of(cls, X, y, groups):
        """All rows."""
        return cls(
            name="decoded",
            n_rows=X.shape[0],
            n_features=X.shape[1],
            dtype=X.dtype,
            columns_used="all",
            feature_names=None,
            decoded=(X, y, groups),
        )

    def lists(self):
        _, y, groups = self.decoded
        for start in range(0, self.n_rows, 300):
            yield start, y[start : start + 300], groups[start : start + 300]

    def rows(self, start, stop):
        X, y, groups = self.decoded
        return X[start:stop], y[start:stop], groups[start:stop]


def test_features_of_a_source_that_has_only_rows_are_copied_piece_by_piece(tmp_path, monkeypatch):
    w, expected = np.arange(N_FEATURES) / 10, streamed(tmp_path)
    source = Decoded.of(*lists())
    oracle = StreamedRisk(make_surrogate("ts", 4), source, X_BYTES)
    assert oracle(w)[0] == expected(w)[0]
    np.testing.assert_array_equal(oracle(w)[1], expected(w)[1])
    monkeypatch.setattr(tempfile, "tempdir", "/no/such")
    with pytest.raises(InputError, match=r"cannot write 0 MB of features .*/no/such: No such"):
        source.open_features()


def test_what_is_refused(tmp_path):
    with pytest.raises(InputError, match="79 with fewer than k=50 negatives"):
        StreamedRisk(
            make_surrogate("avg", 50), npy_source(tmp_path, *lists()), X_BYTES, policy="exclude"
        )
    with pytest.raises(TypeError, match="which has all data in one place"):
        diagnose(streamed(tmp_path))
    with pytest.raises(InputError, match="bounds over boxes"):
        GlobalRamp(1e-2).solve(streamed(tmp_path, "ramp"))


BUDGETS = [*product(["equal", "one is long"], [2, 5], [np.float32, np.float64], [None, 16])]


@pytest.mark.parametrize(  # every day each value twice
    ("sizes", "n_grades", "dtype", "curves"),
    [case if i % 5 == 0 else slow(*case) for i, case in enumerate(BUDGETS)],
)
def test_the_least_budget_that_a_refusal_names_is_enough(tmp_path, sizes, n_grades, dtype, curves):
    rng = np.random.default_rng(0)
    counts = np.full(300, 20)
    if sizes == "one is long":
        counts[100] = 1000
    groups = np.repeat(np.arange(300), counts)
    X = rng.normal(size=(groups.size, 1)).astype(dtype)
    y = rng.integers(0, n_grades, groups.size)
    source = npy_source(tmp_path, X, y, groups)

    def risk(budget):
        settings = {"label_gain": "linear", "curves": curves}
        return StreamedRisk(make_surrogate("avg", 3), source, budget, **settings)

    with pytest.raises(InputError, match=r"is too small.*; give at least .* MB$") as refusal:
        risk(1)
    least = float(str(refusal.value).split()[-2])
    enough = risk(int(least * 1e6))
    with pytest.raises(InputError, match=f"give at least {least:g} MB"):
        risk(int(0.97e6 * least))  # no more than it takes
    if curves is None:  # else knots may come from other rows
        w = rng.normal(size=enough.n_features)
        assert risk(1 << 30)(w)[0] == pytest.approx(enough(w)[0], rel=1e-12)


@pytest.mark.parametrize("how", ["truncated", "changed"])
def test_a_file_that_changes_in_mid_fit_ends_it_with_the_best_point(tmp_path, how):
    X, y, groups = lists()
    surrogate = make_surrogate("ts", 4)
    source = npy_source(tmp_path, X, y, groups)
    oracle = StreamedRisk(surrogate, source, 0.9 * X.nbytes)

    def callback(progress):
        if progress.iteration == 3:
            with open(tmp_path / "X.npy", "r+b") as file:
                file.seek(-800, 2)
                file.truncate() if how == "truncated" else file.write(b"\0" * 100)

    result = CuttingPlane(1e-2).solve(oracle, callback=callback)
    assert result.status == Status.FAILED
    assert result.n_iter == 3
    assert "cannot be read any more" in result.message
    risk = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups))
    assert result.lower_bound <= risk(result.w)[0] + 5e-3 * (result.w @ result.w)
    with pytest.raises(OracleFailure, match="has changed"):
        oracle.with_blocks(2).blocks(result.w)


def test_the_next_partition_is_read_while_one_is_computed(tmp_path):
    held = streamed(tmp_path).partitions
    begun = [threading.Event() for _ in held._users]
    load = held._load

    def noted(i):
        begun[i].set()
        return load(i)

    def task(partition):
        computed.append(partition.data)
        following = begun[len(computed)] if len(computed) < len(begun) else begun[-1]
        return following.wait(10)

    computed, held._load = [], noted
    assert all(held.run(task, [1] * len(begun)))


@pytest.mark.parametrize("name", ["avg", slow("ts")])
def test_steps_are_measured_by_slopes_of_blocks_as_in_memory(tmp_path, name, monkeypatch):
    monkeypatch.setattr(metric, "_FEWEST", 0)
    risk = streamed(tmp_path, name, 2 * X_BYTES)
    expected = in_memory(name)
    assert risk.n_entries == expected.n_entries
    solver = CuttingPlane(1e-3, tol=1e-8)
    result = solver.solve(risk)
    assert result.converged and result._warm_start.metric.axes is not None
    assert result.objective == pytest.approx(solver.solve(expected).objective, rel=2e-8)
    little = solver.solve(streamed(tmp_path, name, X_BYTES // 8))
    assert little.converged and little._warm_start.metric.axes is None  # no room for the slopes
    assert little.objective == pytest.approx(result.objective, rel=2e-8)


def tall_lists():
    """12 lists of 400 rows and 10 features, one of which has no positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4800, 10)) * np.geomspace(0.1, 10.0, 10) + rng.normal(size=10)
    y = np.zeros((12, 400), dtype=bool)
    y[rng.permuted(np.tile(np.arange(400), (12, 1)), axis=1) < 6] = True
    y[3] = False
    X[y.ravel(), 9] += 40.0
    return X, y.ravel(), np.repeat(np.arange(12), 400)


@pytest.mark.parametrize("source", [slow(npy_source), parquet_source])
def test_a_fit_of_long_lists_is_that_in_memory_and_leaves_no_thread(tmp_path, source):
    X, y, groups = tall_lists()
    before = set(threading.enumerate())
    risk = StreamedRisk(make_surrogate("ts", 5), source(tmp_path, X, y, groups), 0.9 * X.nbytes)
    data = RankingData.from_groups(X, y, groups)
    solver = CuttingPlane(1e-3, tol=1e-9, n_blocks=8)
    result = solver.solve(risk)
    expected = solver.solve(EmpiricalRisk(make_surrogate("ts", 5), data))
    assert result.objective == pytest.approx(expected.objective, rel=2e-9)
    assert expected.objective < 0.9
    assert set(threading.enumerate()) <= before


def test_large_offsets_change_nothing(tmp_path):
    X, y, groups = tall_lists()
    X[:, 3] += 1e9
    risk = StreamedRisk(make_surrogate("ts", 5), npy_source(tmp_path, X, y, groups), X.nbytes)
    in_memory = EmpiricalRisk(make_surrogate("ts", 5), RankingData.from_groups(X, y, groups))
    assert risk(np.ones(10))[0] == pytest.approx(in_memory(np.ones(10))[0], rel=1e-12)
