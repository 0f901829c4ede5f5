import numpy as np
import pytest

from helpers.reference import avg, maximum, pauc, ts
from helpers.reference_theory import top_risk
from structsvm_papk.propositions.targets import Law, _weak_orders

NAIVE = {"avg": avg, "max": maximum, "pauc": pauc, "ts": ts}


def expected(law, loss, scores):
    total = 0.0
    for labels, chance in zip(law.labels, law.chances, strict=True):
        total += chance * loss(list(scores[labels]), list(scores[~labels]))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_expectations_against_sums_over_labels(seed):
    law = Law.drawn(np.random.default_rng(seed), dependent=bool(seed % 2))
    assert [len(_weak_orders(n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 75]  # Fubini numbers
    orders = _weak_orders(4)[::7]
    deep, surrogates = law.risk(orders, law.m), {n: law.surrogate(n, orders / 3.0) for n in NAIVE}
    for i, ranks in enumerate(orders):
        risk = expected(law, lambda p, q: top_risk(p, q, law.k, law.m), ranks)
        assert deep[i] == pytest.approx(risk, abs=1e-12)
        for name, naive in NAIVE.items():
            if (~law.labels).sum(axis=1).min() >= law.k:
                value = expected(law, lambda p, q, f=naive: f(p, q, law.k), ranks / 3.0)
                assert surrogates[name][i] == pytest.approx(value, abs=1e-9)


def test_printed_counterexamples():
    """Labels (0,0,1,1), (0,1,0,0), (1,0,0,1) with chances .5, .3, .2: sorting is not best."""
    labels = np.array([(0, 0, 1, 1), (0, 1, 0, 0), (1, 0, 0, 1)], dtype=bool)
    chances = np.array([0.5, 0.3, 0.2])
    law = Law(labels, chances, chances @ labels, 2, 2)
    by_marginal = np.argsort(np.argsort(law.marginals, kind="stable"), kind="stable")
    assert law.risk(by_marginal[None])[0] == pytest.approx(0.40)
    assert law.risk(_weak_orders(4)).min() == pytest.approx(0.35)
    law = Law.of((0.6, 0.5, 0.4), 1)
    scores, excess = law.minimiser("max")
    assert not scores.any() and excess < 1e-6
    assert law.risk(scores[None])[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "depth", "risk"),
    [("avg", 2, 0.481388), ("avg", 3, 0.604348), ("ts", 2, 0.604348), ("pauc", 3, 0.604348)],
)
def test_risks_of_hinge_minimisers_on_the_page(name, depth, risk):
    """At least two negatives; values of linear programmes over all orders with ties."""
    law = Law.of((0.6, 0.55, 0.45, 0.4), 2)
    usable = (~law.labels).sum(axis=1) >= 2
    chances = law.chances[usable] / law.chances[usable].sum()
    law = Law(law.labels[usable], chances, law.marginals, 2, 2)
    assert law.risk(_weak_orders(4)).min() == pytest.approx(0.428996, abs=1e-6)
    scores, excess = law.minimiser(name, depth)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert abs(excess) < 1e-3 and law.risk(ranks[None])[0] == pytest.approx(risk, abs=1e-6)


def test_no_scores_do_better_than_the_minimiser():
    law, rng = Law.of((0.6, 0.55, 0.45), 1), np.random.default_rng(0)
    for name in NAIVE:
        scores, excess = law.minimiser(name)
        tried = scores + rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-3, 1, (500, 1))
        best = law.surrogate(name, scores[None])[0]
        assert abs(excess) < 1e-3 and law.surrogate(name, tried).min() >= best - 2e-3
