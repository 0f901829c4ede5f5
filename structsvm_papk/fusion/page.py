"""A fusion as a page: rankings, weights, advice."""

from __future__ import annotations

import math

from structsvm_papk.fusion.report import CHOSEN, FUSED, FusionReport
from structsvm_papk.plots.page import Column, Drawing, Row, Section, page


def fusion_page(report: FusionReport) -> str:
    """The page of `fuse` as a string of HTML."""
    lists, members = report.nouns
    sections = [_rankings(report), _ahead(report), _weights(report)]
    if report.weights[0].verdict:
        sections.append(_ablation(report))
    return page(
        f"Fusion of {len(report.weights)} runs",
        sections,
        advice=report.advice,
        facts=(
            f"{report.n_queries} judged {lists}, {report.n_documents:,} {members} that some run "
            f"retrieved; {report.n_relevant:,} of them relevant, {report.n_relevant_missed:,} "
            f"relevant ones in no run. {report.basis}"
        ),
    )


def _rankings(report: FusionReport) -> Section:
    lists = report.nouns[0]
    return Section(
        f"{report.metric}, with {_percent(report.level)} intervals",
        f"Each of the {lists} is ranked by weights learned from the others ({report.n_folds} "
        f"folds). “{CHOSEN}” is the best by the {lists} of the other folds.",
        _columns("ranking", report.metric),
        [
            [
                ranking.name,
                f"{ranking.mean:.4f}",
                _ends(ranking.lower, ranking.upper, ".4f"),
                Drawing(ranking.mean, ranking.lower, ranking.upper, marked=ranking.name == FUSED),
            ]
            for ranking in report.rankings
        ],
    )


def _ahead(report: FusionReport) -> Section:
    rows: list[Row] = [
        [
            ranking.name,
            f"{ranking.ahead:+.4f}",
            _ends(ranking.ahead_lower, ranking.ahead_upper, "+.4f"),
            Drawing(
                ranking.ahead,
                ranking.ahead_lower,
                ranking.ahead_upper,
                marked=ranking.ahead_lower > 0 or ranking.ahead_upper < 0,
            ),
        ]
        for ranking in report.rankings[1:]
    ]
    return Section(
        "Fused less the others, paired",
        "The dashed line is 0: no difference.",
        _columns("ranking", "difference"),
        rows,
        with_zero=True,
    )


def _weights(report: FusionReport) -> Section:
    unit = "a standard deviation of the run’s scores, as shares."
    if report.engine_weights is not None:
        unit = f"what {report.engine_weights.engine} makes of the run’s lists."
    rows: list[Row] = [
        [
            weight.name,
            f"{weight.share:+.3f}",
            Drawing(weight.share, is_bar=True),
            f"{weight.n_missed / report.n_documents:.0%}",
            f"{weight.n_relevant_missed / max(report.n_relevant, 1):.0%}",
        ]
        for weight in report.weights
    ]
    columns = [
        Column("run", numbers=False),
        Column("weight"),
        Column(""),
        Column("missed", wide=True),
        Column("relevant missed"),
    ]
    return Section(
        "Learned weights",
        f"Of {unit} Missed: {report.nouns[1]} of the other runs that this one does not have.",
        columns,
        rows,
        with_zero=True,
    )


def _ablation(report: FusionReport) -> Section:
    level = _percent(report.level)
    rows: list[Row] = [
        [
            weight.name,
            f"{weight.without:.4f}",
            f"{weight.gain:+.4f}",
            _ends(weight.gain_lower, weight.gain_upper, "+.4f"),
            _ends(weight.share_lower, weight.share_upper, "+.3f"),
            weight.verdict,
        ]
        for weight in report.weights
    ]
    columns = [
        Column("run", numbers=False),
        Column("without"),
        Column("adds"),
        Column(f"{level} interval", wide=True),
        Column(f"{level} of weight", wide=True),
        Column("verdict", numbers=False),
    ]
    return Section("Without each run", "", columns, rows)


def _columns(name: str, value: str) -> list[Column]:
    """Of a table of values with intervals."""
    return [
        Column(name, numbers=False),
        Column(value),
        Column("interval", wide=True),
        Column(""),
    ]


def _ends(lower: float, upper: float, form: str) -> str:
    return "" if math.isnan(lower) else f"{lower:{form}} to {upper:{form}}"


def _percent(level: float) -> str:
    return f"{100 * level:g}%"
