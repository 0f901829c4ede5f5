"""The risk of columns as pieces: the same optimum as of the columns written out."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

from helpers import problems
from helpers.columns import knots_at_quantiles
from helpers.full_problem import full_problem
from helpers.marks import slow
from helpers.problems import divided_out, written_out
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    RankingData,
    make_surrogate,
)

SURROGATES = ("avg", "max", "ts", "pauc")
DEPTHS = (None, 0.5, 0.9)


def lists(seed, graded=False, weighted=False):
    """Lists of 3 to 24 rows; relevance is not linear in the columns."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 25, 8)
    groups = np.repeat(np.arange(8), sizes)
    X = np.exp(rng.normal(size=(groups.size, 3)))
    X[:, 1] = np.round(X[:, 1])
    score = np.abs(X[:, 0] - 1) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=groups.size)
    y = np.digitize(score, [0.5, 1.0, 1.5]) if graded else score > 0.8
    y = y.astype(int)
    for u in range(8):  # both labels in every list
        y[np.flatnonzero(groups == u)[:2]] = [0, 1]
    weight = rng.uniform(0.5, 2.0, 8) if weighted else None
    return RankingData.from_groups(X, y, groups, weight, label_gain="linear" if graded else None)


def _cases():
    """Surrogates, depths, grades, weights; every day grades with weights, or neither."""
    for case in product(SURROGATES, DEPTHS, (False, True), (False, True)):
        graded, weighted = case[2:]
        yield case if graded == weighted else slow(case)


@pytest.mark.parametrize("case", [*_cases()])
@pytest.mark.parametrize("seed", [0, *map(slow, (1, 2, 3))])
def test_the_optimum_is_that_of_the_columns_written_out(case, seed):
    """192 problems: surrogates, depths, grades, weights."""
    name, depth, graded, weighted = case
    data = lists(seed, graded, weighted)
    knots = knots_at_quantiles(data.X, data.rows, 2 + seed)
    curved = data.with_curves(knots).standardized()
    risks = [
        EmpiricalRisk(make_surrogate(name, 2, depth), each)
        for each in (curved, written_out(curved))
    ]
    results = [CuttingPlane(0.05, tol=1e-10).solve(risk) for risk in risks]
    assert all(result.converged for result in results)
    assert results[0].objective == pytest.approx(results[1].objective, rel=2e-10)
    for result, risk in zip(results, reversed(risks), strict=True):  # each by the other's risk
        value = problems.objective(risk, 0.05, result.w)
        assert value == pytest.approx(result.objective, rel=1e-11)
        assert result.lower_bound <= results[0].objective * (1 + 1e-12)


@pytest.mark.parametrize("name", [slow("avg"), slow("max"), "ts", slow("pauc")])
def test_cvxpy_finds_the_same_optimum(name):
    data = lists(1)
    curved = data.with_curves(knots_at_quantiles(data.X, data.rows, 3)).standardized()
    risk = EmpiricalRisk(make_surrogate(name, 2, 0.9), curved)
    result = CuttingPlane(0.05, tol=1e-9).solve(risk)
    problem, _ = full_problem(EmpiricalRisk(risk.surrogate, divided_out(curved)), 0.05)
    problem.solve(solver=cp.CLARABEL)
    assert result.objective == pytest.approx(problem.value, rel=1e-7)


def test_other_solvers_threads_and_blocks():
    data = lists(2)
    curved = data.with_curves(knots_at_quantiles(data.X, data.rows, 2)).standardized()
    risk = EmpiricalRisk(make_surrogate("ts", 2, 0.9), curved)
    best = CuttingPlane(0.05, tol=1e-8).solve(risk)
    ascent = DualAscent(0.05, tol=1e-6).solve(risk)
    assert ascent.objective == pytest.approx(best.objective, rel=2e-6)
    threads = EmpiricalRisk(risk.surrogate, curved, n_threads=2)
    np.testing.assert_array_equal(CuttingPlane(0.05, tol=1e-8).solve(threads).w, best.w)
    ramp = make_surrogate("ramp", 2, 0.9)
    values = [
        CCCP(0.05, tol=1e-8).solve(EmpiricalRisk(ramp, each)).objective
        for each in (curved, written_out(curved))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_lists_without_some_users_share_the_pieces():
    data = lists(3)
    curved = data.with_curves(knots_at_quantiles(data.X, data.rows, 4))
    some = curved.subset(np.arange(data.n_users) % 2 == 0)
    assert some.X is curved.X
    w = np.linspace(-1, 1, curved.n_features)
    np.testing.assert_array_equal(
        some.scores(w),
        curved.scores(w)[np.isin(curved.user_of_position, np.arange(0, data.n_users, 2))],
    )
    own = some.with_own_rows()
    np.testing.assert_array_equal(own.scores(w), some.scores(w))
