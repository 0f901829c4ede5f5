import warnings

import numpy as np
import pytest

from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import ndcg_limits
from structsvm_papk.experiments.ndcg_limits import RelevanceLaw, finite_n, limit
from structsvm_papk.metrics import discounts
from structsvm_papk.metrics.discounts import NoLimitWarning

BINARY = ndcg_limits.binary(lambda s: 0.1 + 0.5 * s)
GRADED = RelevanceLaw((3.0, 1.0), (lambda s: 0.05 + 0.3 * s**2, lambda s: 0.25 + 0 * s))


@pytest.mark.parametrize(
    ("law", "discount", "cutoff", "value", "theorem"),
    [
        (BINARY, "log", None, 1.0, "T1"),
        (BINARY, "r^-0.5", None, 0.7325, "T3"),
        (BINARY, "zipf", None, 0.6, "T5"),
        (BINARY, "log", "sublinear", 0.6, "T7"),
        (BINARY, "log", 0.2, 0.5500, "T8"),
        (BINARY, "log", 0.6, 0.7714, "T8"),
        (BINARY, "r^-0.5", 0.2, 0.5667, "T9"),
        (BINARY, "r^-0.5", 0.6, 0.6547, "T9"),
        (GRADED, "r^-0.5", None, 0.6254, "T10"),
        (GRADED, "r^-0.5", "sublinear", 0.4333, "T11"),
        (GRADED, "log", 0.1, 0.4043, "T12"),
        (GRADED, "log", 0.3, 0.5285, "T12"),
        (GRADED, "log", 0.7, 0.8170, "T12"),
        (GRADED, "r^-0.5", 0.1, 0.4139, "T13"),
        (GRADED, "r^-0.5", 0.3, 0.4706, "T13"),
        (GRADED, "r^-0.5", 0.7, 0.5757, "T13"),
    ],
)
def test_limits(law, discount, cutoff, value, theorem):
    found = limit(law, discount, cutoff)
    assert found.value == pytest.approx(value, abs=5.1e-5)
    assert found.theorem == theorem


@pytest.mark.parametrize(("n", "value"), [(10**3, 0.8768), (4 * 10**6, 0.95051)])
def test_finite_n_prediction_for_the_logarithm(n, value):
    assert finite_n(BINARY, n) == pytest.approx(value, abs=5.1e-5)


def draw(law, n, rng):
    quantile = rng.random(n)
    p = [f(quantile) for f in law.probabilities]
    u = rng.random(n)
    labels = np.zeros(n)
    for y, low, high in zip(
        law.levels, [np.zeros(n), *np.cumsum(p, axis=0)[:-1]], np.cumsum(p, axis=0), strict=True
    ):
        labels[(u >= low) & (u < high)] = y
    return quantile, labels


@pytest.mark.parametrize("law", [BINARY, GRADED], ids=["binary", "graded"])
@pytest.mark.parametrize(("discount", "share"), [("log", 1), ("r^-0.5", 1), ("log", 0.3)])
def test_prediction_and_limit_match_a_simulation(law, discount, share):
    rng = np.random.default_rng(17)
    n = 200_000
    name = "ndcg" if share == 1 else f"ndcg@{int(share * n)}"
    found = metrics.evaluate([name], *draw(law, n, rng), relevance_threshold=1, discount=discount)
    expected = finite_n(law, n, discount, None if share == 1 else share * n)
    assert found[name][0] == pytest.approx(expected, abs=0.008)
    if not (discount == "log" and share == 1):
        asymptote = limit(law, discount, None if share == 1 else share).value
        assert found[name][0] == pytest.approx(asymptote, abs=0.02)


@pytest.mark.parametrize(
    ("discount", "cutoff"),
    [("exp", None), ("r^-1.01", None), ("log", 10), ([1.0, 0.5, 0.2], None), (np.exp2, 7)],
)
def test_no_limit_is_said(discount, cutoff):
    with pytest.warns(NoLimitWarning, match="no limit"):
        found = limit(BINARY, discount, cutoff)
    assert np.isnan(found.value)
    assert found.theorem == "T6"


CERTAIN = ndcg_limits.binary(lambda s: np.clip(4 * s - 2, 0, 1))
HOPELESS = ndcg_limits.binary(lambda s: np.clip(2 - 4 * s, 0, 1))
MIDDLE = RelevanceLaw(
    (3.0, 1.0), (lambda s: np.clip(0.6 - s, 0, 1), lambda s: np.clip(5 * s - 3.5, 0, 1))
)


@pytest.mark.parametrize(("law", "value"), [(CERTAIN, 1.0), (HOPELESS, 0.0), (MIDDLE, 1 / 3)])
@pytest.mark.parametrize(("discount", "cutoff"), [("log", 5), ("exp", None), ("r^-2", None)])
def test_certain_relevance_at_the_top_has_a_limit(law, value, discount, cutoff):
    assert limit(law, discount, cutoff) == ndcg_limits.Limit(pytest.approx(value), "certain")
    name = "ndcg" if cutoff is None else f"ndcg@{cutoff}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoLimitWarning)
        values = [
            metrics.evaluate(
                [name],
                *draw(law, 20_000, np.random.default_rng(seed)),
                relevance_threshold=1,
                discount=discount,
            )[name][0]
            for seed in range(5)
        ]
    assert values == pytest.approx([value] * 5, abs=0.002)


def test_empty_levels_do_not_count():
    law = RelevanceLaw((2.0, 1.0), (lambda s: 0 * s, lambda s: 0.2 + 0.8 * s))
    alone = ndcg_limits.binary(law.probabilities[1])
    for how in (("zipf", None), ("log", "sublinear"), ("r^-0.5", None), ("log", 0.3), ("exp", 3)):
        assert limit(law, *how).value == pytest.approx(limit(alone, *how).value)
    assert limit(law, "log", "sublinear").value == 1.0


def test_a_law_that_jumps_at_the_top_is_refused():
    jump = ndcg_limits.binary(lambda s: np.where(np.asarray(s) < 1, 0.3, 0.9))
    for how in (("zipf", None), ("log", "sublinear"), ("log", 5)):
        with pytest.raises(InputError, match=r"jumps at s = 1: 0.9 there, 0.3 just below"):
            limit(jump, *how)
    assert limit(jump, "log", 0.5).value == pytest.approx(
        0.5
    )  # one point is nothing to an integral
    steep = ndcg_limits.binary(lambda s: 1 - 0.5 * (1 - s) ** 0.01)
    assert limit(steep, "zipf").value == 1.0


def test_sums_told_apart():
    for bounded in (
        lambda r: 1 / (1 + r**1.2),
        lambda r: 1 / (r * np.log2(1 + r) ** 2),
        lambda r: 1 / (r * np.log(1 + r) ** 1.1),
        lambda r: r**-1.001,
        lambda r: np.where(r <= 50, 1 / r, 0),
        "r^-1.01",
        "exp",
    ):
        assert discounts.sum_is_bounded(bounded)
    for unbounded in (
        lambda r: 1 / (5 + r),
        lambda r: 1 / (r * np.log2(1 + r)),
        lambda r: 1 / (r * np.sqrt(np.log(1 + r))),
        lambda r: np.where(r % 2 == 0, 0, 1 / np.log2(1 + r)),  # increases: cannot be told
        lambda r: (1 / np.arange(1, 99))[np.asarray(r, int) - 1],  # a table: cannot be told
        "log",
        "zipf",
        discounts.Power(0.0),
    ):
        assert not discounts.sum_is_bounded(unbounded)


def test_evaluation_warns_of_a_discount_that_never_converges():
    with pytest.warns(NoLimitWarning):
        metrics.ndcg_at_k([2.0, 1.0], [0, 1], discount="exp")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((BINARY, "log", 1.5), "fraction"),
        ((BINARY, lambda r: 1 / (2 + r)), "limits are known"),
        ((BINARY, "zipf", 0.5), "not among the theorems"),
        ((BINARY, "log", 0), "fixed int >= 1"),
        ((BINARY, lambda r: r % 2, "sublinear"), "never increase"),
        ((BINARY, np.exp2), "never increase"),
    ],
)
def test_unknown_limits_are_refused(arguments, told):
    with pytest.raises(InputError, match=told):
        limit(*arguments)


def test_bad_laws_and_sizes():
    with pytest.raises(InputError, match="decrease"):
        RelevanceLaw((1.0, 3.0), (np.sin, np.sin))
    with pytest.raises(InputError, match="one probability"):
        RelevanceLaw((1.0,), ())
    with pytest.raises(InputError, match=r"Pr\[Y = 1 \| s\] is 3 at s = 0: not a probability"):
        ndcg_limits.binary(lambda s: 3 + 0 * s)
    with pytest.raises(InputError, match=r"Pr\[Y > 0 \| s\] is 1.2"):
        RelevanceLaw((2.0, 1.0), (lambda s: 0.6, lambda s: 0.6))
    with pytest.raises(InputError, match="no item is relevant"):
        ndcg_limits.binary(lambda s: 0 * s)
    with pytest.raises(InputError, match="n >= 2"):
        finite_n(BINARY, 1)
    with pytest.raises(InputError, match="not an array"):
        finite_n(BINARY, 10, [1.0])
