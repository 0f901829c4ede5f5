"""Ascent on the dual over partitions: its active rows, agreement with others, what may go wrong."""

from functools import cache
from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from distributed import LocalCluster
from problems import partitioned
from scipy import sparse
from test_cluster import kill_a_worker
from test_partitions import npy_source

from structsvm_papk import (
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.data.partitions import array_partitions
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.oracles import _dual_kernels, active_blocks, dual_choice
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import CONVEX

ALPHA, N_ITEMS, N_FEATURES = 1e-2, 60, 80


def wide_data(n_users=12, dtype=np.float64, seed=0, weight=None):
    """Sparse lists, a tenth of whose rows are relevant; some rows are stored twice."""
    rng = np.random.default_rng(seed)
    n = n_users * N_ITEMS
    X = sparse.random_array((n, N_FEATURES), density=0.1, rng=rng, format="lil")
    X[5::N_ITEMS] = X[6::N_ITEMS]
    X = sparse.csr_array(X.astype(dtype))
    scores = X @ rng.normal(size=N_FEATURES) + 0.2 * rng.normal(size=n)
    scores = scores.reshape(n_users, N_ITEMS)
    y = scores > np.quantile(scores, 0.9, axis=1, keepdims=True)
    return RankingData(X, y.ravel(), np.arange(0, n + 1, N_ITEMS), user_weight=weight)


def here(data, name, n, k=3, depth=None, policy="exclude"):
    return partitioned(make_surrogate(name, k, depth), data, n, policy)


def in_memory(data, name, k=3, depth=None, policy="exclude"):
    return EmpiricalRisk(make_surrogate(name, k, depth), data, policy)


@pytest.fixture(scope="module")
def threads():
    with connect(n_workers=1, threads_per_worker=2) as client:
        yield client


@cache
def reference(name, alpha=ALPHA, depth=None, seed=0, dtype=np.float64, tol=1e-7):
    return CuttingPlane(alpha, tol=tol).solve(
        in_memory(wide_data(seed=seed, dtype=dtype), name, depth=depth)
    )


def objective(oracle, w, alpha=ALPHA):
    return alpha / 2 * (w @ w) + oracle(w)[0]


def check(result, oracle, reference):
    """A certified optimum, by an evaluation and a solver that know nothing of it."""
    assert result.status is Status.CONVERGED
    assert abs(result.objective - reference.objective) <= 1e-6 * reference.objective
    assert result.lower_bound <= reference.objective
    assert result.objective == pytest.approx(objective(oracle, result.w), rel=1e-12)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("where", ["files", "dask"])
def test_the_optimum_is_that_of_the_bundle_in_memory(name, n, where, tmp_path, threads):
    data = wide_data()
    oracle, surrogate = in_memory(data, name), make_surrogate(name, 3)
    if where == "dask":
        risk = DaskRisk(surrogate, array_partitions(data, n), threads)
    else:
        y = np.zeros(data.rows.size, dtype=bool)
        y[data.rows] = data.labels
        source = npy_source(tmp_path, data.X.toarray(), y, np.arange(y.size) // N_ITEMS)
        risk = StreamedRisk(surrogate, source, {1: 10**8, 2: 2_500_000, 5: 1_200_000}[n])
    assert (len(risk.parts.summaries) >= n) == (n < 9)
    solver = DualAscent(ALPHA, tol=1e-6)
    result = solver.solve(risk)
    check(result, oracle, reference(name))
    beside = solver.solve(oracle)
    assert abs(result.objective - beside.objective) <= 1e-6 * beside.objective
    assert result.data_passes < beside.data_passes
    assert result.duals.active.rows.size < data.rows.size


@pytest.mark.parametrize("n", [2, 5])
def test_the_result_does_not_depend_on_the_partitions(n):
    data = wide_data()
    one, other = (DualAscent(ALPHA).solve(here(data, "ts", m)) for m in (1, n))
    np.testing.assert_array_equal(one.w, other.w)
    assert one.history[-1].row_visits == other.history[-1].row_visits


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("depth", [None, 6, 0.3])
def test_every_bound_on_the_way_is_below_the_risk_everywhere(name, depth):
    data, rng = wide_data(weight="positives"), np.random.default_rng(1)
    oracle, risk = in_memory(data, name, depth=depth), here(data, name, 3, depth=depth)
    blocks = risk.dual_blocks(ALPHA)
    points = [scale * rng.normal(size=N_FEATURES) for scale in (0.1, 1, 5) for _ in range(5)]
    for full in (True, False, True, True, False, True):
        n_active = blocks.n_active
        blocks.sweep(rng.permutation(blocks.n_blocks), full)
        point = blocks.certificate()
        for w in [*points, point.w]:
            assert point.lower_bound <= objective(oracle, w)
        assert point.objective == pytest.approx(objective(oracle, point.w), rel=1e-12)
        assert blocks.gaps.sum() == pytest.approx(point.objective - point.lower_bound, abs=1e-12)
        assert n_active <= blocks.n_active <= data.rows.size - (depth != 0.3)
        # on the active rows the losses are now those of the lists
        held = blocks._blocks.risk
        values, _ = oracle.user_values(oracle.scores(point.w))
        np.testing.assert_allclose(held.user_values(held.scores(point.w))[0], values, rtol=1e-12)


@pytest.mark.parametrize("depth", [7, 0.4, float("inf")])
@pytest.mark.parametrize("name", CONVEX)
def test_depths_and_uneven_lists_of_one_user_a_partition(name, depth):
    rng = np.random.default_rng(3)
    sizes, n_pos = np.array([2, 40, 2, 9, 25, 3]), np.array([1, 20, 1, 4, 3, 1])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(sizes.sum(), 50))
    y = np.arange(sizes.sum()) - np.repeat(indptr[:-1], sizes) < np.repeat(n_pos, sizes)
    data = RankingData(X, y, indptr, user_weight=[1.0, 2.0, 0.5, 3.0, 1.0, 4.0])
    oracle = in_memory(data, name, 4, depth, "cap")
    risk = here(data, name, 1000, 4, depth, "cap")
    assert len(risk.parts.summaries) == 6
    check(
        DualAscent(ALPHA, tol=1e-6).solve(risk),
        oracle,
        CuttingPlane(ALPHA, tol=1e-7).solve(oracle),
    )


def test_partitions_without_usable_users_and_large_offsets():
    data = wide_data()
    X = data.X.toarray()
    X[:, 0] = X[:, 0] + 1e6  # read as differences to the user's first row
    X[: 3 * N_ITEMS, 1] += 1e7
    y = np.zeros(data.rows.size, dtype=bool)
    y[data.rows] = data.labels
    y[4 * N_ITEMS : 8 * N_ITEMS] = False
    data = RankingData(X, y, data.indptr)
    oracle, risk = in_memory(data, "ts"), here(data, "ts", 6)
    assert sum(not each.n_used for each in risk.parts.summaries) == 2
    assert oracle.origins() is not None
    result = DualAscent(ALPHA, tol=1e-6).solve(risk)
    check(result, oracle, CuttingPlane(ALPHA, tol=1e-7).solve(oracle))


def test_single_precision():
    data = wide_data(dtype=np.float32)
    risk, oracle = here(data, "avg", 2), in_memory(data, "avg")
    result = DualAscent(ALPHA, tol=1e-6).solve(risk)
    assert result.duals.active.X.dtype == np.float32
    check(result, oracle, reference("avg", dtype=np.float32))


def test_which_rows_are_missing():
    rng = np.random.default_rng(0)
    n_pos, sizes = np.array([3, 1, 5, 2]), np.array([9, 8, 30, 12])
    bounds, counted = np.concatenate([[0], np.cumsum(sizes)]), np.array([2, 3, 2, 1])
    scores = np.round(rng.normal(size=bounds[-1]), 1)
    coef = np.where(rng.random(scores.size) < 0.05, 0.5, 0.0)
    larger = np.array([True, False, True, True])
    marked = rng.random(scores.size) < 0.1
    out = marked.copy()
    _dual_kernels.mark_missing(scores, coef, bounds, n_pos, counted, larger, 2, out)
    for u, (first, last) in enumerate(pairwise(bounds)):
        before, after = marked[first:last], out[first:last]
        if not larger[u]:
            np.testing.assert_array_equal(before, after)
            continue
        own, negatives = scores[first:last], scores[first + n_pos[u] : last]
        assert after[: n_pos[u]].all() and after[before | (coef[first:last] != 0)].all()
        most = np.sort(negatives)[::-1]
        for many, least in ((counted[u], -np.inf), (2 * counted[u], own[: n_pos[u]].min() - 1)):
            wanted = most[:many][most[:many] > least]
            new = negatives[after[n_pos[u] :]]
            assert (np.sort(new)[::-1][: wanted.size] == wanted).all()
        n_others = (before | (coef[first:last] != 0))[n_pos[u] :].sum()
        assert after[n_pos[u] :].sum() <= 2 * counted[u] + n_others


@pytest.fixture(scope="module")
def processes():
    """Two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, connect(cluster.scheduler_address) as client:
        yield client


def test_a_worker_that_is_killed_in_mid_solve_changes_nothing(processes):
    data = wide_data()
    partitions = array_partitions(data, 5)
    solver, surrogate = DualAscent(ALPHA, tol=1e-7), make_surrogate("ts", 3)
    expected = solver.solve(DaskRisk(surrogate, partitions, processes))
    risk = DaskRisk(surrogate, partitions, processes)

    def callback(progress):
        if progress.iteration == 3:
            kill_a_worker(processes)

    result = solver.solve(risk, callback=callback)
    assert result.status is Status.CONVERGED
    np.testing.assert_array_equal(result.w, expected.w)
    assert result.data_passes == expected.data_passes
    assert len(risk.notes) == 1 and "A worker was lost" in risk.notes[0]


def broken_off(at, error, solver, risk):
    """A solve in whose look number `at` something is raised."""

    def hook(n_looks):
        if n_looks == at:
            raise error

    risk.parts.hook = hook
    return solver.solve(risk)


@pytest.mark.parametrize("at", [3, 4, 5])
def test_failures_and_interrupts_leave_the_best_point(at):
    data, solver = wide_data(), DualAscent(1e-3, tol=1e-9)
    oracle = in_memory(data, "pauc")
    for error, status in ((OracleFailure("gone"), Status.FAILED), (KeyboardInterrupt(), None)):
        result = broken_off(at, error, solver, here(data, "pauc", 2))
        assert result.status is (status or Status.INTERRUPTED)
        assert result.objective == pytest.approx(objective(oracle, result.w, 1e-3), rel=1e-12)
        assert result.lower_bound <= reference("pauc", 1e-3).objective
    with pytest.raises(KeyboardInterrupt):
        broken_off(1, KeyboardInterrupt(), solver, here(data, "pauc", 2))
    short = DualAscent(1e-3, tol=1e-12, time_limit=1e-9).solve(here(data, "pauc", 2))
    assert short.status is Status.TIME_LIMIT and short.lower_bound <= short.objective


@pytest.mark.parametrize("name", ["avg", "ts"])
def test_a_checkpoint_goes_on(name, tmp_path):
    data, solver = wide_data(), DualAscent(1e-3, tol=1e-8)
    whole = solver.solve(here(data, name, 3))
    stop = {"callback": lambda progress: progress.iteration == 6}
    first = solver.solve(here(data, name, 3), checkpoint=Checkpoint(tmp_path), **stop)
    assert first.status is Status.STOPPED
    second = solver.solve(here(data, name, 3), checkpoint=Checkpoint(tmp_path))
    assert second.converged and second.history[:6] == first.history[:6]
    assert second.history[6].data_passes > first.data_passes
    assert second.history[6].lower_bound >= first.lower_bound - 1e-9
    assert abs(second.objective - whole.objective) <= 2e-8
    with pytest.raises(InputError):
        solver.solve(here(data, "max", 3), checkpoint=Checkpoint(tmp_path))


def test_what_was_kept_has_to_fit():
    risk = here(wide_data(), "avg", 2)
    state = risk.dual_blocks(ALPHA, np.ones(N_FEATURES)).state()
    risk.dual_blocks(ALPHA, state)
    for bad in (state["positions"] + 10**6, state["positions"] - 10**6, state["coef"]):
        with pytest.raises(ValueError, match="do not fit"):
            risk.dual_blocks(ALPHA, state | {"positions": bad})


@pytest.mark.parametrize("name", CONVEX)
def test_warm_starts(name):
    data = wide_data()
    cold = DualAscent(ALPHA, tol=1e-6).solve(here(data, name, 2))
    assert DualAscent(ALPHA, tol=2e-6).solve(here(data, name, 2), warm_start=cold).n_iter == 1
    with pytest.raises(InputError, match="partitions"):
        DualAscent(ALPHA).solve(here(data, name, 5), warm_start=cold)
    for alpha, depth in ((8e-3, None), (ALPHA, 6), (ALPHA, 0.3)):
        solver, best = DualAscent(alpha, tol=1e-6), reference(name, alpha, depth).objective
        result = solver.solve(here(data, name, 2, depth=depth), warm_start=cold)
        assert result.converged and result.lower_bound <= best
        assert result.history[0].lower_bound <= best
        assert abs(result.objective - best) <= 1e-6 * best
    deep = DualAscent(ALPHA, tol=1e-7).solve(here(data, name, 2, depth=9))
    assert DualAscent(ALPHA).solve(here(data, name, 2), warm_start=deep).converged


def test_starts_from_and_for_other_solvers():
    data = wide_data()
    risk, oracle = here(data, "ts", 3), in_memory(data, "ts")
    bundle = CuttingPlane(ALPHA, tol=1e-6).solve(risk)
    ascent = DualAscent(ALPHA, tol=1e-6).solve(risk, warm_start=bundle)
    assert ascent.converged
    assert ascent.history[0].objective == pytest.approx(bundle.objective, rel=1e-12)
    again = CuttingPlane(ALPHA, tol=1e-6).solve(risk, warm_start=ascent)
    assert again.converged and again.n_iter < bundle.n_iter
    beside = DualAscent(ALPHA, tol=1e-6).solve(oracle)
    for here_, other in ((risk, beside), (oracle, ascent), (here(data, "max", 3), ascent)):
        with pytest.raises(InputError, match=r"another problem|in partitions"):
            DualAscent(ALPHA).solve(here_, warm_start=other)
        assert DualAscent(ALPHA, tol=1e-3).solve(here_, w_init=other.w).converged


def test_other_risks_offer_no_dual_blocks():
    risk = here(wide_data(), "clipped_ramp", 2)
    with pytest.raises(InputError, match="not convex"):
        DualAscent(ALPHA).solve(risk)
    majorant = risk.majorant(np.ones(N_FEATURES))
    assert not majorant.suits_dual_ascent(ALPHA)
    with pytest.raises(InputError, match="no dual blocks"):
        DualAscent(ALPHA).solve(majorant)


@pytest.mark.parametrize("name", CONVEX)
def test_little_room(name):
    """Idle rows go where there is no room; where there is none for the others, it says so."""
    risk = here(wide_data(), name, 2)
    cold = DualAscent(ALPHA, tol=1e-4)
    full = cold.solve(risk).duals.active.nbytes
    risk.row_room = 2 * 0.93 * full
    result = cold.solve(risk)
    assert result.status in (Status.CONVERGED, Status.FAILED)
    assert result.lower_bound <= reference(name).objective
    assert 2 * result.duals.active.nbytes <= risk.row_room
    risk.row_room = 0.5 * full
    with pytest.raises(OracleFailure, match=r"no room for the .* MB that the active rows"):
        cold.solve(risk)


def test_partitions_that_are_kept_give_way_to_active_rows(tmp_path):
    data = wide_data()
    y = np.zeros(data.rows.size, dtype=bool)
    y[data.rows] = data.labels
    source = npy_source(tmp_path, data.X.toarray(), y, np.arange(y.size) // N_ITEMS)
    risk = StreamedRisk(make_surrogate("avg", 3), source, 700_000)
    kept = risk.share_in_memory
    result = DualAscent(ALPHA, tol=1e-6).solve(risk)
    check(result, in_memory(data, "avg"), reference("avg"))
    assert risk.share_in_memory < kept
    assert 2 * result.duals.active.nbytes <= risk.row_room + risk.parts.given_up(0)
    risk = StreamedRisk(make_surrogate("avg", 3), source, 220_000)
    with pytest.raises(OracleFailure, match="larger memory budget"):
        DualAscent(ALPHA, tol=1e-6).solve(risk)


def test_rows_that_cannot_be_left_out():
    data = wide_data(n_users=3)
    risk = in_memory(data, "avg", k=3)
    coef = np.zeros(data.rows.size)
    coef[[20, 30, 31, 32, 33, 34]] = 0.1
    needed = active_blocks._needed(risk, coef)
    assert needed[data.labels].all() and needed[coef != 0].all()
    negatives = np.add.reduceat(needed & ~data.labels, data.indptr[:-1])
    np.testing.assert_array_equal(negatives, [6, 3, 3])


def test_it_is_chosen_by_the_rule_for_data_in_memory(threads):
    rng = np.random.default_rng(0)
    X = sparse.random_array((2000, 1100), density=0.01, rng=rng, format="csr")
    scores = (X @ rng.normal(size=1100)).reshape(25, 80)
    y = (scores > np.quantile(scores, 0.95, axis=1, keepdims=True)).ravel()
    data = RankingData(X, y, np.arange(0, 2001, 80))
    assert here(data, "avg", 3).suits_dual_ascent(ALPHA)
    assert not here(data, "avg", 3, k=10).suits_dual_ascent(ALPHA)  # most rows would be active
    dense = RankingData(X.toarray(), y, np.arange(0, 2001, 80))
    few = RankingData(X[:1520], y[:1520], np.arange(0, 1521, 80))
    narrow = RankingData(X[:, :900], y, np.arange(0, 2001, 80))
    for other in (dense, few, narrow):
        assert not here(other, "avg", 3).suits_dual_ascent(ALPHA)
    assert dual_choice.known(make_surrogate("ts", 3))
    blocks = da.from_array(X.toarray().astype(np.float32), chunks=(1000, -1))
    blocks = blocks.map_blocks(sparse.csr_array)
    ranker = PAPKRanker(k=3, surrogate="ts", depth=None, alpha=ALPHA, tol=1e-4)
    with threads.as_current():
        ranker.fit(blocks, y.astype(int), groups=np.arange(2000) // 80)
    assert ranker.to_model().solver == "dual_ascent"
    oracle = EmpiricalRisk(make_surrogate("ts", 3), data)
    best = CuttingPlane(ALPHA, tol=1e-6).solve(oracle).objective
    assert ranker.result_.lower_bound <= best <= ranker.result_.objective + 1e-6
