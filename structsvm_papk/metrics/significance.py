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
from structsvm_papk.data.validation import (
    check_labels,
    check_scores,
    encode,
    joined,
    same_kind,
    too_few_to_resample,
)
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _auc
from structsvm_papk.metrics import ranked_lists as lists
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
        Paired bootstrap interval of the difference; NaN for fewer than 10 users of positive weight,
        whom resampling says too little about. The test is exact there.
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
        `bootstrap`: percentiles over resampled users (asymptotic); refused for fewer than 10 users,
        whom resampling says too little about. The others are guaranteed for users drawn
        independently and a mean with equal weights, see `bounds.many_users`.
    level : float
    n_resamples, seed : int

    Returns
    -------
    Estimate
    """
    _check_level(level)
    reason = no_interval(table, metric, method)
    if reason is not None:
        raise InputError(reason)
    used = table.used(metric)
    values, weights = table[metric][used], table.weights()[used]
    if method == "bootstrap":
        lower, upper = _bootstrap(values, weights, level, n_resamples, seed)
    else:
        lower, upper = _guaranteed(values, method, level, table)
    mean = float(np.dot(values, weights) / weights.sum())
    return Estimate(mean, lower, upper, level, method, values.size, method != "bootstrap")


def no_interval(table: MetricTable, metric: str, method: str = "bootstrap") -> str | None:
    """Why `interval` would refuse this method for a metric of the table; None where it would not.

    For callers that show many intervals and leave out those that do not exist.
    """
    if method not in METHODS:
        return f"method={method!r} is not known; choose one of {', '.join(METHODS)}"
    if table.is_pooled:
        return "a pooled mean has no user values; use pooled_auc_interval or another mean"
    values = table[metric][table.used(metric)]
    if not values.size:
        return f"no user has a value of {metric}; there is nothing to make an interval of"
    if np.isnan(values).any():
        return f"{metric} is NaN for some users by the rule no_positives='nan'; choose another rule"
    weights = table.weights()[table.used(metric)]
    if not weights.any():
        return _without_weight(metric, table)
    if method == "bootstrap":
        return too_few_to_resample(np.count_nonzero(weights))
    if table.conventions.mean != "user":
        return f"method={method!r} needs mean='user', not {table.conventions.mean!r}"
    return None


def _without_weight(metric, table):
    mean = table.conventions.mean
    return (
        f"the mean of {metric} is not defined: with mean={mean!r} each of the "
        f"{int(table.used(metric).sum())} users that have a value has weight 0; "
        "choose another mean, for example mean='user'"
    )


def _guaranteed(values, method, level, table):
    from structsvm_papk.bounds import many_users

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
    """Percentiles of the weighted mean of resampled users; users of weight 0 are not drawn."""
    values, weights = values[weights > 0], weights[weights > 0]
    if np.ptp(values) == 0:
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
        Of the same users, both gains or both risks and with the same mean, which is not `pooled`
        (for pooled AUCs see `delong`). A user that either table leaves out is left out of the pair.
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
    _check_comparable(first, second)
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
    if np.isnan(a).any() or np.isnan(b).any():
        raise InputError(
            f"{metric} is NaN for some users by the rule no_positives='nan'; choose another rule"
        )
    if not weights.any():
        raise InputError(_without_weight(metric, first))
    lower, upper = float("nan"), float("nan")
    if too_few_to_resample(np.count_nonzero(weights)) is None:
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


def _check_comparable(first, second):
    for table in (first, second):
        table.refuse_pooled("a comparison user by user")
    if first.gain != second.gain:
        raise InputError("one table holds gains and the other risks; give `gain` the same value")
    means = first.conventions.mean, second.conventions.mean
    if means[0] != means[1]:
        raise InputError(f"the tables have different means, {means[0]!r} and {means[1]!r}")


def _same_users(first, second):
    if not same_kind(first.users, second.users):
        raise InputError("users are numbers in one table and text in the other")
    n = first.users.size
    _, codes = encode(joined(first.users, second.users))
    if np.array_equal(codes[:n], codes[n:]):
        return
    for one, place, mine, others in (
        (first, "first", codes[:n], codes[n:]),
        (second, "second", codes[n:], codes[:n]),
    ):
        extra = one.users[~np.isin(mine, others)]
        if extra.size:
            shown = ", ".join(map(str, extra[:5]))
            raise InputError(
                f"{extra.size} users are only in the {place} table ({shown}"
                f"{', ..' if extra.size > 5 else ''}); compare scorers on the same users"
            )
    raise InputError("the tables hold the same users in different order; sort both by user")


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
    parts = [check_scores(s) for s in (scores, other) if s is not None]
    if len({part.size for part in parts}) > 1:
        raise InputError(f"one scorer has {parts[0].size} scores, the other {parts[1].size}")
    relevant = check_labels(labels, parts[0].size)
    pos, neg = relevant.sum(), (~relevant).sum()
    if min(pos, neg) < 2:
        raise InputError(f"DeLong needs two positives and two negatives; here {pos} and {neg}")
    parts = [_auc.shares(part, relevant) for part in parts]
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
    """AUC of all rows as one list, with an interval from resampled users (ties count half).

    Refused for fewer than 10 users, whom resampling says too little about; for rows that are
    independent of each other see `delong`.
    """
    _check_level(level)
    found = _auc.cluster_bootstrap(scores, labels, groups, level, n_resamples, seed)
    return AucTest(*found, None)  # type: ignore[call-arg]
