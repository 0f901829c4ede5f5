"""Search for a wrong metric: random tables with ids of every type, against exact definitions.

    python tests/stress/search_evaluation.py --problems 5000

Each table is evaluated in several ways: from arrays, frames of three libraries, recommendations
beside interactions, truncated lists, graded labels, files of three types by the command. Every
user's value and every mean is computed again by `helpers/reference_metrics.py`. A value that
differs, users or items that are merged or renamed, and exceptions other than `InputError` are
reported. Input that a way may refuse is no violation where it refuses it.
"""

import contextlib
import csv
import io
import json
import math
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
from evaluation_tables import column, draw
from searching import main

from helpers import reference_metrics as exact
from structsvm_papk import cli, metrics
from structsvm_papk.errors import InputError

_TOL = 1e-12
_MOST_ORDERS = 5000


@dataclass
class Case:
    """A call on a table, and what it has to give.

    `lists` are the rows of each user, `lengths` how many of them are shown, `ids` what users are
    called, `present` the users that there are; `means` says whether means are compared too.
    """

    where: str
    table: object
    call: object
    lists: list
    may_refuse: bool = False
    lengths: list | None = None
    ids: list | None = None
    present: list | None = None
    means: bool = False

    def __post_init__(self):
        self.ids = self.ids or self.table.user_ids
        self.present = self.present or sorted(set(self.table.users.tolist()))

    def wanted(self, name):
        """The metric of every user."""
        lengths = self.lengths or [None] * len(self.lists)
        pairs = zip(self.lists, lengths, strict=True)
        return [exact.metric(name, rows, self.table.rules, length) for rows, length in pairs]

    def examine(self, report):
        """Call, and compare the answer."""
        try:
            found = self.call()
        except InputError:
            if not self.may_refuse:
                raise
            report.counts[f"refused: {self.where}"] += 1
            return
        self.compare_users(found, report)
        if self.means:
            self.compare_means({name: found.mean(name) for name in found.metrics}, report)

    def compare_users(self, found, report):
        """Every user of the table once, with its id and its values."""
        ids, labels = [self.ids[u] for u in self.present], found.users.tolist()
        places = [_place(labels, each) for each in ids]
        if len(labels) != len(ids) or None in places:
            report.add("users merged or renamed", self.where, f"gave {ids!r}, got {labels!r}")
            return
        for name in found.metrics:
            wanted, values = self.wanted(name), found[name].tolist()
            for u, place in zip(self.present, places, strict=True):
                report.counts["values"] += 1
                if not same(values[place], wanted[u]):
                    text = f"{name} of user {self.ids[u]!r} is {values[place]!r}"
                    text = f"{text}, right: {wanted[u]}; rows {self.lists[u]}"
                    report.add("wrong value", self.where, text)
                    return

    def compare_means(self, means, report):
        """Means by the table's rule; `pooled` is the metric of all rows as one list."""
        rules = self.table.rules
        for name, value in means.items():
            if rules["mean"] == "pooled":
                whole = [row for rows in self.lists for row in rows]
                if exact.n_orders(whole, rules["ties"]) > _MOST_ORDERS:
                    return
                right = exact.metric(name, whole, rules)
            else:
                wanted = self.wanted(name)
                pairs = [(wanted[u], self.lists[u]) for u in self.present]
                right = exact.mean(*zip(*pairs, strict=True), rules["mean"])
            report.counts["means"] += 1
            if not same(value, right):
                report.add("wrong mean", self.where, f"{name} is {value!r}, right: {right}")
                return


def same(value, wanted):
    """Whether a number is the wanted one; NaN stands for a user that is left out."""
    if wanted is exact.EXCLUDED or math.isnan(wanted):
        return value is None or math.isnan(value)
    return value is not None and abs(value - wanted) <= _TOL


def _place(labels, wanted):
    """Where a label of the same type and value stands; the types of numbers do not matter."""
    for place, label in enumerate(labels):
        if isinstance(label, str) == isinstance(wanted, str) and label == wanted:
            return place
    return None


def check(seed, report, only=None):
    """One table, in four of the ways."""
    rng = np.random.default_rng(seed)
    table = draw(rng)
    report.problem = table.words
    for name in rng.choice(list(WAYS), 4, replace=False) if only is None else [only]:
        report.counts[f"calls: {name}"] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            try:
                for case in WAYS[name](replace(table), rng, report):
                    case.examine(report)
            except InputError as error:
                report.add("refusal", str(name), str(error)[:200])
            except Exception as error:
                report.crash(str(name), error)


# ---- ways


def arrays(table, rng, report):
    """`evaluate` with one group label a row."""
    users, mixed = table.users_column(), table.kind == "mixed"
    call = partial(metrics.evaluate, table.metrics, table.scores, table.labels, users)
    yield Case("arrays", table, partial(call, **table.rules), table.lists(), mixed, means=True)


def row_bounds(table, rng, report):
    """`evaluate` with `indptr`, some threads, and integer or single precision scores."""
    order = np.argsort(table.users, kind="stable")
    bounds = np.searchsorted(table.users[order], np.arange(len(table.user_ids) + 1))
    scores, labels = table.scores[order], table.labels[order]
    if rng.random() < 0.3:
        scores = np.round(scores * 12).astype(rng.choice([np.int16, np.int64, np.float32]))
    call = partial(metrics.evaluate, table.metrics, scores, labels, indptr=bounds, n_threads=2)
    numbers = list(range(len(table.user_ids)))
    yield Case("row_bounds", table, partial(call, **table.rules), table.lists(), ids=numbers)


def frames(table, rng, report):
    """`evaluate_frame` on a dict, pandas or polars, by scores or ranks."""
    library, mixed = str(rng.choice(list(_FRAMES))), table.kind == "mixed"
    if library == "polars" and mixed:
        return
    data = {"user_id": table.users_column(), "item_id": table.items_column()}
    data |= {"score": table.scores, "label": table.labels.astype(int)}
    lists, options = table.lists(), {"item": "item_id"}
    if rng.random() < 0.3:
        data["rank"], options["rank"] = _ranks(table, rng), "rank"
        lists = table.lists(scores=-data["rank"])
    frame = _FRAMES[library](data)
    call = partial(metrics.evaluate_frame, frame, table.metrics, **options, **table.rules)
    yield Case(f"frames: {library}", table, call, lists, mixed, means=True)


def _polars(data):
    return pl.DataFrame({n: v.tolist() if v.dtype == object else v for n, v in data.items()})


_FRAMES = {"dict": dict, "pandas": pd.DataFrame, "polars": _polars}


def _ranks(table, rng):
    ranks = np.empty(table.users.size, dtype=int)
    for u in sorted(set(table.users.tolist())):
        rows = np.flatnonzero(table.users == u)
        ranks[rows] = rng.permutation(rows.size) + 1
    return ranks


def recommendations(table, rng, report):
    """Lists beside interactions; the columns of ids may have different types."""
    table.without_auc()
    ranks, shown_users = _ranks(table, rng), sorted(set(table.users.tolist()))
    liked = [(u, i) for u in shown_users for i in range(8) if rng.random() < 0.4]
    library = str(rng.choice(list(_FRAMES)))
    if not liked or (library == "polars" and table.kind == "mixed"):
        return
    users, items = (np.array(column) for column in zip(*liked, strict=True))
    shown = {"user_id": table.users_column(), "item_id": table.items_column(), "rank": ranks}
    pairs = {
        "user_id": _retyped(rng, table, table.user_ids, users),
        "item_id": _retyped(rng, table, table.item_ids, items),
    }
    # integers of all sizes are one type
    kinds = [{each[n].dtype.kind.replace("u", "i") for each in (shown, pairs)} for n in pairs]
    differ = any(len(each) > 1 for each in kinds)
    call = partial(
        metrics.evaluate_recommendations, _FRAMES[library](shown), _FRAMES[library](pairs),
        table.metrics, preset="icml2020", unmatched="count", **table.rules,
    )  # fmt: skip
    lists, lengths = _joined(table, ranks, set(liked))
    present = sorted({*shown_users, *users.tolist()})
    where = f"recommendations: {library}{', types differ' if differ else ''}"
    may_refuse = differ or table.kind == "mixed"
    yield Case(where, table, call, lists, may_refuse, lengths, present=present)


def _retyped(rng, table, ids, codes):
    """The ids in another type that holds every one of them."""
    values = [ids[code] for code in codes]
    numbers = all(not isinstance(v, str) for v in values)
    if table.kind == "mixed" or not numbers or rng.random() < 0.4:
        return column(values, table.kind)
    for dtype in rng.permutation([np.int64, np.uint64, np.float64, np.int32, object]):
        with contextlib.suppress(OverflowError, ValueError):
            made = np.array(values, dtype=dtype)
            if [int(v) if v == int(v) else v for v in made.tolist()] == values:
                return made
    return column(values, table.kind)


def _joined(table, ranks, liked):
    """Each user's shown rows by rank, then what was missed; and how many were shown."""
    lists, lengths = [], []
    for u in range(len(table.user_ids)):
        rows = np.flatnonzero(table.users == u)
        shown = [(-int(ranks[r]), (u, int(table.items[r])) in liked) for r in rows]
        seen = {int(table.items[r]) for r in rows}
        missed = [(-math.inf, True)] * len([i for v, i in liked if v == u and i not in seen])
        lists.append([(score, hit, int(hit)) for score, hit in shown + missed])
        lengths.append(len(shown))
    return lists, lengths


def truncated(table, rng, report):
    """`list_length` at a cut through ties, or at one place for all."""
    table.without_auc()
    n_users, lists, ties = len(table.user_ids), table.lists(), table.rules["ties"]
    lengths = rng.integers(0, 8, n_users)
    given = lengths[sorted(set(table.users.tolist()))]
    if rng.random() < 0.3:
        given, lengths = int(lengths[0]), np.full(n_users, lengths[0])
    pairs = zip(lists, lengths.tolist(), strict=True)
    clash = any(exact.cuts_through_ties(*pair) for pair in pairs)
    if clash and ties == "threshold":  # half of a threshold is a matter of definition
        table.metrics = [name for name in table.metrics if name != "ap"]
    call = partial(metrics.evaluate, table.metrics, table.scores, table.labels, table.users)
    call, may_refuse = partial(call, **table.rules), clash and ties in ("half", "threshold")
    yield Case(
        f"truncated, ties {ties}", table, partial(call, list_length=given), lists, may_refuse,
        lengths.tolist(), list(range(n_users)),
    )  # fmt: skip


def graded(table, rng, report):
    """Graded labels: a threshold for the binary metrics, gains for NDCG."""
    table.rules = table.rules | {"ideal": "achievable"}
    grades, threshold = rng.integers(0, 4, table.users.size), int(rng.integers(1, 4))
    table.labels = grades >= threshold
    linear = rng.random() < 0.5
    options = {"gains": "linear" if linear else "exponential", "relevance_threshold": threshold}
    call = partial(metrics.evaluate, table.metrics, table.scores, grades, table.users, **options)
    lists = table.lists(gains=grades if linear else 2**grades - 1)
    where, numbers = f"graded, ties {table.rules['ties']}", list(range(len(table.user_ids)))
    yield Case(where, table, partial(call, **table.rules), lists, ids=numbers)


# ---- files and the command


def command(table, rng, report):
    """`evaluate FILE`: ids are what stands in the file."""
    if table.kind == "mixed":
        return ()
    suffix = str(rng.choice([".csv", ".tsv", ".parquet"]))
    where = f"command {suffix}"
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / f"rows{suffix}", Path(folder) / "users.csv"
        _write(file, table)
        rules = {f"--{name.replace('_', '-')}": value for name, value in table.rules.items()}
        rules |= {"--metrics": ",".join(table.metrics), "--interval": "none", "--per-user": out}
        given = [str(part) for pair in rules.items() for part in pair]
        status, answer = _run(["evaluate", str(file), "--json", *given])
        if status != 0:
            if "AUROC" in str(answer.get("error")) and len(set(table.labels.tolist())) == 1:
                report.counts["refused: command, one class"] += 1
                return ()
            report.add("refusal", where, str(answer.get("error"))[:250].replace(folder, ""))
            return ()
        with open(out, newline="") as written:
            users = [row["user"] for row in csv.DictReader(written)]
    case = Case(where, table, None, table.lists())
    ids = [str(case.ids[u]) for u in case.present]
    if sorted(users) != sorted(ids):  # those that are written are those that were read
        report.add("users merged or renamed", f"{where} --per-user", f"{ids!r} became {users!r}")
    case.compare_means({row["metric"]: row["value"] for row in answer["metrics"]}, report)
    return ()


def _write(file, table):
    data = {"user_id": table.users_column(), "item_id": table.items_column()}
    frame = pd.DataFrame(data | {"score": table.scores, "label": table.labels.astype(int)})
    if file.suffix == ".parquet":
        frame.to_parquet(file, index=False)
    else:
        frame.to_csv(file, sep="," if file.suffix == ".csv" else "\t", index=False)


def _run(arguments):
    """Exit status of the command and its answer; errors of the program itself come through."""
    out, err = io.StringIO(), io.StringIO()
    own_errors = mock.patch.dict(os.environ, {"STRUCTSVM_PAPK_TRACEBACK": "1"})
    with own_errors, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(arguments)
    try:
        return status, json.loads(out.getvalue())
    except ValueError:
        return status or 1, {"error": (out.getvalue() + err.getvalue())[:300]}


WAYS = {
    each.__name__: each
    for each in (arrays, row_bounds, frames, recommendations, truncated, graded, command)
}


if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(WAYS)))
