"""The studies of claims about NDCG on long lists and about what losses aim at."""

import json
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import betainc

from benchmarks.studies import ndcg, targets
from benchmarks.studies.__main__ import app
from benchmarks.studies.ndcg_limit import ndcg_limit
from helpers.catalogue import SURROGATES
from helpers.commands import invoke
from helpers.reference_theory import top_risk
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.study
run = partial(invoke, app=app)


@pytest.mark.parametrize("study", [ndcg, targets])
def test_every_claim_has_its_verdict_and_its_control_the_other(study):
    fail = {"target-avg", "target-pauc", "target-max", "target-ts"}
    for claim in study.CLAIMS:
        check = claim.check(1, "quick")
        assert check["control_works"] and check["instances"] > 0
        assert (check["verdict"] == "counterexample") == (check["id"] in fail)


def test_commands_print_what_they_say(monkeypatch):
    limits = ndcg.limits()
    assert limits[0]["upside down"] == pytest.approx(1.0)
    assert limits[-1]["fair"] is None
    monkeypatch.setattr(ndcg, "CLAIMS", ndcg.CLAIMS[:1])
    monkeypatch.setattr(targets, "CLAIMS", targets.CLAIMS[-1:])
    answer = json.loads(run("ndcg", "--effort", "quick", "--json").stdout)
    assert answer["limits"] == limits and answer["checks"][0]["id"] == "ndcg-log"
    assert "target-sampled" in run("targets", "--effort", "quick").stdout
    assert "choose quick" in str(run("targets", "--effort", "huge").exception)


# ----------------------------------------------------------------- NDCG of long lists


@pytest.mark.parametrize("scorer", [ndcg.Scorer(0.1, 0.7, 2.0), ndcg.Scorer(0.8, 0.2, 0.5)])
def test_rate_and_slowness_are_their_integrals(scorer):
    p = quad(scorer.relevance, 0, 1)[0]
    assert scorer.rate == pytest.approx(p, abs=1e-9)
    a = -quad(lambda x: scorer.relevance(1 - x) * np.log(x), 0, 1)[0] / p
    assert scorer.slowness == pytest.approx(1 - np.log(p) - a, abs=1e-7)


def test_means_of_lists_lie_within_their_noise():
    lists = ndcg.Lists(ndcg.Scorer(0.2, 0.6, 1.0), np.random.default_rng(0), 3000)
    for discount, k in (("log", None), ("r^-0.5", None), ("log", 300), ("r^-0.5", 900)):
        share = None if k is None else k / 3000
        expected = ndcg_limit(discount, share, lists.scorer.relevance, 3000)
        means = [lists.ndcg(discount, k).mean() for _ in range(20)]
        off = np.abs(np.array(means) - expected) / lists.noise(discount, k)
        assert off.max() < 1 and off.max() > 0.05


# ----------------------------------------------------------------- targets


def expected(law, loss, scores):
    total = 0.0
    for labels, chance in zip(law.labels, law.chances, strict=True):
        total += chance * loss(list(scores[labels]), list(scores[~labels]))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_expectations_against_sums_over_labels(seed):
    law = targets.Law.drawn(np.random.default_rng(seed), dependent=bool(seed % 2))
    assert [len(targets.weak_orders(n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 75]  # Fubini numbers
    orders = targets.weak_orders(4)[::7]
    deep, surrogates = (
        law.risk(orders, law.m),
        {n: law.surrogate(n, orders / 3.0) for n in targets.HINGES},
    )
    for i, ranks in enumerate(orders):
        risk = expected(law, lambda p, q: top_risk(p, q, law.k, law.m), ranks)
        assert deep[i] == pytest.approx(risk, abs=1e-12)
        for name in targets.HINGES:
            if (~law.labels).sum(axis=1).min() >= law.k:
                value = expected(
                    law, lambda p, q, f=SURROGATES[name].definition: f(p, q, law.k), ranks / 3.0
                )
                assert surrogates[name][i] == pytest.approx(value, abs=1e-9)


def test_printed_counterexamples():
    """Labels (0,0,1,1), (0,1,0,0), (1,0,0,1) with chances .5, .3, .2: sorting is not best."""
    labels = np.array([(0, 0, 1, 1), (0, 1, 0, 0), (1, 0, 0, 1)], dtype=bool)
    chances = np.array([0.5, 0.3, 0.2])
    law = targets.Law(labels, chances, chances @ labels, 2, 2)
    by_marginal = np.argsort(np.argsort(law.marginals, kind="stable"), kind="stable")
    assert law.risk(by_marginal[None])[0] == pytest.approx(0.40)
    assert law.risk(targets.weak_orders(4)).min() == pytest.approx(0.35)
    law = targets.Law.of((0.6, 0.5, 0.4), 1)
    scores, excess = law.minimiser("max")
    assert not scores.any() and excess < 1e-6
    assert law.risk(scores[None])[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "depth", "risk"),
    [("avg", 2, 0.481388), ("avg", 3, 0.604348), ("ts", 2, 0.604348), ("pauc", 3, 0.604348)],
)
def test_risks_of_hinge_minimisers_on_the_page(name, depth, risk):
    """At least two negatives; values of linear programmes over all orders with ties."""
    law = targets.Law.of((0.6, 0.55, 0.45, 0.4), 2)
    usable = (~law.labels).sum(axis=1) >= 2
    chances = law.chances[usable] / law.chances[usable].sum()
    law = targets.Law(law.labels[usable], chances, law.marginals, 2, 2)
    assert law.risk(targets.weak_orders(4)).min() == pytest.approx(0.428996, abs=1e-6)
    scores, excess = law.minimiser(name, depth)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert abs(excess) < 1e-3 and law.risk(ranks[None])[0] == pytest.approx(risk, abs=1e-6)


@pytest.mark.parametrize(("n_neg", "n_sampled", "k"), [(10_000, 100, 10), (400, 100, 20)])
def test_the_farthest_list_of_sampled_negatives_and_the_closed_bound(n_neg, n_sampled, k):
    weights = targets.weights_of_sampled(n_neg, n_sampled, k)
    full = k * n_neg // n_sampled
    assert weights.sum() == pytest.approx(1) and (np.diff(weights) <= 1e-15).all()
    # of a list with all positives behind the first `full` negatives, before the others
    off = targets.off_from(weights, full)
    assert off == pytest.approx(1 - weights[:full].sum(), abs=1e-9)
    assert 0.01 < off <= 0.5 * np.sqrt((1 - k / n_sampled) / k)


# ----------------------------------------------------------------- limits


def linear(s):
    return 0.1 + 0.5 * s


@pytest.mark.parametrize(
    ("discount", "cutoff", "relevance", "expected"),
    [
        ("log", None, linear, 1.0),
        ("r^-0.5", None, linear, 0.7325),
        ("zipf", None, linear, 0.6),
        ("log", "slow", linear, 0.6),
        ("log", 0.2, linear, 0.55),
        ("r^-0.5", 0.2, linear, 0.5667),
        ("exp", None, lambda s: s, 1.0),
        ("log", 10, lambda s: 1 - s, 0.0),
    ],
)
def test_limits(discount, cutoff, relevance, expected):
    assert ndcg_limit(discount, cutoff, relevance) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("discount", "cutoff"), [("log", None), ("r^-0.5", 0.3), ("zipf", 50), ("log", 50)]
)
def test_what_finite_lists_have_on_average(discount, cutoff):
    rng, n, n_lists = np.random.default_rng(0), 1000, 300
    s = rng.random(n * n_lists)
    y = rng.random(s.size) < linear(s)
    k = cutoff if cutoff is None or cutoff >= 1 else round(cutoff * n)
    starts = np.arange(0, s.size + 1, n)
    values = ndcg._ndcg(s, y, starts, discount, k)
    expected = ndcg_limit(discount, cutoff, linear, n_items=n)
    assert values.mean() == pytest.approx(expected, abs=5 * values.std() / n_lists**0.5 + 2e-3)


@pytest.mark.parametrize("how", [("exp", None), ("log", 10)])
def test_what_has_no_limit(how):
    with pytest.raises(InputError, match="no limit"):
        ndcg_limit(*how, linear)
    assert ndcg_limit("zipf", 5, lambda s: s) == 1.0


def test_limits_just_below_an_exponent_of_one():
    """With Pr[Y=1|s] = s the limit is 2^(1-b) / (2 - b); it was above 1 by rounding."""
    for b in (0.9, 0.999, 0.999999, 1 - 1e-10):
        found = ndcg_limit(f"r^-{b:.10f}", None, lambda s: s)
        assert found == pytest.approx(2 ** (1 - b) / (2 - b), rel=1e-10)


@pytest.mark.parametrize("b", [0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("share", [1e-3, 0.2, 1.0])
def test_limits_in_closed_form(b, share):
    """Relevance ``a s^p + c (1 - s^p)``, whose integrals are beta functions."""
    rng = np.random.default_rng(int(1000 * (b + share)))
    top, low = rng.random(2)
    power = float(rng.choice([0.3, 2, 40]))

    def relevance(s):
        return top * s**power + low * (1 - s**power)

    # of s^power and of 1 over (1-s)^-b, from 1 - share to 1
    risen = beta_function(1 - b, power + 1) * betainc(1 - b, power + 1, share)
    whole = share ** (1 - b) / (1 - b)
    gained = (1 - b) * (top * risen + low * (whole - risen))
    rate = top / (power + 1) + low * power / (power + 1)
    wanted = gained / min(rate, share) ** (1 - b)
    assert ndcg_limit(f"r^-{b:g}", share, relevance) == pytest.approx(wanted, rel=1e-8)
