"""How sure a mean over users is, and whether two scorers differ.

Users are the units that are drawn: resampling takes whole users (a cluster bootstrap), tests swap
the two scorers' values of a user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _auc, lists
from structsvm_papk.metrics._resampling import sign_flip_p_value

if TYPE_CHECKING:
    from structsvm_papk.metrics.table import MetricTable

_BATCH_BYTES = 1 << 26
GUARANTEED = ("kl", "hoeffding", "bernstein")
METHODS = ("bootstrap", *GUARANTEED)


@dataclass(frozen=True)
class Estimate:
    """A mean with an interval.

    Attributes
    ----------
    value, lower, upper : float
    level : float
        Nominal coverage.
    method : str
    n_users : int
        Users that entered.
    guaranteed : bool
        Whether the coverage holds for every sample size (users drawn independently).
    """

    value: float
    lower: float
    upper: float
    level: float
    method: str
    n_users: int
    guaranteed: bool

    def __str__(self) -> str:
        percent = 100 * self.level
        return (
            f"{self.value:.6g} [{self.lower:.6g}, {self.upper:.6g}] "
            f"({percent:g}% {self.method}, {self.n_users} users)"
        )


@dataclass(frozen=True)
class Comparison:
    """Two scorers on the same users.

    Attributes
    ----------
    metric : str
    first, second : float
        Means over the users that both have.
    difference : float
        first - second.
    lower, upper : float
        Paired bootstrap interval of the difference.
    p_value : float
        Paired permutation test, two-sided: each user's difference may change sign.
    p_adjusted : float
        After the correction for the number of comparisons.
    n_users : int
    level : float
    correction : str
    """

    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    p_value: float
    p_adjusted: float
    n_users: int
    level: float
    correction: str


def interval(
    table: MetricTable,
    metric: str,
    *,
    method: str = "bootstrap",
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Any:
    """Interval for the mean of a metric over users.

    Parameters
    ----------
    table : MetricTable
    metric : str
    method : {"bootstrap", "kl", "hoeffding", "bernstein"}
        `bootstrap`: percentiles over resampled users (asymptotic). The others are guaranteed for
        users drawn independently and a mean with equal weights, see `bounds.many_users`.
    level : float
    n_resamples, seed : int

    Returns
    -------
    Estimate
    """
    _check_level(level)
    if method not in METHODS:
        raise InputError(f"method={method!r} is not known; choose one of {', '.join(METHODS)}")
    if table.pooled:
        raise InputError(
            "a pooled mean has no user values; use pooled_auc_interval or another mean"
        )
    used = table.used(metric)
    values, weights = table[metric][used], table.weights()[used]
    if not values.size:
        raise InputError(
            f"no user has a value of {metric}; there is nothing to make an interval of"
        )
    if method == "bootstrap":
        lower, upper = _bootstrap(values, weights, level, n_resamples, seed)
    else:
        lower, upper = _guaranteed(values, method, level, table)
    mean = float(np.dot(values, weights) / weights.sum())
    return Estimate(mean, lower, upper, level, method, values.size, method != "bootstrap")


def _guaranteed(values, method, level, table):
    from structsvm_papk.bounds import many_users

    if table.conventions.mean != "user":
        raise InputError(f"method={method!r} needs mean='user', not {table.conventions.mean!r}")
    risks = 1.0 - values if table.gain else values
    found = many_users(risks, rho=1.0 - level, method=method)
    ends = (found.lower, found.upper)
    return (1.0 - ends[1], 1.0 - ends[0]) if table.gain else ends


def held_out_interval(
    scores: ArrayLike, labels: ArrayLike, k: int, *, method: str = "shift", level: float = 0.95
) -> Any:
    """Interval for the pAp@k of the population that one held-out list was drawn from.

    The scorer and k were chosen before the list was seen, see `bounds.held_out`.

    Parameters
    ----------
    scores, labels : array-like, shape (n_rows,)
    k : int
    method : {"shift", "dkw", "asymptotic"}
        The first two are guaranteed.
    level : float

    Returns
    -------
    Estimate
        Of the gain 1 - risk, ties counting as errors; `n_users` is 1.
    """
    from structsvm_papk.bounds import held_out

    _check_level(level)
    rows = lists.build(scores, labels)
    found = held_out(rows.scores, rows.relevant, k, rho=1.0 - level, method=method)
    ends = 1.0 - found.risk, 1.0 - found.upper, 1.0 - found.lower
    return Estimate(*ends, level, method, 1, found.guaranteed)


def _bootstrap(values, weights, level, n_resamples, seed):
    if values.size == 1 or np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    from scipy import stats  # half of the package's import time

    found = stats.bootstrap(
        (values * weights, weights),
        lambda x, w, axis=-1: x.sum(axis=axis) / w.sum(axis=axis),
        paired=True,
        vectorized=True,
        confidence_level=level,
        n_resamples=n_resamples,
        batch=_batch(values.size),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def _batch(n):
    return max(1, _BATCH_BYTES // (16 * n))


def compare(
    first: MetricTable,
    second: MetricTable,
    metrics: Sequence[str] | None = None,
    *,
    correction: str = "bh",
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> list[Any]:
    """Paired tests of two scorers, one Comparison per metric.

    Parameters
    ----------
    first, second : MetricTable
        Of the same users. A user that either table leaves out is left out of the pair.
    metrics : sequence of str, optional
        Default: all metrics of `first`.
    correction : {"none", "bh", "by"} or a method of statsmodels' `multipletests`
        Correction of the p-values for the number of metrics. `bh` and `by` (Benjamini-Hochberg,
        Benjamini-Yekutieli) come from scipy; `holm`, `bonferroni`, .. need statsmodels.
    level : float
    n_resamples, seed : int
        For the permutation test and the paired bootstrap.

    Returns
    -------
    list of Comparison
    """
    _check_level(level)
    _same_users(first, second)
    wanted = list(first.metrics if metrics is None else metrics)
    pairs = [_paired(first, second, name, level, n_resamples, seed) for name in wanted]
    adjusted = adjust([pair["p_value"] for pair in pairs], correction)
    return [
        Comparison(**pair, p_adjusted=float(p), level=level, correction=correction)
        for pair, p in zip(pairs, adjusted, strict=True)
    ]


def _paired(first, second, metric, level, n_resamples, seed):
    both = first.used(metric) & second.used(metric)
    if not both.any():
        raise InputError(f"no user has a value of {metric} from both scorers")
    a, b, weights = first[metric][both], second[metric][both], first.weights()[both]
    lower, upper = _bootstrap(a - b, weights, level, n_resamples, seed)
    return {
        "metric": metric,
        "first": float(np.average(a, weights=weights)),
        "second": float(np.average(b, weights=weights)),
        "difference": float(np.average(a - b, weights=weights)),
        "lower": lower,
        "upper": upper,
        "p_value": sign_flip_p_value((a - b) * weights, n_resamples, seed),
        "n_users": int(both.sum()),
    }


def adjust(p_values: Any, correction: str = "bh") -> Any:
    """P-values corrected for their number; see `compare`."""
    p_values = np.asarray(p_values, dtype=float)
    if correction == "none":
        return p_values
    if correction in ("bh", "by"):
        from scipy import stats

        return stats.false_discovery_control(p_values, method=correction)  # type: ignore[arg-type]
    try:
        from statsmodels.stats.multitest import multipletests
    except ImportError:
        raise InputError(
            f"correction={correction!r} needs statsmodels (pip install 'structsvm-papk[stats]'); "
            "none, bh and by do not"
        ) from None
    try:
        return multipletests(p_values, method=correction)[1]
    except ValueError as error:
        raise InputError(f"correction={correction!r} is not known: {error}") from None


def _same_users(first, second):
    if np.array_equal(first.users, second.users):
        return
    for one, other, place in ((first, second, "first"), (second, first, "second")):
        extra = np.setdiff1d(one.users, other.users)
        if extra.size:
            shown = ", ".join(map(str, extra[:5]))
            raise InputError(
                f"{extra.size} users are only in the {place} table ({shown}"
                f"{', ..' if extra.size > 5 else ''}); compare scorers on the same users"
            )


def _check_level(level):
    if not 0 < level < 1:
        raise InputError(f"level={level} must lie between 0 and 1, for example 0.95")


def delong(labels: ArrayLike, scores: Array, other: Any = None, *, level: float = 0.95) -> Any:
    """AUC of all rows as one list with DeLong's variance; with `other`, the paired difference.

        var = var(V10)/n_pos + var(V01)/n_neg

    V10, V01: each row's share of correct pairs, half for ties (DeLong, DeLong and
    Clarke-Pearson 1988, by the midranks of Sun and Xu 2014). Rows are taken as independent; for
    rows clustered in users use `pooled_auc_interval`.

    Returns
    -------
    AucTest
        `value` is the AUC, or the AUC difference scores - other, with its interval and, for a
        difference, the two-sided p-value that it is 0.
    """
    from scipy import stats

    _check_level(level)
    relevant = np.asarray(labels).astype(bool)
    pos, neg = relevant.sum(), (~relevant).sum()
    if min(pos, neg) < 2:
        raise InputError(f"DeLong needs two positives and two negatives; here {pos} and {neg}")
    parts = [
        _auc.shares(np.asarray(s, dtype=float), relevant) for s in (scores, other) if s is not None
    ]
    v10, v01 = parts[0] if other is None else (parts[0][0] - parts[1][0], parts[0][1] - parts[1][1])
    value = float(v10.mean())
    error = float(np.sqrt(v10.var(ddof=1) / pos + v01.var(ddof=1) / neg))
    reach = error * stats.norm.ppf(0.5 + level / 2)
    p_value = None
    if other is not None:
        p_value = float(2 * stats.norm.sf(abs(value) / error)) if error > 0 else float(value == 0)
    low = 0.0 if other is None else -1.0
    return AucTest(value, max(value - reach, low), min(value + reach, 1.0), level, error, p_value)


@dataclass(frozen=True)
class AucTest:
    """A pooled AUC, or the difference of two, with its interval.

    Attributes
    ----------
    value, lower, upper, level : float
    standard_error : float
    p_value : float or None
        Two-sided, for a difference of two scorers.
    """

    value: float
    lower: float
    upper: float
    level: float
    standard_error: float
    p_value: float | None


def pooled_auc_interval(
    scores: Array,
    labels: ArrayLike,
    groups: ArrayLike | None,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Any:
    """AUC of all rows as one list, with an interval from resampled users (ties count half)."""
    _check_level(level)
    found = _auc.cluster_bootstrap(scores, labels, groups, level, n_resamples, seed)
    return AucTest(*found, None)  # type: ignore[call-arg]
