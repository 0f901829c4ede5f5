"""Values of metrics for every user of checked lists, and whom each rule touches.

What no metric of a call needs is not even compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._jit import read_only
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_callback
from structsvm_papk.metrics import _kernels
from structsvm_papk.metrics.conventions import FEW_NEGATIVES, TIES, Conventions
from structsvm_papk.metrics.definitions import Asked, Metric, Terms
from structsvm_papk.metrics.ranked_lists import RankedLists, gains_of, named, run_over_users

Discount: TypeAlias = Callable[[Array], ArrayLike]
_CHUNK_ROWS = 1 << 16  # their ranks stay in the processor's cache


@dataclass(frozen=True)
class Values:
    """Values (n_users, n_metrics), NaN where there are none.

    `left_out` marks those that do not enter a mean, `by_rule` whom each rule concerns, by metric;
    `counts` has shape (n_users, 6), see `_kernels`.
    """

    values: Array
    left_out: Array
    by_rule: dict[str, dict[str, Array]]
    counts: Array


def values_of(
    asked: Sequence[Asked],
    rows: RankedLists,
    rules: Conventions,
    discount: Discount | None,
    n_threads: int | None = None,
) -> Values:
    """Every metric of every user by the rules; see `metrics.evaluate`."""
    of = [request.metric.of for request in asked]
    plain = [request for request in asked if request.metric.of == "all"]
    made = _values_of_rows(plain, rows, rules, discount, n_threads)
    if len(plain) == len(asked):
        return made
    shape = (rows.n_users, len(asked))
    values = np.full(shape, np.nan)
    left_out = np.ones(shape, dtype=bool)
    by_rule = {request.name: made.by_rule.get(request.name, {}) for request in asked}
    for view in dict.fromkeys(of):
        here = np.flatnonzero([each == view for each in of])
        lists = rows.view(view)
        of_view = made
        if view != "all":
            of_view = _values_of_rows(
                [asked[int(m)] for m in here], lists, rules, discount, n_threads
            )
        place = np.searchsorted(rows.users, lists.users)  # all of them are among the users
        values[np.ix_(place, here)] = of_view.values
        left_out[np.ix_(place, here)] = of_view.left_out
        absent = np.ones(rows.n_users, dtype=bool)
        absent[place] = False
        rule = "zero" if view == "known" else rules.no_positives
        value = {"zero": 0.0, "one": 1.0}.get(rule, np.nan)
        values[np.ix_(absent, here)] = value
        left_out[np.ix_(absent, here)] = np.isnan(value) and rule != "nan"
    return Values(values=values, left_out=left_out, by_rule=by_rule, counts=made.counts)


def _values_of_rows(
    asked: Sequence[Asked],
    rows: RankedLists,
    rules: Conventions,
    discount: Discount | None,
    n_threads: int | None = None,
) -> Values:
    """Metrics that look at the same rows."""
    table = _discounts(asked, rows, rules, discount)
    terms = [_terms(request, rows, rules, table) for request in asked]
    is_binary = [_is_binary(request.metric, rows) for request in asked]
    binary = np.flatnonzero(is_binary).tolist()
    graded = np.flatnonzero(np.logical_not(is_binary)).tolist()
    counts = np.zeros((rows.n_users, _kernels.N_COUNTS), dtype=np.int64)
    values = np.empty((rows.n_users, len(asked)))

    # 1. sums over the positives of every ranked list, divided by the largest they could have
    sums = _sums([(asked[m].metric, terms[m]) for m in binary], rows, rules, counts, n_threads)
    for m, of_users in zip(binary, sums, strict=True):
        values[:, m] = of_users / _largest(asked[m], terms[m], counts)

    # 2. metrics of graded labels, whose lists have to be sorted
    for gain in dict.fromkeys(asked[m].metric.gain for m in graded):
        alike = [m for m in graded if asked[m].metric.gain is gain]  # of one sorting
        wanted = [(asked[m].metric, terms[m]) for m in alike]
        values[:, alike] = _of_gains(wanted, rows, rules, counts, n_threads).T

    # 3. what lists that were cut do not decide is refused
    if rows.tied is not None:
        counts[:, _kernels.TIED] = rows.tied
    _refuse_undecided(asked, rows, rules, counts)

    # 4. the rules say which value a user has, and whether it enters the mean
    left_out = np.zeros(values.shape, dtype=bool)
    by_rule = {}
    for m, request in enumerate(asked):
        masks = _by_rule(request, values[:, m], rows, counts)
        left_out[:, m] = _apply_rules(request, values[:, m], masks, rows, rules)
        by_rule[request.name] = masks
    return Values(values=values, left_out=left_out, by_rule=by_rule, counts=counts)


def _discounts(
    asked: Sequence[Asked], rows: RankedLists, rules: Conventions, discount: Discount | None
) -> Array:
    """Discounts of as many places as NDCG looks at; a single 1 where nobody asked for it."""
    ks = [request.kernel_k for request in asked if request.metric.graded]
    if not ks:
        return np.ones(1)
    longest = int(np.diff(rows.indptr).max())
    needed = min(longest, max(ks))
    if rules.ideal == "all_places":
        needed = max([k for k in ks if k < _kernels.WHOLE_LIST], default=longest)
        needed = max(needed, longest)
    return _discount_values(discount, max(needed, 1))


def _discount_values(discount: Discount | None, n: int) -> Array:
    """D(1), .., D(n), checked: finite, not negative, the first one positive."""
    ranks = np.arange(1, n + 1, dtype=float)
    if discount is None:
        return np.asarray(1.0 / np.log2(1.0 + ranks))
    check_callback(discount, "discount")
    values = as_floats("discount", discount(ranks))
    if values.shape != (n,):
        raise InputError(f"the discount gave shape {values.shape} for {n} ranks; give one each")
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise InputError(
            f"the discount is {values[bad[0]]} at rank {bad[0] + 1} ({bad.size} such ranks); "
            "every value must be finite and at least 0"
        )
    if values[0] == 0:
        raise InputError("the discount is 0 at rank 1; NDCG is then not defined")
    return values


def _terms(asked: Asked, rows: RankedLists, rules: Conventions, table: Array) -> Terms:
    return Terms(
        k=asked.kernel_k,
        ties=TIES[rules.ties],
        few_negatives=FEW_NEGATIVES[rules.few_negatives],
        all_places=rules.ideal == "all_places",
        discounts=_kernels.Discounts(
            at_place=table, sums=np.concatenate([[0.0], np.cumsum(table)])
        ),
        gains=partial(gains_of, how=rows.gains),
    )


def _is_binary(metric: Metric, rows: RankedLists) -> bool:
    """Whether a metric is a sum over the positives of these lists."""
    return metric.kernel is not None and (rows.grades is None or not metric.graded)


def _sums(
    wanted: Sequence[tuple[Metric, Terms]],
    rows: RankedLists,
    rules: Conventions,
    counts: Array,
    n_threads: int | None,
) -> Array:
    """Sums of each metric's kernel, shape (n_wanted, n_users); `counts` is filled on the way."""
    ties = TIES[rules.ties]
    sums = np.empty((len(wanted), rows.n_users))
    scores = read_only(rows.scores)

    def task(start: int, stop: int) -> None:
        runs = _runs(rows.indptr, start, stop)
        ranks = np.empty((4, np.diff(rows.indptr[runs]).max()), dtype=np.int64)
        for lo, hi in pairwise(runs.tolist()):
            bounds = rows.indptr[lo : hi + 1]
            lengths = rows.lengths[lo:hi]
            n = counts[lo:hi]
            _kernels.rank_users(scores, rows.relevant, bounds, lengths, ties, ranks, n)
            for out, (metric, terms) in zip(sums, wanted, strict=True):
                assert metric.kernel is not None
                metric.kernel(ranks, bounds, n, *metric.arguments(terms), out[lo:hi])

    run_over_users(rows, task, n_threads)
    return sums


def _runs(indptr: Array, start: int, stop: int) -> Array:
    """Bounds of runs of users with `_CHUNK_ROWS` rows and those of one user at most."""
    edges = np.arange(indptr[start], indptr[stop], _CHUNK_ROWS)
    inner = np.searchsorted(indptr, edges).clip(start, stop)
    return np.unique(np.concatenate([[start], inner, [stop]]))


def _largest(asked: Asked, terms: Terms, counts: Array) -> Array:
    """What the sums are divided by; NaN for users whose value is not defined."""
    n_pos = counts[:, _kernels.N_POS]
    largest = asked.metric.largest(terms, n_pos, counts[:, _kernels.N_NEG])
    return np.where((n_pos > 0) & (largest > 0), largest, np.nan)


def _of_gains(
    wanted: Sequence[tuple[Metric, Terms]],
    rows: RankedLists,
    rules: Conventions,
    counts: Array,
    n_threads: int | None,
) -> Array:
    """Metrics of the same gains in order, shape (n_wanted, n_users); NaN without a gain above 0."""
    metric, terms = wanted[0]
    if metric.over_best and terms.all_places:
        raise InputError(
            "ideal='all_places' (RecTools) is defined for binary relevance only; choose "
            "ideal='achievable' for graded gains"
        )
    ties = TIES[rules.ties]
    grades = rows.relevant.astype(np.float64) if rows.grades is None else rows.grades
    gains = read_only(metric.gain(terms, grades))
    scores = read_only(rows.scores)
    values = np.empty((len(wanted), rows.n_users))
    none = np.empty(0, dtype=np.int64)

    def task(start: int, stop: int) -> None:
        runs = _runs(rows.indptr, start, stop)
        most = np.diff(rows.indptr[runs]).max()
        in_order = np.empty(most)
        best = np.empty(most)
        stops = none if ties in (_kernels.LOSS, _kernels.WIN) else np.empty(most, dtype=np.int64)
        for lo, hi in pairwise(runs.tolist()):
            bounds = rows.indptr[lo : hi + 1]
            shown = rows.lengths[lo:hi]
            lists = _kernels.InOrder(in_order, stops, bounds, shown)
            _kernels.in_order(scores, gains, ties, lists, best, counts[lo:hi])
            ideal = _kernels.InOrder(best, none, bounds, np.diff(bounds))
            for out, (metric, terms) in zip(values, wanted, strict=True):
                _write_values(metric, terms, lists, ideal, out[lo:hi])

    run_over_users(rows, task, n_threads)
    return values


def _write_values(
    metric: Metric, terms: Terms, lists: _kernels.InOrder, ideal: _kernels.InOrder, out: Array
) -> None:
    """One metric of some users, over that of the best order where it is of that kind."""
    assert metric.of_gains is not None
    metric.of_gains(lists, *metric.arguments(terms), out)
    best = np.empty(out.size)
    metric.of_gains(ideal, *metric.arguments(terms), best)
    out[best <= 0.0] = np.nan
    if metric.over_best:
        out /= np.where(best > 0.0, best, 1.0)


def _refuse_undecided(
    asked: Sequence[Asked], rows: RankedLists, rules: Conventions, counts: Array
) -> None:
    if not rows.may_be_cut:
        return
    whole = [request.metric.name for request in asked if request.metric.needs_whole_list]
    if whole:
        raise InputError(
            f"{whole[0]} needs complete lists, but list_length or relevant pairs were given; use "
            f"{whole[0]}@k"
        )
    tied = counts[:, _kernels.CUT_TIED] > 0
    if rules.ties in ("half", "threshold") and tied.any():
        raise InputError(
            f"list_length cuts through equal scores of {named(rows.users, tied)}; "
            "give ranks, or choose ties='loss' or ties='win'"
        )


def _by_rule(asked: Asked, values: Array, rows: RankedLists, counts: Array) -> dict[str, Array]:
    """Masks of the users that each rule concerns, for one metric."""
    metric = asked.metric
    no_positives = counts[:, _kernels.N_POS] == 0
    if not _is_binary(metric, rows):
        no_positives = np.isnan(values)
    masks = {"no_positives": no_positives, "ties": counts[:, _kernels.TIED] > 0}
    n_neg = counts[:, _kernels.N_NEG]
    if metric.needs_negatives:
        masks["few_negatives"] = ~no_positives & (n_neg < asked.kernel_k)
    if metric.needs_whole_list:
        masks["no_negatives"] = ~no_positives & (n_neg == 0)
    if metric.needs_negatives and rows.may_be_cut:
        # cut before k negatives and before every positive was shown: RecTools' rule for both;
        # for pAp@k it is cautious: min(n_pos, k) shown positives would decide the value
        hidden = counts[:, _kernels.LISTED_POS] < counts[:, _kernels.N_POS]
        short = counts[:, _kernels.LISTED_NEG] < asked.kernel_k
        masks["insufficient"] = ~no_positives & hidden & short
    return masks


def _apply_rules(
    asked: Asked, values: Array, masks: dict[str, Array], rows: RankedLists, rules: Conventions
) -> Array:
    """Put the values that rules set in place; who is left out of the mean."""
    empty = masks["no_positives"]
    few = masks.get("few_negatives")
    short = masks.get("insufficient")
    rule = "zero" if asked.metric.of == "known" else getattr(rules, asked.metric.no_positives)
    if rule == "raise" and empty.any():
        raise InputError(f"{asked.name}: {named(rows.users, empty)} without positives")
    if few is not None and rules.few_negatives == "raise" and few.any():
        raise InputError(
            f"{asked.name}: {named(rows.users, few)} with fewer than {asked.k} negatives; "
            "choose another rule few_negatives or a smaller k"
        )
    if short is not None and rules.insufficient_handling == "raise" and short.any():
        raise InputError(f"{asked.name}: lists too short to decide, {named(rows.users, short)}")
    if short is not None and rules.insufficient_handling == "exclude":
        values[short] = np.nan
    values[empty] = {"zero": 0.0, "one": 1.0}.get(rule, np.nan)
    left_out = np.isnan(values)
    if rule == "nan":
        left_out[empty] = False
    return left_out
