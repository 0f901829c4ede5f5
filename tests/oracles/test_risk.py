"""The risk along a line, users that it leaves out, and blocks that cannot be."""

import numpy as np
import pytest

from helpers import problems
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.errors import InputError


def test_line_agrees_with_the_risk_and_its_slope():
    oracle = problems.risk("ts")
    w, d = np.array([1.0, -0.5, 2.0, 0.1]), np.array([0.3, 0.2, -1.0, 1.0])
    line = oracle.along(oracle.scores(w), oracle.scores(d))
    value, slope = line(0.7)
    assert value == pytest.approx(oracle(w + 0.7 * d)[0])
    assert slope == pytest.approx(oracle(w + 0.7 * d)[1] @ d)


def test_left_out_users_are_reported_and_do_not_count():
    data = RankingData(np.eye(5), [1, 0, 0, 1, 1], [0, 3, 5])
    oracle = EmpiricalRisk(make_surrogate("avg", 2), data)
    assert oracle.n_users == 1
    assert oracle.exclusions.n_excluded == 1
    assert oracle.with_blocks(1).exclusions.n_excluded == 1
    assert problems.risk("avg", n_users=4).with_blocks(100).n_blocks == 4  # one a user at most
    with pytest.raises(InputError, match="at least 1"):
        EmpiricalRisk(make_surrogate("avg", 2), data, n_blocks=0)
