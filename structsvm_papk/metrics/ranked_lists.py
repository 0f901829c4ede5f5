"""Scores and labels of many users as contiguous lists, checked once, and the metrics' values there.

What no metric of a call needs is not even compiled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data import validation as _validation
from structsvm_papk.data.rows import one_list_or
from structsvm_papk.data.validation import as_array, check_ids, encode, missing, rows_of
from structsvm_papk.errors import InputError, as_floats, check_choice, check_number
from structsvm_papk.metrics import _kernels, discounts
from structsvm_papk.metrics.conventions import FEW_NEGATIVES, TIES, Conventions, Metric
from structsvm_papk.metrics.discounts import Discount

Gains: TypeAlias = str | Callable[[Array], ArrayLike]
_MAX_SEGMENTS = 1000
_CHUNK_ROWS = 1 << 16  # their ranks stay in the processor's cache
_AREAS = (_kernels.PAP, _kernels.PAUC, _kernels.AUC)
_SHOWN = 5
_FEW_FRACTIONS = 10  # ratings with halves have fewer, scores more
_MANY_FRACTIONS = 100


@dataclass(frozen=True)
class RankedLists:
    """Rows sorted by user; user u owns the rows indptr[u] .. indptr[u+1]-1.

    `gains` is None where they equal `relevant`; `lengths` is empty when lists are complete;
    `codes` says of the rows as they were given whose they are; None: they stay. `tied` marks users
    whose scores tied before a rule ordered them; None: scores are as they were given.
    """

    users: np.ndarray
    indptr: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    gains: np.ndarray | None
    lengths: np.ndarray
    codes: np.ndarray | None = None
    tied: np.ndarray | None = None

    @property
    def n_users(self) -> int:
        """Number of lists."""
        return self.indptr.size - 1

    @property
    def user_of_row(self) -> Array:
        """User of each row, counted from 0."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    def pooled(self) -> RankedLists:
        """All rows as one list."""
        if self.lengths.size:
            raise InputError(
                "a pooled mean needs complete lists, but list_length or relevant pairs were given"
            )
        return replace(self, users=np.zeros(1, dtype=int), indptr=np.array([0, self.scores.size]))

    def only(self, mask: Array) -> RankedLists:
        """The rows of a mask, as lists of the users that have some of them."""
        if self.lengths.size:
            raise InputError("an item column cannot split truncated lists; leave list_length out")
        sizes = np.bincount(self.user_of_row[mask], minlength=self.n_users)
        users, indptr = self.users[sizes > 0], np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        relevant, gains = self.relevant[mask], self.gains
        if gains is not None:
            gains = None if np.array_equal(gains[mask], relevant) else gains[mask]
        return RankedLists(users, indptr, self.scores[mask], relevant, gains, self.lengths)


def build(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    indptr: ArrayLike | None = None,
    list_length: ArrayLike | None = None,
    relevance_threshold: float | None = None,
    gains: Gains | None = None,
    need_binary: bool = True,
    n_threads: int | None = None,
) -> RankedLists:
    """RankedLists of row arrays, with parameters as in `metrics.evaluate`.

    NaN is refused, and numbers that only more than double precision tells apart. With neither
    `groups` nor `indptr` there is one list; `need_binary`: graded labels without a threshold are an
    error.
    """
    check_number("n_threads", n_threads, least=1, optional=True)
    check_number("relevance_threshold", relevance_threshold, optional=True)
    values = _validation.check_scores(scores, groups)
    labels = _validation.check_grades(labels, values.size, groups=groups)
    users, bounds, codes = group_rows(groups, indptr, values.size)
    if gains is None:
        refuse_scores_as_labels(labels)
    binary = _validation.is_binary(labels)
    if need_binary or relevance_threshold is not None or binary:
        relevant = _validation.relevance(labels, relevance_threshold).view(np.uint8)
    else:
        relevant = (labels > 0).view(np.uint8)
    grades = (labels > 0).view(np.uint8) if binary else labels  # -1 has the gain of 0
    graded = _graded_gains(grades, relevant, gains)
    lengths = _lengths(list_length, users)
    if codes is not None:
        if graded is not None:
            graded = _kernels.placed(codes, bounds, graded, relevant)[0]
        values, relevant = _kernels.placed(codes, bounds, values, relevant)
    return RankedLists(users, bounds, values, relevant, graded, lengths, codes)


def refuse_scores_as_labels(labels: Array) -> None:
    """Raise where checked labels hold so many different fractions that they must be scores."""
    if labels.dtype.kind != "f":
        return
    fractions = labels[labels != np.floor(labels)]
    if fractions.size <= _FEW_FRACTIONS:
        return
    n_values = np.unique(fractions).size
    if n_values > _MANY_FRACTIONS or (n_values > _FEW_FRACTIONS and 2 * n_values > labels.size):
        raise InputError(
            f"labels hold {n_values} different fractions, as scores do: are scores and labels "
            "swapped? Scores come first, or name them: scores=, labels=. If these are gains, say "
            "so: gains='linear'"
        )


def _graded_gains(labels: Array, relevant: Array, gains: Gains | None) -> Array | None:
    if callable(gains):
        graded = as_floats("gains", gains(labels))
    else:
        check_choice(
            "gains", "linear" if gains is None else gains, ("linear", "exponential", "a function")
        )
        graded = np.exp2(labels.astype(np.float64)) - 1.0 if gains == "exponential" else labels
    if np.array_equal(graded, relevant):
        return None
    graded = graded.astype(np.float64, copy=False)
    bad = ~(np.isfinite(graded) & (graded >= 0))
    if graded.shape != labels.shape or bad.any():
        raise InputError(
            f"NDCG gains must be finite and at least 0; they are not in {rows_of(bad)}"
        )
    return np.ascontiguousarray(graded)


def group_rows(
    groups: ArrayLike | None, indptr: ArrayLike | None, n_rows: int
) -> tuple[Array, Array, Array | None]:
    """Sorted unique users, their row bounds, and the user of each row (None: rows are sorted)."""
    groups = one_list_or(groups)
    if groups is not None and indptr is not None:
        raise InputError("give either groups or indptr, not both")
    if indptr is not None:
        bounds = _validation.check_indptr(indptr, n_rows)
        return np.arange(bounds.size - 1), bounds, None
    if groups is None:
        return np.zeros(1, dtype=np.int64), np.array([0, n_rows], dtype=np.int64), None
    groups = _validation.check_ids(groups, n_rows)
    users, codes, counts, in_order = grouped(groups)
    return users, np.concatenate([[0], np.cumsum(counts)]), None if in_order else codes


def grouped(groups: Array) -> tuple[Array, Array, Array, bool]:
    """Sorted distinct checked ids, each row's index, how often each occurs, are rows in order.

    Whole numbers that span a range near the number of rows are counted, not sorted.
    """
    if groups.dtype.kind in "iu":
        low = int(groups.min())
        n_values = int(groups.max()) - low + 1
        if n_values <= 4 * groups.size + 1025:
            wide = np.uint64 if groups.dtype.kind == "u" else np.int64
            codes = groups.astype(wide, copy=False)
            codes = (codes - wide(low) if low else codes).astype(np.int64, copy=False)
            counts, in_order = _kernels.count_rows(codes, n_values)
            present = counts > 0
            users = (np.flatnonzero(present).astype(wide) + wide(low)).astype(groups.dtype)
            if users.size < n_values:
                codes = (np.cumsum(present) - 1)[codes]
            return users, codes, counts[present], in_order
    users, codes = _validation.encode(groups)
    return users, codes, *_kernels.count_rows(codes, users.size)


def _lengths(list_length: ArrayLike | None, users: Array) -> Array:
    if list_length is None:
        return np.empty(0, dtype=np.int64)
    lengths = _validation.as_array(list_length, "list_length")
    if lengths.dtype.kind not in "iu":
        raise InputError(f"list_length must be whole numbers, not {lengths.dtype}")
    if lengths.ndim and lengths.shape != (users.size,):
        raise InputError(f"list_length has shape {lengths.shape}; give one per user, {users.size}")
    lengths = np.broadcast_to(lengths, users.shape).astype(np.int64)
    if (lengths < 0).any():
        raise InputError(f"list_length is negative for user {users[np.argmax(lengths < 0)]!r}")
    return lengths


def run_over_users(
    lists: RankedLists, kernel: Callable[[int, int], None], n_threads: int | None = None
) -> None:
    """Call `kernel(start, stop)` on disjoint ranges of users that hold about equally many rows."""
    n_threads = n_threads or os.cpu_count() or 1
    if n_threads == 1 or lists.n_users == 1 or lists.scores.size < 1 << 14:
        kernel(0, lists.n_users)
        return
    wanted = np.linspace(0, lists.scores.size, 4 * n_threads + 1)
    cuts = np.unique(np.searchsorted(lists.indptr, wanted))
    cuts[0], cuts[-1] = 0, lists.n_users
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(kernel, a, b) for a, b in pairwise(cuts)]:
            done.result()


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of a frame, or of a dict of columns."""
    if not isinstance(frame, dict) and not hasattr(frame, "columns"):
        raise TypeError(
            f"a pandas or polars frame, or a dict of columns, is needed, not {type(frame).__name__}"
        )
    return list(frame) if isinstance(frame, dict) else list(frame.columns)


def column(frame: Any, name: str) -> Array:
    """One column of a frame, or of a dict of columns, as an array."""
    names = column_names(frame)
    if not isinstance(name, Hashable) or name not in names:
        shown = ", ".join(map(str, names))
        raise InputError(f"there is no column {name!r}; the frame has {shown}")
    return _validation.as_array(frame[name], f"column {name!r}")


def levels(column: str, values: ArrayLike, rows: RankedLists) -> tuple[list[Any], Array]:
    """Distinct values in order, `missing` last where some are, and each row's, by their index.

    As for ids, 1 and "1" are not the same; a column that holds both is refused.
    """
    values, order = as_array(values, column), np.arange(rows.scores.size)
    if values.shape == rows.scores.shape:
        order = order if rows.codes is None else np.argsort(rows.codes, kind="stable")
    elif values.shape == (rows.n_users,):
        values = values[rows.user_of_row]
    else:
        raise InputError(
            f"segment column {column!r} has shape {values.shape}; give one value per row "
            f"({rows.scores.size}) or per user ({rows.n_users})"
        )
    gone = missing(values)
    present = values[~gone]
    known, codes = encode(check_ids(present, present.size, f"segment column {column!r}"))
    names, inverse = known.tolist(), np.full(values.size, known.size, dtype=np.int64)
    inverse[~gone] = codes
    if gone.any():
        names.append("missing" if "missing" not in names else "no value")
    if len(names) > _MAX_SEGMENTS:
        raise InputError(
            f"segment column {column!r} has {len(names)} different values, more than "
            f"{_MAX_SEGMENTS}; group them first"
        )
    return names, inverse[order]


class Values:
    """Values (n_users, n_metrics) of checked rows by the rules, NaN where there are none.

    `left_out` marks those that do not enter a mean, `touched` whom each rule touches, by metric;
    `counts` has shape (n_users, 6).
    """

    def __init__(
        self,
        parsed: Sequence[Metric],
        rows: RankedLists,
        rules: Conventions,
        discount: Discount,
        n_threads: int | None = None,
    ) -> None:
        self.parsed, self.rows, self.rules, self.n_threads = parsed, rows, rules, n_threads
        table = self._discounts(discount)
        self.tables = table, np.concatenate([[0.0], np.cumsum(table)])
        self.ties, self.few = TIES[rules.ties], FEW_NEGATIVES[rules.few_negatives]
        self.values = np.empty((rows.n_users, len(parsed)))
        self.counts = np.zeros((rows.n_users, _kernels.N_COUNTS), dtype=np.int64)
        self._run_kernels()
        if rows.tied is not None:
            self.counts[:, _kernels.TIED] = rows.tied
        self._check_truncation()
        self.left_out = np.zeros(self.values.shape, dtype=bool)
        self.touched = {metric.name: self._apply_rules(m) for m, metric in enumerate(parsed)}

    def _discounts(self, discount: Discount) -> Array:
        ks = [metric.kernel_k for metric in self.parsed if metric.code == _kernels.NDCG]
        if not ks:
            return np.ones(1)
        if discounts.exponent(discount) > 1:
            warnings.warn(discounts.NO_LIMIT, discounts.NoLimitWarning, stacklevel=4)
        longest = int(np.diff(self.rows.indptr).max())
        needed = min(longest, max(ks))
        if self.rules.ideal == "all_places":
            needed = max(longest, *(k for k in ks if k < _kernels.WHOLE_LIST), 1)
        return discounts.values(discount, max(needed, 1))

    def _run_kernels(self) -> None:
        rows, counts = self.rows, self.counts
        graded = [rows.gains is not None and one.code == _kernels.NDCG for one in self.parsed]
        binary = [(m, metric) for m, metric in enumerate(self.parsed) if not graded[m]]
        sums = np.empty((len(self.parsed), rows.n_users))

        def ranked(start: int, stop: int) -> None:
            runs = _runs(rows.indptr, start, stop)
            ranks = np.empty((4, np.diff(rows.indptr[runs]).max()), dtype=np.int64)
            for lo, hi in pairwise(runs):
                _kernels.rank_users(
                    rows.scores, rows.relevant, rows.indptr, rows.lengths, self.ties, lo, hi,
                    ranks, counts,
                )  # fmt: skip
                users = ranks, rows.indptr, counts, lo, hi, self.ties
                for m, metric in binary:
                    self._add_up(metric, users, sums[m])

        run_over_users(rows, ranked, self.n_threads)
        for m, metric in binary:
            self.values[:, m] = sums[m] / self._largest(metric)
        if any(graded):
            self.values[:, graded] = self._graded()

    def _add_up(self, metric: Metric, users: tuple[Any, ...], out: Array) -> None:
        """A metric's sums over the positives of ranked users, as `_largest` divides them."""
        code, k = metric.code, metric.kernel_k
        if code in _AREAS:
            _kernels.pairs_won(*users, *_counted(metric, self.few), out)
        elif code in (_kernels.PRECISION, _kernels.RECALL):
            _kernels.hits(*users, k, out)
        elif code == _kernels.AP:
            _kernels.precision_sums(*users, out)
        elif code == _kernels.NDCG:
            _kernels.discounted_gains(*users, k, *self.tables, out)
        elif code == _kernels.RR:
            _kernels.first_hits(*users, out)
        elif code == _kernels.HIT:
            _kernels.any_hits(*users, k, out)
        else:
            _kernels.areas_at_k(*users, k, out)

    def _largest(self, metric: Metric) -> Array:
        """What the sums of a metric are divided by; NaN for users whose value is not defined."""
        n_pos, n_neg = self.counts[:, _kernels.N_POS], self.counts[:, _kernels.N_NEG]
        code, k, ideal = metric.code, metric.kernel_k, self.tables[1]
        largest, all_places = np.ones(n_pos.size), self.rules.ideal == "all_places"
        if code in _AREAS:
            most, wide, capped = _counted(metric, self.few)
            largest = np.minimum(n_pos, most).astype(float)
            largest *= np.minimum(n_neg, wide) if capped else wide
            if self.few == _kernels.EXCLUDE and not capped:
                largest[n_neg < k] = np.nan
        elif code == _kernels.PRECISION:
            largest *= k
        elif code in (_kernels.RECALL, _kernels.AP):
            largest *= n_pos
        elif code == _kernels.NDCG and all_places and metric.k is not None:
            largest *= ideal[min(k, ideal.size - 1)]
        elif code == _kernels.NDCG:
            places = n_pos + n_neg if all_places else n_pos
            largest = ideal[np.minimum(k, places)]
        return np.where((n_pos > 0) & (largest > 0), largest, np.nan)

    def _graded(self) -> Array:
        """NDCG with graded gains, one column for each time it was asked for."""
        if self.rules.ideal != "achievable":
            raise InputError(
                "ideal='all_places' (RecTools) is defined for binary relevance only; choose "
                "ideal='achievable' for graded gains"
            )
        rows = self.rows
        ks = np.array([one.kernel_k for one in self.parsed if one.code == _kernels.NDCG])
        graded = np.empty((rows.n_users, ks.size))

        def task(start: int, stop: int) -> None:
            _kernels.graded_ndcg(
                rows.scores, rows.gains, rows.indptr, rows.lengths, ks, *self.tables, self.ties,
                start, stop, graded, self.counts,
            )  # fmt: skip

        run_over_users(rows, task, self.n_threads)
        return graded

    def _check_truncation(self) -> None:
        """Refuse what lists that were cut do not decide."""
        if not self.rows.lengths.size:
            return
        if any(metric.code == _kernels.AUC for metric in self.parsed):
            raise InputError(
                "auc needs complete lists, but list_length or relevant pairs were given; use auc@k"
            )
        tied = self.counts[:, _kernels.CUT_TIED] > 0
        if self.rules.ties in ("half", "threshold") and tied.any():
            raise InputError(
                f"list_length cuts through equal scores of {self._named(tied)}; "
                "give ranks, or choose ties='loss' or ties='win'"
            )

    def _named(self, mask: Array) -> str:
        users = self.rows.users[mask]
        shown = ", ".join(map(str, users[:_SHOWN]))
        if users.size == 1:
            return f"user {shown}"
        return f"{users.size} users ({shown}{', ..' if users.size > _SHOWN else ''})"

    def _touched(self, m: int) -> dict[str, Array]:
        """Masks of the users that each rule touches for one metric."""
        metric, counts = self.parsed[m], self.counts
        no_positives = counts[:, _kernels.N_POS] == 0
        if metric.code == _kernels.NDCG and self.rows.gains is not None:
            no_positives = np.isnan(self.values[:, m])
        masks = {"no_positives": no_positives, "ties": counts[:, _kernels.TIED] > 0}
        n_neg = counts[:, _kernels.N_NEG]
        if metric.needs_negatives:
            masks["few_negatives"] = ~no_positives & (n_neg < metric.kernel_k)
        if metric.code == _kernels.AUC:
            masks["no_negatives"] = ~no_positives & (n_neg == 0)
        if metric.needs_negatives and self.rows.lengths.size:
            # cut before k negatives and before every positive was shown: RecTools' rule for both;
            # for pAp@k it is cautious: min(n_pos, k) shown positives would decide the value
            hidden = counts[:, _kernels.LISTED_POS] < counts[:, _kernels.N_POS]
            short = counts[:, _kernels.LISTED_NEG] < metric.kernel_k
            masks["insufficient"] = ~no_positives & hidden & short
        return masks

    def _apply_rules(self, m: int) -> dict[str, Array]:
        """Put each touched user's value and membership in place; whom each rule touches."""
        metric, rules, masks = self.parsed[m], self.rules, self._touched(m)
        values, empty = self.values[:, m], masks["no_positives"]
        few, short = masks.get("few_negatives"), masks.get("insufficient")
        is_auc = metric.code in (_kernels.AUC, _kernels.AUC_AT_K)
        rule = rules.auc_no_positives if is_auc else rules.no_positives
        if rule == "raise" and empty.any():
            raise InputError(f"{metric.name}: {self._named(empty)} without positives")
        if few is not None and rules.few_negatives == "raise" and few.any():
            raise InputError(
                f"{metric.name}: {self._named(few)} with fewer than {metric.k} negatives; "
                "choose another rule few_negatives or a smaller k"
            )
        if short is not None and rules.insufficient_handling == "raise" and short.any():
            raise InputError(f"{metric.name}: lists too short to decide, {self._named(short)}")
        if short is not None and rules.insufficient_handling == "exclude":
            values[short] = np.nan
        values[empty] = {"zero": 0.0, "one": 1.0}.get(rule, np.nan)
        self.left_out[:, m] = np.isnan(values)
        if rule == "nan":
            self.left_out[empty, m] = False
        return masks


def _runs(indptr: Array, start: int, stop: int) -> Array:
    """Bounds of runs of users with `_CHUNK_ROWS` rows and those of one user at most."""
    edges = np.arange(indptr[start], indptr[stop], _CHUNK_ROWS)
    return np.unique([start, *np.searchsorted(indptr, edges).clip(start, stop), stop])


def _counted(metric: Metric, few: int) -> tuple[int, int, bool]:
    """Positives and negatives that an area counts at most; whether only negatives there are."""
    most = metric.kernel_k if metric.code == _kernels.PAP else _kernels.WHOLE_LIST
    return most, metric.kernel_k, metric.code == _kernels.AUC or few == _kernels.NORMALISE
