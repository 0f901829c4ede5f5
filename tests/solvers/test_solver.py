"""What all solvers share."""

import gc
import weakref

import pytest

from helpers.problems import ranking_data
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    GlobalRamp,
    SubgradientDescent,
    make_surrogate,
)


@pytest.mark.parametrize(
    ("solver", "surrogate"),
    [
        (CuttingPlane(1e-2), "ts"),
        (CuttingPlane(1e-2, method="line_search"), "avg"),
        (CuttingPlane(1e-2, method="one_slack", tol=1e-3), "max"),
        (DualAscent(1e-2), "avg"),
        (CCCP(1e-2), "ramp"),
        (GlobalRamp(1.0, tol=0.1), "ramp"),
        (SubgradientDescent(1e-2, max_iter=5), "ts"),
    ],
)
def test_the_data_are_let_go_of_with_the_risk_and_its_result(solver, surrogate):
    gc.disable()  # which would find cycles, at some time: too late for a cluster's memory
    try:
        risk = EmpiricalRisk(make_surrogate(surrogate, 3), ranking_data(n_users=40, n_items=12))
        alive = weakref.ref(risk)
        result = solver.solve(risk)
        del risk, result
        assert alive() is None
    finally:
        gc.enable()
