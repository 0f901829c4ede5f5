"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from structsvm_papk import metrics
from structsvm_papk.cli._evaluation import Evaluation
from structsvm_papk.cli._score_rows import Columns, load
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.scores import Scorer
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.plots.page import Intervals, write_page

_RULES = "Rules"
_SURE = "Uncertainty"


def _rule(help, *names, metavar="RULE"):
    return typer.Option(*names, help=help, rich_help_panel=_RULES, metavar=metavar)


def _sure(help, metavar=None):
    return typer.Option(help=help, rich_help_panel=_SURE, metavar=metavar)


def _file(help, *names):
    return typer.Option(*names, help=help, rich_help_panel=options.OUTPUT, metavar="FILE")


@dataclass(frozen=True)
class Rules:
    """Which metrics, and what they do in doubtful cases."""

    names: Annotated[
        str,
        _rule(
            "Comma-separated: pap@k, pauc@k, auc, precision@k, recall@k, ap, ndcg@k, ndcg, rr, "
            "auc@k.",
            "--metrics",
            "-m",
            metavar="NAMES",
        ),
    ] = "pap@10,auc,ap,ndcg@10,precision@10"
    preset: Annotated[str, _rule(f"{', '.join(metrics.PRESETS)}.", metavar="NAME")] = "icml2020"
    ties: Annotated[str | None, _rule("loss, half, win or threshold.")] = None
    few_negatives: Annotated[str | None, _rule("exclude, raise, normalise or as_wins.")] = None
    no_positives: Annotated[str | None, _rule("exclude, zero, one, nan or raise.")] = None
    ideal: Annotated[str | None, _rule("What NDCG@k divides by: achievable or all_places.")] = None
    mean: Annotated[str | None, _rule("user, positives, pairs or pooled.")] = None
    discount: Annotated[
        str, _rule("Discount of NDCG: log, zipf, exp or r^-0.5.", metavar="NAME")
    ] = "log"  # fmt: skip

    def metrics(self):
        """Names of the metrics."""
        return [name for name in self.names.replace(" ", "").split(",") if name]

    def conventions(self):
        """The rules, as `metrics.evaluate` takes them."""
        return {name: value for name, value in vars(self).items() if name != "names"}


@dataclass(frozen=True)
class Uncertainty:
    """A second scorer, intervals and tests."""

    compare: Annotated[
        Path | None,
        _sure(
            "A second scorer on the same users: a table, a model file, or a file of scores, as "
            "the first.",
            metavar="OTHER",
        ),
    ] = None
    interval: Annotated[
        str, _sure("bootstrap, kl, hoeffding, bernstein or none.", metavar="METHOD")
    ] = "bootstrap"
    level: Annotated[float, _sure("Coverage of the intervals.")] = 0.95
    resamples: Annotated[int, _sure("Resamples of intervals and tests.")] = 2000
    correction: Annotated[
        str,
        _sure("For several metrics: none, bh, by, or a method of statsmodels.", metavar="NAME"),
    ] = "bh"
    seed: Annotated[int, _sure("Seed of the resampling.")] = 0  # fmt: skip

    def __post_init__(self):
        if not 0 < self.level < 1:
            raise InputError(f"--level {self.level:g} must lie between 0 and 1")
        if self.resamples < 10:
            raise InputError(f"--resamples {self.resamples} is too small; use at least 10")

    def draws(self):
        """How resampling is done."""
        return {"level": self.level, "n_resamples": self.resamples, "seed": self.seed}


@dataclass(frozen=True)
class Files:
    """What is written."""

    csv_file: Annotated[Path | None, _file("Write the table here.", "--csv")] = None
    per_user: Annotated[Path | None, _file("Write the value of every user here, as CSV.")] = None
    html: Annotated[
        Path | None, _file("Write an interactive page here; needs the extra 'report'.")
    ] = None  # fmt: skip


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
):
    """Ranking metrics per user, their means with intervals, and comparisons.

    Says what every rule did: ties, users without a positive or with too few negatives.
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
    compared = []
    if other is not None:
        second = other.evaluated(rules.metrics(), how)
        _same_positives(table, second, file, sure.compare)
        compared = metrics.compare(table, second, correction=sure.correction, **sure.draws())
    intervals = Intervals(sure.interval, **sure.draws())
    evaluation = Evaluation(table, rows.report(threshold), compared, intervals)
    if files.csv_file is not None:
        write_atomically(files.csv_file, evaluation.csv().encode())
    if files.per_user is not None:
        write_atomically(files.per_user, evaluation.users_csv().encode())
    if files.html is not None:
        page = {"title": str(file), "comparisons": compared, "interval": sure.interval}
        _write_page(files.html, rows, rules.metrics(), **page, **sure.draws(), **how)
    if as_json:
        console.print_json({"file": str(file), **evaluation.as_dict()})
    else:
        evaluation.show()


def _same_positives(table, other, file, compare):
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


def _write_page(path, rows, names, **page):
    ks = [int(name.partition("@")[2]) for name in names if name.startswith("pap@")]
    k = ks[0] if ks else 10
    write_page(
        path, rows.scores, rows.labels, rows.users, names=names, k=k, largest_k=max(30, k),
        segments={name: rows.frame[name] for name in rows.by} or None, **page,
    )  # fmt: skip
