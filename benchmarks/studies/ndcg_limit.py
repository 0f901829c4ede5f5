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

    For a discount r^-b with b < 1 (b = 0 for `log`) and the first c n of n places (c = 1: all) it
    is, with p = Pr[Y = 1]::

        (1 - b) int_{1-c}^1 Pr[Y=1|s] (1-s)^-b ds / min(p, c)^(1-b)

    which is 1 for `log` without a cut-off, whatever the scorer (T1). For b = 1, and for cut-offs
    that grow more slowly than the list, the top decides: Pr[Y = 1 | s = 1].

    Parameters
    ----------
    discount : str
        `log`, `zipf`, `exp` or `r^-0.5`, any exponent.
    cutoff : float, int, "slow" or None
        A share of the list, as 0.2; a fixed number of places, as 10; `slow`: places that grow
        without bound, but more slowly than the list; None: the whole list.
    relevance : callable
        Pr[Y = 1 | s] of the item above which a share 1 - s of the list stands; continuous.
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
    if n_items is not None:
        return _expected(discount, share, relevance, n_items)
    if b < 1 and isinstance(share, float):
        rate = _integral(relevance, 0.0, 1.0)
        return _integral(relevance, b, share) / min(rate, share) ** (1 - b)
    top = float(relevance(1.0))
    if (b > 1 or isinstance(share, int)) and top not in (0.0, 1.0):
        raise InputError("no limit: relevance at the very top is not certain")
    return top


def _integral(relevance, b, share):
    """The limit's numerator, in t = 1 - s; the weight t^-b is the quadrature's."""
    rule = {"weight": "alg", "wvar": (-b, 0.0)} if b > 0 else {}
    found = scipy.integrate.quad(
        lambda t: float(relevance(1 - t)), 0, share, epsabs=1e-12, limit=200, **rule
    )
    return (1 - b) * found[0]


def _expected(discount, share, relevance, n):
    """Mean DCG over that of the most likely number of relevant items in order."""
    k = min(share, n) if isinstance(share, int) else max(1, round(share * n))
    weights = discounts_of(discount, k)
    gain = relevance(1 - (np.arange(k) + 0.5) / n) @ weights
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    return float(gain / np.interp(_integral(relevance, 0.0, 1.0) * n, np.arange(k + 1), sums))
