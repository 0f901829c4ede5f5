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
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from evaluation_tables import column, draw
from searching import main

from helpers import reference_metrics as exact
from structsvm_papk import cli, metrics
from structsvm_papk.errors import InputError

_TOL = 1e-12
_MOST_ORDERS = 5000


def check(seed, report):
    """One table, in four of the ways."""
    rng = np.random.default_rng(seed)
    table = draw(rng)
    report.describe(table.words)
    for name in rng.choice(list(WAYS), 4, replace=False):
        report.count(f"calls: {name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            try:
                WAYS[name](table, rng, report)
            except InputError as error:
                report.add("refusal", str(name), str(error)[:200])
            except Exception as error:
                report.crash(str(name), error)


# ---- comparing


def expected(table, lists=None, lengths=None, rules=None):
    """Values by metric and user."""
    lists = table.lists() if lists is None else lists
    lengths = [None] * len(lists) if lengths is None else lengths
    rules = rules or table.rules
    return {
        name: [exact.metric(name, r, rules, n) for r, n in zip(lists, lengths, strict=True)]
        for name in table.metrics
    }


def same(value, wanted, tol=_TOL):
    """Whether a number is the wanted one; NaN stands for a user that is left out."""
    if wanted is exact.EXCLUDED or (isinstance(wanted, float) and math.isnan(wanted)):
        return value is None or math.isnan(value)
    return value is not None and abs(value - wanted) <= tol


def compare_users(found, table, wanted, where, report, present=None):
    """Every user of the table once, with its id and its values."""
    ids = [table.user_ids[u] for u in (present if present is not None else _present(table))]
    labels = found.users.tolist()
    if len(labels) != len(ids) or any(_place(labels, each) is None for each in ids):
        report.add("users merged or renamed", where, f"gave {ids!r}, got {labels!r}")
        return False
    for name, values in wanted.items():
        column = found[name].tolist()
        for u in present if present is not None else _present(table):
            value = column[_place(labels, table.user_ids[u])]
            report.count("values")
            if not same(value, values[u]):
                report.add(
                    "wrong value", where,
                    f"{name} of user {table.user_ids[u]!r} is {value!r}, right: "
                    f"{_shown(values[u])}; rows {table.lists()[u]}",
                )  # fmt: skip
                return False
    return True


def compare_means(found, table, lists, wanted, where, report):
    """The means of a `MetricTable`."""
    means = {name: found.mean(name) for name in wanted}
    _check_means(means, table, lists, wanted, where, report)


def _check_means(means, table, lists, wanted, where, report):
    """Means by the table's rule; `pooled` is the metric of all rows as one list."""
    present = _present(table)
    for name, values in wanted.items():
        if table.rules["mean"] == "pooled":
            whole = [row for rows in lists for row in rows]
            if exact.n_orders(whole, table.rules["ties"]) > _MOST_ORDERS:
                return
            right = exact.metric(name, whole, table.rules)
        else:
            right = exact.mean(
                [values[u] for u in present], [lists[u] for u in present], table.rules["mean"]
            )
        report.count("means")
        if not same(means[name], right):
            ids = [table.user_ids[u] for u in present]
            detail = f"{name} is {means[name]!r}, right: {_shown(right)}; users {ids!r}"
            report.add("wrong mean", where, detail)
            return


def _present(table):
    return sorted(set(table.users.tolist()))


def _place(labels, wanted):
    """Where a label of the same type and value stands; the types of numbers do not matter."""
    for place, label in enumerate(labels):
        if isinstance(label, str) == isinstance(wanted, str) and label == wanted:
            return place
    return None


def _shown(value):
    return "left out" if value is None else f"{float(value):.15g}"


def _asked(may_refuse, report, where, call, *arguments, **options):
    """The answer of a call; None where it refuses its input and may do so."""
    try:
        return call(*arguments, **options)
    except InputError:
        if not may_refuse:
            raise
        report.count(f"refused: {where}")
        return None


# ---- ways


def arrays(table, rng, report):
    """`evaluate` with one group label a row."""
    users = table.users_column()
    found = _asked(
        table.kind == "mixed", report, "arrays", metrics.evaluate,
        table.metrics, table.scores, table.labels, users, **table.rules,
    )  # fmt: skip
    if found is not None:
        wanted = expected(table)
        if compare_users(found, table, wanted, "arrays", report):
            compare_means(found, table, table.lists(), wanted, "arrays", report)


def row_bounds(table, rng, report):
    """`evaluate` with `indptr`, some threads, and integer or single precision scores."""
    order = np.argsort(table.users, kind="stable")
    bounds = np.searchsorted(table.users[order], np.arange(len(table.user_ids) + 1))
    scores = table.scores[order]
    if rng.random() < 0.3:
        scores = np.round(scores * 12).astype(rng.choice([np.int16, np.int64, np.float32]))
    found = metrics.evaluate(
        table.metrics, scores, table.labels[order], indptr=bounds, n_threads=2, **table.rules
    )
    found = _with_ids(found, table)
    compare_users(found, table, expected(table), "row_bounds", report)


def _with_ids(found, table):
    """The table of metrics with ids in place of the users' numbers."""
    users = np.empty(found.users.size, dtype=object)
    users[:] = [table.user_ids[u] for u in found.users]
    return replace(found, users=users)


def frames(table, rng, report):
    """`evaluate_frame` on a dict, pandas or polars, by scores or ranks."""
    library = str(rng.choice(["dict", "pandas", "polars"]))
    if library == "polars" and table.kind == "mixed":
        return
    data = {"user_id": table.users_column(), "item_id": table.items_column()}
    data |= {"score": table.scores, "label": table.labels.astype(int)}
    lists, options = table.lists(), {"item": "item_id"}
    if rng.random() < 0.3:
        data["rank"], options["rank"] = _ranks(table, rng), "rank"
        lists = table.lists(scores=-data["rank"])
    where = f"frames: {library}"
    found = _asked(
        table.kind == "mixed", report, where, metrics.evaluate_frame,
        _frame(library, data), table.metrics, **options, **table.rules,
    )  # fmt: skip
    if found is not None:
        wanted = expected(table, lists)
        if compare_users(found, table, wanted, where, report):
            compare_means(found, table, lists, wanted, where, report)


def _frame(library, data):
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(data)
    if library == "polars":
        import polars as pl

        return pl.DataFrame({n: v.tolist() if v.dtype == object else v for n, v in data.items()})
    return data


def _ranks(table, rng):
    ranks = np.empty(table.users.size, dtype=int)
    for u in _present(table):
        rows = np.flatnonzero(table.users == u)
        ranks[rows] = rng.permutation(rows.size) + 1
    return ranks


def recommendations(table, rng, report):
    """Lists beside interactions; the columns of ids may have different types."""
    if "auc" in table.metrics:
        table.metrics.remove("auc")
    rules = table.rules | {"mean": "user"}
    ranks = _ranks(table, rng)
    liked = [(u, i) for u in _present(table) for i in range(8) if rng.random() < 0.4]
    if not liked:
        return
    users, items = (np.array(column) for column in zip(*liked, strict=True))
    library = str(rng.choice(["dict", "pandas", "polars"]))
    if library == "polars" and table.kind == "mixed":
        return
    shown = {"user_id": table.users_column(), "item_id": table.items_column(), "rank": ranks}
    wanted_pairs = {
        "user_id": _retyped(rng, table, table.user_ids, users),
        "item_id": _retyped(rng, table, table.item_ids, items),
    }
    types = f"{shown['item_id'].dtype}/{wanted_pairs['item_id'].dtype}"
    where = f"recommendations: {library}"
    differ = _types_differ(shown, wanted_pairs)
    found = _asked(
        differ or table.kind == "mixed", report, where, metrics.evaluate_recommendations,
        _frame(library, shown), _frame(library, wanted_pairs), table.metrics,
        preset="icml2020", unmatched="count", **rules,
    )  # fmt: skip
    if found is None:
        return
    lists, lengths = _joined(table, ranks, set(liked))
    values = expected(table, lists, lengths, rules)
    present = sorted({*_present(table), *users.tolist()})
    compare_users(found, table, values, f"{where} {types if differ else ''}", report, present)


def _types_differ(one, other):
    """Whether a column is not of one type in both tables; integers of all sizes are one type."""
    kinds = [
        {frame[name].dtype.kind.replace("u", "i") for frame in (one, other)}
        for name in ("user_id", "item_id")
    ]
    return any(len(each) > 1 for each in kinds)


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
    if "auc" in table.metrics:
        table.metrics.remove("auc")
    rules = table.rules | {"mean": "user"}
    lengths = rng.integers(0, 8, len(table.user_ids))
    present = _present(table)
    given = int(lengths[0]) if rng.random() < 0.3 else lengths[present]
    lengths = np.full(lengths.size, given) if np.ndim(given) == 0 else lengths
    lists = table.lists()
    clash = [exact.cuts_through_ties(rows, int(n)) for rows, n in zip(lists, lengths, strict=True)]
    found = _asked(
        any(clash) and rules["ties"] in ("half", "threshold"), report, "truncated",
        metrics.evaluate, table.metrics, table.scores, table.labels, table.users,
        list_length=given, **rules,
    )  # fmt: skip
    if found is None:
        return
    found = _with_ids(found, table)
    wanted = expected(table, lists, [int(n) for n in lengths], rules)
    if any(clash) and rules["ties"] == "threshold":
        wanted.pop("ap", None)  # half of a threshold is a matter of definition
    compare_users(found, table, wanted, f"truncated, ties {rules['ties']}", report)


def graded(table, rng, report):
    """Graded labels: a threshold for the binary metrics, gains for NDCG."""
    table.rules["ideal"] = "achievable"
    grades = rng.integers(0, 4, table.users.size)
    threshold = int(rng.integers(1, 4))
    table.labels = grades >= threshold
    gains = grades if rng.random() < 0.5 else 2**grades - 1
    kind = "linear" if gains is grades else "exponential"
    found = metrics.evaluate(
        table.metrics, table.scores, grades, table.users,
        relevance_threshold=threshold, gains=kind, **table.rules,
    )  # fmt: skip
    found = _with_ids(found, table)
    wanted = expected(table, table.lists(gains=gains))
    compare_users(found, table, wanted, f"graded, ties {table.rules['ties']}", report)


# ---- files and the command


def command(table, rng, report):
    """`evaluate FILE`: ids are what stands in the file."""
    if table.kind == "mixed":
        return
    suffix = str(rng.choice([".csv", ".tsv", ".parquet"]))
    where = f"command {suffix}"
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / f"rows{suffix}", Path(folder) / "users.csv"
        _write(file, table)
        status, answer = _run(_arguments(file, table, ["--per-user", str(out)]))
        if status != 0:
            if "AUROC" in str(answer.get("error")) and len(set(table.labels.tolist())) == 1:
                report.count("refused: command, one class")
                return
            report.add("refusal", where, str(answer.get("error"))[:250].replace(folder, ""))
            return
        _check_per_user(out, table, where, report)
    found = {row["metric"]: row["value"] for row in answer["metrics"]}
    _check_means(found, table, table.lists(), expected(table), where, report)


def _check_per_user(out, table, where, report):
    """The ids that are written are those that were read."""
    with open(out, newline="") as file:
        written = [row["user"] for row in csv.DictReader(file)]
    ids = [str(table.user_ids[u]) for u in _present(table)]
    if sorted(written) != sorted(ids):
        report.add("users merged or renamed", f"{where} --per-user", f"{ids!r} became {written!r}")


def _arguments(file, table, more):
    rules = table.rules
    arguments = ["evaluate", str(file), "--json", "--interval", "none", *more]
    arguments += ["--metrics", ",".join(table.metrics)]
    for name, value in rules.items():
        arguments += [f"--{name.replace('_', '-')}", value]
    return arguments


def _write(file, table):
    users, items = table.users_column(), table.items_column()
    if file.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        columns = {"user_id": users, "item_id": items}
        columns = {
            n: pa.array(v.tolist()) if v.dtype.kind in "OU" else v for n, v in columns.items()
        }
        columns |= {"score": table.scores, "label": table.labels.astype(int)}
        parquet.write_table(pa.table(columns), file)
        return
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, delimiter="," if file.suffix == ".csv" else "\t")
        writer.writerow(["user_id", "item_id", "score", "label"])
        rows = zip(users.tolist(), items.tolist(), table.scores.tolist(), table.labels, strict=True)
        writer.writerows([u, i, repr(s), int(y)] for u, i, s, y in rows)


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
    sys.exit(main(check, "search_evaluation.py", __doc__.partition("\n")[0]))
