"""`check_surrogate` accepts what is true and names what is false, with a counterexample."""

from dataclasses import dataclass

import numpy as np
import pytest

from helpers.marks import slow
from helpers.own import PowerPairs
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import Surrogate, check_surrogate, checking, make_surrogate
from structsvm_papk.surrogates.losses import PAUC, SURROGATES, Avg, ClippedRamp, PositiveTerms, Ramp


@pytest.mark.parametrize(
    "surrogate",
    [*(make_surrogate(name, 2) for name in SURROGATES), PowerPairs(5, 1.5), PowerPairs(5, 3.0)],
)
@pytest.mark.parametrize("seeds", [range(1), slow(range(1, 10))], ids=["few", "many"])
def test_the_package_and_a_class_of_ones_own_are_as_declared(surrogate, seeds):
    for seed in seeds:
        checking._try(surrogate, seed)


def evaluating(change, cls=PowerPairs):
    """An `evaluate` after which something is changed."""

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        cls.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
        change(scores, indptr, values, coef)

    return {"evaluate": evaluate}


def no_slope(scores, indptr, values, coef):
    coef[indptr[:-1]] = np.nan


def of_the_first_item(scores, indptr, values, coef):
    values += np.maximum(scores[indptr[:-1]], 0)
    coef[indptr[:-1]] += scores[indptr[:-1]] > 0


def of_everybody(scores, indptr, values, coef):
    values[:] = np.where(np.isnan(values), 0.0, values)


def times(value, slope):
    def change(scores, indptr, values, coef):
        values *= value
        coef *= slope

    return change


def plus_all(sign):
    """Add the sum of all scores, times a sign."""

    def change(scores, indptr, values, coef):
        values += sign * np.add.reduceat(scores, indptr[:-1])
        coef += sign

    return change


class Deeper(PAUC):
    """Rises with the depth."""

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        super().evaluate(scores, indptr, n_pos, first, last, values, coef)
        for u in range(first, last):
            own, scale = slice(indptr[u], indptr[u + 1]), 1 + self.kernel_depth
            values[u] = 1 + np.maximum(values[u] - 1, scale * (values[u] - 1))
            coef[own] *= scale if values[u] > 1 else 1

    def l1_bound(self, n_pos):
        return np.full(n_pos.shape, 100.0)

    def weight_shares(self, n_pos, n_neg):
        return None


def terms_of_the_largest(self, n_pos, n_neg):
    return PositiveTerms(n_pos, self.depth_of_list(n_neg), n_counted=1)


WRONG = {
    "value and sum of slopes are finite": (PowerPairs, evaluating(no_slope)),
    "values do not depend on the order": (PowerPairs, evaluating(of_the_first_item)),
    "evaluate(first, last) writes": (PowerPairs, evaluating(of_everybody)),
    "convex, with coef": (PowerPairs, evaluating(times(-1, -1))),
    "a wrong slope: along": (PowerPairs, evaluating(times(1, 0.5))),
    "coef and the difference": (PowerPairs, {"convex": False} | evaluating(times(1, 0.5))),
    "top_negatives_only": (PowerPairs, {"shift_invariant": False} | evaluating(plus_all(1.0))),
    "shift_invariant": (PowerPairs, {"top_negatives_only": False} | evaluating(plus_all(-1.0))),
    "above_slope_at_zero: 1 at 0, linear": (PowerPairs, {"above_slope_at_zero": True}),
    "1 at 0, linear near it": (Avg, evaluating(times(2, 2), Avg)),
    "no larger at more depth": (Deeper, {}),
    "l1_bound": (PowerPairs, {"l1_bound": lambda _, n_pos: np.full(n_pos.shape, 2.0)}),
    "weight_shares": (
        PowerPairs,
        {"weight_shares": lambda _, n_pos, n: (np.ones(n_pos.shape),) * 2},
    ),
    "clipped": (PowerPairs, {"clipped": True}),
    "boxed": (PowerPairs, {"boxed": True}),
    "list_terms": (PAUC, {"list_terms": terms_of_the_largest}),
    "majorant: tight": (
        ClippedRamp,
        {"boxed": False, "majorant": lambda s, *_: Avg(s.k, depth=s.depth)},
    ),
    "is_convex_on": (Ramp, {"is_convex_on": lambda *_: True}),
}


@pytest.mark.parametrize("claim", WRONG)
def test_what_is_false_is_named(claim):
    base, change = WRONG[claim]
    with pytest.raises(InputError) as caught:
        check_surrogate(type("Wrong", (base,), change)(5))
    told = str(caught.value)
    said = ".evaluate writes" if "slope: along" in claim or "difference" in claim else " declares"
    assert told.startswith(f"Wrong{said}") and claim in told
    assert "positives [" in told and "negatives [" in told and "these are" in told


class Halved(Avg):
    """Half of Avg, which is not 1 at zero."""

    name = "halved"

    def run_kernel(self, *lists):
        super().run_kernel(*lists)
        for out in lists[-2:]:
            out *= 0.5


def test_what_a_parent_declares_is_said_to_be_inherited():
    inherited = r"above_slope_at_zero: 1 at 0.* \(inherited from PairMean\)\. At k="
    with pytest.raises(InputError, match=inherited):
        check_surrogate(Halved(5))
    own = type("Own", (Halved,), {"above_slope_at_zero": True})
    with pytest.raises(InputError, match=r"both ends\)\. At k="):
        check_surrogate(own(5))


def per_user(wrong_where, times_value=1.0, times_slope=1.0):
    """`evaluate` that is wrong for some users only: where ``wrong_where(self, u, p, q)``."""

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
        for u in range(first, last):
            own = slice(indptr[u], indptr[u + 1])
            p, q = np.split(scores[own], n_pos[u : u + 1])
            if wrong_where(self, u, p, q):
                values[u] *= times_value
                coef[own] *= times_slope

    return evaluate


def sorting(self, scores, indptr, n_pos, first, last, values, coef):
    PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
    scores[indptr[first] : indptr[first + 1]].sort()


def by_place(self, scores, indptr, n_pos, first, last, values, coef):
    PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
    for u in range(first, last):
        values[u] /= 1 + u / 50
        coef[indptr[u] : indptr[u + 1]] /= 1 + u / 50


def by_number(self, scores, indptr, n_pos, first, last, values, coef):
    PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
    values[first:last] /= n_pos.size
    coef[indptr[first] : indptr[last]] /= n_pos.size


def clearing(self, scores, indptr, n_pos, first, last, values, coef):
    PowerPairs.evaluate(self, scores, indptr, n_pos, first, last, values, coef)
    coef[indptr[last] :] = 0.0


CONVEX, OTHERS = "convex, with coef", "a user's value and slope do not depend on"
SLOPE = "Wrong.evaluate writes a wrong slope: along some direction"
RARELY_WRONG = {
    "values of many negatives": (per_user(lambda s, u, p, q: q.size > 7, 0.5, 1), SLOPE),
    "slopes of many positives": (per_user(lambda s, u, p, q: p.size > 7, 1, 0.5), SLOPE),
    "k above 3": (per_user(lambda s, u, p, q: s.k > 3, 1, 0.5), SLOPE),
    "many negatives count": (
        per_user(lambda s, u, p, q: s.depth_of_list(q.size) > 9, 1, 0.5), SLOPE,
    ),
    "slopes at w = 0": (per_user(lambda s, u, p, q: not (p.any() or q.any()), 1, 3), CONVEX),
    "high scores": (per_user(lambda s, u, p, q: q.max() - p.min() > 40, 0.01, 0.01), CONVEX),
    "changes the scores": (sorting, "changes the scores that it is given"),
    "by the user's place": (by_place, OTHERS),
    "by the number of users": (by_number, OTHERS),
    "slopes of other users": (clearing, "evaluate(first, last) writes"),
}  # fmt: skip


@pytest.mark.parametrize("what", RARELY_WRONG)
def test_what_is_wrong_in_a_few_lists_only_is_found(what):
    evaluate, words = RARELY_WRONG[what]
    with pytest.raises(InputError) as caught:
        check_surrogate(type("Wrong", (PowerPairs,), {"evaluate": evaluate})(5))
    assert words in str(caught.value)


def test_the_counterexample_is_one():
    change = {"top_negatives_only": True, "depth_of_list": lambda _, n_neg: n_neg}
    wrong = type("Wrong", (PowerPairs,), change)(5)
    with pytest.raises(InputError, match=r"^Wrong declares") as caught:
        check_surrogate(wrong)
    told = str(caught.value)
    listed = [part.split("]")[0] for part in told.split("[")[1:]]
    p, q = (np.array(part.split(","), dtype=float) for part in listed)
    lists = np.concatenate([p, q]), np.array([0, p.size + q.size]), np.array([p.size])
    values, _ = wrong.value_and_subgradient(*lists)
    one, other = (float(word) for word in told.split("these are ")[1].split(" and "))
    assert values[0] == pytest.approx(one, rel=1e-4) and other != pytest.approx(one, rel=1e-4)


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
