"""Columns divided by a negative number: everything is as with the column's own sign turned."""

import numpy as np
import pytest

from helpers import problems
from helpers.catalogue import CONVEX, WITH_SHARES
from helpers.marks import slow
from structsvm_papk import CCCP, CuttingPlane, EmpiricalRisk, RankingData, bounds, make_surrogate
from structsvm_papk.data.columns.units import Units
from structsvm_papk.diagnosis.zero_test import test_at_zero as zero_test
from structsvm_papk.rankers.settings import Evidence, automatic_alpha
from structsvm_papk.solvers.branch_and_bound import BranchAndBound

SCALE = np.array([2.0, 0.5, 30.0, 1e-3])
TURN = np.array([-1.0, 1.0, -1.0, -1.0])


def pair(name):
    """The same risk with columns as they are, and with some of them turned."""
    data = problems.ranking_data()
    X = data.X[data.rows] * SCALE + 1e3 * SCALE  # with offsets: differences are taken
    lists = RankingData(X, data.labels, data.indptr)
    surrogate = make_surrogate(name, 3)
    return tuple(
        EmpiricalRisk(surrogate, lists.in_units(Units(s)), "cap") for s in (SCALE, SCALE * TURN)
    )


@pytest.mark.parametrize("name", [*CONVEX, "ramp"])
def test_what_rounding_can_do_stays(name):
    plain, turned = pair(name)
    for part in ("scores", "slopes"):
        bound = getattr(turned.rounding(), part)
        np.testing.assert_array_equal(bound, getattr(plain.rounding(), part))
        assert (bound > 0).all()
    assert plain.fingerprint() != turned.fingerprint()


@pytest.mark.parametrize("name", ["ramp", slow("clipped_ramp")])
def test_local_and_global_searches_are_mirrored(name):
    lists = problems.ranking_data(n_users=4, n_items=8, n_features=2)
    surrogate = make_surrogate(name, 2)
    data = RankingData(lists.X[lists.rows], lists.labels, lists.indptr)
    results = []
    for scale in (np.array([0.5, 2.0]), np.array([-0.5, 2.0])):
        risk = EmpiricalRisk(surrogate, data.in_units(Units(scale)), "cap")
        ours = CCCP(0.5).solve(risk)
        best = BranchAndBound(0.5, tol=1e-3).solve(risk)
        assert ours.converged and best.converged
        assert best.lower_bound <= ours.objective + 1e-12
        results.append(best)
    assert results[1].lower_bound <= results[0].objective
    assert results[0].lower_bound <= results[1].objective


@pytest.mark.parametrize("name", [*CONVEX, "ramp", "clipped_ramp"])
def test_what_is_said_of_data_and_of_a_fit_stays(name):
    plain, turned = pair(name)
    tests = [zero_test(risk) for risk in (plain, turned)]
    assert tests[0].verdict == tests[1].verdict == "informative"
    assert tests[1].lower_bound == pytest.approx(tests[0].lower_bound, rel=0.05)
    alphas = [automatic_alpha(Evidence.of(risk.data, risk.data)) for risk in (plain, turned)]
    assert alphas[0] == alphas[1]
    if name in WITH_SHARES:
        found = [bounds.stability(r, CuttingPlane(0.5).solve(r)) for r in (plain, turned)]
        assert found[1].as_dict().keys() == found[0].as_dict().keys()
        for one, other in zip(*(each.as_dict().values() for each in found), strict=True):
            if isinstance(one, float):
                assert other == pytest.approx(one, rel=1e-4)


@pytest.mark.parametrize("name", CONVEX)
def test_a_degenerate_risk_is_recognised(name):
    """Spreads that differ by 1e6 want coordinates in which they do not."""
    lists = problems.degenerate_lists(n_users=10, n_features=4)
    units = np.array([1e-3, 1.0, 1e3, 1.0])
    for turn in (1.0, TURN):
        data = RankingData.from_groups(lists.X * units, lists.y, lists.groups)
        data = data.in_units(Units(turn * np.ones(4)))
        test = zero_test(EmpiricalRisk(make_surrogate(name, 3), data))
        assert test.verdict == "degenerate"
