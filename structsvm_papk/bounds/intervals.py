"""Intervals for one scorer that was fixed before its data were seen."""

import numpy as np
import scipy  # its parts load when they are first used: half of the import time
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.bounds.bootstrap import rests_on, weighted_mean_ends
from structsvm_papk.bounds.checks import check_rho, checked_sizes
from structsvm_papk.bounds.interval import Interval
from structsvm_papk.data.validation import as_array, check_labels, check_scores, is_zero_one
from structsvm_papk.errors import InputError, as_floats, check_choice

HELD_OUT = ("shift", "dkw", "asymptotic")
MANY_USERS = ("kl", "hoeffding", "bernstein", "exact", "bootstrap")


def held_out(
    scores: ArrayLike, labels: ArrayLike, k: int, rho: float = 0.05, method: str = "shift"
) -> Interval:
    """Interval for the population risk of one scorer, from one held-out list.

    The scorer and k must have been chosen before the list was seen (DKW: k may be chosen after).

    Parameters
    ----------
    scores : array of shape (n,)
    labels : array of shape (n,), 0/1, -1/1 or booleans
    k : int
    rho : float
        Error probability in (0, 1/2].
    method : {"shift", "dkw", "asymptotic"}
        ``shift`` shifts the two ranks by binomial quantiles and applies a Chernoff (kl) bound;
        ``dkw`` is ``sqrt(ln(4/rho)/(2 n_pos))/a + sqrt(ln(4/rho)/(2 n_neg))/b``; ``asymptotic`` is
        the delta method on the logit scale: not guaranteed, and poor for small k.

    Returns
    -------
    Interval

    Raises
    ------
    InputError
        NaN scores, labels that are not binary, no positives, ``k > n_neg``, rho outside (0, 1/2].
    """
    check_rho(rho)
    check_choice("method", method, HELD_OUT)
    p, q = _sorted_sides(scores, labels, k)
    beta = min(len(p), k)
    risk = _top_risk(p, q, beta, k)
    ends = {"shift": _shift, "dkw": _dkw, "asymptotic": _asymptotic}[method](p, q, k, rho)
    note = "asymptotic: coverage is approximate, poor for small k" if method[0] == "a" else ""
    return Interval(risk, *_within_01(ends), 1 - rho, method, not note, 1, note)


def _within_01(ends: tuple[float, float]) -> tuple[float, float]:
    return float(np.clip(ends[0], 0, 1)), float(np.clip(ends[1], 0, 1))


def _shift(p: Array, q: Array, k: int, rho: float) -> tuple[float, float]:
    """Order-statistic interval.

    Upper end: with probability 1 - r_pos the best beta' positives come from a share of at least a
    of their law, with probability 1 - r_neg the best k' negatives from a share of at most b; given
    the next order statistic they are independent draws, and their risk is at least R on average.
    """
    n_pos, n_neg = len(p), len(q)
    a, b = min(n_pos, k) / n_pos, k / n_neg
    r_pos = 0.0 if a == 1 else rho / 8
    r_neg = 0.0 if b == 1 else rho / 8
    log_term = np.log(1 / (rho / 2 - r_pos - r_neg))
    more_pos, fewer_neg = _rank_above(n_pos, a, r_pos), _rank_below(n_neg, b, r_neg)
    fewer_pos, more_neg = _rank_below(n_pos, a, r_pos), _rank_above(n_neg, b, r_neg)
    lower, upper = 0.0, 1.0
    if fewer_neg >= 1:
        size = min(more_pos, fewer_neg)
        upper = kl_inverse_up(_top_risk(p, q, more_pos, fewer_neg), log_term / size)
    if fewer_pos >= 1:
        size = min(fewer_pos, more_neg)
        lower = kl_inverse_down(_top_risk(p, q, fewer_pos, more_neg), log_term / size)
    return lower, upper


def _rank_above(n: int, share: float, prob: float) -> int:
    """Smallest j with ``P(Bin(n, share) <= j) >= 1 - prob``; n when share is 1."""
    return n if share == 1 else int(scipy.stats.binom.isf(prob, n, share))


def _rank_below(n: int, share: float, prob: float) -> int:
    """Largest j with ``P(Bin(n, share) <= j) <= prob``; n when share is 1, -1 without such a j."""
    if share == 1:
        return n
    j = int(scipy.stats.binom.ppf(prob, n, share))  # smallest j with cdf >= prob
    return j if scipy.stats.binom.cdf(j, n, share) <= prob else j - 1


def _dkw(p: Array, q: Array, k: int, rho: float) -> tuple[float, float]:
    n_pos, n_neg = len(p), len(q)
    beta = min(n_pos, k)
    width = sum(
        np.sqrt(np.log(4 / rho) / (2 * n)) * n / top for n, top in ((n_pos, beta), (n_neg, k))
    )
    risk = _top_risk(p, q, beta, k)
    return risk - width, risk + width


def _asymptotic(p: Array, q: Array, k: int, rho: float) -> tuple[float, float]:
    """Delta method: influence values of both samples, on the logit scale."""
    n_pos, n_neg, beta = len(p), len(q), min(len(p), k)
    risk = _top_risk(p, q, beta, k)
    if not 0 < risk < 1:
        return 0.0, 1.0
    ascending = q[:k][::-1]
    g = 1 - np.searchsorted(ascending, p[:beta], side="left") / k
    h = 1 - np.searchsorted(-p[:beta], -q[:k], side="left") / beta
    g_offset = g[-1] if beta < n_pos else 0.0
    h_offset = h[-1] if k < n_neg else 0.0
    phi_pos, phi_neg = np.zeros(n_pos), np.zeros(n_neg)
    phi_pos[:beta] = (g - g_offset) * n_pos / beta
    phi_neg[:k] = (h - h_offset) * n_neg / k
    se = np.sqrt(phi_pos.var() / n_pos + phi_neg.var() / n_neg) / (risk * (1 - risk))
    reach = scipy.stats.norm.isf(rho / 2) * se
    lower, upper = scipy.special.expit(scipy.special.logit(risk) + np.array([-reach, reach]))
    return lower, upper


def _top_risk(p: Array, q: Array, n_top_pos: int, n_top_neg: int) -> float:
    """Share of pairs (top positives x top negatives) with ``p <= q``; p and q are decreasing."""
    ascending = q[:n_top_neg][::-1]
    below = np.searchsorted(ascending, p[:n_top_pos], side="left")
    return float(1 - below.sum() / (n_top_pos * n_top_neg))


def _sorted_sides(scores: ArrayLike, labels: ArrayLike, k: int) -> tuple[Array, Array]:
    scores = check_scores(scores)
    relevant = check_labels(labels, scores.size)
    p, q = scores[relevant], scores[~relevant]
    checked_sizes(len(p), len(q), k)
    return np.sort(p)[::-1], np.sort(q)[::-1]


# ----------------------------------------------------------------- many users


def many_users(
    values: ArrayLike, rho: float = 0.05, method: str = "kl", n_resamples: int = 2000, seed: int = 0
) -> Interval:
    """Interval for the expected risk of a new user, from the risks of users drawn at random.

    With M users, mean r and variance V (ddof 1)::

        kl         {s: kl(r, s) <= ln(2/rho)/M}
        exact      Clopper and Pearson's, of the binomial law; for values 0 and 1 only
        hoeffding  r +- sqrt( ln(2/rho)/(2 M) )
        bernstein  r +- ( sqrt(2 V ln(4/rho)/M) + 7 ln(4/rho)/(3 (M - 1)) )   Maurer and Pontil
        bootstrap  percentiles of the means of resampled users; asymptotic, not guaranteed, and
                   refused for fewer than 10 users

    Parameters
    ----------
    values : array of shape (n_users,)
        Each user's risk in [0, 1]; the scorer was fixed before.
    rho : float
    method : {"kl", "hoeffding", "bernstein", "exact", "bootstrap"}
    n_resamples, seed : int
        For the bootstrap.

    Returns
    -------
    Interval
    """
    check_rho(rho)
    check_choice("method", method, MANY_USERS)
    values = _checked_values(values)
    risk = float(values.mean())
    if method == "kl":
        level = np.log(2 / rho) / values.size
        ends = kl_inverse_down(risk, level), kl_inverse_up(risk, level)
    elif method == "exact":
        ends = _clopper_pearson(values, rho)
    elif method == "bootstrap":
        ends = weighted_mean_ends(values, np.ones(values.size), 1 - rho, n_resamples, seed)
    else:
        half = _mean_half_width(values, rho, method)
        ends = risk - half, risk + half
    note = "asymptotic: coverage is approximate" if method == "bootstrap" else ""
    note += f", {rests_on(values)}" if method == "bootstrap" and rests_on(values) else ""
    return Interval(risk, *_within_01(ends), 1 - rho, method, not note, values.size, note)


def _clopper_pearson(values: Array, rho: float) -> tuple[float, float]:
    if not is_zero_one(values):
        raise InputError("method='exact' is for values 0 and 1 only; 'kl' holds for all")
    test = scipy.stats.binomtest(int(values.sum()), values.size)
    return test.proportion_ci(1 - rho, method="exact")


def _mean_half_width(values: Array, rho: float, method: str) -> float:
    n = values.size
    if method == "hoeffding":
        return float(np.sqrt(np.log(2 / rho) / (2 * n)))
    if n < 2:
        return 1.0
    log_term = np.log(4 / rho)
    return float(np.sqrt(2 * values.var(ddof=1) * log_term / n) + 7 * log_term / (3 * (n - 1)))


def _checked_values(values: ArrayLike) -> Array:
    values = as_floats("values", as_array(values, "values")).ravel()
    if len(values) == 0:
        raise InputError("no users: an interval needs at least one value")
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        raise InputError(f"user {bad[0]} has the value {values[bad[0]]}: a risk lies in [0, 1]")
    return values


# ----------------------------------------------------------------- Chernoff


def kl_bernoulli(p: float, q: float) -> float:
    """``p ln(p/q) + (1 - p) ln((1 - p)/(1 - q))``."""
    return float(scipy.special.rel_entr(p, q) + scipy.special.rel_entr(1 - p, 1 - q))


def kl_inverse_up(p: float, level: float) -> float:
    """Largest q >= p with ``kl(p, q) <= level``."""
    if p >= 1 or kl_bernoulli(p, 1 - 1e-15) <= level:
        return 1.0
    root = scipy.optimize.brentq(lambda q: kl_bernoulli(p, q) - level, p, 1 - 1e-15, xtol=1e-14)
    return min(1.0, root + 1e-13)


def kl_inverse_down(p: float, level: float) -> float:
    """Smallest q <= p with ``kl(p, q) <= level``."""
    return 1.0 - kl_inverse_up(1.0 - p, level)
