"""An evaluation as a page: means, a comparison, how the lists differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.metrics.definitions import parse
from structsvm_papk.metrics.significance import Evaluation, ends_text, mean_text, paired_values
from structsvm_papk.metrics.table import MetricTable
from structsvm_papk.plots.page import Column, Drawing, Row, Section, page

_BINS = 10


def evaluation_page(
    evaluation: Evaluation,
    title: str,
    nouns: tuple[str, str] = ("users", "items"),
    other: MetricTable | None = None,
) -> str:
    """The page of `evaluate` as a string of HTML; `other` is the table of a second scorer.

    `nouns` are what lists and their members are called.
    """
    table = evaluation.table
    made = [*sections(evaluation, nouns[0]), _distribution(table, nouns[0])]
    if other is not None:
        made.append(_differences(table, other, nouns[0]))
    made.append(_meanings(table))
    return page(
        title,
        made,
        facts=(
            f"{table.users.size:,} {nouns[0]}; relevant {nouns[1]}: {table.relevant_items}. "
            f"Rules: {table.conventions}."
        ),
    )


def sections(
    evaluation: Evaluation, lists: str, scorers: tuple[str, str] = ("this", "other")
) -> list[Section]:
    """The means, and the comparison of two scorers of these names where there is one."""
    made = [_means(evaluation, lists)]
    if evaluation.compared:
        made.append(_comparison(evaluation, lists, scorers))
    return made


def _means(evaluation: Evaluation, lists: str) -> Section:
    rows: list[Row] = []
    for summary, row in zip(evaluation.table.summary(), evaluation.overall, strict=True):
        mean, interval = mean_text(row)
        rules = summary.rules_applied() or "none"
        used = f"{summary.n_used} of {summary.n_users}"
        rows.append([summary.metric, mean, interval, _drawing(row), used, rules])
    columns = [
        Column("metric", numbers=False),
        Column("mean"),
        Column(evaluation.heading, wide=True),
        Column(""),
        Column(f"{lists} used"),
        Column("rules applied", numbers=False, wide=True),
    ]
    return Section("Means", "", columns, rows)


def _comparison(evaluation: Evaluation, lists: str, scorers: tuple[str, str]) -> Section:
    rows: list[Row] = []
    for pair in evaluation.compared:
        decided = pair.lower > 0 or pair.upper < 0
        rows.append(
            [
                pair.metric,
                f"{pair.first:.4f}",
                f"{pair.second:.4f}",
                f"{pair.difference:.4f}",
                ends_text(pair.lower, pair.upper, pair.note),
                Drawing(pair.difference, pair.lower, pair.upper, marked=decided),
                f"{pair.p_value:.3g}",
                f"{pair.p_adjusted:.3g}",
                str(pair.n_users),
            ]
        )
    first = evaluation.compared[0]
    columns = [
        Column("metric", numbers=False),
        Column(scorers[0], wide=True),
        Column(scorers[1], wide=True),
        Column("difference"),
        Column(f"{100 * first.level:g}% interval", wide=True),
        Column("", with_zero=True),
        Column("p"),
        Column("p corrected", wide=True),
        Column(lists, wide=True),
    ]
    heading = "Comparison: paired permutation test, corrected by Benjamini and Hochberg"
    return Section(heading, "", columns, rows)


def _distribution(table: MetricTable, lists: str) -> Section:
    """How many lists have which value of the first metric."""
    metric = table.metrics[0]
    values = table[metric][table.used(metric)]
    text = (
        f"{np.count_nonzero(values == 1)} of {values.size} {lists} are at 1, "
        f"{np.count_nonzero(values == 0)} at 0."
    )
    return _histogram(f"{metric} of the {lists}", text, values, np.linspace(0, 1, _BINS + 1), lists)


def _differences(table: MetricTable, other: MetricTable, lists: str) -> Section:
    """By how much two scorers differ, list by list, in the first metric."""
    metric = table.metrics[0]
    values, other_values, _ = paired_values(table, other, metric)
    apart = values - other_values
    largest = float(np.abs(apart).max()) or 1.0
    edges = np.linspace(-largest, largest, _BINS + 2)  # an odd number: one bar at zero
    text = (
        f"This less the other: above 0 for {np.count_nonzero(apart > 0)} {lists}, below for "
        f"{np.count_nonzero(apart < 0)}, 0 for {np.count_nonzero(apart == 0)}."
    )
    return _histogram(f"Difference of {metric}", text, apart, edges, lists)


def _histogram(heading: str, text: str, values: Array, edges: Array, lists: str) -> Section:
    counts = np.histogram(values[np.isfinite(values)], edges)[0]
    rows: list[Row] = [
        [f"{low:.2f} to {high:.2f}", str(count), Drawing(float(count), is_bar=True)]
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    columns = [Column("value", numbers=False), Column(lists), Column("")]
    return Section(heading, text, columns, rows[::-1])


def _meanings(table: MetricTable) -> Section:
    columns = [Column("metric", numbers=False), Column("", numbers=False)]
    rows = [[name, parse(name).metric.meaning] for name in table.metrics]
    return Section("What the metrics mean", "", columns, rows)


def _drawing(row: dict[str, Any]) -> Drawing | None:
    """The mean of a row of an `Evaluation` with its interval; None where it has none."""
    if row["value"] is None or not np.isfinite(row["value"]):
        return None
    lower, upper = (np.nan if row[end] is None else row[end] for end in ("lower", "upper"))
    return Drawing(row["value"], lower, upper, marked=True)
