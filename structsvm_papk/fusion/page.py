"""A fusion in tables, as they are printed and as a page: rankings, weights, advice."""

from __future__ import annotations

import math

from structsvm_papk.fusion.report import CHOSEN, FUSED, FusionReport
from structsvm_papk.plots.page import Column, Drawing, Row, Section, page


def fusion_page(report: FusionReport) -> str:
    """The page of `fuse` as a string of HTML."""
    lists, members = report.nouns
    return page(
        f"Fusion of {len(report.weights)} runs",
        sections(report),
        advice=report.advice,
        facts=(
            f"{report.n_queries} judged {lists}, {report.n_documents:,} {members} that some run "
            f"retrieved; {report.n_relevant:,} of them relevant, {report.n_relevant_missed:,} "
            f"relevant ones in no run. {report.basis}"
        ),
    )


def sections(report: FusionReport) -> list[Section]:
    """The tables."""
    made = [_rankings(report), _weights(report)]
    if report.weights[0].verdict:
        made.append(_ablation(report))
    return made


def _rankings(report: FusionReport) -> Section:
    lists = report.nouns[0]
    rows: list[Row] = []
    for ranking in report.rankings:
        is_fused = ranking.name == FUSED
        is_decided = ranking.ahead_lower > 0 or ranking.ahead_upper < 0
        whisker = Drawing(
            ranking.ahead, ranking.ahead_lower, ranking.ahead_upper, marked=is_decided
        )
        rows.append(
            [
                ranking.name,
                f"{ranking.mean:.4f}",
                _ends(ranking.lower, ranking.upper, ".4f"),
                Drawing(ranking.mean, ranking.lower, ranking.upper, marked=is_fused),
                "" if is_fused else f"{ranking.ahead:+.4f}",
                _ends(ranking.ahead_lower, ranking.ahead_upper, "+.4f"),
                None if is_fused else whisker,
                "" if math.isnan(ranking.judged) else f"{ranking.judged:.0%}",
            ]
        )
    interval = f"{_percent(report.level)} interval"
    columns = [
        Column("ranking", numbers=False),
        Column(report.metric),
        Column(interval, wide=True),
        Column(""),
        Column("ahead"),
        Column(interval, wide=True),
        Column("", with_zero=True),
        Column(f"judged@{report.k}", wide=True),
    ]
    return Section(
        f"{report.metric} of {report.n_queries} judged {lists}",
        f"Each of the {lists} is ranked by weights that were learned from the other folds "
        f"({report.n_folds}). Ahead: fused minus the other ranking, paired. {CHOSEN.capitalize()}: "
        f"the best by the {lists} of the other folds.",
        columns,
        rows,
    )


def _weights(report: FusionReport) -> Section:
    engine = report.engine_weights
    members = report.nouns[1]
    unit = "a standard deviation of the run's scores, as shares"
    absent = f"; not there: what is added for {members} that the run missed"
    if engine is not None:
        unit = f"what {engine.engine} makes of the run's lists"
        absent = ""
    rows: list[Row] = [
        [
            weight.name,
            f"{weight.share:+z.3f}",
            Drawing(weight.share, is_bar=True),
            "" if engine is not None else f"{weight.not_there:+.3g}",
            f"{weight.n_missed / report.n_documents:.0%}",
            f"{weight.n_relevant_missed / max(report.n_relevant, 1):.0%}",
        ]
        for weight in report.weights
    ]
    columns = [
        Column("run", numbers=False),
        Column("weight"),
        Column("", numbers=False),
        Column("" if engine is not None else "not there", wide=True),
        Column("missed", wide=True),
        Column("relevant missed"),
    ]
    text = (
        f"Of {unit}{absent}. Missed: {members} that a run missed, of {report.n_documents:,}, "
        f"and relevant ones, of {report.n_relevant:,}."
    )
    return Section("Learned weights", text, columns, rows)


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
    text = f"{report.metric} without each run, and what the run adds."
    return Section("Without each run", text, columns, rows)


def _ends(lower: float, upper: float, form: str) -> str:
    return "" if math.isnan(lower) else f"{lower:{form}} to {upper:{form}}"


def _percent(level: float) -> str:
    return f"{100 * level:g}%"
