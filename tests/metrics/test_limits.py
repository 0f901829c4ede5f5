import numpy as np
import pytest

from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ndcg_limit

GRADED = {3: lambda s: 0.05 + 0.3 * s**2, 1: lambda s: 0.25}


def linear(s):
    return 0.1 + 0.5 * s


@pytest.mark.parametrize(
    ("discount", "cutoff", "relevance", "expected"),
    [
        ("log", None, linear, 1.0),
        ("log", None, GRADED, 1.0),
        ("r^-0.5", None, linear, 0.7325),
        ("zipf", None, linear, 0.6),
        ("log", "slow", linear, 0.6),
        ("log", 0.2, linear, 0.55),
        ("r^-0.5", 0.2, linear, 0.5667),
        ("r^-0.5", 1.0, GRADED, 0.6254),
        ("log", "slow", GRADED, 0.4333),
        ("log", 0.3, GRADED, 0.5285),
        ("r^-0", None, linear, 1.0),
        ("exp", None, lambda s: s, 1.0),
        ("log", 10, lambda s: 1 - s, 0.0),
        ("r^-2", "slow", {2: lambda s: 0 * s, 1: lambda s: s}, 1.0),
    ],
)
def test_limits(discount, cutoff, relevance, expected):
    assert ndcg_limit(discount, cutoff, relevance) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("discount", "cutoff", "relevance"),
    [("log", None, linear), ("r^-0.5", 0.3, GRADED), ("zipf", 50, linear), ("log", 50, GRADED)],
)
def test_what_finite_lists_have_on_average(discount, cutoff, relevance):
    rng, n, n_lists = np.random.default_rng(0), 1000, 300
    s = rng.random(n * n_lists)
    u, y = rng.random(s.size), np.zeros(s.size)
    for level, chance in sorted(
        (relevance if isinstance(relevance, dict) else {1: relevance}).items()
    ):
        y[(u >= 0) & (u < chance(s))] = level
        u -= chance(s)
    k = cutoff if cutoff is None or cutoff >= 1 else round(cutoff * n)
    name, starts = "ndcg" if k is None else f"ndcg@{k}", np.arange(0, s.size + 1, n)
    values = metrics.per_user(name, s, y, indptr=starts, discount=discount)
    expected = ndcg_limit(discount, cutoff, relevance, n_items=n)
    assert values.mean() == pytest.approx(expected, abs=5 * values.std() / n_lists**0.5 + 2e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("exp", None, linear), "no limit here: .* unless the relevance"),
        (("r^-1.5", 0.2, linear), "no limit here"),
        (("log", 10, linear), "no limit here"),
        (("log", 10, {2: lambda s: s / 2, 1: lambda s: s / 2}), "no limit here"),
        (([1.0, 0.5], None, linear), "limits are known for the discounts"),
        (("log", 0.0, linear), "cutoff=0.0 must be a share"),
        (("log", True, linear), "cutoff=True must be"),
        (("log", "fast", linear), "cutoff='fast' must be"),
        (("log", None, 0.5), "must be a function"),
        (("log", None, {0: linear}), "level of relevance must be a number above 0"),
        (("log", None, {1: linear, 2: linear}), "in sum at most 1"),
        (("log", None, lambda s: s - 0.5), "must be probabilities"),
        (("log", None, lambda s: 0 * s), "not all 0"),
        (("log", None, lambda s: np.nan * s), "must be probabilities"),
        (("log", "slow", linear, 100), "how many of n_items places"),
        (("log", None, linear, 0), "n_items must be a whole number"),
    ],
)
def test_what_has_no_limit_and_what_is_no_relevance(arguments, words):
    with pytest.raises(InputError, match=words):
        ndcg_limit(*arguments)
