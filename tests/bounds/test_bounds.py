from math import log, sqrt

import numpy as np
import pytest

from helpers.reference_theory import (
    absolute_deviation,
    cover_count,
    kl_up,
    relative_deviation,
    sauer,
    shift,
    top_risk,
)
from structsvm_papk import bounds
from structsvm_papk.bounds import class_bound
from structsvm_papk.errors import InputError


def draw(n_pos, n_neg, seed, ties=False):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(1, 1, n_pos), rng.normal(0, 1, n_neg)
    if ties:
        p, q = np.rint(p), np.rint(q)
    return p, q, np.r_[p, q], np.r_[np.ones(n_pos), np.zeros(n_neg)]


@pytest.mark.parametrize("linear", [False, True])
def test_auto_is_the_formula_up_to_the_grid(linear):
    n_pos, n_neg, k, p, rho = 40, 120, 15, 3, 0.1
    a, b, delta = 15 / 40, 15 / 120, 0.1 / 4
    how = {"n_features": p} if linear else {"vc_dim": p + 1}

    def count(n):
        return min(cover_count(n, p), sauer(n, p + 1)) if linear else sauer(n, p + 1)

    expected = 0
    for n, share in ((n_pos, a), (n_neg, b)):
        sizes = range(1, 20 * n)
        expected += min(
            absolute_deviation(n, delta, count, sizes) / share,
            relative_deviation(n, share, delta, count, sizes) / share,
        )
    found = bounds.uniform(n_pos, n_neg, k, rho=rho, **how).raw
    assert expected - 1e-12 <= found <= 1.002 * expected
    n = np.array([2, 5, 40, 300])
    assert np.allclose(class_bound.log_cover(n, 30), [log(cover_count(m, 30)) for m in n.tolist()])
    assert np.allclose(class_bound.log_sauer(n, 31), [log(sauer(m, 31)) for m in n.tolist()])


def test_c2_and_k3_are_the_formulas():
    n_pos, n_neg, k, d, rho = 5000, 20000, 1000, 4, 0.05
    a_pos, a_neg = (d * log(n) + log(1 / rho) for n in (n_pos, n_neg))
    c2 = 2 * (sqrt(a_pos / n_pos) / (k / n_pos) + sqrt(a_neg / n_neg) / (k / n_neg))
    k3 = 3 * (sqrt(a_pos / k) + sqrt(a_neg / k))
    assert bounds.uniform(n_pos, n_neg, k, vc_dim=d, form="c2").raw == pytest.approx(c2)
    assert bounds.uniform(n_pos, n_neg, k, n_features=d - 1, form="k3").raw == pytest.approx(k3)


def test_what_a_uniform_bound_says_of_itself():
    found = bounds.uniform(10**6, 10**6, 10**5, n_features=4)
    assert found.half_width == found.raw < 1 and not found.vacuous
    found = bounds.uniform(50, 200, 10, n_features=5)
    assert found.vacuous and found.half_width == 1 and found.raw > 1
    with pytest.warns(bounds.class_bound.NotGuaranteedWarning, match="not valid in general"):
        found = bounds.uniform(30, 100, 25, n_features=5, gamma="paper")
    assert not found.guaranteed and (found.gamma_pos, found.gamma_neg) == (1.0, 0.25)
    assert class_bound.shares(50, 100, 25, "paper") == (0.25, 0.25)


@pytest.mark.parametrize(
    ("n_pos", "n_neg", "k"), [(30, 80, 10), (5, 40, 20), (12, 12, 12), (3, 9, 9), (40, 30, 2)]
)
@pytest.mark.parametrize("ties", [False, True])
def test_shift_step_by_step(n_pos, n_neg, k, ties):
    p, q, scores, labels = draw(n_pos, n_neg, n_pos, ties)
    found = bounds.held_out(scores, labels, k, 0.1)
    assert (found.lower, found.upper) == pytest.approx(shift(p, q, k, 0.1), abs=1e-9)
    assert found.value == pytest.approx(top_risk(p, q, min(n_pos, k), k))
    assert found.lower <= found.value <= found.upper


def test_many_users_formulas():
    values = np.random.default_rng(0).beta(1, 4, 300)
    r, v = values.mean(), values.var(ddof=1)
    expected = {
        "hoeffding": sqrt(log(40) / 600),
        "bernstein": sqrt(2 * v * log(80) / 300) + 7 * log(80) / (3 * 299),
    }
    for method, half in expected.items():
        found = bounds.many_users(values, 0.05, method)
        assert (found.lower, found.upper) == pytest.approx((max(0, r - half), min(1, r + half)))
        assert found.guaranteed
    for each in (values, np.zeros(9), np.ones(400), [0.5], values[:2]):
        found, level = bounds.many_users(each), log(40) / len(each)
        ends = 1 - kl_up(1 - np.mean(each), level), kl_up(np.mean(each), level)
        assert (found.lower, found.upper) == pytest.approx(ends, abs=1e-9)
        assert found.lower <= found.value <= found.upper
    boot = bounds.many_users(values, method="bootstrap")
    assert not boot.guaranteed
    assert boot.upper - boot.lower == pytest.approx(2 * 1.96 * sqrt(v / 300), rel=0.15)


@pytest.mark.parametrize("form", ["auto", "c2", "k3", "dkw"])
def test_required_items_reach_the_target(form):
    how = {} if form == "dkw" else {"n_features": 4}
    need = bounds.required_items(0.2, 0.1, rho=0.05, form=form, **how)
    assert need["half_width"] <= 0.2
    assert need["k"] == int(np.ceil(0.1 * need["n_neg"]))
    if form != "dkw":
        sizes = (need["n_pos"], need["n_neg"], need["k"])
        assert bounds.uniform(*sizes, n_features=4, form=form).half_width <= 0.2
        smaller = [int(0.98 * v) for v in sizes]
        assert bounds.uniform(*smaller, n_features=4, form=form).half_width > 0.2


@pytest.mark.parametrize("method", ["kl", "hoeffding", "bernstein"])
@pytest.mark.parametrize("mean", [0.5, 0.25])
def test_required_users_are_enough_for_every_sample_with_that_mean(method, mean):
    for target in (0.02, 0.05, 0.1, 0.15):
        n = bounds.required_users(target, method=method, mean=mean)
        for m in (m for m in range(n - 4, n + 4) if m * mean == int(m * mean)):
            values = np.arange(m) < m * mean
            found = bounds.many_users(values, method=method)
            assert (found.half_width <= target + 1e-12) == (m >= n)
    if (method, mean) == ("kl", 0.5):  # half of the width is not the farther end: docs/bounds.md

        def farther_end(n):
            every = [bounds.many_users([m] * n) for m in np.linspace(0.4, 0.6, 201)]
            return max(max(f.upper - f.value, f.value - f.lower) for f in every)

        assert bounds.required_users(0.1) == 181 and farther_end(181) > 0.1008
        assert farther_end(184) > 0.1 >= farther_end(185)
        assert bounds.required_users(0.1, method="hoeffding") == 185


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.uniform(5, 10, 3, n_features=2, rho=0.6), "rho"),
        (lambda: bounds.uniform(5, 10, 3, n_features=2, rho=0), "rho"),
        (lambda: bounds.uniform(5, 10, 11, n_features=2), "k = 11"),
        (lambda: bounds.uniform(0, 10, 3, n_features=2), "no positives"),
        (lambda: bounds.uniform(5, 10, 3), "n_features"),
        (lambda: bounds.uniform(5, 10, 3, n_features=2, vc_dim=3), "one of"),
        (lambda: bounds.uniform(5, 10, 3, n_features=2, form="c3"), "form"),
        (lambda: bounds.uniform(5, 10, 3, n_features=2, gamma="mine"), "gamma"),
        (lambda: bounds.held_out([1.0, 2, 0], [1, 0, 0], 3), "k = 3"),
        (lambda: bounds.held_out([1.0, 2], [0, 0], 1), "no positives"),
        (lambda: bounds.many_users([0.2, 1.2]), "user 1"),
        (lambda: bounds.many_users([]), "no users"),
        (lambda: bounds.many_users(np.ma.array([0.5, 9.0], mask=[0, 1])), "masked values in row 1"),
        (lambda: bounds.required_items(2, 0.1, n_features=3), "half_width"),
        (lambda: bounds.required_items(1e-6, 0.01, n_features=3, form="c2"), "no size"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()
