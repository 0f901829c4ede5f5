"""Metrics of lists with grades; those of two labels are means over grades, by what these count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.grades import gains_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.metrics.definitions import metric_names, parse
from structsvm_papk.metrics.ranked_lists import Gains
from structsvm_papk.metrics.table import MetricTable, evaluate


def evaluate_by_grade(
    metrics: str | Sequence[str],
    scores: Array,
    lists: RankingData,
    gains: Gains | None = None,
    **rules: Any,
) -> MetricTable:
    """`metrics.evaluate` of scores at the list positions; of binary lists nothing else.

    With grades, a metric of two labels is for each user the mean over the lists (u, t), see
    `data.grades`, by what they count, where it is defined for them; users without such a list are
    as those without a positive. Metrics of grades take the gains, by default those of the lists.
    """
    names = [parse(name).name for name in metric_names(metrics)]
    where: dict[str, Any] = {"indptr": lists.indptr, **rules}
    if lists.grades is None:
        table = evaluate(names, scores, lists.labels, gains=gains, **where)
        return replace(table, users=lists.users)
    of_grades = [name for name in names if parse(name).metric.graded]
    of_two_labels = [name for name in names if name not in of_grades]
    tables: dict[str, MetricTable] = {}
    if of_two_labels:
        table = _mean_over_grades(of_two_labels, scores, lists, where)
        tables |= dict.fromkeys(of_two_labels, table)
    if of_grades:
        label_gain: Any = lists.label_gain
        given = (lambda grades: gains_of(grades, label_gain)) if gains is None else gains
        table = evaluate(of_grades, scores, np.maximum(lists.grades, 0), gains=given, **where)
        tables |= dict.fromkeys(of_grades, table)
    return replace(
        table,
        users=lists.users,
        metrics=tuple(names),
        values=np.column_stack([tables[name][name] for name in names]),
        left_out=np.column_stack([~tables[name].used(name) for name in names]),
        n_pos=lists.n_pos,
        n_neg=lists.n_neg,
        by_rule={name: tables[name].by_rule[name] for name in names},
        label_gain=lists.label_gain,
    )


def _mean_over_grades(
    names: Sequence[str], scores: Array, lists: RankingData, rules: dict[str, Any]
) -> MetricTable:
    """The table of the users; values are means over their lists (u, t)."""
    # of all above the lowest grade, for users with one grade only
    of_users = evaluate(names, scores, lists.labels, **rules)
    of_users.refuse_pooled("a mean over grades")
    by_grade = lists.weighted("equal").by_grade()
    shared: Any = by_grade.shared
    weight: Any = by_grade.user_weight
    users = np.unique(shared.source)
    if not users.size:
        return of_users
    table = evaluate(
        names,
        shared.handed_out(scores[shared.order]),
        by_grade.labels,
        **rules | {"indptr": by_grade.indptr},
    )

    def sums(values: Array) -> Array:
        return np.bincount(shared.source, values, minlength=lists.n_users)[users]

    for m, name in enumerate(names):
        used = table.used(name)
        total = sums(np.where(used, weight * table[name], 0.0))
        counted = sums(np.where(used, weight, 0.0))
        mean = np.divide(total, counted, out=np.full(users.size, np.nan), where=counted > 0.0)
        of_users.values[users, m] = mean
        of_users.left_out[users, m] = counted == 0.0
        for rule, concerned in table.by_rule[name].items():
            of_users.by_rule[name][rule][users] = sums(concerned.astype(float)) > 0.0
    return of_users
