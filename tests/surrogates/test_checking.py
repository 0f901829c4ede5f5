"""`check_surrogate` accepts what is true and names what is false, with a counterexample."""

from dataclasses import dataclass

import numpy as np
import pytest

from helpers.own import PowerPairs
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import (
    SURROGATES,
    Surrogate,
    check_surrogate,
    checking,
    make_surrogate,
)
from structsvm_papk.surrogates.list_terms import PositiveTerms
from structsvm_papk.surrogates.losses import PAUC, Avg, ClippedRamp, Ramp


@pytest.mark.parametrize("name", SURROGATES)
def test_the_package_is_as_declared(name):
    for seed in range(10):
        checking._try(make_surrogate(name, 2), seed)


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
def test_a_class_of_ones_own_is_as_declared(exponent):
    check_surrogate(PowerPairs(5, exponent=exponent))


def evaluating(change):
    """An `evaluate` after which something is changed."""

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
        change(self, scores, indptr, n_pos, values, coef)

    return evaluate


def no_slope(self, scores, indptr, n_pos, values, coef):
    coef[indptr[:-1]] = np.nan


def of_the_first_item(self, scores, indptr, n_pos, values, coef):
    values += np.maximum(scores[indptr[:-1]], 0)
    coef[indptr[:-1]] += scores[indptr[:-1]] > 0


def of_everybody(self, scores, indptr, n_pos, values, coef):
    values[:] = np.where(np.isnan(values), 0.0, values)


def concave(self, scores, indptr, n_pos, values, coef):
    values *= -1
    coef *= -1


def half_slopes(self, scores, indptr, n_pos, values, coef):
    coef /= 2


def plus_all(sign):
    """Add the sum of all scores, times a sign."""

    def change(self, scores, indptr, n_pos, values, coef):
        values += sign * np.add.reduceat(scores, indptr[:-1])
        coef += sign

    return change


WRONG = {
    "value and sum of slopes are finite": {"evaluate": evaluating(no_slope)},
    "values do not depend on the order": {"evaluate": evaluating(of_the_first_item)},
    "evaluate(first, last) writes": {"evaluate": evaluating(of_everybody)},
    "convex: a value": {"evaluate": evaluating(concave)},
    "coef is the slope": {"convex": False, "evaluate": evaluating(half_slopes)},
    "top_negatives_only": {"evaluate": evaluating(plus_all(1.0)), "shift_invariant": False},
    "low_positives_only": {"low_positives_only": True},
    "shift_invariant": {"evaluate": evaluating(plus_all(-1.0)), "top_negatives_only": False},
    "1 at 0, linear near it": {"above_slope_at_zero": True},
    "l1_bound": {"l1_bound": lambda self, n_pos: np.full(n_pos.shape, 2.0)},
    "weight_shares": {"weight_shares": lambda self, n_pos, n_neg: (np.ones(n_pos.shape),) * 2},
    "clipped": {"clipped": True},
    "boxed": {"boxed": True},
}


@pytest.mark.parametrize("claim", WRONG)
def test_what_is_false_is_named(claim):
    cls = type("Wrong", (PowerPairs,), WRONG[claim])
    with pytest.raises(InputError) as caught:
        check_surrogate(cls(5))
    told = str(caught.value)
    assert told.startswith("Wrong declares what it is not: ") and claim in told
    assert "positives [" in told and "negatives [" in told and "these are" in told


def test_the_counterexample_is_one():
    cls = type(
        "Wrong", (PowerPairs,), {"top_negatives_only": True, "depth_of_list": lambda s, n: n}
    )
    with pytest.raises(InputError) as caught:
        check_surrogate(cls(5))
    told = str(caught.value)
    listed = [part.split("]")[0] for part in told.split("[")[1:]]
    p, q = (np.array(part.split(","), dtype=float) for part in listed)
    values, _ = cls(5).value_and_subgradient(
        np.concatenate([p, q]), np.array([0, p.size + q.size]), np.array([p.size])
    )
    one, other = (float(word) for word in told.split("these are ")[1].split(" and "))
    assert values[0] == pytest.approx(one, rel=1e-4) and other != pytest.approx(one, rel=1e-4)


class Twice(Avg):
    """1 at zero is not what it is."""

    name = "twice"

    def evaluate(self, *lists):
        super().evaluate(*lists)
        for out in lists[-2:]:
            out *= 2


class Deeper(PAUC):
    """Rises with the depth."""

    name = "deeper"

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        super().evaluate(scores, indptr, n_pos, first, last, values, coef)
        for u in range(first, last):
            own, scale = slice(indptr[u], indptr[u + 1]), 1 + self.counted
            values[u] = 1 + np.maximum(values[u] - 1, scale * (values[u] - 1))
            coef[own] *= scale if values[u] > 1 else 1

    def l1_bound(self, n_pos):
        return np.full(n_pos.shape, 100.0)

    def weight_shares(self, n_pos, n_neg):
        return None


class WrongTerms(PAUC):
    name = "wrong_terms"

    def list_terms(self, n_pos, n_neg):
        return PositiveTerms(n_pos, self.depth_of_list(n_neg), n_counted=1)


class NotBelow(ClippedRamp):
    """Its majorant is tight, convex, and not above it."""

    name, boxed = "not_below", False

    def majorant(self, scores, indptr, n_pos):
        return Avg(self.k, depth=self.depth)


class NeverRamp(Ramp):
    """Convex, it says, for users of any number of positives."""

    name = "never_ramp"

    def is_convex_on(self, n_pos):
        return True


@pytest.mark.parametrize(
    "wrong, claim",
    [
        (Twice, "1 at 0, linear near it"),
        (Deeper, "no larger at more depth"),
        (WrongTerms, "list_terms"),
        (NotBelow, "majorant: tight"),
        (NeverRamp, "is_convex_on"),
    ],
)
def test_what_is_false_of_a_class_that_inherits_is_named(wrong, claim):
    with pytest.raises(InputError, match=claim):
        check_surrogate(wrong(2))


def test_settings_are_fields_with_a_name():
    class Nameless(Surrogate):
        evaluate = PowerPairs.evaluate

    @dataclass(frozen=True)
    class OfAList(PowerPairs):
        weights: tuple = ()

    class Hidden(PowerPairs):
        def __post_init__(self):
            super().__post_init__()
            object.__setattr__(self, "more", 3)

    with pytest.raises(InputError, match="Nameless needs a `name`"):
        check_surrogate(Nameless(2))
    with pytest.raises(InputError, match="settings of Hidden must be fields"):
        check_surrogate(Hidden(2))
    check_surrogate(OfAList(2, weights=(1, 2)))
    with pytest.raises(InputError, match="settings of OfAList must be fields"):
        check_surrogate(OfAList(2, weights=[1, 2]))
    with pytest.raises(TypeError, match="surrogate must be an object of a class"):
        check_surrogate("ts")
