"""The searches of this folder, kept alive: a few problems of each, and proof that they can find.

The searches themselves are run by hand, `python tests/stress/search_certificates.py` and others;
`docs/trust.md` says how.
"""

from dataclasses import replace
from fractions import Fraction

import fuzz_readers
import numpy as np
import pytest
import ranking_problems
import referee
import search_certificates
import searching

from helpers.catalogue import SURROGATES
from helpers.exact_risk import ExactRisk
from structsvm_papk import CuttingPlane

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.stress]


@pytest.mark.parametrize("seed", (0, 16))
def test_no_certificate_is_false(seed):
    report = searching.search(search_certificates.check, range(seed, seed + 8))
    assert report.violations == []
    assert report.counts["bounds"] > 10


def test_no_certificate_is_false_where_a_solve_was_interrupted():
    report = searching.search(search_certificates.check, (2, 15, 21), only="interrupted")
    assert report.violations == []
    assert report.counts["runs: interrupted"] == 3


def test_the_exact_risks_are_those_of_a_list_by_hand():
    X, positive = np.array([[2.0], [0.5], [1.0], [0.0]]), np.array([True, True, False, False])
    exact = ExactRisk(X + 1e9, positive, np.zeros(4, dtype=int), 1)
    # p = (2, .5), q = (1): hinges (0, 1.5); TS: t = (1, .5), (1 - t)_+ = (0, .5)
    wanted = {"avg": 0.75, "max": 1.5, "pauc": 0.75, "ramp": 0.0, "clipped_ramp": 0.0, "ts": 0.5}
    for name, value in wanted.items():
        assert float(exact.values(SURROGATES[name].formula, np.ones((1, 1)))[0]) == pytest.approx(
            value, abs=1e-15
        )
        assert float(exact.values(SURROGATES[name].formula, np.zeros((1, 1)))[0]) == 1.0


@pytest.mark.parametrize("name", ranking_problems.CONVEX)
def test_exact_cuts_touch_the_definition_and_lie_below_it(name):
    rng = np.random.default_rng(0)
    X, w, v = rng.integers(-2, 3, (7, 2)).astype(float), *rng.normal(size=(2, 2))
    exact = ExactRisk(X, np.arange(7) < 3, np.zeros(7, dtype=int), 2)
    slope, height = exact.cut(SURROGATES[name].formula, np.array([Fraction(x) for x in w]))
    for point, touches in ((w, True), (v, False)):
        value = SURROGATES[name].definition(X[:3] @ point, X[3:] @ point, 2)
        below = value - float(slope @ point.astype(object) + height)
        assert abs(below) < 1e-12 if touches else below >= -1e-12


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("false bound", {"lower_bound": 1e-6}),
        ("false by rounding", {"lower_bound": 1e-11}),
        ("objective is not that of the point", {"objective": 1e-6}),
        ("converged, but is not optimal", {"w": 1.0}),
    ],
)
@pytest.mark.parametrize("shape", [None, "exact"])
def test_the_referee_sees_what_is_wrong(shape, kind, wrong):
    problem = ranking_problems.draw(np.random.default_rng(3), shape)
    report, optimum = searching.Report(), problem.optimum(problem.alpha)
    right = CuttingPlane(problem.alpha, 1e-9).solve(problem.risk())
    referee.judge(problem, [referee.Answer("bundle", right)], report)
    assert report.violations == []
    ((name, amount),) = wrong.items()
    base = right.w if name == "w" else float(optimum or right.objective)
    bad = replace(right, status="converged", **{name: base + amount})
    referee.judge(problem, [referee.Answer("bundle", each) for each in (right, bad)], report)
    assert kind in {violation.kind for violation in report.violations}


def test_a_bound_above_the_fraction_is_seen():
    problem, report = ranking_problems.draw_oracle(np.random.default_rng(0)), searching.Report()
    right = CuttingPlane(problem.alpha, max_iter=5).solve(problem.oracle)
    above = float(np.nextafter(float(problem.optimum(problem.alpha)), np.inf))
    for each in (right, replace(right, lower_bound=above)):
        referee.judge(problem, [referee.Answer("bundle", each)], report)
    assert len(report.violations) == 1 and report.violations[0].kind.startswith("false")


@pytest.mark.parametrize("kind", fuzz_readers.KINDS)
def test_damaged_files_are_parsed_or_refused(kind):
    report = searching.search(fuzz_readers.check, [1], only=kind, n_files=60)
    assert report.violations == []
    assert report.counts[f"{kind}: parsed"] + report.counts[f"{kind}: refused"] == 60
