"""Majorants against their definitions; CCCP by its descent, its certificate and its optima."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from helpers import reference
from helpers.catalogue import RAMPS
from helpers.marks import slow, some_of
from helpers.problems import degenerate_lists, draw_scores, objective
from structsvm_papk.data import RankingData
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.oracles import empirical_risk
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk, logistic_regression
from structsvm_papk.rankers.ranker import PAPKRanker
from structsvm_papk.solvers.branch_and_bound import BranchAndBound
from structsvm_papk.solvers.cccp import CCCP, starts_of
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import MajorisedOracle
from structsvm_papk.solvers.solver import Status
from structsvm_papk.surrogates import make_surrogate

SCORES = np.eye(130)  # with unit rows w is the vector of scores


def score_risk(name, k, n_pos, n_neg):
    """One user whose scores are w itself."""
    n = n_pos + n_neg
    data = RankingData.from_groups(SCORES[:n, :n], np.arange(n) < n_pos)
    return EmpiricalRisk(make_surrogate(name, k), data)


def small_risk(name, seed=0):
    lists = linear_lists(n_users=40, n_items=30, n_features=6, noise=1.0, seed=seed)
    return EmpiricalRisk(make_surrogate(name, 3), RankingData.from_groups(*lists[:3]))


def drop(risk, alpha, end):
    """By how much the majorant at an end can be lowered, as a share of the objective."""
    least = CuttingPlane(alpha, tol=1e-8).solve(risk.majorant(end.w)).objective
    return (end.objective - least) / end.objective


@pytest.mark.parametrize("name", RAMPS)
def test_majorant_matches_its_definition_and_bounds_the_surrogate(name):
    rng = np.random.default_rng(0)
    n_short = some_of(150)
    for trial in range(n_short + 10):  # the last lists are long: their pairs are counted in trees
        n_pos, n_neg = rng.integers(1, 8, 2) if trial < n_short else rng.integers(34, 65, 2)
        k = rng.integers(1 if trial < n_short else 33, n_neg + 1)
        risk = score_risk(name, k, n_pos, n_neg)
        at = draw_scores(rng, n_pos + n_neg)
        bound = risk.majorant(at)
        for _ in range(3):
            s = draw_scores(rng, n_pos + n_neg) + at * rng.integers(0, 2)
            value, slope = bound(s)
            expected = reference.majorant(
                s[:n_pos], s[n_pos:], at[:n_pos], at[n_pos:], k, name == "clipped_ramp"
            )
            assert value == pytest.approx(expected, abs=1e-10)
            assert value >= risk(s)[0] - 1e-10
            assert slope.sum() == pytest.approx(0.0, abs=1e-10)
            other = draw_scores(rng, n_pos + n_neg)
            assert bound(other)[0] >= value + slope @ (other - s) - 1e-9


def test_a_critical_zero_is_not_returned_silently():
    lists = degenerate_lists(n_users=20, n_pos=3, n_neg=20, n_features=3, noise=0.01, seed=1)
    risk = EmpiricalRisk(make_surrogate("ramp", 2), RankingData.from_groups(*lists[:3]))
    result = CCCP(1e-2, tol=1e-4).solve(risk)
    assert not result.w.any()
    assert "does not prove that no w is better" in result.message
    with pytest.warns(DegenerateOptimumWarning, match="ended at w = 0") as caught:
        PAPKRanker(k=2, surrogate="ramp", curves=None, tol=1e-4).fit(lists.X, lists.y, lists.groups)
    assert "clipped_ramp" in str(caught[0].message)


def one_list_of(seed):
    rng = np.random.default_rng(seed)
    n_pos, n_neg, k = rng.integers(3, 9), rng.integers(5, 12), rng.integers(1, 4)
    X = np.vstack([rng.normal(size=(n_pos, 2)) + 0.5, rng.normal(size=(n_neg, 2))])
    return X, np.arange(n_pos + n_neg) < n_pos, int(k)


def test_random_directions_lead_away_from_a_critical_zero():
    X, y, k = one_list_of(66)
    risk = EmpiricalRisk(make_surrogate("clipped_ramp", k), RankingData.from_groups(X, y))
    result = CCCP(0.05).solve(risk)
    assert result.starts[-1].name == "random direction"
    best = BranchAndBound(alpha=0.05, tol=1e-3).solve(risk)
    assert result.objective == pytest.approx(best.objective, abs=0.02) and best.objective < 0.2
    from_zero = CCCP(0.05).solve(risk, np.zeros(2))
    assert [start.name for start in from_zero.starts] == ["given", "random direction"]
    assert from_zero.objective == pytest.approx(result.objective, abs=1e-3)


@pytest.mark.parametrize("name", RAMPS)
def test_no_optimum_is_claimed_that_branch_and_bound_improves_on(name):
    said = set()
    for seed in (1, 4, 8, 13):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(6, 2)), 2, axis=0)
        X[1::2] *= -1.5  # of each row there is one on the other side, farther out
        y = np.arange(12) % 2 == 0 if seed != 13 else np.arange(12) % 4 == 0
        risk = EmpiricalRisk(make_surrogate(name, 2), RankingData.from_groups(X, y))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranker = PAPKRanker(
                2, surrogate=name, depth=None, alpha=0.3, standardize=False, curves=None
            ).fit(X, y, groups="one_list")
        text = " ".join(str(warning.message) for warning in caught)
        if not ranker.coef_.any():
            assert "w = 0" in text
        if "is the optimum" in text:
            assert not ranker.coef_.any()
            assert BranchAndBound(alpha=0.3, tol=1e-3).solve(risk).objective > 1 - 1e-3
        said.add("is the optimum" in text)
    assert False in said


def test_starts_are_named_and_reported_and_those_at_one_point_are_one():
    risk = small_risk("clipped_ramp")
    w = logistic_regression(risk.data)
    result = CCCP(1e-2, tol=1e-3).solve(risk, {"long": 100.0 * w, "short": 1e-6 * w})
    for report, start in zip(result.starts, (100.0 * w, 1e-6 * w), strict=True):
        assert report.initial == objective(risk, 1e-2, start)
        assert report.objective < 0.9 * risk(np.zeros(6))[0]
    result = CCCP(1e-2, tol=1e-3, starts=("zero", "centred_logistic")).solve(risk)
    assert [report.name for report in result.starts] == ["zero", "centred_logistic"]
    assert sum(report.polished for report in result.starts) == 1
    assert result.n_iter == sum(report.n_iter for report in result.starts)
    points = {bytes(w) for w in starts_of(risk, 1e3).values()}  # at so large an alpha avg is zero
    assert len(points) < 5 and len(CCCP(1e3, tol=1e-3).solve(risk).starts) == len(points)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("ramp", 0), slow("clipped_ramp", 0), slow("clipped_ramp", 5), ("clipped_ramp", 9)],
)
def test_over_many_lists_starts_race_and_one_is_polished(name, seed):
    risk, solver = small_risk(name, seed), CCCP(1e-2, tol=1e-4)
    raced = solver.solve(risk)
    alone = [solver.solve(risk, w) for w in starts_of(risk, 1e-2).values()]
    assert raced.status is Status.CRITICAL
    if seed != 9:  # where a race of other rounding may end elsewhere
        assert raced.objective <= 1.001 * min(result.objective for result in alone)
    for report in raced.starts:  # the others were never measured, and say so
        assert (report.criticality <= 1e-4) if report.polished else report.criticality == np.inf
        assert report.objective >= raced.objective
    if seed == 9:  # the winner began above where others ended: its last steps foretold more
        ends = [report.objective for report in raced.starts if report.w.any()]
        (winner,) = (report for report in raced.starts if report.polished)
        assert sorted(ends)[1] < winner.initial


@pytest.mark.parametrize("option", [{"quasi_newton": 0}, {"n_blocks": 4}, {"continuation": (9.0,)}])
def test_without_quasi_newton_steps_or_with_few_blocks_every_start_is_followed(option):
    result = CCCP(1e-2, tol=1e-4, **option).solve(small_risk("clipped_ramp"))
    assert all(report.criticality <= 3e-3 for report in result.starts)


def test_starts_of_large_data_are_made_of_some_users(monkeypatch):
    monkeypatch.setattr(empirical_risk, "_START_ROWS", 300)
    monkeypatch.setattr(empirical_risk, "_START_ROWS_A_FEATURE", 10)
    risk = small_risk("clipped_ramp")
    part = risk.data.some_of(4)  # of 1200 rows
    assert 5 <= part.n_users <= 15
    sampled = starts_of(risk, 1e-2, ("logistic", "deep_avg"))
    expected = starts_of(EmpiricalRisk(risk.surrogate, part), 1e-2, ("logistic", "deep_avg"))
    for name, w in expected.items():
        np.testing.assert_array_equal(sampled[name], w)
    np.testing.assert_array_equal(sampled["logistic"], logistic_regression(part))


def test_quasi_newton_steps_can_be_stopped_and_are_limited():
    risk, seen = small_risk("clipped_ramp"), []
    stopped = CCCP(1e-2).solve(
        risk, np.arange(6.0), callback=lambda progress: seen.append(progress) or len(seen) == 3
    )
    assert stopped.status is Status.STOPPED
    assert len(seen) == 3
    assert [progress.iteration for progress in seen] == [1, 1, 1]  # of one iteration not ended
    assert stopped.objective <= stopped.starts[0].initial
    few, many = (
        CCCP(1e-2, quasi_newton=limit, max_iter=1).solve(risk, np.arange(6.0)) for limit in (2, 100)
    )
    assert many.objective < few.objective


@pytest.mark.slow
def test_the_number_of_blas_threads_changes_no_bit():
    lists = linear_lists(n_users=150, n_items=40, n_features=17, noise=1.0, seed=0)
    risk = EmpiricalRisk(make_surrogate("clipped_ramp", 5), RankingData.from_groups(*lists[:3]))
    found = []
    for n in (1, 2, 4):
        with threadpool_limits(n, user_api="blas"):
            found.append(CCCP(1e-2, tol=1e-3).solve(risk).w)
    for w in found[1:]:
        np.testing.assert_array_equal(w, found[0])


def test_warm_start_and_continuation():
    risk = small_risk("clipped_ramp")
    loose = CCCP(1e-1, tol=1e-3).solve(risk)
    given = CCCP(1e-2, tol=1e-4).solve(risk, warm_start=loose)
    path = CCCP(1e-2, tol=1e-4, continuation=(100.0, 10.0)).solve(risk, w_init=loose.w)
    assert [report.name for report in given.starts] == ["given"]
    for result in (given, path):
        assert result.status is Status.CRITICAL
        assert result.objective < objective(risk, 1e-2, loose.w)


def test_logistic_starts_minimise_the_log_loss():
    data = small_risk("ramp").data
    X, y = data.X[data.rows], np.where(data.labels, 1.0, -1.0)
    centred = X - np.repeat(
        np.add.reduceat(X, data.indptr[:-1]) / data.sizes[:, None], data.sizes, axis=0
    )
    for features, option in ((X, False), (centred, True)):
        scores = features @ (w := logistic_regression(data, centred=option))
        intercept = brentq(lambda b, z=scores: (y / (1 + np.exp(y * (z + b)))).sum(), -20, 20)
        slope = -y / (1 + np.exp(y * (scores + intercept)))
        assert np.abs(slope @ features / y.size + 1e-4 * w).max() < 1e-4


class TwoValleys(MajorisedOracle):
    """R(w) = min(|w - 1|, |w + 2| + 1/2) in one dimension: the valley one is in is the majorant."""

    n_features = 1

    def __call__(self, w):
        return min(abs(w[0] - 1), abs(w[0] + 2) + 0.5), None

    def majorant(self, w):
        left = abs(w[0] + 2) + 0.5 < abs(w[0] - 1)
        centre, offset = (-2.0, 0.5) if left else (1.0, 0.0)
        return Valley(centre, offset)


class Valley:
    n_features = 1

    def __init__(self, centre, offset):
        self.centre, self.offset = centre, offset

    def __call__(self, w):
        return abs(w[0] - self.centre) + self.offset, np.sign(w - self.centre)


def test_knows_nothing_of_ranking():
    config = CCCP(0.1)
    left = config.solve(TwoValleys(), np.array([-3.0]))
    both = config.solve(TwoValleys(), {"left": np.array([-3.0]), "right": np.array([0.5])})
    assert left.objective == pytest.approx(0.05 * 4 + 0.5)
    assert left.status is Status.CRITICAL
    assert both.w[0] == pytest.approx(1.0)
    assert both.objective == pytest.approx(0.05)


def test_a_majorant_that_is_none_is_found_out():
    class Liar(TwoValleys):
        def majorant(self, w):
            return Valley(5.0, -1.0)

    class Low(TwoValleys):
        def majorant(self, w):
            return Valley(1.0, -0.2)

    for oracle in (Liar(), Low()):
        with pytest.warns(ConvergenceWarning, match="majorant") as caught:
            result = CCCP(0.1).solve(oracle, np.array([0.5]))
        assert len(caught) == 1
        assert result.status is Status.INCONSISTENT and not result.converged
        assert "majorant" in result.message
        assert result.objective == objective(oracle, 0.1, result.w)


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize("stop", ["max_iter", "callback", "time_limit", "interrupt"])
def test_criticality_is_that_of_the_point_returned(name, stop):
    # at depth k the first majorant of Ramp leads to zero
    risk = EmpiricalRisk(make_surrogate(name, 3, 0.9), small_risk(name).data)

    def callback(progress):
        if stop == "interrupt" and progress.iteration == 2:
            raise KeyboardInterrupt
        return stop == "callback" and progress.iteration == 2

    limits = {"max_iter": {"max_iter": 2}, "time_limit": {"time_limit": 1e-9}}.get(stop, {})
    solver = CCCP(1e-2, tol=1e-7, quasi_newton=0, **limits)
    result = solver.solve(risk, np.arange(6.0), callback=callback)
    assert result.criticality >= drop(risk, 1e-2, result) - 1e-9
    assert not result.converged
    if stop == "max_iter":
        assert np.isfinite(result.criticality)
        for report in CCCP(1e-2, tol=1e-5, max_iter=1).solve(risk).starts:
            assert report.criticality >= drop(risk, 1e-2, report) - 1e-9
