"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from structsvm_papk import metrics
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.cli._shared.scores import Rows, Scoring, load
from structsvm_papk.data.grades import LABEL_GAINS
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.trec import is_run
from structsvm_papk.metrics.conventions import PRESETS, resolve
from structsvm_papk.metrics.definitions import known_names, parse
from structsvm_papk.metrics.significance import Comparison, Evaluation
from structsvm_papk.metrics.table import MetricTable
from structsvm_papk.plots.evaluation import evaluation_page, sections

_rules_option = partial(typer.Option, rich_help_panel="Metrics and rules")
_sure_option = partial(typer.Option, rich_help_panel="Comparison and uncertainty")
_USUAL = "pap@{k},auc,ap,ndcg@{k},precision@{k}"
_USUAL_K = 10  # without a model, which has its own
_RESAMPLES = 2000  # of intervals and tests
_BESIDE_PAIRS = "ndcg@{k},ap,rr,precision@{k},recall@{k}"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which metrics are computed, and how; the command has its fields as options."""

    names: Annotated[
        list[str] | None,
        _rules_option(
            "--metrics",
            "-m",
            help=f"Comma-separated, or repeated: {known_names()}. By default "
            f"{_USUAL.format(k=_USUAL_K)}, with --qrels {_BESIDE_PAIRS.format(k=_USUAL_K)}; a "
            "model has its own k.",
            metavar="NAMES",
        ),
    ] = None
    preset: Annotated[
        str | None,
        _rules_option(
            help=f"{', '.join(PRESETS)}. By default icml2020, the paper's rules (ties are "
            "errors); with --qrels catalogue, and trec_eval for a run.",
            metavar="NAME",
        ),
    ] = None
    gains: Annotated[
        str | None,
        _rules_option(
            help="Gain of a graded label in NDCG: linear, or exponential (2^label - 1). By default "
            "as in the training of the model, else linear.",
            metavar="NAME",
        ),
    ] = None
    population: Annotated[
        str | None,
        _rules_option(
            help="Which users or queries count with --qrels: listed; judged (as trec_eval -c); "
            "both (as trec_eval); either; or raise, an error if a user with relevant items has "
            "no list.",
            metavar="RULE",
        ),
    ] = None

    def __post_init__(self) -> None:
        _metric_names(self.names)
        resolve(self.preset, population=self.population)
        if self.gains is not None:
            check_choice("--gains", self.gains, LABEL_GAINS)

    def metrics_of(self, rows: Rows) -> list[str]:
        """The metrics that are asked for, else the usual ones of such rows."""
        usual = _USUAL if rows.relevant is None else _BESIDE_PAIRS
        k = _USUAL_K if rows.model is None else rows.model.k
        return _metric_names(self.names) or _metric_names([usual.format(k=k)])

    def settings_of(self, rows: Rows, relevance_threshold: float | None) -> dict[str, Any]:
        """The settings of `metrics.evaluate` for rows, whose model may say what is relevant."""
        if relevance_threshold is None and rows.model is not None:
            relevance_threshold = rows.model.relevance_threshold
        return {
            "preset": "trec_eval" if rows.is_run and self.preset is None else self.preset,
            "population": self.population,
            "gains": self.gains,
            "relevance_threshold": relevance_threshold,
        }


@dataclass(frozen=True, kw_only=True)
class Certainty:
    """How sure the numbers are, and beside whom; the command has its fields as options."""

    compare: Annotated[
        Path | None,
        _sure_option(
            help="Paired comparison with a second ranker on the same users: another score column "
            "of the table, or a table, a model file or a run, as the first.",
            metavar="OTHER",
        ),
    ] = None
    require_better: Annotated[
        bool,
        _sure_option(
            "--require-better",
            help="With --compare: exit status 1 unless the confidence interval of the difference "
            "in the first metric is above 0, which it is only where the test agrees.",
        ),
    ] = False
    interval: Annotated[
        str,
        _sure_option(
            help="bootstrap, kl, exact (of values 0 and 1), hoeffding, bernstein or none.",
            metavar="METHOD",
        ),
    ] = "bootstrap"
    level: Annotated[float, _sure_option(help="Coverage of the intervals.", min=0, max=1)] = 0.95

    def __post_init__(self) -> None:
        if self.require_better and self.compare is None:
            raise InputError("--require-better needs --compare OTHER")

    def evaluation(self, table: MetricTable, second: MetricTable | None) -> Evaluation:
        """What is said of a table, and of the difference to a second one."""
        draws: dict[str, Any] = {"level": self.level, "n_resamples": _RESAMPLES, "seed": 0}
        compared = [] if second is None else metrics.compare(table, second, **draws)
        return Evaluation(table=table, compared=compared, method=self.interval, **draws)


@dataclass(frozen=True, kw_only=True)
class Reports:
    """What is written; the command has its fields as options."""

    per_user: Annotated[
        Path | None,
        options.output_option(help="Write the value of every user here, as CSV.", metavar="FILE"),
    ] = None
    html: options.Html = None
    as_json: options.Json = False

    def write(
        self, file: Path, rows: Rows, evaluation: Evaluation, second: MetricTable | None
    ) -> None:
        """Write the values of users and the page, where they are wanted."""
        table = evaluation.table
        if self.per_user is not None:
            values = table.to_pandas()
            if rows.is_run:
                values = values.rename(columns={"user": "query"})
            text = values.to_csv(index=False, lineterminator="\n", na_rep="nan")
            write_atomically(self.per_user, text.encode())
            console.note(f"values of {len(table.users)} {rows.lists} written to {self.per_user}")
        if self.html is not None:
            page = evaluation_page(evaluation, str(file), (rows.lists, rows.members), second)
            write_atomically(self.html, page.encode())
            console.note(f"page written to {self.html}")


def evaluate(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet with a user, a label and a score column; a run of TREC, with "
            "--qrels; or a model file followed by DATA."
        ),
    ],
    data: Annotated[
        Path | None, typer.Argument(help="Data to score, when FILE is a model file.")
    ] = None,
    rules: Rules,
    columns: Scoring,
    certainty: Certainty,
    reports: Reports,
) -> None:
    """Compute ranking metrics with confidence intervals; compare two rankers.

    The command compare is another thing: it runs solvers side by side.
    Reports how often each rule applied: ties, lists without a positive or with too few negatives.
    Exit status 1 if no list can be used for any metric, and with --require-better if the first
    ranker is not shown to be better.
    """
    compare = certainty.compare
    read = [file, data, columns.model, columns.qrels, compare]
    check_outputs(read, [(reports.per_user, "CSV"), (reports.html, "HTML")])
    if data is not None:  # `evaluate MODEL DATA` means `evaluate DATA --model MODEL`
        columns = _with_model(file, data, columns)
        file = data
    rows, other = load(file, compare, columns)
    wanted = rules.metrics_of(rows)
    settings = rules.settings_of(rows, columns.relevance_threshold)
    table = rows.evaluated(wanted, settings)
    second = None
    if other is not None:
        second = other.evaluated(wanted, settings)
        _check_same_lists(rows, table, second, file, compare)
    evaluation = certainty.evaluation(table, second)
    for note in [*rows.notes, *_left_out(table, rows.members)]:
        console.note(note)
    reports.write(file, rows, evaluation, second)
    content = {"file": str(file), **evaluation.as_dict()}
    better = None
    if certainty.require_better:
        better = bool(evaluation.compared[0].lower > 0)
        content["better"] = better
    scorers = _names(file, columns, compare)
    console.answer(reports.as_json, content, _show, evaluation, scorers, rows)
    _warn_of_ties(rows, table)
    if not _any_list(table, rows.lists):
        raise typer.Exit(1)
    if better is not None:
        verdict = _verdict(evaluation.compared[0], scorers, better)
        console.note(verdict, style="green" if better else "yellow")
    if better is False:
        raise typer.Exit(1)


def _with_model(file: Path, data: Path, columns: Scoring) -> Scoring:
    """The options where the first file is a model, which scores the second."""
    if columns.model is not None:
        raise InputError("give the model once: `evaluate MODEL DATA`, or `evaluate DATA --model`")
    if is_run(file):
        raise InputError(f"{file} is a run, not a model; two runs: {file} --compare {data}")
    return replace(columns, model=file)


def _metric_names(given: Sequence[str] | None) -> list[str]:
    """Names of metrics as they were given, apart or with commas; all of them known."""
    if given is None:
        return []
    names = [word.strip() for word in ",".join(given).split(",") if word.strip()]
    if not names:
        raise InputError("--metrics names no metric; leave it out for the usual ones")
    for name in names:
        parse(name)
    return names


def _verdict(pair: Comparison, scorers: tuple[str, str], better: bool) -> str:
    first, second = scorers
    interval = f"[{pair.lower:+.4f}, {pair.upper:+.4f}]"
    if np.isnan(pair.lower):
        interval = f"no interval for so few lists, {pair.n_users}"
    shown = "is better than" if better else "is not shown to be better than"
    return f"{first} {shown} {second}: {pair.metric} {pair.difference:+.4f} {interval}"


def _left_out(table: MetricTable, members: str) -> list[str]:
    """What of the lists and of the relevant pairs met, and who does not count."""
    relevance = table.relevance
    if relevance is None:
        return []
    notes = [
        f"{relevance.n_met:,} of {relevance.n_listed:,} {members} in the lists were judged "
        "(--qrels), of lists with a judgment"
    ]
    if relevance.n_without_list and relevance.population in ("listed", "both"):
        notes.append(
            f"{relevance.n_without_list} with relevant items and no list: left out "
            "(--population judged counts them as 0, as trec_eval -c does)"
        )
    if relevance.n_unjudged and relevance.population in ("judged", "both"):
        notes.append(f"{relevance.n_unjudged} lists without a judgment: left out")
    return notes


def _names(file: Path, columns: Scoring, second: Path | None) -> tuple[str, str]:
    """What the two scorers are called in the table of a comparison."""
    if second is None:
        return "", ""
    first = columns.model or file
    if columns.model is None and not second.exists():
        first = Path(columns.score)
    if first.name == second.name:  # in different folders
        return str(first), str(second)
    return first.name, second.name


def _check_same_lists(
    rows: Rows, table: MetricTable, other: MetricTable, file: Path, compare: Path | None
) -> None:
    """A comparison of other users, or on different labels, would compare these."""
    same_users = np.array_equal(table.users, other.users)
    if rows.relevant is not None:
        if not same_users:
            raise InputError(
                f"{file} and {compare} do not have lists of the same users, or of the same "
                "queries: --population judged counts all that were judged in both"
            )
        return
    if not same_users:  # which `metrics.compare` refuses
        return
    differ = (table.n_pos != other.n_pos) | (table.n_neg != other.n_neg)
    if differ.any():
        u = int(np.argmax(differ))
        raise InputError(
            f"user {table.users[u]} has {table.n_pos[u]} positives and {table.n_neg[u]} negatives "
            f"in {file}, but {other.n_pos[u]} and {other.n_neg[u]} in {compare} "
            f"({int(differ.sum())} such users); compare scorers on the same rows"
        )


def _warn_of_ties(rows: Rows, table: MetricTable) -> None:
    """Say so where all scores of every user are equal, as those of a model without weights."""
    import pandas as pd

    users = np.zeros(rows.scores.size) if rows.users is None else rows.users
    if pd.Series(rows.scores).groupby(users).nunique().max() == 1:
        console.warn(
            "warning: all scores of every list are equal, so nothing is ranked; the values above "
            f"are what the rule for ties gives (ties={table.conventions.ties})"
        )


def _any_list(table: MetricTable, nouns: str) -> bool:
    """Whether some metric has a list; says which have none, and why."""
    without = [summary for summary in table.summary() if summary.n_used == 0]
    for summary in without:
        console.warn(
            f"{summary.metric}: none of {summary.n_users} {nouns} can be used "
            f"({summary.rules_applied() or 'no value'}); try another k or another rule"
        )
    return len(without) < len(table.metrics)


def _relevant(table: MetricTable, rows: Rows) -> str:
    """What counts as relevant, in words: from which grade on, and of which documents or items."""
    text = f"relevant {rows.members}: {table.relevant_items}"
    if table.label_gain is not None:
        how = "given" if np.ndim(table.label_gain) else table.label_gain
        return f"{text}; grades count with {how} gains"
    if rows.labels.max(initial=0) > 1 or table.relevance_threshold is not None:
        least = table.relevance_threshold
        counts = "every grade above 0" if least is None else f"grades from {least:g} on"
        text += f"; relevant: {counts} (--relevance-threshold)"
    return text


def _show(evaluation: Evaluation, scorers: tuple[str, str], rows: Rows) -> None:
    table = evaluation.table
    console.print_text(f"{table.users.size} {rows.lists}, {_relevant(table, rows)}.")
    for section in sections(evaluation, rows.lists, scorers):
        console.print_section(section)
