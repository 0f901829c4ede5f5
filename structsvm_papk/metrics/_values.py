"""The values of all users by the kernels; what no metric of a call needs is not even compiled."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels, conventions, discounts
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.conventions import Conventions
from structsvm_papk.metrics.discounts import Discount
from structsvm_papk.metrics.parsing import Metric
from structsvm_papk.metrics.ranked_lists import RankedLists

_CHUNK_ROWS = 1 << 16  # their ranks stay in the processor's cache
_AREAS = (_kernels.PAP, _kernels.PAUC, _kernels.AUC)


def run_kernels(
    parsed: Sequence[Metric],
    rows: RankedLists,
    rules: Conventions,
    discount: Discount,
    n_threads: int | None = None,
) -> tuple[Array, Array]:
    """Raw values (n_users, n_metrics) and counts (n_users, 6) of checked rows."""
    table = _discounts(parsed, rows, rules, discount)
    tables = table, np.concatenate([[0.0], np.cumsum(table)])
    codes = conventions.codes(rules)
    values = np.empty((rows.n_users, len(parsed)))
    counts = np.zeros((rows.n_users, _kernels.N_COUNTS), dtype=np.int64)
    graded = [rows.gains is not None and metric.code == _kernels.NDCG for metric in parsed]
    binary = [(m, metric) for m, metric in enumerate(parsed) if not graded[m]]
    sums = np.empty((len(parsed), rows.n_users))

    def ranked(start: int, stop: int) -> None:
        runs = _runs(rows.indptr, start, stop)
        ranks = np.empty((4, np.diff(rows.indptr[runs]).max()), dtype=np.int64)
        for lo, hi in pairwise(runs):
            _kernels.rank_users(
                rows.scores, rows.relevant, rows.indptr, rows.lengths, codes[0], lo, hi,
                ranks, counts,
            )  # fmt: skip
            users = ranks, rows.indptr, counts, lo, hi, codes[0]
            for m, metric in binary:
                _add_up(metric, codes[1], tables, users, sums[m])

    lists.run_over_users(rows, ranked, n_threads)
    for m, metric in binary:
        values[:, m] = sums[m] / _largest(metric, counts, codes, tables[1])
    if any(graded):
        values[:, graded] = _graded(parsed, rows, rules, tables, counts, n_threads)
    return values, counts


def _runs(indptr: Array, start: int, stop: int) -> Array:
    """Bounds of runs of users with `_CHUNK_ROWS` rows and those of one user at most."""
    edges = np.arange(indptr[start], indptr[stop], _CHUNK_ROWS)
    return np.unique([start, *np.searchsorted(indptr, edges).clip(start, stop), stop])


def _add_up(
    metric: Metric, few: int, tables: tuple[Array, Array], users: tuple[Any, ...], out: Array
) -> None:
    """A metric's sums over the positives of ranked users, as `_largest` divides them."""
    code, k = metric.code, metric.kernel_k
    if code in _AREAS:
        _kernels.pairs_won(*users, *_counted(metric, few), out)
    elif code in (_kernels.PRECISION, _kernels.RECALL):
        _kernels.hits(*users, k, out)
    elif code == _kernels.AP:
        _kernels.precision_sums(*users, out)
    elif code == _kernels.NDCG:
        _kernels.discounted_gains(*users, k, *tables, out)
    elif code == _kernels.RR:
        _kernels.first_hits(*users, out)
    elif code == _kernels.HIT:
        _kernels.any_hits(*users, k, out)
    else:
        _kernels.areas_at_k(*users, k, out)


def _counted(metric: Metric, few: int) -> tuple[int, int, bool]:
    """Positives and negatives that an area counts at most; whether only negatives there are."""
    most = metric.kernel_k if metric.code == _kernels.PAP else _kernels.WHOLE_LIST
    return most, metric.kernel_k, metric.code == _kernels.AUC or few == _kernels.NORMALISE


def _largest(metric: Metric, counts: Array, codes: tuple[int, int, int], ideal: Array) -> Array:
    """What the sums of a metric are divided by; NaN for users whose value is not defined."""
    n_pos, n_neg = counts[:, _kernels.N_POS], counts[:, _kernels.N_NEG]
    code, k, _, few, ideal_rule = metric.code, metric.kernel_k, *codes
    largest = np.ones(n_pos.size)
    if code in _AREAS:
        most, wide, capped = _counted(metric, few)
        largest = np.minimum(n_pos, most).astype(float)
        largest *= np.minimum(n_neg, wide) if capped else wide
        if few == _kernels.EXCLUDE and not capped:
            largest[n_neg < k] = np.nan
    elif code == _kernels.PRECISION:
        largest *= k
    elif code in (_kernels.RECALL, _kernels.AP):
        largest *= n_pos
    elif code == _kernels.NDCG and ideal_rule == _kernels.ALL_PLACES and metric.k is not None:
        largest *= ideal[min(k, ideal.size - 1)]
    elif code == _kernels.NDCG:
        places = n_pos + n_neg if ideal_rule == _kernels.ALL_PLACES else n_pos
        largest = ideal[np.minimum(k, places)]
    return np.where((n_pos > 0) & (largest > 0), largest, np.nan)


def _graded(
    parsed: Sequence[Metric],
    rows: RankedLists,
    rules: Conventions,
    tables: tuple[Array, Array],
    counts: Array,
    n_threads: int | None,
) -> Array:
    """NDCG with graded gains, one column for each time it was asked for."""
    if rules.ideal != "achievable":
        raise InputError(
            "ideal='all_places' (RecTools) is defined for binary relevance only; choose "
            "ideal='achievable' for graded gains"
        )
    ks = np.array([metric.kernel_k for metric in parsed if metric.code == _kernels.NDCG])
    graded = np.empty((rows.n_users, ks.size))
    ties = conventions.TIES[rules.ties]

    def task(start: int, stop: int) -> None:
        _kernels.graded_ndcg(
            rows.scores, rows.gains, rows.indptr, rows.lengths, ks, *tables, ties, start, stop,
            graded, counts,
        )  # fmt: skip

    lists.run_over_users(rows, task, n_threads)
    return graded


def _discounts(
    parsed: Sequence[Metric], rows: RankedLists, rules: Conventions, discount: Discount
) -> Array:
    if all(metric.code != _kernels.NDCG for metric in parsed):
        return np.ones(1)
    if discounts.sum_is_bounded(discount):
        warnings.warn(discounts.NO_LIMIT, discounts.NoLimitWarning, stacklevel=4)
    ks = [metric.kernel_k for metric in parsed if metric.code == _kernels.NDCG]
    longest = int(np.diff(rows.indptr).max())
    needed = min(longest, max(ks))
    if rules.ideal == "all_places":
        needed = max(longest, *(k for k in ks if k < _kernels.WHOLE_LIST), 1)
    return discounts.values(discount, max(needed, 1))
