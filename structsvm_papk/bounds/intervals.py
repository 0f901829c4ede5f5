"""Intervals for one scorer that was fixed before its data were seen, or for a mean over users."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are first used: half of the import time
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data.validation import (
    FEWEST_RESAMPLED,
    as_array,
    check_labels,
    check_scores,
    is_zero_one,
    too_few_to_resample,
)
from structsvm_papk.errors import InputError, as_floats, check_choice, check_number

MANY_USERS = ("kl", "hoeffding", "bernstein", "exact", "bootstrap")
_BATCH_BYTES = 1 << 26


@dataclass(frozen=True)
class Interval:
    """A value in [0, 1] with an interval.

    Attributes
    ----------
    value : float
        As measured: a risk from `bounds`, what the table holds from `metrics`.
    lower, upper : float
    level : float
        Nominal coverage.
    method : str
    guaranteed : bool
        Whether the coverage holds for every sample size; False for asymptotic methods.
    n_users : int or None
        Users that entered; None where the interval is not about users.
    note : str
    """

    value: float
    lower: float
    upper: float
    level: float
    method: str
    guaranteed: bool
    n_users: int | None = None
    note: str = ""

    @property
    def vacuous(self) -> bool:
        """True when the interval is all of [0, 1]."""
        return self.lower <= 0.0 and self.upper >= 1.0

    @property
    def half_width(self) -> float:
        """Half of the interval's length."""
        return (self.upper - self.lower) / 2

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self) | {"vacuous": self.vacuous, "half_width": self.half_width}

    def __str__(self) -> str:
        of = "" if self.n_users is None else f", {self.n_users} user{'s' * (self.n_users != 1)}"
        ends = f"[{self.lower:.6g}, {self.upper:.6g}]"
        note = f"; {self.note}" if self.note else ""
        return f"{self.value:.6g} {ends} ({100 * self.level:g}% {self.method}{of}{note})"


def held_out(scores: ArrayLike, labels: ArrayLike, k: int, rho: float = 0.05) -> Interval:
    """Interval for the population risk of one scorer, from one held-out list.

    The scorer and k must have been chosen before the list was seen. The two ranks are shifted by
    binomial quantiles, and a Chernoff (kl) bound applied.

    Parameters
    ----------
    scores : array of shape (n,)
    labels : array of shape (n,), 0/1, -1/1 or booleans
    k : int
    rho : float
        Error probability in (0, 1/2].

    Raises
    ------
    InputError
        NaN scores, labels that are not binary, no positives, ``k > n_neg``, rho outside (0, 1/2].
    """
    check_rho(rho)
    scores = check_scores(scores)
    relevant = check_labels(labels, scores.size)
    p, q = (np.sort(scores[side])[::-1] for side in (relevant, ~relevant))
    checked_sizes(len(p), len(q), k)
    beta = min(len(p), k)
    risk = _top_risk(p, q, beta, k)
    lower, upper = np.clip(_shift(p, q, k, rho), 0, 1).tolist()
    return Interval(risk, lower, upper, 1 - rho, "shift", True, 1)


def _shift(p: Array, q: Array, k: int, rho: float) -> tuple[float, float]:
    """Order-statistic interval.

    Upper end: with probability 1 - r_pos the best beta' positives come from a share of at least a
    of their law, with probability 1 - r_neg the best k' negatives from a share of at most b; given
    the next order statistic they are independent draws, and their risk is at least R on average.
    """
    n_pos = len(p)
    n_neg = len(q)
    a = min(n_pos, k) / n_pos
    b = k / n_neg
    r_pos = 0.0 if a == 1 else rho / 8
    r_neg = 0.0 if b == 1 else rho / 8
    log_term = np.log(1 / (rho / 2 - r_pos - r_neg))
    more_pos = _rank_above(n_pos, a, r_pos)
    fewer_neg = _rank_below(n_neg, b, r_neg)
    fewer_pos = _rank_below(n_pos, a, r_pos)
    more_neg = _rank_above(n_neg, b, r_neg)
    lower = 0.0
    upper = 1.0
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


def dkw_width(n_pos: int, n_neg: int, k: int, rho: float) -> float:
    """Half-width of the interval by the inequality of Dvoretzky, Kiefer and Wolfowitz."""
    parts = ((n_pos, min(n_pos, k)), (n_neg, k))
    return sum(np.sqrt(np.log(4 / rho) / (2 * n)) * n / top for n, top in parts)


def _top_risk(p: Array, q: Array, n_top_pos: int, n_top_neg: int) -> float:
    """Share of pairs (top positives x top negatives) with ``p <= q``; p and q are decreasing."""
    ascending = q[:n_top_neg][::-1]
    below = np.searchsorted(ascending, p[:n_top_pos], side="left")
    return float(1 - below.sum() / (n_top_pos * n_top_neg))


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
    """
    check_rho(rho)
    check_choice("method", method, MANY_USERS)
    values = as_floats("values", as_array(values, "values")).ravel()
    if len(values) == 0:
        raise InputError("no users: an interval needs at least one value")
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        raise InputError(f"user {bad[0]} has the value {values[bad[0]]}: a risk lies in [0, 1]")
    risk = float(values.mean())
    note = ""
    if method == "kl":
        level = np.log(2 / rho) / values.size
        ends = kl_inverse_down(risk, level), kl_inverse_up(risk, level)
    elif method == "exact":
        if not is_zero_one(values):
            raise InputError("method='exact' is for values 0 and 1 only; 'kl' holds for all")
        test = scipy.stats.binomtest(int(values.sum()), values.size)
        ends = test.proportion_ci(1 - rho, method="exact")
    elif method == "bootstrap":
        ends = weighted_mean_ends(values, np.ones(values.size), 1 - rho, n_resamples, seed)
        note = ", ".join(filter(None, ["asymptotic: coverage is approximate", rests_on(values)]))
    else:
        variance = values.var(ddof=1) if values.size > 1 else 0.0
        half = mean_half_width(values.size, variance, rho, method)
        ends = risk - half, risk + half
    lower, upper = np.clip(ends, 0, 1).tolist()
    return Interval(risk, lower, upper, 1 - rho, method, not note, values.size, note)


def mean_half_width(n: int, variance: float, rho: float, method: str) -> float:
    """Half-width of the intervals `hoeffding` and `bernstein` of n users."""
    if method == "hoeffding":
        return float(np.sqrt(np.log(2 / rho) / (2 * n)))
    if n < 2:
        return 1.0
    log_term = np.log(4 / rho)
    return float(np.sqrt(2 * variance * log_term / n) + 7 * log_term / (3 * (n - 1)))


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


def checked_sizes(n_pos: int, n_neg: int, k: int) -> tuple[int, int, int]:
    """Return the sizes as whole numbers with n_pos >= 1 and 1 <= k <= n_neg, or refuse."""
    for name, value in (("n_pos", n_pos), ("n_neg", n_neg), ("k", k)):
        check_number(name, value, least=0)
    if n_pos < 1:
        raise InputError("the list has no positives: the pAp@k risk is not defined")
    if not 1 <= k <= n_neg:
        raise InputError(f"k = {k} with {n_neg} negatives: need 1 <= k <= n_neg")
    return int(n_pos), int(n_neg), int(k)


def check_rho(rho: float) -> None:
    """Refuse an error probability outside (0, 1/2]."""
    check_number("rho, the error probability,", rho, above=0, most=0.5)


def weighted_mean_ends(
    values: Array, weights: Array, level: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Percentile interval for ``sum w_i v_i / sum w_i``; users of weight 0 are not drawn."""
    values = values[weights > 0]
    weights = weights[weights > 0]
    reason = too_few_to_resample(values.size)
    if reason is not None:
        raise InputError(reason)
    check_number("n_resamples", n_resamples, least=1)
    check_number("seed", seed, least=0)
    if np.ptp(values) == 0:  # without the rounding of the sums
        return float(values[0]), float(values[0])
    rng = np.random.default_rng(seed)
    weighted = values * weights
    means = []
    batch = max(1, _BATCH_BYTES // (16 * values.size))
    for start in range(0, n_resamples, batch):
        drawn = rng.integers(0, values.size, (min(batch, n_resamples - start), values.size))
        means.append(weighted[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(low), float(high)


def rests_on(values: Array) -> str:
    """Why a bootstrap interval covers less than it says; empty where nothing speaks against it.

    Resampling learns how users differ from those with the most frequent value. Where nine of them
    or fewer do, and less than half, it is too short: for 20 users of whom each has a 1 with
    probability .05 and else a 0 it covers 62%, not 95%.
    """
    n_other = values.size - int(np.unique(values, return_counts=True)[1].max())
    if n_other >= min(FEWEST_RESAMPLED, values.size / 2):
        return ""
    return f"rests on {n_other} list{'s' * (n_other != 1)}"
