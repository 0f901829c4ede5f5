"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.markup import escape

from structsvm_papk import metrics
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import OUTPUT, WRITTEN, option
from structsvm_papk.cli._shared.scores import Columns, Rows, Scorer, load
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.metrics.conventions import PRESETS, resolve
from structsvm_papk.metrics.definitions import known_names, parse
from structsvm_papk.metrics.discounts import resolve as resolve_discount
from structsvm_papk.metrics.evaluation import Evaluation, OneList, as_one_list, mean_text
from structsvm_papk.metrics.relevant import ANY_GRADE
from structsvm_papk.metrics.significance import Comparison
from structsvm_papk.metrics.table import MetricTable
from structsvm_papk.plots.evaluation import evaluation_page

_RULES = partial(option, "Metrics and rules")
_SURE = partial(option, "Comparison and uncertainty")
_GAINS = ("linear", "exponential")
_USUAL = "pap@10,auc,ap,ndcg@10,precision@10"
_BESIDE_PAIRS = "ndcg@10,ap,rr,precision@10,recall@10"


@dataclass(frozen=True)
class Rules:
    """Which metrics, and what they do in doubtful cases."""

    names: list[str] | None = _RULES(
        None,
        f"Comma-separated, or repeated: {known_names()}. By default {_USUAL}; with --qrels "
        f"{_BESIDE_PAIRS}.",
        "NAMES",
        flags="--metrics -m",
    )
    preset: str | None = _RULES(
        None,
        f"{', '.join(PRESETS)}. By default icml2020, the paper's rules (ties are errors); "
        "with --qrels catalogue, and trec_eval for a run.",
        "NAME",
    )
    ties: str | None = _RULES(None, "loss, half, win, threshold or trec_eval.", "RULE")
    few_negatives: str | None = _RULES(
        None,
        "What a list with fewer than k negatives counts in pap@k and pauc@k: exclude (left out), "
        "raise, normalise (by the pairs that exist) or as_wins (missing ones as ranked below).",
        "RULE",
    )
    no_positives: str | None = _RULES(None, "exclude, zero, one, nan or raise.", "RULE")
    mean: str | None = _RULES(None, "user, positives, pairs or pooled.", "RULE")
    gains: str = _RULES(
        "linear",
        "What a graded label is worth in NDCG: linear, or exponential (2^label - 1).",
        "NAME",
    )
    discount: str = _RULES("log", "Discount of NDCG: log, zipf, exp or r^-0.5.", "NAME")
    ideal: str | None = _RULES(None, "What NDCG@k divides by: achievable or all_places.", "RULE")
    population: str | None = _RULES(
        None,
        "Whose lists count with --qrels: listed; judged (as trec_eval -c); both (as trec_eval); "
        "either; or raise, where a user with relevant items and no list is an error.",
        "RULE",
    )

    def __post_init__(self) -> None:
        """What is wrong here has nothing to do with a file, and is said before one is read."""
        if self.gains not in _GAINS:
            raise InputError(f"--gains {self.gains!r} must be {' or '.join(_GAINS)}")
        for name in self.metrics(beside_pairs=False):
            parse(name)
        resolve_discount(self.discount)
        resolve(
            self.preset, ties=self.ties, few_negatives=self.few_negatives,
            no_positives=self.no_positives, ideal=self.ideal, mean=self.mean,
            population=self.population,
        )  # fmt: skip

    def metrics(self, beside_pairs: bool) -> list[str]:
        """Names of the metrics."""
        names = _BESIDE_PAIRS if beside_pairs else _USUAL
        if self.names:
            names = ",".join(self.names)
        return [name for name in names.replace(" ", "").split(",") if name]

    def choices(self, rows: Rows) -> dict[str, Any]:
        """The rules as `metrics.evaluate` takes them."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen.pop("names")
        if rows.is_run and self.preset is None:
            chosen["preset"] = "trec_eval"
        return chosen


@dataclass(frozen=True)
class Uncertainty:
    """A second scorer, intervals and tests."""

    compare: Path | None = _SURE(
        None,
        "Paired comparison with a second ranker on the same users: another score column of the "
        "table, or a table, a model file, a file of scores or a run, as the first.",
        "OTHER",
    )
    require_better: bool = _SURE(
        False,
        "With --compare: exit status 1 unless the interval of the difference is above 0 for the "
        "first of --metrics.",
    )
    interval: str = _SURE(
        "bootstrap",
        "bootstrap, kl, exact (of values 0 and 1), hoeffding, bernstein or none.",
        "METHOD",
    )
    level: float = _SURE(0.95, "Coverage of the intervals.")
    resamples: int = _SURE(2000, "Resamples of intervals and tests.")
    correction: str = _SURE(
        "bh", "For several metrics: none, bh, by, or a method of statsmodels.", "NAME"
    )
    seed: int = _SURE(0, "Seed of the resampling.")

    def __post_init__(self) -> None:
        if self.require_better and self.compare is None:
            raise InputError("--require-better needs --compare: better than what?")
        if not 0 < self.level < 1:
            meant = f"; did you mean {self.level / 100:g}?" if 1 < self.level < 100 else ""
            raise InputError(f"--level {self.level:g} must lie between 0 and 1{meant}")
        if self.resamples < 10:
            raise InputError(f"--resamples {self.resamples} is too small; use at least 10")

    def draws(self) -> dict[str, Any]:
        """How resampling is done."""
        return {"level": self.level, "n_resamples": self.resamples, "seed": self.seed}


def evaluate(
    *,
    file: Path = options.argument(
        ...,
        "CSV, TSV or Parquet with a user, a label and a score column; a run of TREC, with --qrels; "
        "or a model file followed by DATA.",
    ),
    rules: Rules,
    columns: Columns,
    scorer: Scorer,
    sure: Uncertainty,
    csv_file: Path | None = WRITTEN(None, "Write the table here.", "FILE", flags="--csv"),
    per_user: Path | None = WRITTEN(None, "Write the value of every user here, as CSV.", "FILE"),
    html: Path | None = WRITTEN(None, "Write a page here; needs the extra 'report'.", "FILE"),
    pooled: bool = OUTPUT(False, "Print AUROC and AUPRC of all rows as one list, too."),
    print_rules: bool = OUTPUT(False, "Print the rules, too.", flags="--rules"),
    data: Path | None = options.argument(None, "Data to score, when FILE is a model file."),
    as_json: bool = options.JSON,
) -> None:
    """Ranking metrics per list (user or query), means with intervals, comparisons.

    Says what every rule did: ties, users without a positive or with too few negatives. Exit status
    1 where no user can be used for any of the metrics, and with --require-better where the scores
    are not shown to be better.
    """
    if data is not None:  # `evaluate MODEL DATA` means `evaluate DATA --model MODEL`
        if scorer.model is not None:
            raise InputError(
                "give the model once: `evaluate MODEL DATA`, or `evaluate DATA --model`"
            )
        if columns.is_run(file):
            raise InputError(f"{file} is a run, not a model; two runs: {file} --compare {data}")
        scorer = replace(scorer, model=file)
        file = data
    rows, other = load(file, scorer, sure.compare, columns)
    threshold = columns.relevance_threshold
    if threshold is None:
        threshold = rows.threshold
    choices = rules.choices(rows) | {"relevance_threshold": threshold}
    names = rules.metrics(beside_pairs=rows.relevant is not None)
    table = rows.evaluated(names, choices)
    compared: list[Comparison] = []
    second = None
    if other is not None:
        second = other.evaluated(names, choices)
        if rows.relevant is None:
            _same_positives(table, second, file, sure.compare)
        elif not np.array_equal(table.users, second.users):
            raise InputError(
                f"{file} and {sure.compare} do not have lists of the same users, or of the same "
                "queries: --population judged counts all that were judged in both"
            )
        compared = metrics.compare(table, second, correction=sure.correction, **sure.draws())
    for note in [*rows.notes, *_left_out(table)]:
        console.note(note)
    whole = None
    if pooled or html is not None or as_json:
        whole = _as_one_list(rows, table, required=pooled)
    evaluation = Evaluation(
        table=table, pooled=whole, compared=compared, method=sure.interval, **sure.draws()
    )
    if csv_file is not None:
        write_atomically(csv_file, _csv(evaluation).encode())
        console.note(f"table written to {csv_file}")
    if per_user is not None:
        text = table.to_pandas().to_csv(index=False, lineterminator="\n", na_rep="nan")
        write_atomically(per_user, text.encode())
        console.note(f"values of {len(table.users)} {rows.nouns} written to {per_user}")
    if html is not None:
        nouns = (rows.nouns, "documents" if rows.is_run else "items")
        write_atomically(html, evaluation_page(evaluation, str(file), nouns, second).encode())
        console.note(f"page written to {html}")
    scorers = _names(file, columns, scorer, sure.compare)
    content = {"file": str(file), **evaluation.as_dict()}
    better = None
    if sure.require_better:
        better = bool(compared[0].lower > 0)
        content["better"] = better
    console.answer(as_json, content, _show, evaluation, scorers, rows)
    if print_rules:
        console.note(f"Rules: {table.conventions}")
    if pooled:
        console.note(f"All rows as one list: {whole}")
    _warn_of_ties(rows, table)
    if not _any_list(table, rows.nouns):
        raise typer.Exit(1)
    if better is not None:
        console.note(_verdict(compared[0], scorers, better), style="green" if better else "yellow")
    if better is False:
        raise typer.Exit(1)


def _verdict(pair: Comparison, scorers: tuple[str, str], better: bool) -> str:
    first, second = scorers
    interval = f"[{pair.lower:+.4f}, {pair.upper:+.4f}]"
    if np.isnan(pair.lower):
        interval = f"no interval for so few lists, {pair.n_users}"
    shown = "is better than" if better else "is not shown to be better than"
    return f"{first} {shown} {second}: {pair.metric} {pair.difference:+.4f} {interval}"


def _threshold(table: MetricTable, rows: Rows) -> float | None:
    """From which label on a row is relevant, as in the table."""
    if table.relevance_threshold is None and rows.relevant is not None:
        return ANY_GRADE
    return table.relevance_threshold


def _as_one_list(rows: Rows, table: MetricTable, required: bool) -> OneList | None:
    """All rows as one list; None where that has no number and is not asked for."""
    try:
        return as_one_list(rows.scores, rows.labels, relevance_threshold=_threshold(table, rows))
    except InputError:
        if required:
            raise
        return None


def _left_out(table: MetricTable) -> list[str]:
    """Who does not count, of lists and of relevant pairs."""
    relevance = table.relevance
    if relevance is None:
        return []
    notes = []
    if relevance.n_without_list and relevance.population in ("listed", "both"):
        notes.append(
            f"{relevance.n_without_list} with relevant items and no list: left out "
            "(--population judged counts them as 0, as trec_eval -c does)"
        )
    if relevance.n_unjudged and relevance.population in ("judged", "both"):
        notes.append(f"{relevance.n_unjudged} lists without a judgment: left out")
    return notes


def _names(file: Path, columns: Columns, scorer: Scorer, second: Path | None) -> tuple[str, str]:
    """What the two scorers are called in the table of a comparison."""
    if second is None:
        return "", ""
    column = Path(columns.rank or columns.score)
    first = scorer.model or scorer.scores or (file if second.exists() else column)
    if first.name == second.name:  # in different folders
        return str(first), str(second)
    return first.name, second.name


def _same_positives(table: MetricTable, other: MetricTable, file: Path, compare: Any) -> None:
    """A comparison on different labels would compare the labels."""
    if not np.array_equal(table.users, other.users):
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
        reasons = [
            f"{n_users} with {rule.replace('_', ' ')}"
            for rule, n_users in summary.by_rule.items()
            if n_users
        ]
        console.warn(
            f"{summary.metric}: none of {summary.n_users} {nouns} can be used "
            f"({', '.join(reasons) or 'no value'}); another k, or another rule, may help"
        )
    return len(without) < len(table.metrics)


def _csv(evaluation: Evaluation) -> str:
    """All users first, then the segments."""
    text = io.StringIO()
    names = ("column", "segment", "metric", "value", "lower", "upper", "n_used")
    writer = csv.DictWriter(text, names, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*evaluation.overall, *evaluation.segments])
    return text.getvalue()


def _relevant(table: MetricTable, rows: Rows) -> str:
    """What counts as relevant, in words: from which grade on, and of which documents or items."""
    members = "documents" if rows.is_run else "items"
    text = f"relevant {members}: {table.relevant_items}"
    if rows.labels.max(initial=0) > 1 or table.relevance_threshold is not None:
        least = table.relevance_threshold
        counts = "every grade above 0" if least is None else f"grades from {least:g} on"
        text += f"; relevant: {counts} (--relevance-threshold)"
    return text


def _show(evaluation: Evaluation, scorers: tuple[str, str], rows_read: Rows) -> None:
    nouns = rows_read.nouns
    table = evaluation.table
    level = f">{evaluation.heading}"
    rows: list[Sequence[str]] = []
    for summary, row in zip(table.summary(), evaluation.overall, strict=True):
        mean, interval = mean_text(row, "-")
        rules = summary.rules_applied() or "-"
        rows.append((summary.metric, mean, interval, str(summary.n_used), rules))
    columns = ["metric", ">mean", level, f">{nouns} used", ">rules applied"]
    title = f"{table.users.size} {nouns}, {_relevant(table, rows_read)}"
    console.print_table(title, columns, rows)
    if table.segments:
        rows = [
            (escape(f"{row['column']} = {row['segment']}"), str(row["n_rows"]), str(row["n_pos"]),
             row["metric"], *mean_text(row, "-"), str(row["n_used"]))
            for row in evaluation.segments
        ]  # fmt: skip
        columns = ["segment", ">rows", ">positives", "metric", ">mean", level, f">{nouns} used"]
        console.print_table("Segments", columns, rows)
    if evaluation.compared:
        cells = [comparison.cells() for comparison in evaluation.compared]
        title = "Comparison: paired permutation test, correction "
        title += evaluation.compared[0].correction
        # the scorers by their names, and the correction in the title
        metric, _this, _other, *numbers, p, _corrected, _users = cells[0]
        names = [*map(escape, scorers), *numbers, p, "p corrected", nouns]
        rows = [["-" if cell == "–" else cell for cell in row.values()] for row in cells]
        console.print_table(title, [metric, *(f">{name}" for name in names)], rows)
