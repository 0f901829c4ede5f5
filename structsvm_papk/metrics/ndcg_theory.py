"""What NDCG converges to when a list grows, for any discount and cut-off.

Wang, Wang, Li, He, Chen, Liu: A Theoretical Analysis of NDCG Type Ranking Measures (2013). Items
are independent draws; s is the scorer's quantile of an item (1 = best), and a law gives the
probability of each relevance level at s. Binary relevance is one level of value 1.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import integrate

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import discounts


class NoLimitWarning(UserWarning):
    """The discounts sum to a finite number: NDCG has no limit, whatever the scorer (T6)."""


@dataclass(frozen=True)
class RelevanceLaw:
    """Pr[Y = y_j | quantile s] for levels y_1 > .. > y_m > 0; the rest of the items have Y = 0.

    Parameters
    ----------
    levels : sequence of float
    probabilities : sequence of callable
        One function of s in [0, 1] per level, taking arrays.
    """

    levels: tuple
    probabilities: tuple

    def __post_init__(self):
        if len(self.levels) != len(self.probabilities) or not self.levels:
            raise InputError("give one probability function per level")
        if list(self.levels) != sorted(set(self.levels), reverse=True) or self.levels[-1] <= 0:
            raise InputError("levels must decrease and be positive")

    def expected(self, s):
        """E[Y | s]."""
        return sum(y * f(s) for y, f in zip(self.levels, self.probabilities, strict=True))

    def reaching(self):
        """R_0 = 0, R_1, .., R_m with R_j = Pr(Y >= y_j)."""
        shares = [_integral(f, 0.0, 1.0) for f in self.probabilities]
        return np.concatenate([[0.0], np.cumsum(shares)])


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
        Which statement of the paper gives it.
    """

    value: float
    theorem: str


def limit(law, discount="log", cutoff=None):
    """Limit of NDCG as the list grows.

    Parameters
    ----------
    law : RelevanceLaw
    discount : {"log", "zipf", "r^-b", "exp"}, callable or array
    cutoff : None, "sublinear", float or int
        None: the whole list. "sublinear": k grows without bound but slower than n. A float c in
        (0, 1): k = c n. An int: k stays fixed.

    Returns
    -------
    Limit
        T1 log, whole list; T3/T10 r^-b, 0 < b < 1; T5 1/r; T7/T11 sublinear k; T8/T12 log with
        k = c n; T9/T13 r^-b with k = c n. T6: no limit, NaN with a NoLimitWarning.
    """
    is_binary = len(law.levels) == 1
    if _has_no_limit(discount, cutoff):
        warnings.warn(NO_LIMIT, NoLimitWarning, stacklevel=2)
        return Limit(float("nan"), "T6")
    if cutoff == "sublinear":
        return Limit(_top(law), "T7" if is_binary else "T11")
    _check_fraction(cutoff)
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


NO_LIMIT = (
    "the discounts sum to a finite number (they fall too fast, or k is fixed): NDCG has no limit "
    "as lists grow, and no two scorers are consistently told apart (T6); use a slower discount "
    "or a cut-off that grows with the list"
)


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
    return float(law.expected(1.0) / law.levels[0])


def _exponent(discount):
    """The b of r^-b; 0 for the logarithm, whose limits are those of b -> 0."""
    found = discounts.resolve(discount)
    if found is discounts.logarithmic:
        return 0.0
    if isinstance(found, discounts.Power):
        return found.b
    raise InputError("limits are known for the discounts log, zipf and r^-b with 0 < b <= 1")


def _check_fraction(cutoff):
    if cutoff is not None and not (isinstance(cutoff, float) and 0 < cutoff < 1):
        raise InputError(
            f"cutoff={cutoff!r} must be None, 'sublinear', a fraction in (0, 1) or a fixed int"
        )


def _has_no_limit(discount, cutoff):
    fixed = isinstance(cutoff, int | np.integer) and not isinstance(cutoff, bool)
    return fixed or sum_is_bounded(discount)


def sum_is_bounded(discount):
    """Whether sum_r D(r) stays finite.

    An array ends, so its sum does. For functions by Cauchy's condensation: sum_j 2^j D(2^j)
    with terms that shrink by a constant factor. A function such as 1/(r log^2 r), at the border,
    is taken for unbounded.
    """
    found = discounts.resolve(discount)
    if not callable(found):
        return True
    powers = 2.0 ** np.arange(40, 60)
    with np.errstate(under="ignore", over="ignore"):
        terms = powers * np.asarray(found(powers), dtype=float)
    return bool(terms[-1] == 0 or (terms[1:] < 0.99 * terms[:-1]).all())


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
