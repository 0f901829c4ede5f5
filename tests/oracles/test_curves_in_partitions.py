"""Curves of columns that are read in partitions: the problem is that of lists in memory."""

import dask.array as da
import numpy as np
import pytest

from helpers.columns import knots_at_quantiles
from helpers.marks import slow
from helpers.problems import objective, partitioned
from helpers.sources import N_FEATURES, lists, npy_source
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.partitions import array_partitions
from structsvm_papk.oracles import StreamedRisk, empirical_risk
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.rankers.settings import STIFFNESS
from structsvm_papk.solvers.cccp import starts_of

ALPHA, PIECES, K = 0.05, 4, 4
X_BYTES = 4000 * N_FEATURES * 8


def bent_lists():
    """Lists of which the first column counts by its distance from 0.5."""
    X, y, groups = lists()
    side = np.random.default_rng(1).choice([-1.0, 1.0], len(X))
    X[:, 0] = 0.5 + side * np.exp(-X[:, 0])  # what was high is near 0.5
    return X, y, groups


@pytest.fixture(scope="module")
def threads():
    """A cluster in this process."""
    with connect(n_workers=1, threads_per_worker=2) as client:
        yield client


def in_memory(knots, name="ts"):
    """The risk of all lists, with these knots."""
    return EmpiricalRisk(make_surrogate(name, K), curved(knots), "cap")


def curved(knots):
    return RankingData.from_groups(*bent_lists()).with_curves(knots)


def streamed(directory, name="ts", budget=X_BYTES, make=npy_source, **options):
    source = make(directory, *bent_lists())
    return StreamedRisk(make_surrogate(name, K), source, budget, curves=PIECES, **options)


def assert_same_problem(risk, whole):
    """At some points, and at the optimum in the units of the penalty."""
    assert risk.n_features == whole.n_features == N_FEATURES * (PIECES + 1)
    for w in np.random.default_rng(0).normal(size=(3, risk.n_features)):
        value, slope = whole(w)
        assert risk(w)[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(risk(w)[1], slope, rtol=0, atol=1e-12)
    parts = risk.partitions.standardized("auto").stiffened(STIFFNESS)
    divided = PartitionedRisk(risk.surrogate, parts)
    data = curved(parts.knots).standardized("auto").stiffened(STIFFNESS)
    np.testing.assert_allclose(divided.units.scale, data.units.scale, rtol=1e-9)
    whole = EmpiricalRisk(whole.surrogate, data, "cap")
    results = [CuttingPlane(ALPHA, tol=1e-10).solve(each) for each in (divided, whole)]
    assert all(result.converged for result in results)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-9)
    value = objective(whole, ALPHA, results[0].w)
    assert value == pytest.approx(results[1].objective, rel=1e-9)


@pytest.mark.parametrize("name", [slow("avg"), "ts", slow("max"), slow("pauc")])
def test_a_file_has_the_optimum_of_memory(tmp_path, name):
    risk = streamed(tmp_path, name)
    assert 0.0 < risk.share_in_memory < 0.6 and len(risk.partitions.summaries) > 5
    assert_same_problem(risk, in_memory(risk.partitions.knots, name))


def test_knots_are_quantiles_of_all_rows_of_a_file(tmp_path):
    X, y, groups = bent_lists()
    X[: len(X) // 8, 0] = 0.0  # a file by date: the column came later
    data = RankingData.from_groups(X, y, groups)
    whole = knots_at_quantiles(data.X, data.rows, PIECES)
    surrogate = make_surrogate("avg", K)
    source = npy_source(tmp_path, X, y, groups)
    risks = [StreamedRisk(surrogate, source, n * X_BYTES, curves=PIECES) for n in (1, 10)]
    for own in (risk.partitions.knots for risk in risks):
        for j in range(N_FEATURES):
            assert np.isin(own.column(j), X[:, j]).all()
            shares = [np.searchsorted(np.sort(X[:, j]), each.column(j)) for each in (own, whole)]
            np.testing.assert_allclose(shares[0] / len(X), shares[1] / len(X), atol=0.03)


def test_a_ranker_fits_a_file_as_memory(tmp_path):
    ranker = PAPKRanker(K, "ts", curves=PIECES, tol=1e-9)
    risk = StreamedRisk(
        ranker.make_surrogate(), npy_source(tmp_path, *bent_lists()), X_BYTES, curves=PIECES
    )
    ranker.fit_risk(risk)
    X, y, groups = bent_lists()
    scores = ranker.predict(X)
    np.testing.assert_allclose(ranker.contributions(X).sum(axis=1), scores, atol=1e-12)
    for curve, x in zip(ranker.curves_, X.T, strict=True):
        within = curve(x).reshape(100, 40).var(axis=1)
        assert curve.deviation == pytest.approx(np.sqrt(within.mean()), rel=0.05)
    line = PAPKRanker(K, "ts", curves=None).fit(X, y, groups)
    assert ranker.score(X, y, groups) > line.score(X, y, groups) + 0.1


def test_curves_that_rise_on_files_are_all_functions_that_rise(tmp_path):
    X, y, groups = bent_lists()
    settings = {"k": K, "surrogate": "avg", "alpha": ALPHA, "curves": PIECES, "tol": 1e-9}
    ranker = PAPKRanker(**settings, positive=True)
    surrogate = ranker.make_surrogate()
    source = npy_source(tmp_path, X, y, groups)
    risk = StreamedRisk(surrogate, source, 100 * X_BYTES, curves=PIECES, positive=True)
    ranker.fit_risk(risk)
    here = PAPKRanker(**settings, pairs=None, positive=True).fit(X, y, groups=groups)
    assert ranker.result_.objective == pytest.approx(here.result_.objective, rel=1e-6)
    for curve, same in zip(ranker.curves_, here.curves_, strict=True):
        assert (np.diff(curve.values) >= 0.0).all()
        np.testing.assert_array_equal(curve.knots, same.knots)
    free = StreamedRisk(surrogate, source, 10 * X_BYTES, curves=PIECES)
    with pytest.raises(InputError, match="curves of the risk need not rise"):
        ranker.fit_risk(free)
    with pytest.raises(InputError, match="curves of the risk have to rise"):
        PAPKRanker(**settings).fit_risk(risk)


@pytest.mark.scale
@pytest.mark.parametrize("name", ["avg", "ts", slow("max"), slow("pauc")])
def test_a_cluster_has_the_optimum_of_memory(threads, name):
    partitions = array_partitions(RankingData.from_groups(*bent_lists()), 8)
    risk = DaskRisk(make_surrogate(name, K), partitions, threads, curves=PIECES)
    assert_same_problem(risk, in_memory(risk.partitions.knots, name))


@pytest.mark.scale
def test_dask_arrays_have_curves(threads):
    X, y, groups = bent_lists()
    with threads.as_current():
        ranker = PAPKRanker(K, "ts", alpha=ALPHA, curves=PIECES, tol=1e-9)
        ranker.fit(da.from_array(X, chunks=(777, -1)), y, groups=groups)
    assert ranker.result_.converged
    assert all(curve.knots.size > PIECES for curve in ranker.curves_)
    np.testing.assert_allclose(
        ranker.contributions(X).sum(axis=1), ranker.predict(X), rtol=0, atol=1e-12
    )
    here = PAPKRanker(K, "ts", alpha=ALPHA, curves=PIECES, tol=1e-9).fit(X, y, groups)
    difference = ranker.score(X, y, groups) - here.score(X, y, groups)
    assert abs(difference) < 0.02  # knots of some of the rows
    line = PAPKRanker(K, "ts", alpha=ALPHA, curves=None).fit(X, y, groups)
    assert ranker.score(X, y, groups) > line.score(X, y, groups) + 0.1


# --- ramps ----------------------------------------------------------------------------------------


RAMP_ALPHA = 1e-2


def some_lists(n_users, n_items, n_features, noise, seed):
    made = linear_lists(n_users, n_items, n_features, noise=noise, seed=seed)
    return made.X, made.y, made.groups


@pytest.mark.parametrize("weight", [None, "positives"])
def test_starts_are_made_of_the_same_users(weight, monkeypatch):
    monkeypatch.setattr(empirical_risk, "_START_ROWS", 300)
    monkeypatch.setattr(empirical_risk, "_START_ROWS_A_FEATURE", 10)
    data = RankingData.from_groups(
        *some_lists(120, 30, 8, 1.0, seed=3), user_weight=weight
    )  # 3600 rows
    surrogate = make_surrogate("clipped_ramp", 3, 8)
    expected = starts_of(EmpiricalRisk(surrogate, data), RAMP_ALPHA)
    found = starts_of(partitioned(surrogate, data, 7), RAMP_ALPHA)
    assert list(found) == list(expected)
    for name, w in expected.items():
        np.testing.assert_allclose(found[name], w, rtol=0, atol=1e-9)


def test_starts_of_sparse_features_and_of_little_memory(tmp_path):
    from scipy import sparse

    X, y, groups = some_lists(40, 20, 4, 0.5, seed=2)
    surrogate = make_surrogate("ramp", 3)
    dense, csr = (RankingData.from_groups(each, y, groups) for each in (X, sparse.csr_array(X)))
    expected = starts_of(EmpiricalRisk(surrogate, dense), RAMP_ALPHA, ["logistic"])["logistic"]
    found = starts_of(partitioned(surrogate, csr, 3), RAMP_ALPHA, ["logistic"])["logistic"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    little = StreamedRisk(surrogate, npy_source(tmp_path, X, y, groups), 12_000)
    some = EmpiricalRisk(surrogate, dense.some_of(15))  # 12 kB, of which 15%
    expected = starts_of(some, RAMP_ALPHA, ["logistic"])["logistic"]
    found = starts_of(little, RAMP_ALPHA, ["logistic"])["logistic"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
