"""The descents that the certified solvers are compared with, and the comparison itself."""

import numpy as np
import pytest

from helpers.problems import objective, ranking_data, risk
from structsvm_papk import (
    CuttingPlane,
    EmpiricalRisk,
    RankingData,
    SubgradientDescent,
    make_surrogate,
    rankers,
)
from structsvm_papk.errors import InputError
from structsvm_papk.rankers.solver_race import SOLVERS
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient, StochasticSubgradient
from structsvm_papk.surrogates.losses import Avg


def test_stochastic_steps_on_one_list_are_the_averaged_ones_and_need_terms():
    oracle = risk("avg", n_users=1)
    one, all_at_once = (
        solver(0.1, max_iter=30).solve(oracle)
        for solver in (StochasticSubgradient, AveragedSubgradient)
    )
    np.testing.assert_allclose(one.w, all_at_once.w, rtol=1e-9)
    with pytest.raises(InputError, match="terms can be evaluated alone"):
        StochasticSubgradient(0.1).solve(_Plain())


class _Plain:
    n_features = 2

    def __call__(self, w):
        return float(w @ w), 2 * w


def test_algorithm_1_projects_on_a_ball():
    oracle = risk("avg")
    free = CuttingPlane(1e-3, tol=1e-8).solve(oracle)
    radius = 0.5 * float(np.linalg.norm(free.w))
    result = SubgradientDescent(1e-3, eta=1.0, max_iter=2000, radius=radius).solve(oracle)
    assert np.linalg.norm(result.w) <= radius * (1 + 1e-12)
    # by Lagrange, the optimum on the ball is that of a larger alpha; bisect for it
    low, high = 1e-3, 1e3
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        w = CuttingPlane(middle, tol=1e-9).solve(oracle).w
        low, high = (middle, high) if np.linalg.norm(w) > radius else (low, middle)
    optimum = objective(oracle, 1e-3, w)
    assert optimum * (1 - 1e-6) <= result.objective <= 1.01 * optimum
    start = SubgradientDescent(1e-3, max_iter=1, radius=0.1, keep="last").solve(
        oracle, np.full(oracle.n_features, 9.0)
    )
    assert np.linalg.norm(start.w) == pytest.approx(0.1)


# --- side by side ---------------------------------------------------------------------------------


def test_every_solver_has_its_gap_to_the_best_bound():
    data = ranking_data(n_users=20)
    how = {"depth": 0.9, "etas": (0.1, 1.0, 1e3), "passes": 60}
    of_all = [name for name in SOLVERS if name != "dual_ascent"]  # which is of Avg alone
    runs = rankers.compare(data, ["avg"], 3, 0.1, solvers=SOLVERS, **how)
    runs += rankers.compare(data, ["max", "ts"], 3, 0.1, solvers=of_all, **how)
    assert [run.solver for run in runs] == [*SOLVERS, *of_all, *of_all]
    for name in ("avg", "max", "ts"):
        of = [run for run in runs if run.surrogate == name]
        best = max(run.result.lower_bound for run in of)
        for run in of:
            assert run.best_bound == best
            assert run.gap == pytest.approx((run.result.objective - best) / run.result.objective)
            assert run.gap >= -1e-12 and run.result.data_passes <= 62
            assert run.as_dict()["gap_to_best_bound"] == run.gap
    by_name = {run.solver: run for run in runs[: len(SOLVERS)]}
    alone = [
        rankers.compare(
            data, ["avg"], 3, 0.1, solvers=["subgradient"], etas=[eta], passes=60, depth=0.9
        )[0]
        for eta in how["etas"]
    ]
    descent = by_name["subgradient"]
    assert descent.data_passes == 3 * descent.result.data_passes == 180
    assert descent.seconds > descent.result.seconds
    for run in by_name.values():
        assert run.curve("gap")[-1] == run.gap and np.isfinite(run.result.curve("gap")).all()
    assert (np.diff(descent.result.curve("gap")) <= 0).all()
    lowest = min(alone, key=lambda run: run.result.objective)
    assert by_name["subgradient"].result.objective == lowest.result.objective
    assert by_name["subgradient"].settings["etas_tried"] == 3
    assert alone[0].gap == np.inf and alone[0].as_dict()["best_bound"] is None
    assert alone[0].remark.startswith("no gap is known")


def test_the_papers_problem_and_remarks():
    data = ranking_data(n_users=20, n_items=20)
    (run,) = rankers.compare(data, ["avg"], 3, 0.1, solvers=["cutting_plane"], paper=True)
    same = EmpiricalRisk(make_surrogate("avg", 3), data, "exclude")
    assert run.result.objective == pytest.approx(CuttingPlane(0.1).solve(same).objective, rel=3e-6)
    few = rankers.compare(data, ["avg", "max", "ts"], 8, 0.1, solvers=["cutting_plane"])
    assert int(data.n_pos.max()) <= 8
    assert [run.remark for run in few] == ["", "", "as max: no list has more than k = 8 positives"]
    rng = np.random.default_rng(0)
    noise = RankingData(rng.normal(size=data.X.shape), data.labels, data.indptr)
    zero = rankers.compare(noise, ["max"], 2, 10.0, solvers=["cutting_plane", "stochastic"])
    assert all(run.remark.startswith("the optimum is w = 0") for run in zero)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"solvers": ["newton"]}, "solvers='newton' is not known"),
        ({"solvers": []}, "solvers must not be empty"),
        ({"paper": True, "surrogates": [Avg(3, depth=5)]}, "no depth, standardize or curves"),
        ({"surrogates": []}, "surrogates must not be empty"),
        ({"surrogates": [Avg(2)]}, "give one of them, k or Avg"),
        ({"etas": []}, "nor etas"),
        ({"passes": 0}, "passes must be a whole number"),
        ({"seconds": 0.0}, "seconds must be a number above 0"),
        ({"solvers": ["one_slack"], "qp_solver": "highs"}, "'highs' prints"),
        ({"solvers": ["averaged"], "qp_solver": "clarabel"}, "solvers has none of them"),
        ({"paper": True, "depth": 5}, "no depth, standardize or curves"),
        ({"paper": True, "standardize": True}, "no depth, standardize or curves"),
        ({"paper": True, "curves": 8}, "no depth, standardize or curves"),
        ({"curves": "auto"}, "curves must be a whole number"),
        ({"solvers": ["averaged"], "tol": 0.1}, "tol=0.1 is for cutting_plane, one_slack, dual"),
        ({"solvers": ["averaged"], "etas": [0.1]}, "etas are the step sizes of 'subgradient'"),
        ({"tol": 1.0}, "tol must be a number above 0 and below 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(how, message):
    with pytest.raises(InputError, match=message):
        rankers.compare(ranking_data(n_users=6), how.pop("surrogates", ["avg"]), 3, 0.1, **how)
