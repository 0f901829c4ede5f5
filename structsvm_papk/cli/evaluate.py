"""``evaluate``: ranking metrics of scores in a table, or of a model on data."""

import csv
import io
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from structsvm_papk import metrics
from structsvm_papk.cli import console, options
from structsvm_papk.data import tables
from structsvm_papk.data.readers import read_table
from structsvm_papk.data.tables import ITEM_COLUMNS, USER_COLUMNS, Kind
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import load_model
from structsvm_papk.metrics import curves
from structsvm_papk.metrics.frames import evaluate_frame
from structsvm_papk.plots import page as report_page

_DEFAULT = "pap@10,auc,ap,ndcg@10,precision@10"
_RULES = "Rules"
_INPUT = "Reading the data"
_SURE = "Uncertainty"
_OUTPUT = "Output"


def register(app):
    """Add the command."""
    app.command()(evaluate)


def _option(help, panel, *names, metavar=None):
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar)


def evaluate(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV or Parquet with a user, a label and a score column; or a model file "
            "followed by DATA."
        ),
    ],
    data: Annotated[
        Path | None, typer.Argument(help="Data to score, when FILE is a model file.")
    ] = None,
    names: Annotated[
        str,
        _option(
            "Comma-separated: pap@k, pauc@k, auc, precision@k, recall@k, ap, ndcg@k, ndcg, rr, "
            "auc@k.", _RULES, "--metrics", "-m", metavar="NAMES",
        ),
    ] = _DEFAULT,
    by: Annotated[
        list[str] | None,
        _option("Split by this user or item column; repeat for more.", _RULES, metavar="COLUMN"),
    ] = None,
    compare: Annotated[
        Path | None,
        _option(
            "A second scorer on the same users: a table, a model file, or a file of scores, as "
            "the first.", _SURE, metavar="OTHER",
        ),
    ] = None,
    model: Annotated[
        Path | None, _option("Score FILE with this model file.", _INPUT, metavar="MODEL")
    ] = None,
    scores: Annotated[
        Path | None,
        _option("Scores of the rows of FILE, one number per line.", _INPUT, metavar="SCORES"),
    ] = None,
    score: Annotated[str, _option("Score column.", _INPUT, metavar="COLUMN")] = "score",
    rank: Annotated[
        str | None,
        _option("Rank column (1, 2, .. per user) in place of scores.", _INPUT, metavar="COLUMN"),
    ] = None,
    label: options.Label = "label",
    group: options.Group = None,
    item: Annotated[
        str | None,
        _option(
            f"Item column, to refuse pairs that occur twice; by default "
            f"{' or '.join(ITEM_COLUMNS)}.",
            _INPUT, metavar="COLUMN",
        ),
    ] = None,
    threshold: options.Threshold = None,
    one_list: options.OneList = False,
    query: options.Query = None,
    format: options.Format = None,
    first_index: options.FirstIndex = None,
    preset: Annotated[
        str, _option(f"{', '.join(metrics.PRESETS)}.", _RULES, metavar="NAME")
    ] = "icml2020",
    ties: Annotated[
        str | None, _option("loss, half, win or threshold.", _RULES, metavar="RULE")
    ] = None,
    few_negatives: Annotated[
        str | None, _option("exclude, raise, normalise or as_wins.", _RULES, metavar="RULE")
    ] = None,
    no_positives: Annotated[
        str | None, _option("exclude, zero, one, nan or raise.", _RULES, metavar="RULE")
    ] = None,
    ideal: Annotated[
        str | None,
        _option("What NDCG@k divides by: achievable or all_places.", _RULES, metavar="RULE"),
    ] = None,
    mean: Annotated[
        str | None, _option("user, positives, pairs or pooled.", _RULES, metavar="RULE")
    ] = None,
    discount: Annotated[
        str, _option("Discount of NDCG: log, zipf, exp or r^-0.5.", _RULES, metavar="NAME")
    ] = "log",
    interval: Annotated[
        str, _option("bootstrap, kl, hoeffding, bernstein or none.", _SURE, metavar="METHOD")
    ] = "bootstrap",
    level: Annotated[float, _option("Coverage of the intervals.", _SURE)] = 0.95,
    resamples: Annotated[int, _option("Resamples of intervals and tests.", _SURE)] = 2000,
    correction: Annotated[
        str,
        _option("For several metrics: none, bh, by, or a method of statsmodels.", _SURE,
                metavar="NAME"),
    ] = "bh",
    seed: Annotated[int, _option("Seed of the resampling.", _SURE)] = 0,
    as_json: options.Json = False,
    csv_file: Annotated[
        Path | None, _option("Write the table here.", _OUTPUT, "--csv", metavar="FILE")
    ] = None,
    per_user: Annotated[
        Path | None, _option("Write the value of every user here, as CSV.", _OUTPUT, metavar="FILE")
    ] = None,
    html: Annotated[
        Path | None,
        _option("Write an interactive page here; needs the extra 'report'.", _OUTPUT,
                metavar="FILE"),
    ] = None,
):  # fmt: skip
    """Ranking metrics per user, their means with intervals, and what every rule did."""
    options.check_outputs(csv_file, per_user, html)
    _check_sizes(level, resamples)
    asked = [name for name in names.replace(" ", "").split(",") if name]
    where = _Where(label, group, item, score, rank, tuple(by or ()), one_list, query, format,
                   first_index)  # fmt: skip
    file, model = _model_first(file, data, model)
    rows, other = _loaded(file, model, scores, compare, where)
    how = {
        "preset": preset, "ties": ties, "few_negatives": few_negatives, "mean": mean,
        "no_positives": no_positives, "ideal": ideal, "discount": discount,
        "relevance_threshold": rows.threshold if threshold is None else threshold,
    }  # fmt: skip
    table = rows.evaluated(asked, how)
    for note in rows.notes:
        console.note(note)
    draws: dict[str, Any] = {"level": level, "n_resamples": resamples, "seed": seed}
    intervals = report_page.Intervals(interval, **draws)
    compared = []
    if other is not None:
        second = other.evaluated(asked, how)
        _same_positives(table, second, file, compare)
        compared = metrics.compare(table, second, correction=correction, **draws)
    found = _Found(table, rows.report(how["relevance_threshold"]), compared, intervals)
    if csv_file is not None:
        write_atomically(csv_file, _csv(found.lines()).encode())
    if per_user is not None:
        cells = table.to_columns()
        lines = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        write_atomically(per_user, _csv(lines).encode())
    if html is not None:
        page = {"names": asked, "title": str(file), "comparisons": compared, "interval": interval}
        _write_html(html, rows, **page, **draws, **how)
    if as_json:
        console.print_json({"file": str(file), **found.as_dict()})
    else:
        found.show()


@dataclass(frozen=True)
class _Where:
    """Which columns hold what."""

    label: str
    group: str | None
    item: str | None
    score: str
    rank: str | None
    by: tuple
    one_list: bool
    query: Path | None
    format: str | None
    first_index: int | None


@dataclass(frozen=True)
class _Rows:
    """What is evaluated: a frame and the names of its columns."""

    frame: dict
    names: dict
    by: tuple
    source: str
    notes: tuple
    threshold: float | None = None

    def evaluated(self, asked, how):
        try:
            return evaluate_frame(self.frame, asked, **self.names, by=self.by, **how)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    def with_text_users(self):
        """The same rows; users that are whole numbers, as in Parquet, as text."""
        user = self.names["user"]
        if user is None or self.frame[user].dtype.kind not in "iu":
            return self
        return replace(self, frame=self.frame | {user: self.frame[user].astype(str)})

    def users_are_text(self):
        """Whether users are named by text, as in CSV."""
        user = self.names["user"]
        return user is not None and self.frame[user].dtype.kind == "U"

    def scores(self):
        rank = self.names.get("rank")
        return self.frame[self.names["score"]] if rank is None else -self.frame[rank].astype(float)

    def report(self, threshold):
        labels = self.frame[self.names["label"]]
        return curves.report(self.scores(), labels, relevance_threshold=threshold)


def _check_sizes(level, resamples):
    if not 0 < level < 1:
        raise InputError(f"--level {level:g} must lie between 0 and 1")
    if resamples < 10:
        raise InputError(f"--resamples {resamples} is too small; use at least 10")


def _model_first(file, data, model):
    """FILE and the model: `evaluate MODEL DATA` means `evaluate DATA --model MODEL`."""
    if data is None:
        return file, model
    if model is not None:
        raise InputError("give the model once: `evaluate MODEL DATA`, or `evaluate DATA --model`")
    return data, file


def _loaded(file, model, scores, compare, where):
    """Rows of the scorer, and of the second one where there is one."""
    if model is not None and scores is not None:
        raise InputError("give --model or --scores, not both")
    if model is None and scores is None:
        rows = _from_table(file, where)
        other = None if compare is None else _from_table(compare, where)
        if other is not None and rows.users_are_text() != other.users_are_text():
            return rows.with_text_users(), other.with_text_users()
        return rows, other
    if model is not None:
        trained = load_model(model)
        table = _features(file, where, trained)
        rows = _scored(file, table, where, table.X @ trained.coef, trained.relevance_threshold)
        if compare is None:
            return rows, None
        second = load_model(compare)
        other = table.X @ second.coef if _same_features(trained, second) else (
            _features(file, where, second).X @ second.coef
        )  # fmt: skip
        return rows, _scored(file, table, where, other, None)
    table = _features(file, where, None)
    n_rows = table.labels.size
    rows = _scored(file, table, where, _read_scores(scores, n_rows), None)
    other = None if compare is None else _read_scores(compare, n_rows)
    return rows, None if other is None else _scored(file, table, where, other, None)


def _same_features(one, two):
    return (one.feature_names, one.first_index, one.coef.size) == (
        two.feature_names, two.first_index, two.coef.size,
    )  # fmt: skip


def _from_table(path, where):
    """A table that holds the scores."""
    format = where.format or tables.format_of(Path(path))
    if format not in tables.FORMATS:
        raise InputError(
            f"{path}: not a CSV, TSV or Parquet table with scores; for a file of features give "
            "--model or --scores"
        )
    present = dict.fromkeys(tables.column_names(path, format))
    names = {"user": None, "label": where.label, "score": where.score, "rank": where.rank}
    if not where.one_list:
        names["user"] = _user_column(path, present, where.group)
        names["item"] = _item_column(present, where.item)
    for role in ("label", "rank" if where.rank else "score", "item"):
        if names.get(role) is not None and names[role] not in present:
            raise InputError(
                f"{path}: no {role} column {names[role]!r}; it has {tables.listed(list(present))}"
                + ("; for a file of features give --model" if role == "score" else "")
            )
    _check_by(path, present, where.by)
    if where.rank is not None:
        names.pop("score")
    used = {role: name for role, name in names.items() if name is not None}
    kinds = dict.fromkeys(where.by, Kind.TEXT)
    kinds |= dict.fromkeys((names["user"], names.get("item")), Kind.ID)
    kinds |= {where.rank or where.score: Kind.NUMBER, where.label: Kind.LABEL}
    kinds.pop(None, None)
    frame = tables.read_columns(path, format, kinds)
    note = f"{path}: " + ", ".join(f"{role} {name!r}" for role, name in used.items())
    return _Rows(frame, names, where.by, str(path), (note,))


def _check_by(path, present, by):
    for name in by:
        if name not in present:
            shown = tables.listed(list(present))
            raise InputError(f"{path}: no column {name!r} to split by; it has {shown}")


def _user_column(path, present, given):
    if given is not None:
        if given not in present:
            shown = tables.listed(list(present))
            raise InputError(f"{path}: no user column {given!r}; it has {shown}")
        return given
    usual = next((name for name in USER_COLUMNS if name in present), None)
    if usual is None:
        raise InputError(
            f"{path}: no user column ({', '.join(USER_COLUMNS)}); name it with --group, or give "
            "--one-list when all rows are one list"
        )
    return usual


def _item_column(present, given):
    return given or next((name for name in ITEM_COLUMNS if name in present), None)


def _features(path, where, like):
    """A file of features; the columns of items and those to split by are no features."""
    return read_table(
        path,
        format=where.format,
        label=where.label,
        group=where.group,
        ignore=where.by if where.item is None else (*where.by, where.item),
        query=where.query,
        like=like,
        first_index=where.first_index,
    )


def _scored(path, table, where, scores, threshold):
    if table.groups is None and not where.one_list:
        raise InputError(
            f"{path}: nothing says which user a row belongs to; give --query or --group, or "
            "--one-list when all rows are one list"
        )
    # names that no column has: one to split by may be called like any of these
    names = {"user": None, "label": "the label", "score": "the score"}
    frame = {"the score": np.asarray(scores, dtype=float), "the label": table.labels}
    if not where.one_list:
        names["user"] = "the user"
        frame["the user"] = np.asarray(table.groups)
    item, further = _further_columns(path, where)
    if item is not None:
        names["item"] = item
    notes = (table.columns_used, *table.remarks)
    return _Rows(frame | further, names, where.by, str(path), notes, threshold)


def _further_columns(path, where):
    """Name of the item column, if there is one, and the columns of items and to split by."""
    format = where.format or tables.format_of(Path(path))
    if format not in tables.FORMATS:
        if where.by or where.item:
            option = "--by" if where.by else "--item"
            raise InputError(f"{path}: {option} needs a table with named columns")
        return None, {}
    present = tables.column_names(path, format)
    item = None if where.one_list else _item_column(present, where.item)
    kinds = dict.fromkeys(where.by, Kind.TEXT) | ({} if item is None else {item: Kind.ID})
    return item, tables.read_columns(path, format, kinds) if kinds else {}


def _read_scores(path, n_rows):
    """One number per line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    try:
        found = np.array(lines, dtype=float)
    except ValueError:
        raise InputError(
            f"{path}: {_first_bad_line(lines)}; one number per line is needed"
        ) from None
    if found.size != n_rows:
        raise InputError(f"{path}: {found.size} scores for {n_rows} rows")
    return found


def _first_bad_line(lines):
    for number, text in enumerate(lines, 1):
        try:
            float(text)
        except ValueError:
            return f"line {number} is {text!r}"
    return "not a file of scores"


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


class _Found:
    """Everything that is printed or written."""

    def __init__(self, table, report, compared, intervals):
        self.table = table
        self.pooled = report
        self.compared = compared
        self.intervals = intervals

    def _ends(self, table, metric):
        """Lower and upper end; None where there is no interval."""
        lower, upper = self.intervals.ends(table, metric) or (None, None)
        return {"lower": lower, "upper": upper}

    def overall(self):
        return [
            s.as_dict() | self._ends(self.table, s.metric) | {"interval": self.intervals.method}
            for s in self.table.summary()
        ]

    def segments(self):
        return [
            {
                "column": s.column, "segment": s.value, "kind": s.kind, "metric": metric,
                "value": s.table.mean(metric), **self._ends(s.table, metric),
                "n_rows": s.n_rows, "n_pos": s.n_pos, "n_used": int(s.table.used(metric).sum()),
            }
            for s in self.table.segments
            for metric in self.table.metrics
        ]  # fmt: skip

    def lines(self):
        """Rows of the CSV file: all users first, then the segments."""
        kept = ("metric", "value", "lower", "upper", "n_used")
        whole = [
            {"column": "", "segment": "", **{name: row[name] for name in kept}}
            for row in self.overall()
        ]
        parts = [
            {name: row[name] for name in ("column", "segment", *kept)} for row in self.segments()
        ]
        return whole + parts

    def as_dict(self):
        return {
            "metrics": self.overall(),
            "pooled": asdict(self.pooled),
            "segments": self.segments(),
            "comparison": [asdict(c) for c in self.compared],
        }

    def show(self):
        level = self.intervals.heading()
        table = Table(title=f"{self.table.users.size} users", title_justify="left")
        for name in ("metric", "mean", level, "users used", "touched by a rule"):
            table.add_column(name, justify="left" if name == "metric" else "right")
        for row in self.overall():
            told = [f"{n} {rule.replace('_', ' ')}" for rule, n in row["touched"].items() if n]
            table.add_row(
                row["metric"], _number(row["value"]), _span(row), str(row["n_used"]),
                ", ".join(told) or "-",
            )  # fmt: skip
        console.print_table(table)
        console.note(f"Rules: {self.table.conventions}")
        console.note(f"All rows as one list: {self.pooled}")
        if self.table.segments:
            self._show_segments(level)
        if self.compared:
            self._show_comparison(f"{100 * self.intervals.level:g}% interval")

    def _show_segments(self, level):
        table = Table(title="Segments", title_justify="left")
        for name in ("segment", "rows", "positives", "metric", "mean", level, "users used"):
            table.add_column(name, justify="left" if name in ("segment", "metric") else "right")
        for row in self.segments():
            table.add_row(
                escape(f"{row['column']} = {row['segment']}"),
                str(row["n_rows"]), str(row["n_pos"]), row["metric"],
                _number(row["value"]), _span(row), str(row["n_used"]),
            )  # fmt: skip
        console.print_table(table)

    def _show_comparison(self, level):
        title = f"Comparison: paired permutation test, correction {self.compared[0].correction}"
        table = Table(title=title, title_justify="left")
        names = ("metric", "this", "other", "difference", level, "p", "p corrected", "users")
        for name in names:
            table.add_column(name, justify="left" if name == "metric" else "right")
        for c in self.compared:
            table.add_row(
                c.metric, _number(c.first), _number(c.second), _number(c.difference),
                _span({"lower": c.lower, "upper": c.upper}), f"{c.p_value:.3g}",
                f"{c.p_adjusted:.3g}", str(c.n_users),
            )  # fmt: skip
        console.print_table(table)


def _number(value):
    return "-" if value is None or not np.isfinite(value) else f"{value:.4f}"


def _span(row):
    unknown = row["lower"] is None or np.isnan(row["lower"])
    return "-" if unknown else f"{row['lower']:.4f} - {row['upper']:.4f}"


def _csv(lines):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _write_html(path, rows, names, **page):
    groups = None if rows.names["user"] is None else rows.frame[rows.names["user"]]
    ks = [int(name.partition("@")[2]) for name in names if name.startswith("pap@")]
    k = ks[0] if ks else 10
    report_page.write_page(
        path, rows.scores(), rows.frame[rows.names["label"]], groups, names=names, k=k,
        largest_k=max(30, k), segments={name: rows.frame[name] for name in rows.by} or None, **page,
    )  # fmt: skip
