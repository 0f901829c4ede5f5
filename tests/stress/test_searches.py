"""The searches of this folder, kept alive: a few problems of each, and proof that they can find.

The searches themselves are run by hand, `python tests/stress/search_certificates.py` and others;
`docs/trust.md` says how.
"""

import json
import random
import signal
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import cross_check
import fuzz_readers
import interrupts
import kill_resume
import numpy as np
import own_oracles
import pytest
import ranking_problems
import search_certificates
import search_evaluation
import searching
import threads

from helpers.exact_risk import ExactRisk
from helpers.reference_metrics import cuts_through_ties, metric
from structsvm_papk import metrics

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.stress]


@pytest.mark.parametrize("seed", range(0, 24, 8))
def test_no_certificate_is_false(seed):
    report = searching.search(search_certificates.check, seed, 8)
    assert report.violations == []
    assert report.counts["bounds"] > 10


@pytest.mark.parametrize("seed", range(0, 80, 20))
def test_no_metric_is_wrong(seed):
    report = searching.search(search_evaluation.check, seed, 20)
    assert report.violations == []
    assert report.counts["values"] > 50


def test_the_exact_risks_are_those_of_a_list_by_hand():
    X, positive = np.array([[2.0], [0.5], [1.0], [0.0]]), np.array([True, True, False, False])
    exact = ExactRisk(X + 1e9, positive, np.zeros(4, dtype=int), 1)
    # p = (2, .5), q = (1): hinges (0, 1.5); TS: t = (1, .5), (1 - t)_+ = (0, .5)
    wanted = {"avg": 0.75, "max": 1.5, "pauc": 0.75, "ramp": 0.0, "clipped_ramp": 0.0, "ts": 0.5}
    for name, value in wanted.items():
        assert float(exact.values(name, np.ones((1, 1)))[0]) == pytest.approx(value, abs=1e-15)
        assert float(exact.values(name, np.zeros((1, 1)))[0]) == 1.0


def test_the_exact_metrics_are_those_of_a_list_by_hand():
    rows = [(3, True, 1), (3, False, 0), (1, True, 1)]
    rules = {"few_negatives": "exclude", "no_positives": "exclude", "ideal": "achievable"}
    found = {
        ties: [metric(name, rows, rules | {"ties": ties}) for name in ("pap@1", "rr")]
        for ties in ("loss", "half", "win")
    }
    assert found == {
        "loss": [0, Fraction(1, 2)],
        "half": [Fraction(1, 2), Fraction(3, 4)],
        "win": [1, 1],
    }
    assert cuts_through_ties(rows, 1) and not cuts_through_ties(rows, 2)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("false bound", {"bound": 1e-6}),
        ("objective is not that of the point", {"objective": 1e-6}),
        ("converged, but is not optimal", {"w": 1.0}),
    ],
)
def test_the_referee_sees_what_is_wrong(kind, wrong):
    problem, report = ranking_problems.draw(np.random.default_rng(3)), searching.Report()
    (right,) = search_certificates.twin(problem, None, report)
    search_certificates._Judge(problem, [right], report).judge()
    assert report.violations == []
    name, amount = next(iter(wrong.items()))
    base = right.objective if name == "bound" else getattr(right, name)
    bad = replace(right, **{name: base + amount})
    search_certificates._Judge(problem, [right, bad], report).judge()
    assert kind in {violation.kind for violation in report.violations}


def test_a_bound_above_the_fraction_is_seen():
    oracle, alpha, _ = own_oracles.draw(np.random.default_rng(0))
    result = search_certificates.CuttingPlane(alpha, max_iter=5).solve(oracle)
    optimum, report = oracle.optimum(alpha), searching.Report()
    assert oracle.objective(alpha, result.w) >= optimum
    own_oracles._judge(oracle, alpha, result, optimum, "bundle", report)
    assert report.violations == []
    bad = replace(result, lower_bound=np.nextafter(float(optimum), np.inf))
    own_oracles._judge(oracle, alpha, bad, optimum, "bundle", report)
    assert [violation.kind for violation in report.violations] == ["false bound"]


def test_a_merged_user_and_a_wrong_value_are_seen():
    table = search_evaluation.draw(np.random.default_rng(1))
    right = metrics.evaluate("rr", table.scores, table.labels, table.users_column())
    table.metrics, table.rules = ["rr"], vars(right.conventions)
    wanted, report = search_evaluation.expected(table), searching.Report()
    assert search_evaluation.compare_users(right, table, wanted, "here", report)
    assert not search_evaluation.compare_users(
        replace(right, values=right.values + 1e-9), table, wanted, "here", report
    )
    assert not search_evaluation.compare_users(
        replace(right, users=np.array(["x"] * right.users.size)), table, wanted, "here", report
    )


def test_the_command_line_writes_what_it_found(tmp_path, monkeypatch, capsys):
    def check(seed, report):
        report.describe("a problem")
        if seed == 6:
            report.add("a kind", "a place", "figures")

    file = tmp_path / "found.json"
    arguments = ["search", "--problems", "3", "--seed", "5", "--json", str(file)]
    monkeypatch.setattr("sys.argv", arguments)
    assert searching.main(check, "search.py", "A search") == 1
    assert "--seed 6 --problems 1" in capsys.readouterr().out
    answer = json.loads(file.read_text())
    assert answer["problems"] == 3 and [v["seed"] for v in answer["violations"]] == [6]


@pytest.mark.parametrize("kind", fuzz_readers.KINDS)
def test_damaged_files_are_parsed_or_refused(kind, tmp_path):
    pytest.importorskip("pyarrow")
    counts = fuzz_readers.run_batch(kind, 1, 60, tmp_path)
    assert counts["failed"] == 0, (tmp_path / "failures").iterdir()
    assert counts["parsed"] + counts["refused"] == 60 and counts["refused"] > 0


def test_a_file_that_breaks_a_reader_is_kept(tmp_path, monkeypatch, capsys):
    def broken(self, rng, path):
        raise KeyError("no reader says this")

    monkeypatch.setattr(fuzz_readers.Svmlight, "read", broken)
    monkeypatch.setattr(fuzz_readers.resource, "setrlimit", lambda *limits: None)
    (tmp_path / "work").mkdir()
    fuzz_readers.work("svmlight", 0, 2, tmp_path / "work")
    assert json.loads(capsys.readouterr().out)["failed"] == 2
    reasons = [f.read_text() for f in (tmp_path / "failures").glob("*/reason.txt")]
    assert len(reasons) == 2 and "no reader says this" in reasons[0]


@pytest.mark.parametrize("number", range(4))
def test_the_optimum_is_the_exact_one(number):
    name, family = cross_check.CONVEX[number], cross_check.FAMILIES[number]
    report = searching.Report()
    cross_check.check(number, report, 300)
    assert report.violations == [] and len(report.figures[name]) > 4
    solved, _, exact = cross_check.solutions(name, family, number, 1e-1, 300)
    assert all(result.gap < 1e-5 for result in solved.values()) and solved["bundle"].converged
    wrong = replace(solved["bundle"], lower_bound=float(exact.optimum) + 1e-9)
    assert [list(cross_check.faults(each, exact)) for each in solved.values()] == [[]] * 5
    assert next(cross_check.faults(wrong, exact))[0] == "bound above the exact optimum"


def test_interrupted_solves_end_where_they_would_have(tmp_path):
    counts, before = Counter(), signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for number in range(3):
            rng = np.random.default_rng(number)
            interrupts.one_run(rng, tmp_path / str(number), counts)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert counts["runs"] == 3


def test_a_killed_fit_ends_where_it_would_have(tmp_path):
    pytest.importorskip("pyarrow")
    scenario = next(s for s in kill_resume.scenarios(tmp_path) if s.name == "fit ts")
    row = kill_resume.run(scenario, 2, random.Random(0), tmp_path, kill_resume.started)
    assert row["kills"] >= 2


def test_fits_do_not_depend_on_the_number_of_threads():
    assert threads.fits(1, 1) == threads.fits(1, 2)
