"""What NDCG of one list tends to as the list grows (Wang et al., COLT 2013; T1 .. are theorems)."""

import math

import numpy as np
import scipy  # its parts load when they are first used

from structsvm_papk.errors import InputError

_EXPONENTS = {"log": 0.0, "zipf": 1.0, "exp": math.inf}


def exponent(discount):
    """b of a discount r^-b, 0 for `log`, infinite for `exp`; their sum is finite where b > 1."""
    if discount in _EXPONENTS:
        return _EXPONENTS[discount]
    return float(discount.removeprefix("r^-"))


def discounts_of(discount, n):
    """D(1), .., D(n)."""
    return discounts_at(np.arange(1.0, n + 1), discount)


def discounts_at(ranks, discount):
    """D at some places, counted from 1."""
    if discount == "log":
        return 1 / np.log2(1 + ranks)
    return np.exp2(-ranks) if discount == "exp" else ranks ** -exponent(discount)


def ndcg_limit(discount, cutoff, relevance, n_items=None):
    """Limit of NDCG as the items of one list, drawn independently, grow in number.

    Let y_1 > y_2 > .. be the levels of relevance, R_j = Pr[Y >= y_j], and g(s) the mean relevance
    of the items above which a share 1 - s of the list stands. For a discount r^-b with b < 1 (b = 0
    for `log`) and the first c n of n places (c = 1: all) the limit is::

        (1 - b) int_{1-c}^1 g(s) (1-s)^-b ds / sum_j y_j (min(R_j, c)^(1-b) - min(R_{j-1}, c)^(1-b))

    which is 1 for `log` without a cut-off, whatever the scorer (T1). For b = 1, and for cut-offs
    that grow more slowly than the list, the top decides: g(1) / y_1.

    Parameters
    ----------
    discount : str
        `log`, `zipf`, `exp` or `r^-0.5`, any exponent.
    cutoff : float, int, "slow" or None
        A share of the list, as 0.2; a fixed number of places, as 10; `slow`: places that grow
        without bound, but more slowly than the list; None: the whole list.
    relevance : callable, or dict from levels to callables
        Pr[Y = 1 | s], or Pr[Y = level | s] of each level above 0, for an array of shares s in
        [0, 1]; continuous.
    n_items : int, optional
        Instead of the limit give what a list of so many items has on average, to first order.

    Raises
    ------
    InputError
        There is no limit: the discounts that count have a finite sum, as with a fixed cut-off, and
        the relevance at the very top is not certain (T6, whose hypothesis is stronger).
    """
    b = exponent(discount)
    share = 1.0 if cutoff is None else cutoff
    scorer = _Relevance(relevance)
    if n_items is not None:
        return scorer.expected(discount, share, n_items)
    if b < 1 and isinstance(share, float):
        return scorer.integral(b, share) / scorer.ideal(lambda r: min(r, share) ** (1 - b))
    chances = scorer.chances(np.ones(1))[:, 0]
    if (b > 1 or isinstance(share, int)) and not np.isin(chances, (0, 1)).all():
        raise InputError("no limit: relevance at the very top is not certain")
    return float(scorer.levels @ chances / scorer.levels[0])


class _Relevance:
    """Levels y_1 > y_2 > .. > 0 that occur, and the functions Pr[Y = y_j | s]."""

    def __init__(self, relevance):
        given = relevance if isinstance(relevance, dict) else {1.0: relevance}
        shares = np.linspace(0, 1, 1001)
        levels = [level for level in sorted(given, reverse=True) if np.any(given[level](shares))]
        self.levels = np.array(levels, dtype=float)
        self.functions = [given[level] for level in levels]

    def chances(self, s):
        """Probabilities of the levels, shape (n_levels, n)."""
        return np.array([np.broadcast_to(function(s), s.shape) for function in self.functions])

    def integral(self, b, share):
        """The limit's numerator, in t = 1 - s; the weight t^-b is the quadrature's."""

        def mean(t):
            return float(self.levels @ self.chances(np.array([1 - t]))[:, 0])

        rule = {"weight": "alg", "wvar": (-b, 0.0)} if b > 0 else {}
        return (1 - b) * scipy.integrate.quad(mean, 0, share, epsabs=1e-12, limit=200, **rule)[0]

    def ideal(self, gained):
        """``sum_j y_j (gained(R_j) - gained(R_{j-1}))``."""
        gains = [_Relevance(function).integral(0.0, 1.0) for function in self.functions]
        steps = np.diff([gained(share) for share in np.cumsum([0.0, *gains])])
        return float(self.levels @ steps)

    def expected(self, discount, share, n):
        """Mean DCG over that of the most likely number of items of each level in order."""
        k = min(share, n) if isinstance(share, int) else max(1, round(share * n))
        weights = discounts_of(discount, k)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        gain = self.levels @ self.chances(1 - (np.arange(k) + 0.5) / n) @ weights
        return float(gain / self.ideal(lambda r: np.interp(r * n, np.arange(k + 1), sums)))
