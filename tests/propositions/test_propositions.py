import itertools
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers.catalogue import SURROGATES
from helpers.commands import invoke
from helpers.marks import slow, some_of
from helpers.reference import risk
from structsvm_papk import propositions
from structsvm_papk.errors import InputError
from structsvm_papk.propositions import depth, descending, running
from structsvm_papk.propositions.lists import TOL, Batch, Shape
from structsvm_papk.propositions.running import CLAIMS, render
from structsvm_papk.propositions.search import CounterexampleSearch, Effort, Statement

NAIVE = {"risk": risk} | {name: row.definition for name, row in SURROGATES.items()}
FAILS = {
    "prop3-upper-bound", "prop3-consistency", "prop5-ramp-avg", "prop5-ramp-ts", "order-ts-max",
    "order-max-ts", "order-ts-avg", "order-avg-ts", "order-ts-ramp", "low-engagement-avg",
    "convex-ramp", "convex-ts_alg2", "convex-clipped_ramp", "margin-beta-weak-as-printed",
    "margin-beta-moderate", "margin-moderate-beta", "optimum-avg-beta", "optimum-avg-strong",
    "depth-two-scorers", "theorem2-ties", "theorem2-share", "ts-derivation", "loose-zero",
    "equation9", "algorithm1-ts",
}  # fmt: skip


LONG = ("optimum", "depth", "algorithm1")  # optima of data, every depth
ALIKE = {"convex-avg", "convex-max", "convex-pauc", "convex-ts_alg2"}  # beside that of TS
FEW = Effort(n_random=4, n_steps=2, n_climbers=2, largest=3, n_data=(1, 4))


@pytest.fixture(scope="module", params=["scores", slow("all")])
def checks(request):
    """Every day, claims about scores with few draws; all claims as the quickest search tries."""
    with pytest.MonkeyPatch.context() as patch:
        about = set(CLAIMS)
        assert len(about) == 57 and about > FAILS
        if request.param == "scores":
            about = {claim for claim in about - ALIKE if not claim.startswith(LONG)}
            patch.setitem(running.EFFORTS, "quick", FEW)
        return {c.id: c for c in propositions.verify(sorted(about), effort="quick", seed=1)}


def test_every_claim_has_the_verdict_of_the_mathematics_and_its_control_the_other(checks):
    held = {c for c, found in checks.items() if found.verdict == "holds"}
    assert held == set(checks) - FAILS and all(checks[c].worst < 1e-6 for c in held)
    assert all(found.instances > 0 and found.control_works for found in checks.values())


def test_counterexamples_are_small_and_right_by_the_formulas(checks):
    for name, found in checks.items():
        example = found.counterexample
        if example is None or name in ("depth-two-scorers", "algorithm1-ts"):
            continue
        sizes = [len(v) for one in example["lists"] for v in one.values()]
        assert max(sizes) <= 2 + name.startswith("optimum")
        if not name.startswith(("convex", "margin", "optimum", "depth", "theorem2", "loose", "eq")):
            (one,) = example["lists"]
            for value, shown in example["values"].items():
                naive = NAIVE[value](one["positives"], one["negatives"], example["k"])
                assert shown == pytest.approx(naive, abs=1e-9), name
        if name == "prop3-upper-bound":
            assert example["k"] == 2 and example["values"] == {"risk": 0.5, "avg": 0.0}


def test_the_loose_surrogate_is_a_maximum_over_every_ordering():
    rng = np.random.default_rng(0)
    for n_pos, n_neg, k in ((1, 2, 1), (2, 2, 1), (3, 2, 2), (2, 3, 2)):
        shape = Shape(n_pos, n_neg, k)
        p, q = rng.normal(size=(1, 1, n_pos)), rng.normal(size=(1, 1, n_neg))
        scores = np.concatenate([p[0, 0], q[0, 0]])
        values = []
        for order in itertools.permutations(range(n_pos + n_neg)):
            place = np.argsort(order)  # of each item
            wrong = place[:n_pos, None] > place[None, n_pos:]
            top = np.sort(place[:n_pos])[: shape.beta, None] > np.sort(place[n_pos:])[None, :k]
            lead = scores[None, n_pos:] - scores[:n_pos, None]
            values.append(top.mean() + (wrong * lead).mean())
        found = Batch(p, q, shape).loose_structural()[0, 0]
        assert found == pytest.approx(max(values), rel=1e-12)


def test_equations_8_and_9_are_the_minimum_before_and_after_the_maximum():
    rng = np.random.default_rng(1)
    for n_pos, n_neg, k in ((1, 2, 2), (2, 2, 1), (2, 3, 2), (3, 2, 2)):
        shape = Shape(n_pos, n_neg, k)
        p, q = rng.normal(size=n_pos), rng.normal(size=n_neg)
        matrices = [
            np.reshape(cells, (shape.beta, k))
            for cells in itertools.product((0, 1), repeat=shape.beta * k)
        ]
        nested = [m for m in matrices if all((np.sort(c) == c).all() for c in _columns_by_row(m))]
        rows = [list(chosen) for chosen in itertools.permutations(range(n_pos), shape.beta)]
        first, last = [], []
        for columns in map(list, itertools.combinations(range(n_neg), k)):
            value = np.array(
                [[m.sum() + (m * (q[columns] - p[r][:, None])).sum() for m in nested] for r in rows]
            )
            first.append(value.max(axis=1).min())
            last.append(value.min(axis=0).max())
        batch = Batch(p[None, None], q[None, None], shape)
        here = np.array([batch.equation_8(), batch.equation_9()]).ravel() * shape.beta * k
        assert here == pytest.approx([max(first), max(last)], abs=1e-12)
        assert here[0] == pytest.approx(NAIVE["ramp"](p, q, k) * shape.beta * k)


def _columns_by_row(matrix):
    return matrix[np.argsort(matrix.sum(axis=1), kind="stable")].T


ORDERS = {  # every pair "never above" that holds in general
    *itertools.combinations(("risk", "clipped_ramp", "ramp", "pauc", "max"), 2),
    *itertools.combinations(("risk", "clipped_ramp", "ramp", "ts_alg2"), 2),
    ("avg", "pauc"), ("avg", "max"), ("risk", "ts"), ("ts", "ts_alg2"),
}  # fmt: skip


def test_values_are_the_formulas_and_the_orders_that_hold_those_of_the_manual():
    rng = np.random.default_rng(0)
    worst = dict.fromkeys(itertools.permutations(NAIVE, 2), -np.inf)
    for n_pos, (n_neg, k) in itertools.product((1, 2, 4), ((1, 1), (3, 1), (3, 2), (3, 3))):
        p, q = (rng.integers(-3, 4, (300, 1, n)) / 2 for n in (n_pos, n_neg))
        batch = Batch(p, q, Shape(n_pos, n_neg, k))
        values = {n: batch.value(n) for n in NAIVE}
        for a, b in worst:
            worst[a, b] = max(worst[a, b], (values[a] - values[b]).max())
        for name, naive in NAIVE.items():
            expected = [naive(list(a[0]), list(b[0]), k) for a, b in zip(p[:3], q, strict=False)]
            assert np.allclose(values[name][:3, 0], expected)
        assert np.allclose(batch.ts_by_enumeration(), values["ts"])
        assert np.allclose(batch.ts_first_line(), values["ts_alg2"])
        assert np.allclose(batch.risk_at_share(batch.shape.beta / n_pos), values["risk"])
    assert {pair for pair, violation in worst.items() if violation < 1e-9} == ORDERS


def test_search_finds_and_shrinks_a_planted_violation():
    def violation(batch):
        return (batch.p.sum(axis=(1, 2)) > 3).astype(float) * (batch.shape.n_pos >= 2)

    shapes = [Shape(n, 1, 1) for n in (1, 2, 3)]
    found = Statement(violation, shapes).search(0, Effort(50, 5, 5))
    (one,) = found.counterexample["lists"]
    assert found.verdict == "counterexample" and [len(v) for v in one.values()] == [2, 1]
    assert 3 < sum(one["positives"]) <= 4
    never = Statement(lambda b: np.full(len(b), TOL / 2), shapes).search(0, Effort(50, 5, 5))
    assert never.verdict == "holds" and never.worst == TOL / 2
    # rounded where no point of a lattice violates
    near = Statement(lambda b: (np.abs(b.p[:, 0, 0] - 0.37) < 0.001).astype(float), shapes[:1])
    example = Batch(np.array([[[0.3704567]]]), np.array([[[1.23456]]]), shapes[0])
    small = CounterexampleSearch(near, np.random.default_rng(0), Effort()).minimised(example)
    assert small.p.item() == 0.37 and small.q.item() == pytest.approx(1.23)


@pytest.mark.slow
def test_results_depend_on_the_seed_only():
    ids = ["convex-ramp", "theorem1"]
    alone = propositions.verify(ids, seed=3, effort="quick")
    together = propositions.verify(ids[::-1], seed=3, effort="quick", n_jobs=2)[::-1]
    other = propositions.verify(ids, seed=4, effort="quick")
    for a, b in zip(alone, together, strict=True):
        assert (a.worst, a.instances, a.counterexample) == (b.worst, b.instances, b.counterexample)
    assert [c.worst for c in alone] != [c.worst for c in other]


# ----------------------------------------------------------------- training depth


def naive_gain(name, data, m, directions):
    """1 - the smallest value near zero along the directions, from the definitions."""
    values = []
    for w in directions * 1e-3:
        lists = [((p @ w).round(12).tolist(), (q @ w).round(12).tolist()) for p, q in data.users]
        values += [np.mean([NAIVE[name](p, q, data.k, min(m, len(q))) for p, q in lists])]
    return 1 - min(values)


@pytest.mark.parametrize("name", ["avg", "max", "pauc", "ramp", "clipped_ramp", slow("ts")])
def test_no_direction_leaves_zero_that_the_checks_do_not_see(name):
    rng, angles = np.random.default_rng(5), np.linspace(0, 2 * np.pi, 97)[:-1]
    for _ in range(some_of(25) if name != "ts" else 1):
        data = depth._drawn(rng, 2)
        fan = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        fan = fan if data.n_features == 2 else np.array([[1.0], [-1.0]])
        for m in data.depths:
            seen, naive = data.gain(name, m) > TOL, naive_gain(name, data, m, fan) > TOL
            assert seen or not naive
            assert seen == (naive_gain(name, data, m, data.directions) > TOL)


# ----------------------------------------------------------------- the rate of Algorithm 1


def test_the_largest_of_many_scores_takes_as_many_steps_as_there_are():
    run = descending._largest_of(descending._STEPS)
    assert run.above(0.5) < 0 < run.above(1.0)
    assert run.gaps[-1] == pytest.approx(0.5, abs=0.05)  # F at 0 is 1, the minimum 1/2
    assert (np.diff(run.gaps) <= 0).all()


def test_algorithm_2_keeps_a_descent_at_a_local_minimum_that_the_exact_ts_has_not():
    (printed,) = descending._on_three_users("ts_alg2")
    (exact,) = descending._on_three_users("ts")
    assert printed.above(0.5) > 0.05 and exact.above(0.5) < 0
    assert printed.gaps[-1] == pytest.approx(0.27, abs=0.01) and exact.gaps[-1] < 1e-3


# ----------------------------------------------------------------- command and report


QUICK = ("--effort", "quick", "--jobs", 1)
run = partial(invoke, "verify")


def test_verify_prints_json_and_tables(monkeypatch):
    monkeypatch.setitem(running.EFFORTS, "quick", FEW)
    chosen = (*QUICK, "--check", "prop3-upper-bound", "--check", "margin-beta-moderate")
    told = json.loads(run(*chosen, "--json").stdout)["checks"]
    assert [c["verdict"] for c in told] == ["counterexample", "counterexample"]
    assert {"id", "claim", "source", "verdict", "instances", "counterexample"} <= set(told[0])
    assert told[1]["counterexample"]["values"]["delta_moderate"] is None  # no margin at all
    result = run(*chosen[:-1], "prop2")
    assert result.exit_code == 0 and "risk = 0.5, avg = 0" in result.stdout
    assert "counterexample" in result.stdout and "holds" in result.stdout


def test_a_group_of_checks_is_named_by_its_beginning(monkeypatch):
    monkeypatch.setitem(running.EFFORTS, "quick", FEW)
    assert running.expanded(["depth"]) == [claim.id for claim in depth.CLAIMS]
    assert running.expanded(["prop2", "prop1"]) == ["prop2", "prop1"]
    shown = run(*QUICK, "--check", "prop2")
    assert shown.exit_code == 0 and "holds" in shown.output


def test_the_table_of_the_manual_names_checks_that_there_are():
    page = (Path(__file__).parents[2] / "docs" / "propositions.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\| `([a-z][a-z0-9-]*)` \|", page))
    assert len(named) > 15
    covered = {name for group in named for name in running.expanded([group])}
    assert covered >= {name for name in CLAIMS if name.startswith(("theorem", "prop", "ts-"))}


def test_verify_refuses_before_the_search(tmp_path, monkeypatch):
    monkeypatch.setattr("structsvm_papk.propositions.verify", lambda *args: pytest.fail("searched"))
    monkeypatch.setattr("structsvm_papk.plots.page.find_spec", lambda name: None)
    for wrong, words in (
        (("--check", "prop7"), "unknown check 'prop7'"),
        (("--check", "Prop3"), "did you mean prop3 or"),
        (("--check", "dpeth"), "did you mean depth?"),
        (("--check", "xyz"), "the groups are theorem1, prop1"),
        (("--report", tmp_path / "missing" / "out.html"), "missing"),
        (("--report", tmp_path / "out.html"), r"pip install 'structsvm-papk\[report\]'"),
    ):
        with pytest.raises(InputError, match=words):
            raise run(*QUICK, *wrong).exception
    with pytest.raises(InputError, match="effort"):
        running.verify(effort="huge")


def test_report_is_one_well_formed_file(checks):
    page = render(list(checks.values()), 1, "<b>")
    assert "effort &lt;b&gt;" in page and "<script" not in page and "http" not in page
    tags = re.findall(r"<(/?)(\w+)((?:'[^']*'|[^'>])*)>", page.replace("<!DOCTYPE html>", ""))
    opened = []
    for end, name, rest in tags:
        if end:
            assert opened.pop() == name
        elif name != "meta" and not rest.endswith("/"):
            opened.append(name)
    assert opened == [] and set(re.findall("id='([^']*)'", page)) == set(checks)
    assert set(re.findall("(?:href|src)='#?([^']*)'", page)) <= set(checks)
    assert len(re.findall("class='example'", page)) == len(checks)
