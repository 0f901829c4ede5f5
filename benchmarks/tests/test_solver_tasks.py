"""Tasks of the benchopt benchmark: which it rejects; its peers solve the same problem."""

import numpy as np
import pytest

from benchmarks.solvers_benchopt.benchmark_utils.peers import is_auc_hinge, pair_differences
from benchmarks.solvers_benchopt.benchmark_utils.tasks import TASKS, trivial
from helpers.problems import degenerate_lists
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets.generators import two_gaussians

pytestmark = pytest.mark.study


def risk_of(lists, surrogate, k):
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    return EmpiricalRisk(make_surrogate(surrogate, k), data)


def test_tasks_with_a_useless_optimum_are_rejected_with_a_proof():
    assert "trivial" in trivial(risk_of(degenerate_lists(n_users=5), "ts", 3), 1e-2)
    assert trivial(TASKS["S"].risk("ts"), 1e-2) is None
    assert "trivial" in trivial(TASKS["S"].risk("ts"), 1e4)  # so regularised that w is nearly 0


def test_weighted_pairs_have_the_risk_of_the_auc_hinge():
    risk = risk_of(two_gaussians(4, 7, 3, 1.0), "pauc", 7)
    assert is_auc_hinge(risk) and not is_auc_hinge(risk_of(two_gaussians(4, 7, 3, 1.0), "pauc", 6))
    w = np.array([0.3, -0.2, 0.5])
    differences, signs, weights = pair_differences(risk.data)
    hinges = np.maximum(1.0 - signs * (differences @ w), 0.0)
    assert weights @ hinges == pytest.approx(risk(w)[0])
    assert set(signs) == {-1, 1}
