"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.cli._evaluation import Evaluation
from structsvm_papk.cli._score_rows import Columns, Rows, load
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.grouped import Panel
from structsvm_papk.cli._shared.options import OUTPUT
from structsvm_papk.cli._shared.scores import Scorer
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.metrics import MetricTable
from structsvm_papk.metrics.conventions import resolve
from structsvm_papk.metrics.discounts import resolve as resolve_discount
from structsvm_papk.metrics.parsing import parse
from structsvm_papk.plots.page import Intervals, write_page

_RULES = Panel("Metrics and rules")
_SURE = Panel("Comparison and uncertainty")
_GAINS = ("linear", "exponential")


@dataclass(frozen=True)
class Rules:
    """Which metrics, and what they do in doubtful cases."""

    names: str = _RULES(
        "pap@10,auc,ap,ndcg@10,precision@10",
        "Comma-separated: pap@k, pauc@k, auc (or auroc), precision@k, recall@k, hit@k, ap (or "
        "auprc), ndcg@k, ndcg, rr, auc@k.",
        "NAMES",
        flags="--metrics -m",
    )
    preset: str = _RULES("icml2020", f"{', '.join(metrics.PRESETS)}.", "NAME")
    ties: str | None = _RULES(None, "loss, half, win or threshold.", "RULE")
    few_negatives: str | None = _RULES(None, "exclude, raise, normalise or as_wins.", "RULE")
    no_positives: str | None = _RULES(None, "exclude, zero, one, nan or raise.", "RULE")
    mean: str | None = _RULES(None, "user, positives, pairs or pooled.", "RULE")
    gains: str = _RULES(
        "linear",
        "What a graded label is worth in NDCG: linear, or exponential (2^label - 1).",
        "NAME",
    )
    discount: str = _RULES("log", "Discount of NDCG: log, zipf, exp or r^-0.5.", "NAME")
    ideal: str | None = _RULES(None, "What NDCG@k divides by: achievable or all_places.", "RULE")

    def __post_init__(self) -> None:
        """What is wrong here has nothing to do with a file, and is said before one is read."""
        if self.gains not in _GAINS:
            raise InputError(f"--gains {self.gains!r} must be {' or '.join(_GAINS)}")
        for name in self.metrics():
            parse(name)
        resolve_discount(self.discount)
        resolve(
            self.preset, ties=self.ties, few_negatives=self.few_negatives,
            no_positives=self.no_positives, ideal=self.ideal, mean=self.mean,
        )  # fmt: skip

    def metrics(self) -> list[str]:
        """Names of the metrics."""
        return [name for name in self.names.replace(" ", "").split(",") if name]

    def conventions(self) -> dict[str, Any]:
        """The rules, as `metrics.evaluate` takes them."""
        return {name: value for name, value in vars(self).items() if name != "names"}


@dataclass(frozen=True)
class Uncertainty:
    """A second scorer, intervals and tests."""

    compare: Path | None = _SURE(
        None,
        "A second scorer on the same users: another score column of the table, or a table, a model "
        "file or a file of scores, as the first.",
        "OTHER",
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
        options.check_share("--level", self.level)
        if self.resamples < 10:
            raise InputError(f"--resamples {self.resamples} is too small; use at least 10")

    def draws(self) -> dict[str, Any]:
        """How resampling is done."""
        return {"level": self.level, "n_resamples": self.resamples, "seed": self.seed}


@dataclass(frozen=True)
class Files:
    """What is written."""

    csv_file: Path | None = OUTPUT(None, "Write the table here.", "FILE", flags="--csv")
    per_user: Path | None = OUTPUT(None, "Write the value of every user here, as CSV.", "FILE")
    html: Path | None = OUTPUT(
        None, "Write an interactive page here; needs the extra 'report'.", "FILE"
    )


def evaluate(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet with a user, a label and a score column; or a model file "
            "followed by DATA."
        ),
    ],
    rules: Rules,
    columns: Columns,
    scorer: Scorer,
    sure: Uncertainty,
    files: Files,
    data: Annotated[
        Path | None, typer.Argument(help="Data to score, when FILE is a model file.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Ranking metrics per user, their means with intervals, and comparisons.

    Says what every rule did: ties, users without a positive or with too few negatives. Exit status
    1 where no user can be used for any of the metrics.
    """
    options.check_outputs(files.csv_file, files.per_user, files.html)
    if data is not None:  # `evaluate MODEL DATA` means `evaluate DATA --model MODEL`
        if scorer.model is not None:
            raise InputError(
                "give the model once: `evaluate MODEL DATA`, or `evaluate DATA --model`"
            )
        file, scorer = data, replace(scorer, model=file)
    rows, other = load(file, scorer, sure.compare, columns)
    threshold = columns.relevance_threshold
    threshold = rows.threshold if threshold is None else threshold
    how = rules.conventions() | {"relevance_threshold": threshold}
    table = rows.evaluated(rules.metrics(), how)
    for note in rows.notes:
        console.note(note)
    compared: list[Any] = []
    second = None
    if other is not None:
        second = other.evaluated(rules.metrics(), how)
        _same_positives(table, second, file, sure.compare)
        compared = metrics.compare(table, second, correction=sure.correction, **sure.draws())
    intervals = Intervals(sure.interval, **sure.draws())
    names = _names(file, columns, scorer, sure.compare)
    evaluation = Evaluation(table, rows.report(threshold), compared, intervals, names)
    if files.csv_file is not None:
        write_atomically(files.csv_file, evaluation.csv().encode())
    if files.per_user is not None:
        write_atomically(files.per_user, evaluation.users_csv().encode())
    if files.html is not None:
        page = {"title": str(file), "comparisons": compared, "other": second}
        page |= {"interval": sure.interval}
        _write_page(files.html, rows, rules.metrics(), **page, **sure.draws(), **how)
    console.answer(as_json, {"file": str(file), **evaluation.as_dict()}, evaluation.show)
    _warn_of_ties(rows, table)
    if not _any_user(table):
        raise typer.Exit(1)


def _names(file: Path, columns: Columns, scorer: Scorer, second: Path | None) -> tuple[str, str]:
    """What the two scorers are called in the table of a comparison."""
    if second is None:
        return "", ""
    column = Path(columns.rank or columns.score)
    first = scorer.model or scorer.scores or (file if second.exists() else column)
    return (first.name, second.name) if first.name != second.name else (str(first), str(second))


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
    if _all_tied(rows.scores, rows.users):
        console.warn(
            "warning: all scores of every user are equal, so nothing is ranked; the values above "
            f"are what the rule for ties gives (ties={table.conventions.ties})"
        )


def _all_tied(scores: Array, users: Array | None) -> bool:
    if users is None:
        return bool((scores == scores[0]).all())
    if not (scores[users == users[0]] == scores[0]).all():  # most often one user decides
        return False
    _, first, user = np.unique(users, return_index=True, return_inverse=True)
    return bool((scores == scores[first][user]).all())


def _any_user(table: MetricTable) -> bool:
    """Whether some metric has a user; says which have none, and why."""
    without = [summary for summary in table.summary() if summary.n_used == 0]
    for summary in without:
        why = [f"{n} with {rule.replace('_', ' ')}" for rule, n in summary.touched.items() if n]
        console.warn(
            f"{summary.metric}: no user can be used ({', '.join(why) or 'no value'} of "
            f"{summary.n_users} users); another k, or another rule, may help"
        )
    return len(without) < len(table.metrics)


def _write_page(path: Path, rows: Rows, names: list[str], **page: Any) -> None:
    ks = [int(name.partition("@")[2]) for name in names if name.startswith("pap@")]
    k = ks[0] if ks else 10
    write_page(
        path, rows.scores, rows.labels, rows.users, names=names, k=k, largest_k=max(30, k),
        segments={name: rows.frame[name] for name in rows.by} or None, **page,
    )  # fmt: skip
