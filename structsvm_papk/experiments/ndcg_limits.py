"""What NDCG converges to when a list grows, for any discount and cut-off.

Wang, Wang, Li, He, Chen, Liu: A Theoretical Analysis of NDCG Type Ranking Measures (2013). Items
are independent draws; s is the scorer's quantile of an item (1 = best), and a law gives the
probability of each relevance level at s. Binary relevance is one level of value 1. Limits are
limits in probability.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import integrate

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import discounts

_ROUNDING = 1e-9  # of a probability


@dataclass(frozen=True)
class RelevanceLaw:
    """Pr[Y = y_j | quantile s] for levels y_1 > .. > y_m > 0; the rest of the items have Y = 0.

    Parameters
    ----------
    levels : sequence of float
    probabilities : sequence of callable
        One function of s in [0, 1] per level, taking arrays. A level may be empty (probability 0
        everywhere), but not all of them.

    Raises
    ------
    InputError
        Levels that do not decrease, probabilities outside [0, 1] or with a sum above 1, no
        relevant item at all (seen at 1,001 values of s).
    """

    levels: tuple
    probabilities: tuple

    def __post_init__(self):
        if len(self.levels) != len(self.probabilities) or not self.levels:
            raise InputError("give one probability function per level")
        if list(self.levels) != sorted(set(self.levels), reverse=True) or self.levels[-1] <= 0:
            raise InputError("levels must decrease and be positive")
        s = np.linspace(0.0, 1.0, 1001)
        values = np.array([np.broadcast_to(f(s), s.shape) for f in self.probabilities], float)
        for y, row in zip(self.levels, values, strict=True):
            _refuse_at(~((row >= -_ROUNDING) & (row <= 1 + _ROUNDING)), s, row, f"Pr[Y = {y:g}")
        _refuse_at(values.sum(axis=0) > 1 + _ROUNDING, s, values.sum(axis=0), "Pr[Y > 0")
        if not (values > 0).any():
            raise InputError("no item is relevant: every probability is 0, and NDCG not defined")

    def expected(self, s):
        """E[Y | s]."""
        return sum(y * f(s) for y, f in zip(self.levels, self.probabilities, strict=True))

    def reaching(self):
        """R_0 = 0, R_1, .., R_m with R_j = Pr(Y >= y_j)."""
        shares = [_integral(f, 0.0, 1.0) for f in self.probabilities]
        return np.concatenate([[0.0], np.cumsum(shares)])

    def best_level(self):
        """The highest level that items have."""
        return self.levels[int(np.flatnonzero(np.diff(self.reaching()) > 0)[0])]


def _refuse_at(bad, s, values, name):
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"{name} | s] is {values[at]:g} at s = {s[at]:g}: not a probability")


def binary(ybar):
    """RelevanceLaw of binary relevance with Pr[Y = 1 | s] = ybar(s)."""
    return RelevanceLaw((1.0,), (ybar,))


@dataclass(frozen=True)
class Limit:
    """The limit of NDCG.

    Attributes
    ----------
    value : float
        NaN where there is none.
    theorem : str
        Which statement of the paper gives it; "certain" where its T6 does not apply.
    """

    value: float
    theorem: str


def limit(law, discount="log", cutoff=None):
    """Limit of NDCG as the list grows.

    Parameters
    ----------
    law : RelevanceLaw
    discount : {"log", "zipf", "r^-b", "exp"}, callable or array
        Must not increase (unless the cut-off is an int).
    cutoff : None, "sublinear", float or int
        None: the whole list. "sublinear": k grows without bound but slower than n. A float c in
        (0, 1): k = c n. An int: k stays fixed.

    Returns
    -------
    Limit
        T1 log, whole list; T3/T10 r^-b, 0 < b < 1; T5 1/r; T7/T11 sublinear k; T8/T12 log with
        k = c n; T9/T13 r^-b with k = c n. T6, for a fixed k or discounts with a finite sum: no
        limit, NaN with a NoLimitWarning, unless relevance is certain at s = 1.

    Raises
    ------
    InputError
        A cut-off or discount without a theorem, a discount that increases, or a law that jumps at
        s = 1 where the limit hangs on its value there.

    Notes
    -----
    T5, T7 and T11 are ``E[Y | 1] / y_1`` with y_1 the highest level that items have. They need
    ``E[Y | s]`` to be continuous at s = 1, which is checked as far as values at 1 - 1e-6 and
    1 - 1e-12 can show it.

    T6: with a finite sum of discounts the few items at the top decide for ever. Their relevances
    are like independent draws from the law at s = 1, so NDCG tends to a random variable. That is
    a constant, ``y/y_1``, if and only if one relevance y has probability 1 there (y = 0
    included).
    """
    is_binary = len(law.levels) == 1
    _check_cutoff(cutoff)
    if _is_fixed(cutoff) or _sum_is_bounded(discount):
        return _limit_of_bounded_sum(law)
    if cutoff == "sublinear":
        return Limit(_top(law), "T7" if is_binary else "T11")
    b = _exponent(discount)
    if b == 1.0:
        if cutoff is not None:
            raise InputError("the limit for 1/r with k = c n is not among the theorems; use None")
        return Limit(_top(law), "T5")
    if b == 0.0 and cutoff is None:
        return Limit(1.0, "T1")
    value = _power_limit(law, b, 1.0 if cutoff is None else cutoff)
    if cutoff is None:
        return Limit(value, "T3" if is_binary else "T10")
    if b == 0.0:
        return Limit(value, "T8" if is_binary else "T12")
    return Limit(value, "T9" if is_binary else "T13")


def _limit_of_bounded_sum(law):
    """T6, or the constant that NDCG tends to where relevance is certain at s = 1."""
    at_top = [
        _at_one(f, f"Pr[Y = {y:g} | s]") for y, f in zip(law.levels, law.probabilities, strict=True)
    ]
    chances = np.append(at_top, 1.0 - sum(at_top))
    certain = np.flatnonzero(chances > 1.0 - _ROUNDING)
    if certain.size:
        return Limit(float([*law.levels, 0.0][certain[0]] / law.best_level()), "certain")
    warnings.warn(discounts.NO_LIMIT, discounts.NoLimitWarning, stacklevel=3)
    return Limit(float("nan"), "T6")


def _power_limit(law, b, c):
    """(1-b) int_{1-c}^1 E[Y|s] (1-s)^-b ds over the same of the best order; b = 0 is log."""
    won = (1 - b) * _weighted_tail(law.expected, b, c)
    reach = np.minimum(law.reaching(), c)
    best = np.dot(law.levels, np.diff(reach ** (1 - b)))
    return float(won / best)


def _weighted_tail(f, b, c):
    if b == 0.0:
        return _integral(f, 1 - c, 1.0)
    return integrate.quad(f, 1 - c, 1.0, weight="alg", wvar=(0.0, -b))[0]


def _integral(f, a, b):
    return integrate.quad(f, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]


def _top(law):
    return _at_one(law.expected, "E[Y | s]") / law.best_level()


def _at_one(f, name):
    """``f(1)``, refused where f visibly jumps there.

    The distance to f(1) must be nearly 0 at 1 - 1e-12, or have shrunk since 1 - 1e-6: continuous
    functions as steep as 1 - (1 - s)^0.01 and 1 + 1/log(1 - s) pass.
    """
    last, far, near = (float(f(s)) for s in (1.0, 1 - 1e-6, 1 - 1e-12))
    if abs(near - last) > max(1e-6, 0.9 * abs(far - last)):
        raise InputError(
            f"{name} jumps at s = 1: {last:g} there, {near:g} just below. The limit hangs on what "
            "it tends to; give the function this value at 1"
        )
    return last


def _exponent(discount):
    """The b of r^-b; 0 for the logarithm, whose limits are those of b -> 0."""
    weight = discounts.resolve(discount)
    if weight is discounts.logarithmic:
        return 0.0
    if isinstance(weight, discounts.Power):
        return weight.b
    raise InputError("limits are known for the discounts log, zipf and r^-b with 0 < b <= 1")


def _is_fixed(cutoff):
    return isinstance(cutoff, int | np.integer) and not isinstance(cutoff, bool)


def _check_cutoff(cutoff):
    if cutoff is None or (isinstance(cutoff, str) and cutoff == "sublinear"):
        return
    fraction = isinstance(cutoff, float | np.floating) and 0 < cutoff < 1
    if not (fraction or (_is_fixed(cutoff) and cutoff >= 1)):
        raise InputError(
            f"cutoff={cutoff!r} must be None, 'sublinear', a fraction in (0, 1) or a fixed int >= 1"
        )


def _sum_is_bounded(discount):
    """`discounts.sum_is_bounded` of a discount that does not increase; refuse others."""
    weight = discounts.resolve(discount)
    if not callable(weight):
        discounts.values(weight, len(weight))
    elif not discounts.never_increases(weight):
        raise InputError(
            "limits are known for discounts that never increase, finite and at least 0 at every "
            "rank; this one is not"
        )
    return discounts.sum_is_bounded(weight)


def finite_n(law, n, discount="log", k=None):
    """NDCG to be expected of a list of n items, for limits that are reached very slowly.

        int_1^k E[Y | 1 - s/n] D(s) ds / sum_j y_j (F(min(n R_j, k)) - F(min(n R_{j-1}, k)))

    with F(t) = int_1^t D and k = n by default.
    """
    weight = discounts.resolve(discount)
    if not callable(weight):
        raise InputError("the finite-n prediction needs a discount function, not an array")
    k = n if k is None else min(k, n)
    if not (n >= 2 and k > 1):
        raise InputError(f"the prediction needs n >= 2 and k > 1, not n={n}, k={k}")
    won = _on_log_scale(lambda s: law.expected(1 - s / n) * weight(s), k)
    cumulated = [_on_log_scale(weight, min(t, k)) if t > 1 else 0.0 for t in n * law.reaching()]
    return float(won / np.dot(law.levels, np.diff(cumulated)))


def _on_log_scale(f, upper):
    """int_1^upper f(s) ds with s = e^u, for integrands that vary over many orders of magnitude."""
    return _integral(lambda u: float(f(np.exp(u))) * np.exp(u), 0.0, float(np.log(upper)))
