"""The paper's Algorithm 1, step by step, and beside the certified optimum."""

import numpy as np
import pytest

from helpers import problems
from structsvm_papk import CuttingPlane, Status, SubgradientDescent
from structsvm_papk.datasets import linear_lists
from structsvm_papk.solvers.subgradient import normal_start
from structsvm_papk.surrogates import SURROGATES


def test_steps_are_those_of_algorithm_1():
    oracle, alpha, eta, radius = problems.risk("avg"), 0.1, 0.7, 0.9
    w = np.zeros(4)
    for t in range(5):
        w = w - eta / np.sqrt(t + 1) * (alpha * w + oracle(w)[1])
        w = w * min(1.0, radius / np.linalg.norm(w))
    solver = SubgradientDescent(alpha, eta, max_iter=6, radius=radius, keep="last")
    np.testing.assert_allclose(solver.solve(oracle).w, w, rtol=1e-12)


@pytest.mark.parametrize("name", SURROGATES)
def test_runs_on_every_surrogate_without_a_certificate(name):
    result = SubgradientDescent.paper(0.05, max_iter=60, seed=1).solve(problems.risk(name))
    assert result.status is Status.FINISHED
    assert result.lower_bound == -np.inf
    assert not result.converged
    assert result.data_passes == result.n_iter == 60
    assert (np.diff(result.curve("objective")) <= 0).all()


def test_a_start_is_not_the_truth_behind_data_of_the_same_seed():
    lists = linear_lists(n_users=5, n_items=20, n_features=8, seed=3)
    start = normal_start(8, 3)
    unit = start / np.linalg.norm(start), lists.w_true / np.linalg.norm(lists.w_true)
    assert abs(unit[0] @ unit[1]) < 0.9
    assert np.array_equal(start, normal_start(8, 3)) and start.std() == pytest.approx(1, abs=0.7)


@pytest.mark.parametrize("keep", ["best", "average"])
def test_approaches_the_certified_optimum_from_above(keep):
    oracle = problems.risk("ts")
    best = CuttingPlane(0.1, tol=1e-8).solve(oracle)
    result = SubgradientDescent(0.1, eta=1.0, max_iter=3000, keep=keep).solve(oracle)
    assert best.lower_bound <= result.objective <= best.objective * 1.01
