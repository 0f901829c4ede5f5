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
from structsvm_papk.metrics.conventions import Conventions, Metric
from structsvm_papk.metrics.discounts import Discount
from structsvm_papk.metrics.ranked_lists import RankedLists

_CHUNK_ROWS = 1 << 16  # their ranks stay in the processor's cache
_AREAS = (_kernels.PAP, _kernels.PAUC, _kernels.AUC)
_SHOWN = 5


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
        self.ties, self.few, self.ideal = conventions.codes(rules)
        self.values = np.empty((rows.n_users, len(parsed)))
        self.counts = np.zeros((rows.n_users, _kernels.N_COUNTS), dtype=np.int64)
        self._run_kernels()
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

        lists.run_over_users(rows, ranked, self.n_threads)
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
        largest = np.ones(n_pos.size)
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
        elif code == _kernels.NDCG and self.ideal == _kernels.ALL_PLACES and metric.k is not None:
            largest *= ideal[min(k, ideal.size - 1)]
        elif code == _kernels.NDCG:
            places = n_pos + n_neg if self.ideal == _kernels.ALL_PLACES else n_pos
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

        lists.run_over_users(rows, task, self.n_threads)
        return graded

    def _check_truncation(self) -> None:
        """Refuse what lists that were cut do not decide."""
        if not self.rows.lengths.size:
            return
        if any(metric.code == _kernels.AUC for metric in self.parsed):
            raise InputError("auc needs complete lists, but list_length was given; use auc@k")
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
