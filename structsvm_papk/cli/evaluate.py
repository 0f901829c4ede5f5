"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

import csv
import io
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.markup import escape

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import OUTPUT, Panel
from structsvm_papk.cli._shared.scores import Columns, Rows, Scorer, load
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.metrics.conventions import PRESETS, resolve
from structsvm_papk.metrics.discounts import resolve as resolve_discount
from structsvm_papk.metrics.parsing import parse
from structsvm_papk.metrics.significance import ends_text
from structsvm_papk.metrics.table import MetricTable
from structsvm_papk.plots.page import Intervals, page, report

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
    preset: str = _RULES("icml2020", f"{', '.join(PRESETS)}.", "NAME")
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
        "CSV, TSV or Parquet with a user, a label and a score column; or a model file followed by "
        "DATA.",
    ),
    rules: Rules,
    columns: Columns,
    scorer: Scorer,
    sure: Uncertainty,
    csv_file: Path | None = OUTPUT(None, "Write the table here.", "FILE", flags="--csv"),
    per_user: Path | None = OUTPUT(None, "Write the value of every user here, as CSV.", "FILE"),
    html: Path | None = OUTPUT(
        None, "Write an interactive page here; needs the extra 'report'.", "FILE"
    ),
    data: Path | None = options.argument(None, "Data to score, when FILE is a model file."),
    as_json: bool = options.JSON,
) -> None:
    """Ranking metrics per user, their means with intervals, and comparisons.

    Says what every rule did: ties, users without a positive or with too few negatives. Exit status
    1 where no user can be used for any of the metrics.
    """
    options.check_outputs(csv_file, per_user, html)
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
    pooled = report(rows.scores, rows.labels, relevance_threshold=threshold)
    evaluation = Evaluation(table, pooled, compared, intervals, names)
    if csv_file is not None:
        write_atomically(csv_file, evaluation.csv().encode())
    if per_user is not None:
        write_atomically(per_user, evaluation.users_csv().encode())
    if html is not None:
        told = {"title": str(file), "comparisons": compared, "other": second}
        told |= {"interval": sure.interval}
        content = _page(rows, rules.metrics(), **told, **sure.draws(), **how)
        write_atomically(html, content.encode())
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


def _page(rows: Rows, names: list[str], **how: Any) -> str:
    ks = [int(name.partition("@")[2]) for name in names if name.startswith("pap@")]
    k = ks[0] if ks else 10
    return page(
        rows.scores, rows.labels, rows.users, names=names, k=k, largest_k=max(30, k),
        segments={name: rows.frame[name] for name in rows.by} or None, **how,
    )  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """A table of metrics, all rows as one list, comparisons, and how intervals are computed."""

    table: MetricTable
    pooled: Any
    compared: list[Any]
    intervals: Intervals
    scorers: tuple[str, str]  # names of those that are compared

    def _ends(self, table: MetricTable, metric: str) -> dict[str, Any]:
        """Both ends and their note; None where there is no interval."""
        return dict(
            zip(("lower", "upper", "note"), self.intervals.ends(table, metric), strict=True)
        )

    def overall(self) -> list[dict[str, Any]]:
        """Mean of each metric over all users, with what the rules did."""
        return [
            s.as_dict() | self._ends(self.table, s.metric) | {"interval": self.intervals.method}
            for s in self.table.summary()
        ]

    def segments(self) -> list[dict[str, Any]]:
        """Mean of each metric over each segment."""
        return [
            {
                "column": s.column, "segment": s.value, "kind": s.kind, "metric": metric,
                "value": s.table.mean(metric), **self._ends(s.table, metric),
                "n_rows": s.n_rows, "n_pos": s.n_pos, "n_used": int(s.table.used(metric).sum()),
            }
            for s in self.table.segments
            for metric in self.table.metrics
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metrics": self.overall(),
            "pooled": asdict(self.pooled),
            "segments": self.segments(),
            "comparison": [asdict(c) for c in self.compared],
        }

    def csv(self) -> str:
        """All users first, then the segments."""
        kept = ("metric", "value", "lower", "upper", "n_used")
        parts = ({"column": "", "segment": ""} | row for row in self.overall())
        text = io.StringIO()
        names = ("column", "segment", *kept)
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*parts, *self.segments()])
        return text.getvalue()

    def users_csv(self) -> str:
        """The value of every user."""
        frame = self.table.to_pandas()
        return frame.to_csv(index=False, lineterminator="\n", na_rep="nan")

    def show(self) -> None:
        """Print the tables."""
        level = f">{self.intervals.heading()}"
        self._show_overall(level)
        console.note(f"Rules: {self.table.conventions}")
        console.note(f"All rows as one list: {self.pooled}")
        if self.table.segments:
            self._show_segments(level)
        if self.compared:
            self._show_comparison()

    def _show_overall(self, level: str) -> None:
        rows = []
        for row in self.overall():
            touched = [f"{n} {rule.replace('_', ' ')}" for rule, n in row["touched"].items() if n]
            mean = _number(row["value"]), _span(row)
            rows.append((row["metric"], *mean, str(row["n_used"]), ", ".join(touched) or "-"))
        columns = ("metric", ">mean", level, ">users used", ">touched by a rule")
        console.print_table(f"{self.table.users.size} users", columns, rows)

    def _show_segments(self, level: str) -> None:
        rows = []
        for row in self.segments():
            name = escape(f"{row['column']} = {row['segment']}")
            mean = _number(row["value"]), _span(row)
            sizes = str(row["n_rows"]), str(row["n_pos"])
            rows.append((name, *sizes, row["metric"], *mean, str(row["n_used"])))
        columns = ("segment", ">rows", ">positives", "metric", ">mean", level, ">users used")
        console.print_table("Segments", columns, rows)

    def _show_comparison(self) -> None:
        rows = []
        for c in self.compared:
            means = _number(c.first), _number(c.second), _number(c.difference)
            tests = f"{c.p_value:.3g}", f"{c.p_adjusted:.3g}"
            rows.append((c.metric, *means, _span(asdict(c)), *tests, str(c.n_users)))
        interval = f">{100 * self.intervals.level:g}% interval"
        this, other = (f">{escape(name)}" for name in self.scorers)
        columns = ("metric", this, other, ">difference", interval, ">p", ">p corrected")
        title = f"Comparison: paired permutation test, correction {self.compared[0].correction}"
        console.print_table(title, (*columns, ">users"), rows)


def _number(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.4f}"


def _span(row: dict[str, Any]) -> str:
    return ends_text(row["lower"], row["upper"], row["note"], absent="-")
