"""Every storage of columns, in memory and in parts, held against the columns written out."""

import numpy as np
import pytest

from helpers.catalogue import CONVEX, RAMPS, SOLVERS, STORAGES, SURROGATES, WITH_SHARES, Rows
from helpers.marks import slow
from helpers.problems import objective, partitioned, uneven
from structsvm_papk import CCCP, CuttingPlane, EmpiricalRisk, GlobalRamp, make_surrogate
from structsvm_papk.bounds import stability
from structsvm_papk.data.columns.units import Units
from structsvm_papk.diagnosis.zero_test import test_at_zero as zero_test
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.rankers.settings import Evidence, automatic_alpha

ALPHA = 0.02
DIGITS = 64.0  # numbers are whole multiples of its inverse


def rows(graded=False):
    """Uneven lists of users who weigh more and less; a quarter of the numbers are zeros."""
    data = uneven()
    X = np.round(data.X[data.rows] * DIGITS) / DIGITS
    X[np.abs(X) < 0.3] = 0.0
    y = data.labels.astype(int)
    if graded:
        y = y + (X[:, 1] > 0.5) * y + (X[:, 2] > 1.0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, data.n_users)
    return Rows(X, y, data.user_of_position, weight, "linear" if graded else None)


def risk_of(lists, surrogate, place="memory", **options):
    """The risk of all lists, or of parts of them."""
    if place == "memory":
        return EmpiricalRisk(surrogate, lists, "cap", **options)
    held = partitioned(surrogate, lists.in_units(Units()), 4, policy="cap").partitions
    return PartitionedRisk(surrogate, held.in_units(lists.units))


CASES = [(storage, place) for storage in STORAGES for place in ("memory", "parts")]


@pytest.mark.parametrize("graded", [False, True], ids=["two labels", "grades"])
@pytest.mark.parametrize(("storage", "place"), CASES)
def test_values_and_slopes_are_those_of_the_columns_written_out(storage, place, graded):
    given = rows(graded)
    lists = STORAGES[storage](given)
    plain = given.written_out(lists)
    points = np.random.default_rng(1).normal(size=(2, plain.n_features))
    for name in SURROGATES:
        surrogate = make_surrogate(name, 3, 0.6)
        expected = EmpiricalRisk(surrogate, plain, "cap")
        risk = risk_of(lists, surrogate, place)
        blocks = risk.with_blocks(4)
        for w in points:
            value, slope = expected(w)
            assert risk(w)[0] == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(risk(w)[1], slope, rtol=0, atol=1e-12)
            cuts = blocks.cuts(w)
            assert cuts.value == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(cuts.slopes.sum(axis=0), slope, rtol=0, atol=1e-12)
            tight = cuts.slopes @ w + cuts.intercepts
            assert tight.sum() == pytest.approx(value, rel=1e-12)
        if name in RAMPS:
            value = expected.majorant(points[0])(points[1])[0]
            assert risk.majorant(points[0])(points[1])[0] == pytest.approx(value, rel=1e-12)
        if place == "memory":
            threads = risk_of(lists, surrogate, n_threads=2)
            np.testing.assert_array_equal(threads(w)[1], risk(w)[1])
            terms = [risk.term(i, w) for i in range(risk.n_users)]
            assert risk.shares @ [term[0] for term in terms] == pytest.approx(risk(w)[0])
            slopes = np.array([term[1] for term in terms])
            np.testing.assert_allclose(risk.shares @ slopes, slope, rtol=0, atol=1e-9)


def _optima():
    """Every day each storage and place with one surrogate and one choice of signs."""
    for i, case in enumerate(CASES):
        for j, name in enumerate(CONVEX):
            for signs in (False, True):
                everyday = j == i // 2 % len(CONVEX) and signs == bool(i % 2)
                yield (*case, name, signs) if everyday else slow(*case, name, signs)


@pytest.mark.parametrize(("storage", "place", "name", "signs"), [*_optima()])
def test_optima_are_those_of_the_columns_written_out(storage, place, name, signs):
    given = rows(graded=name in ("avg", "max"))
    lists = STORAGES[storage](given)
    surrogate = make_surrogate(name, 3, 0.9)
    plain = EmpiricalRisk(surrogate, given.written_out(lists), "cap")
    best = CuttingPlane(ALPHA, tol=1e-9, positive=signs).solve(plain).objective
    solvers = ["bundle", "dual_ascent"] if place == "memory" else ["bundle"]
    for solver in solvers:
        if SOLVERS[solver].solves(name, signs):
            how = {"positive": True} if signs else {}
            risk = risk_of(lists, surrogate, place)
            tol = 1e-6 if solver == "dual_ascent" else 1e-7
            result = SOLVERS[solver].make(ALPHA, tol=tol, **how).solve(risk)
            assert result.converged and result.lower_bound <= best * (1 + 1e-8)
            assert result.objective == pytest.approx(best, rel=2 * tol)
            value = objective(plain, ALPHA, result.w)  # by the other's risk
            assert value == pytest.approx(result.objective, rel=1e-11)
            assert not signs or (result.w >= 0).all()
    assert best < 0.95


EVERYDAY = {"rows", "csr, turned", "pieces"}


@pytest.mark.parametrize("storage", [s if s in EVERYDAY else slow(s) for s in STORAGES])
def test_what_is_said_of_lists_and_of_fits_is_that_of_the_columns_written_out(storage):
    """Strength, verdict on w = 0, stability, a local and a global search, what rounding can do."""
    given = rows()
    lists = STORAGES[storage](given)
    plain = given.written_out(lists)
    surrogate = make_surrogate("avg", 3, 0.9)
    risk, written = EmpiricalRisk(surrogate, lists, "cap"), EmpiricalRisk(surrogate, plain, "cap")
    alphas = [automatic_alpha(Evidence.of(each.data, each.data)) for each in (risk, written)]
    assert alphas[0] == pytest.approx(alphas[1], rel=1e-9)
    for name in SURROGATES.keys() - {"ts_alg2"}:
        of_name = make_surrogate(name, 3, 0.9)
        tests = [zero_test(EmpiricalRisk(of_name, each, "cap")) for each in (lists, plain)]
        assert tests[0].verdict == tests[1].verdict == "informative"
        assert tests[0].lower_bound == pytest.approx(tests[1].lower_bound, rel=0.05)
    for name in WITH_SHARES:
        found = []
        for data in (lists, plain):
            each = EmpiricalRisk(make_surrogate(name, 3), data, "cap")
            found.append(stability(each, CuttingPlane(0.5, tol=1e-9).solve(each)))
        own, other = found
        assert own.bound == pytest.approx(other.bound, rel=1e-4)
        np.testing.assert_allclose(own.distances, other.distances, atol=2e-4)
    for part in ("scores", "slopes"):
        bound = getattr(risk.rounding(), part)
        assert (bound > 0).all() or storage == "pieces"
    if storage == "pieces":  # more columns than a global search takes
        return
    ramps = [EmpiricalRisk(make_surrogate("ramp", 3), each, "cap") for each in (lists, plain)]
    found, wanted = (GlobalRamp(1.0, tol=0.2, max_boxes=100).solve(each) for each in ramps)
    assert found.lower_bound <= wanted.objective and wanted.lower_bound <= found.objective
    local = CCCP(1.0, tol=1e-3).solve(ramps[0])
    assert found.lower_bound <= local.objective == pytest.approx(objective(ramps[1], 1.0, local.w))


@pytest.mark.parametrize("storage", STORAGES)
def test_lists_without_some_users_share_the_columns(storage):
    lists = STORAGES[storage](rows())
    keep = np.arange(lists.n_users) % 2 == 0
    some = lists.subset(keep)
    w = np.linspace(-1, 1, lists.n_features)
    scores = lists.scores(w)[keep[lists.user_of_position]]
    np.testing.assert_array_equal(some.scores(w), scores)
    np.testing.assert_array_equal(some.with_own_rows().scores(w), scores)
    assert some.fingerprint() != lists.fingerprint()
