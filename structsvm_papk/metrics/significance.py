"""How sure a mean over users is, whether two scorers differ, and what `evaluate` says of both.

Users are the units that are drawn: resampling takes whole users (a cluster bootstrap), tests swap
the two scorers' values of a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.bounds.intervals import Interval, many_users, rests_on, weighted_mean_ends
from structsvm_papk.data.validation import (
    encode,
    is_zero_one,
    joined,
    same_kind,
    too_few_to_resample,
)
from structsvm_papk.errors import InputError, check_choice, check_number, check_type
from structsvm_papk.metrics.conventions import Conventions
from structsvm_papk.metrics.definitions import metric_names
from structsvm_papk.metrics.table import MetricTable

METHODS = ("bootstrap", "kl", "exact", "hoeffding", "bernstein")
_BATCH_WORDS = 1 << 16  # of signs, each of which becomes 64 floats


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
        Paired bootstrap interval of the difference, extended to 0 where the test does not reject 0
        at this level: interval and test give one verdict. NaN for fewer than 10 users of positive
        weight, whom resampling says too little about. The test is exact there.
    note : str
        On how few users the interval rests, where fewer than 10, and fewer than half, have another
        difference than the most frequent one: it is too short there; the test holds.
    p_value : float
        Paired permutation test, two-sided: each user's difference may change sign.
    p_adjusted : float
        Corrected for the number of comparisons, by Benjamini and Hochberg.
    n_users : int
    level : float
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
    note: str = ""


def ends_text(lower: float | None, upper: float | None, note: str = "") -> str:
    """Both ends of an interval, and its note, for a cell of a table."""
    if lower is None or np.isnan(lower):
        return "-"
    return f"{lower:.4f} to {upper:.4f}" + (f", {note}" if note else "")


def interval(
    table: MetricTable,
    metric: str,
    *,
    method: str = "bootstrap",
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Interval for the mean of a metric over users.

    Parameters
    ----------
    table : MetricTable
    metric : str
    method : {"bootstrap", "kl", "exact", "hoeffding", "bernstein"}
        `bootstrap`: percentiles over resampled users (asymptotic); refused for fewer than 10 users,
        whom resampling says too little about. The others are guaranteed for users drawn
        independently and a mean with equal weights, see `bounds.many_users`; `exact` is for values
        0 and 1, as those of `hit@k`.
    level : float
    n_resamples, seed : int

    Returns
    -------
    Interval
        Where fewer than 10 users, and fewer than half, have another value than the most frequent
        one, a bootstrap interval is too short: `note` says on how many lists it rests, and which
        method is guaranteed.

    Raises
    ------
    InputError
        A method that does not apply: few users, a pooled mean, weights, values that are NaN or, for
        `exact`, not 0 or 1.
    """
    _check(level, table=table)
    reason = no_interval(table, metric, method)
    if reason is not None:
        raise InputError(reason)
    used = table.used(metric)
    values = table[metric][used]
    weights = table.weights()[used]
    note = ""
    if method == "bootstrap":
        ends = weighted_mean_ends(values, weights, level, n_resamples, seed)
        note = rests_on(values[weights > 0])
    else:
        made = many_users(values, 1.0 - level, method)
        ends = made.lower, made.upper
    if note and table.conventions.mean == "user":
        note += f"; '{'exact' if is_zero_one(values) else 'kl'}' is guaranteed"
    mean = float(np.dot(values, weights) / weights.sum())
    return Interval(mean, *ends, level, method, method != "bootstrap", values.size, note)


def no_interval(table: MetricTable, metric: str, method: str = "bootstrap") -> str | None:
    """Why `interval` would refuse a method for a metric of the table; None where it would not."""
    check_choice("method", method, METHODS)
    if table.is_pooled:
        return "a pooled mean has no user values; choose another mean"
    values = table[metric][table.used(metric)]
    if not values.size:
        return f"no user has a value of {metric}; there is nothing to make an interval of"
    if np.isnan(values).any():
        return f"{metric} is NaN for some users by the rule no_positives='nan'; choose another rule"
    weights = table.weights()[table.used(metric)]
    if not weights.any():
        return _without_weight(metric, table)
    if method == "bootstrap":
        return too_few_to_resample(int(np.count_nonzero(weights)))
    if table.conventions.mean != "user":
        return f"method={method!r} needs mean='user', not {table.conventions.mean!r}"
    if method == "exact" and not is_zero_one(values):
        return f"method='exact' is for values 0 and 1, and {metric} has others; 'kl' holds for all"
    return None


def ends_of(table: MetricTable, metric: str, **how: Any) -> tuple[float, float]:
    """Both ends of a bootstrap interval; NaN where `interval` would refuse one."""
    if no_interval(table, metric) is not None:
        return np.nan, np.nan
    made = interval(table, metric, **how)
    return made.lower, made.upper


def _without_weight(metric: str, table: MetricTable) -> str:
    mean = table.conventions.mean
    return (
        f"the mean of {metric} is not defined: with mean={mean!r} each of the "
        f"{int(table.used(metric).sum())} users that have a value has weight 0; "
        "choose another mean, for example mean='user'"
    )


def compare(
    first: MetricTable,
    second: MetricTable,
    metrics: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> list[Comparison]:
    """Paired comparison of two rankings, user by user; one Comparison per metric.

    Solvers side by side are `rankers.compare`.

    Parameters
    ----------
    first, second : MetricTable
        Of the same users, by the same rules, with a mean that is not `pooled`, and the same
        weights. A user that either table leaves out is left out of the pair.
    metrics : str or sequence of str, optional
        Default: all metrics of `first`.
    level : float
    n_resamples, seed : int
        For the permutation test and the paired bootstrap.

    Returns
    -------
    list of Comparison

    Raises
    ------
    InputError
        Tables that cannot be compared: other users, other rules, users that weigh differently (as
        under `mean='pairs'` where one of the lists shows more negatives), values that are NaN.

    Notes
    -----
    The test's null hypothesis is that each user's difference is as likely as its negative, which
    scorers that are exchangeable make true; of a mean of zero it is a test for many users only.
    """
    from scipy import stats  # a third of a second, and not of every program

    _check(level, first=first, second=second)
    check_number("n_resamples", n_resamples, least=1)
    check_number("seed", seed, least=0)
    _check_comparable(first, second)
    wanted = metric_names(first.metrics if metrics is None else metrics)
    pairs = [_paired(first, second, name, level, n_resamples, seed) for name in wanted]
    adjusted = stats.false_discovery_control([pair["p_value"] for pair in pairs])
    return [
        Comparison(**pair, p_adjusted=float(p), level=level)
        for pair, p in zip(pairs, adjusted, strict=True)
    ]


def _paired(
    first: MetricTable, second: MetricTable, metric: str, level: float, n_resamples: int, seed: int
) -> dict[str, Any]:
    a, b, weights = paired_values(first, second, metric)
    lower = float("nan")
    upper = float("nan")
    note = ""
    if too_few_to_resample(int(np.count_nonzero(weights))) is None:
        lower, upper = weighted_mean_ends(a - b, weights, level, n_resamples, seed)
        note = rests_on((a - b)[weights > 0])
    p_value = sign_flip_p_value((a - b) * weights, n_resamples, seed)
    if p_value > 1 - level:
        lower = min(lower, 0.0)
        upper = max(upper, 0.0)
    return {
        "metric": metric,
        "first": float(np.average(a, weights=weights)),
        "second": float(np.average(b, weights=weights)),
        "difference": float(np.average(a - b, weights=weights)),
        "lower": lower,
        "upper": upper,
        "note": note,
        "p_value": p_value,
        "n_users": a.size,
    }


def paired_values(
    first: MetricTable, second: MetricTable, metric: str
) -> tuple[Array, Array, Array]:
    """Values of both scorers and the weights of the users that both have, or `InputError`."""
    both = first.used(metric) & second.used(metric)
    if not both.any():
        raise InputError(f"no user has a value of {metric} from both scorers")
    a = first[metric][both]
    b = second[metric][both]
    if np.isnan(a).any() or np.isnan(b).any():
        raise InputError(
            f"{metric} is NaN for some users by the rule no_positives='nan'; choose another rule"
        )
    weights = first.weights()[both]
    other = second.weights()[both]
    differ = np.flatnonzero(weights != other)
    if differ.size:
        u = differ[0]
        mean = first.conventions.mean
        raise InputError(
            f"user {first.users[both][u]} weighs {weights[u]:g} in the first table and "
            f"{other[u]:g} in the second ({differ.size} such users): with mean={mean!r} the two "
            "means are of different users; compare with mean='user', or on the same rows"
        )
    if not weights.any():
        raise InputError(_without_weight(metric, first))
    return a, b, weights


def _check(level: float, **tables: MetricTable) -> None:
    for name, table in tables.items():
        check_type(name, table, MetricTable, "a MetricTable, as metrics.evaluate makes it")
    check_number("level", level, above=0, below=1)


def _check_comparable(first: MetricTable, second: MetricTable) -> None:
    """Refuse tables of other rules or other users."""
    for table in (first, second):
        table.refuse_pooled("a comparison user by user")
    for rule in fields(Conventions):
        own = getattr(first.conventions, rule.name)
        other = getattr(second.conventions, rule.name)
        if own != other:
            raise InputError(
                f"the tables follow different rules, {rule.name}={own!r} and {other!r}: evaluate "
                "both by the same"
            )
    if not same_kind(first.users, second.users):
        raise InputError("users are numbers in one table and text in the other")
    n = first.users.size
    users, codes = encode(joined(first.users, second.users))
    if np.array_equal(codes[:n], codes[n:]):
        return
    only = np.setdiff1d(codes[:n], codes[n:]), np.setdiff1d(codes[n:], codes[:n])
    for place, extra in (("first", users[only[0]]), ("second", users[only[1]])):
        if extra.size:
            shown = ", ".join(map(str, extra[:5]))
            raise InputError(
                f"{extra.size} users are only in the {place} table ({shown}"
                f"{', ..' if extra.size > 5 else ''}); compare scorers on the same users"
            )
    raise InputError("the tables hold the same users in different order; sort both by user")


def _flipped_sums(differences: Array, n_resamples: int | None, seed: int) -> Iterator[Array]:
    """``sum_i +-differences[i]`` under random signs, in batches; None: under every pattern once."""
    n = differences.size
    rng = np.random.default_rng(seed)
    words = -(-n // 64)
    batch = max(1, _BATCH_WORDS // words)
    todo = 2**n if n_resamples is None else n_resamples
    for start in range(0, todo, batch):
        size = min(batch, todo - start)
        bits = np.arange(start, start + size, dtype=np.uint64)[:, None]
        if n_resamples is not None:
            bits = rng.integers(0, 2**64, (size, words), dtype=np.uint64)
        octets = bits.astype("<u8").view(np.uint8)
        minus = np.unpackbits(octets, axis=1, count=n, bitorder="little")
        yield differences.sum() - 2.0 * (minus @ differences)


def sign_flip_p_value(differences: Array, n_resamples: int, seed: int) -> float:
    """Two-sided p-value of sum(differences) when each sign is a fair coin.

    As scipy's `permutation_test`, which shuffles whole arrays: minutes for 100,000 users. Twice the
    smaller tail, at most 1; random signs count the observed ones as one more draw, so
    that the test is valid (Phipson and Smyth 2010).
    """
    differences = np.ascontiguousarray(differences[differences != 0])
    if not differences.size:
        return 1.0
    observed = differences.sum()
    exact = differences.size < 63 and 2**differences.size <= n_resamples
    sums = np.concatenate([*_flipped_sums(differences, None if exact else n_resamples, seed)])
    slack = 1e-12 * np.abs(differences).sum()
    extra = 0 if exact else 1
    above = np.count_nonzero(sums >= observed - slack) + extra
    below = np.count_nonzero(sums <= observed + slack) + extra
    return float(min(1.0, 2 * min(above, below) / (sums.size + extra)))


# --- what is said of scores -----------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluation:
    """A table of metrics, comparisons, and how intervals are made.

    `method` is one of `metrics.interval`, or none.
    """

    table: MetricTable
    compared: Sequence[Comparison] = ()
    method: str = "bootstrap"
    level: float = 0.95
    n_resamples: int = 2000
    seed: int = 0

    @property
    def heading(self) -> str:
        """The heading of a column of intervals."""
        if self.method == "none":
            return "interval"
        return f"{100 * self.level:g}% interval, {self.method}"

    @cached_property
    def overall(self) -> list[dict[str, Any]]:
        """Mean of each metric over all users, with what the rules did."""
        return [
            summary.as_dict() | self._ends(self.table, summary.metric) | {"interval": self.method}
            for summary in self.table.summary()
        ]

    def _ends(self, table: MetricTable, metric: str) -> dict[str, Any]:
        """Both ends of the interval of a mean, and its note; None where there is no interval."""
        absent = {"lower": None, "upper": None, "note": ""}
        if self.method == "none" or table.is_pooled or not table.used(metric).any():
            return absent
        if self.method in ("bootstrap", "exact") and no_interval(table, metric, self.method):
            return absent  # too few users to resample, or values beside 0 and 1
        ends = interval(
            table, metric, method=self.method, level=self.level,
            n_resamples=self.n_resamples, seed=self.seed,
        )  # fmt: skip
        return {"lower": ends.lower, "upper": ends.upper, "note": ends.note}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metrics": self.overall,
            "relevant_items": self.table.relevant_items,
            "label_gain": self.table.label_gain,
            "comparison": [asdict(comparison) for comparison in self.compared],
        }


def mean_text(row: dict[str, Any]) -> tuple[str, str]:
    """The mean and the interval of a row of an `Evaluation`."""
    value = row["value"]
    mean = "-" if value is None or not np.isfinite(value) else f"{value:.4f}"
    return mean, ends_text(row["lower"], row["upper"], row["note"])
