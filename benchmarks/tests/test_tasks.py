"""Tasks of the measurements of speed: which are rejected."""

import pytest

from benchmarks.speed.tasks import TASKS, trivial
from helpers.problems import degenerate_lists
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate

pytestmark = pytest.mark.study


def test_tasks_with_a_useless_optimum_are_rejected_with_a_proof():
    lists = degenerate_lists(n_users=5)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    assert "trivial" in trivial(EmpiricalRisk(make_surrogate("ts", 3), data), 1e-2)
    assert trivial(TASKS["S"].risk("ts"), 1e-2) is None
    assert "trivial" in trivial(TASKS["S"].risk("ts"), 1e4)  # so regularised that w is nearly 0
