"""Search for a wrong metric: random tables with ids of every type, against exact definitions.

    python tests/stress/search_evaluation.py --problems 5000

Each table is evaluated in several ways: from arrays, frames of three libraries, recommendations
beside interactions, truncated lists, files of three types by the command, two scorers compared, the
estimator's `score`. Every user's value and every mean is computed again by `exact_metrics`. A value
that differs, users or items that are merged or renamed, missing values that go through, ways that
read the same labels differently, and exceptions other than `InputError` are reported. Input that a
way may refuse is no violation where it refuses it.
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
from pathlib import Path
from unittest import mock

import exact_metrics as exact
import numpy as np
from evaluation_tables import draw
from searching import main

from structsvm_papk import PAPKRanker, RankingData, cli, metrics
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
    found = _with_users(found, table.user_ids)
    compare_users(found, table, expected(table), "row_bounds", report)


def _with_users(found, ids):
    from dataclasses import replace

    users = np.empty(len(ids), dtype=object)
    users[:] = ids
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
    values = {
        name: [exact.metric(name, r, rules, n) for r, n in zip(lists, lengths, strict=True)]
        for name in table.metrics
    }
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
        return table_column(values, table.kind)
    for dtype in rng.permutation([np.int64, np.uint64, np.float64, np.int32, object]):
        with contextlib.suppress(OverflowError, ValueError):
            made = np.array(values, dtype=dtype)
            if [int(v) if v == int(v) else v for v in made.tolist()] == values:
                return made
    return table_column(values, table.kind)


def table_column(values, kind):
    if kind in ("mixed", "text objects"):
        return np.array(values, dtype=object)
    return np.array(values, dtype=np.uint64 if kind == "uint64" else None)


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
    found = _with_users(found, [table.user_ids[u] for u in found.users])
    wanted = expected(table, lists, [int(n) for n in lengths], rules)
    if any(clash) and rules["ties"] == "threshold":
        wanted.pop("ap", None)  # half of a threshold is a matter of definition
    compare_users(found, table, wanted, f"truncated, ties {rules['ties']}", report)


def huge_scores(table, rng, report):
    """Integer scores that differ beyond 2^53 must not tie."""
    dtype = rng.choice([np.int64, np.uint64, object])
    start = 2 ** int(rng.choice([53, 60]))
    scores = (start + np.round(table.scores * 12).astype(np.int64) + 1000).astype(dtype)
    found = _asked(
        True, report, "huge_scores", metrics.evaluate,
        table.metrics, scores, table.labels, table.users, **table.rules,
    )  # fmt: skip
    if found is None:
        return
    found = _with_users(found, [table.user_ids[u] for u in found.users])
    wanted = expected(table, table.lists(scores=scores))
    compare_users(found, table, wanted, f"huge_scores: {np.dtype(dtype)}", report)


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
    found = _with_users(found, [table.user_ids[u] for u in found.users])
    wanted = {}
    for name in table.metrics:
        lists = table.lists(gains=gains) if name.startswith("ndcg") else table.lists()
        if name.startswith("ndcg") and table.rules["ties"] in ("half", "threshold"):
            lists = [_mean_gains(rows) for rows in lists]
        wanted[name] = [exact.metric(name, rows, table.rules) for rows in lists]
        if name.startswith("ndcg"):
            wanted[name] = _ideal_of(wanted[name], table, gains, name)
    compare_users(found, table, wanted, f"graded, ties {table.rules['ties']}", report)


def _mean_gains(rows):
    """Tied rows with the mean of their gains: NDCG is linear in them."""
    mean = {
        score: sum(r[2] for r in rows if r[0] == score) / sum(r[0] == score for r in rows)
        for score, _, _ in rows
    }
    return [(score, True, mean[score]) for score, _, _ in rows]


def _ideal_of(values, table, gains, name):
    """Where gains were averaged, the ideal order is still that of the gains themselves."""
    if table.rules["ties"] not in ("half", "threshold"):
        return values
    k = int(name.partition("@")[2] or 10**6)
    answer = []
    for value, rows in zip(values, table.lists(gains=gains), strict=True):
        if value is exact.EXCLUDED or not any(row[2] for row in rows):
            answer.append(value)
            continue
        averaged = sorted((r[2] for r in _mean_gains(rows)), reverse=True)[:k]
        best = sorted((row[2] for row in rows), reverse=True)[:k]
        answer.append(value * exact._dcg(averaged) / exact._dcg(best))
    return answer


def labels(table, rng, report):
    """The same labels in every convention, read alike by everything that takes labels."""
    y = table.labels
    if y.all() or not y.any():
        return  # one value alone may be of any convention
    forms = {
        "bool": y, "0/1": y.astype(int), "-1/1": np.where(y, 1, -1), "0.0/1.0": y.astype(float),
        "uint8": y.astype(np.uint8), "objects": y.astype(object), "-1/0": y.astype(int) - 1,
        "int8 -1/1": np.where(y, 1, -1).astype(np.int8),
        "0/1 objects": y.astype(int).astype(object),
    }  # fmt: skip
    name = str(rng.choice(list(forms)))
    form, said = forms[name], {}
    readers = _label_readers(table)
    for who, read in readers.items():
        try:
            said[who] = read(form)
        except InputError:
            said[who] = "refused"
    report.count(f"labels {name}")
    counts = {who: v for who, v in said.items() if v != "refused"}
    right = {"delong": None, "pooled_auc_interval": None}
    for who, value in counts.items():
        if who in right:
            continue
        if value != int(y.sum()):
            report.add("labels misread", f"{who} {name}", f"{value} positives of {int(y.sum())}")
    if len({v == "refused" for who, v in said.items()}) > 1:
        report.add(
            "labels read by some", f"labels {name}",
            ", ".join(f"{who}: {v}" for who, v in said.items()),
        )  # fmt: skip


def _label_readers(table):
    X, users = table.scores[:, None], table.users

    return {
        "RankingData": lambda y: int(RankingData.from_groups(X, y, users).n_pos.sum()),
        "evaluate": lambda y: int(metrics.evaluate("rr", table.scores, y, users).n_pos.sum()),
    }


def missing(table, rng, report):
    """A missing label, score, user or item, or a mask, has to be refused wherever it is."""
    what = str(
        rng.choice(["label", "score", "user", "masked label", "masked score", "masked user"])
    )
    scores, y = table.scores.copy(), table.labels.astype(float)
    users, row = table.users.astype(float), int(rng.integers(table.users.size))
    value = {"label": y, "score": scores, "user": users}
    if what in value:
        value[what][row] = np.nan
    mask = np.arange(y.size) == row
    scores = np.ma.array(scores, mask=mask) if what == "masked score" else scores
    y = np.ma.array(y, mask=mask) if what == "masked label" else y
    users = np.ma.array(users, mask=mask) if what == "masked user" else users
    if what == "user" and rng.random() < 0.7:
        users = _missing_user(rng, table, row)
        what = f"user {users.dtype.kind}"
    for who, call in _calls(table, scores, y, users, what).items():
        try:
            call()
        except InputError:
            continue
        report.add("missing value accepted", f"{who}: {what}", f"row {row}")


def _missing_user(rng, table, row):
    """Users as objects or times, one of them missing."""
    kind = str(rng.choice(["None", "NaN", "NaT", "timedelta"]))
    if kind == "NaT":
        users, nothing = (
            np.datetime64("2020-01-01") + table.users.astype("m8[D]"),
            np.datetime64("NaT", "D"),
        )
    elif kind == "timedelta":
        users, nothing = table.users.astype("m8[D]"), np.timedelta64("NaT", "D")
    else:
        users = np.array([f"u{u}" for u in table.users], dtype=object)
        nothing = None if kind == "None" else float("nan")
    users[row] = nothing
    return users


def _calls(table, scores, y, users, what):
    """Everything that has to refuse it."""
    calls = {"evaluate": lambda: metrics.evaluate("rr", scores, y, users)}
    if "user" in what or "label" in what:
        X = np.asarray(table.scores)[:, None]
        calls["RankingData"] = lambda: RankingData.from_groups(X, y, users)
    calls["evaluate_frame"] = lambda: metrics.evaluate_frame(
        {"user_id": users, "score": scores, "label": y}, "rr"
    )
    calls["mean_score"] = lambda: metrics.mean_score(y, scores, groups=users, metric="rr")
    return calls


def two_scorers(table, rng, report):
    """`compare`: means of both over the users that both have, whatever the weights."""
    other = rng.permutation(table.scores)
    tables = [
        metrics.evaluate(table.metrics, s, table.labels, table.users, **table.rules)
        for s in (table.scores, other)
    ]
    pooled = table.rules["mean"] == "pooled"
    whole = [(s, bool(r)) for s, r in zip(table.scores, table.labels, strict=True)]
    if pooled and exact.n_orders(whole, table.rules["ties"]) > _MOST_ORDERS:
        return
    found = _asked(
        True, report, "two_scorers", metrics.compare, *tables, correction="none", n_resamples=50
    )
    if found is None:
        return
    lists = [table.lists(), table.lists(scores=other)]
    for one in found:
        values = [expected(table, rows)[one.metric] for rows in lists]
        right = _paired(one.metric, values, lists, table.rules, pooled)
        for side, (value, wanted) in enumerate(zip((one.first, one.second), right, strict=True)):
            if not same(value, wanted):
                report.add(
                    "wrong mean", f"two_scorers, mean {table.rules['mean']}",
                    f"{one.metric} of scorer {side + 1} is {value!r}, right: {_shown(wanted)}",
                )  # fmt: skip
                return


def _paired(name, values, lists, rules, pooled):
    if pooled:
        return [exact.metric(name, [row for rows in each for row in rows], rules) for each in lists]
    both = [u for u, pair in enumerate(zip(*values, strict=True)) if None not in pair]
    return [
        exact.mean([each[u] for u in both], [rows[u] for u in both], rules["mean"])
        for each, rows in zip(values, lists, strict=True)
    ]


def ranker_score(table, rng, report):
    """`PAPKRanker.score`: the mean pAp@k with ties counting as errors."""
    k = int(rng.integers(1, 4))
    y = table.labels if rng.random() < 0.5 else np.where(table.labels, 1, -1)
    users = table.users_column() if table.kind != "mixed" else table.users
    ranker = PAPKRanker(k, "avg", max_iter=1)
    try:
        ranker.fit(table.scores[:, None], y, groups=users)
    except InputError:
        return
    ranker.coef_ = np.ones(1)
    rules = {"ties": "loss", "few_negatives": "exclude", "no_positives": "exclude"}
    values = [exact.metric(f"pap@{k}", rows, rules) for rows in table.lists()]
    wanted = exact.mean(values, table.lists(), "user")
    value = ranker.score(table.scores[:, None], y, groups=users)
    if not same(value, wanted):
        report.add("wrong mean", "ranker_score", f"{value!r}, right: {_shown(wanted)}")


def segments(table, rng, report):
    """By a column of users: the values of whole lists; by items: of lists cut to them."""
    table.rules["mean"] = "user"
    by_user = rng.random() < 0.5
    codes = table.users % 2 if by_user else table.items % 2
    found = metrics.evaluate(
        table.metrics, table.scores, table.labels, table.users,
        segments={"part": np.array(["x", "y"])[codes]}, **table.rules,
    )  # fmt: skip
    for segment in found.segments:
        own = codes == "xy".index(segment.value)
        lists = [[] for _ in table.user_ids]
        for row in np.flatnonzero(own):
            y = bool(table.labels[row])
            lists[table.users[row]].append((float(table.scores[row]), y, int(y)))
        lists = [rows for rows in lists if rows]
        for name in table.metrics:
            values = [exact.metric(name, rows, table.rules) for rows in lists]
            right = exact.mean(values, lists, "user")
            if not same(segment.table.mean(name), right):
                report.add(
                    "wrong mean", f"segments by {'users' if by_user else 'items'}",
                    f"{name} is {segment.table.mean(name)!r}, right: {_shown(right)}",
                )  # fmt: skip
                return


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
    for each in (
        *(arrays, row_bounds, frames, recommendations, truncated, huge_scores, graded, labels),
        *(missing, two_scorers, ranker_score, segments, command),
    )
}


if __name__ == "__main__":
    sys.exit(main(check, "search_evaluation.py", __doc__.partition("\n")[0]))
