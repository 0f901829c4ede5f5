"""What the conventions do to the values of users: whom a rule touches, and who is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels
from structsvm_papk.metrics.conventions import Conventions
from structsvm_papk.metrics.parsing import Metric
from structsvm_papk.metrics.ranked_lists import RankedLists

_SHOWN = 5


def check_truncation(
    parsed: Sequence[Metric], rows: RankedLists, rules: Conventions, counts: Array
) -> None:
    """Refuse what lists that were cut do not decide."""
    if not rows.lengths.size:
        return
    for metric in parsed:
        if metric.code == _kernels.AUC:
            raise InputError("auc needs complete lists, but list_length was given; use auc@k")
    tied = counts[:, _kernels.CUT_TIED] > 0
    if rules.ties in ("half", "threshold") and tied.any():
        raise InputError(
            f"list_length cuts through equal scores of {_named(rows.users[tied])}; "
            "give ranks, or choose ties='loss' or ties='win'"
        )


def _named(users: Array) -> str:
    shown = ", ".join(map(str, users[:_SHOWN]))
    if users.size == 1:
        return f"user {shown}"
    return f"{users.size} users ({shown}{', ..' if users.size > _SHOWN else ''})"


def _touched(metric: Metric, rows: RankedLists, counts: Array, raw: Array) -> dict[str, Array]:
    """Masks of the users that each rule touches for one metric."""
    no_positives = counts[:, _kernels.N_POS] == 0
    if metric.code == _kernels.NDCG and rows.gains is not None:
        no_positives = np.isnan(raw)
    masks = {"no_positives": no_positives, "ties": counts[:, _kernels.TIED] > 0}
    n_neg = counts[:, _kernels.N_NEG]
    if metric.needs_negatives:
        masks["few_negatives"] = ~no_positives & (n_neg < metric.k)
    if metric.code == _kernels.AUC:
        masks["no_negatives"] = ~no_positives & (n_neg == 0)
    if metric.needs_negatives and rows.lengths.size:
        masks["insufficient"] = ~no_positives & _insufficient(metric, counts)
    return masks


def _insufficient(metric: Metric, counts: Array) -> Array:
    """Lists cut before k negatives and before every positive were shown.

    RecTools' rule for both metrics. For pAp@k it is cautious: min(n_pos, k) shown positives would
    decide the value.
    """
    short = counts[:, _kernels.LISTED_NEG] < metric.k
    return short & (counts[:, _kernels.LISTED_POS] < counts[:, _kernels.N_POS])


def apply_rules(
    parsed: Sequence[Metric], rules: Conventions, rows: RankedLists, values: Array, counts: Array
) -> tuple[dict[str, dict[str, Array]], Array]:
    """Put every value and membership in place; what each rule touched, and who is left out."""
    touched, left_out = {}, np.zeros(values.shape, dtype=bool)
    for column, metric in enumerate(parsed):
        masks = _touched(metric, rows, counts, values[:, column])
        _apply_rules_to(metric, rules, rows, masks, values[:, column], left_out[:, column])
        touched[metric.name] = masks
    return touched, left_out


def _apply_rules_to(
    metric: Metric,
    rules: Conventions,
    rows: RankedLists,
    masks: dict[str, Array],
    values: Array,
    left_out: Array,
) -> None:
    """Put each touched user's value and membership in place."""
    few, short = masks.get("few_negatives"), masks.get("insufficient")
    rule = rules.auc_no_positives if metric.is_auc else rules.no_positives
    empty = masks["no_positives"]
    if rule == "raise" and empty.any():
        raise InputError(f"{metric.name}: {_named(rows.users[empty])} without positives")
    if few is not None and rules.few_negatives == "raise" and few.any():
        raise InputError(
            f"{metric.name}: {_named(rows.users[few])} with fewer than {metric.k} negatives; "
            "choose another rule few_negatives or a smaller k"
        )
    if short is not None and rules.insufficient_handling == "raise" and short.any():
        raise InputError(f"{metric.name}: lists too short to decide, {_named(rows.users[short])}")
    if short is not None and rules.insufficient_handling == "exclude":
        values[short] = np.nan
    values[empty] = {"zero": 0.0, "one": 1.0}.get(rule, np.nan)
    left_out[:] = np.isnan(values)
    if rule == "nan":
        left_out[empty] = False
