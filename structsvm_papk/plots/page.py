"""One self-contained interactive page about a ranking; works offline, needs the extra `report`.

The numbers that the page shows are computed here by the same functions as everywhere else; the
page only picks among them. plotly.js is embedded, nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk import metrics
from structsvm_papk._html import filled
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.conventions import PRESETS
from structsvm_papk.metrics.definitions import parse
from structsvm_papk.metrics.ranked_lists import RankedLists
from structsvm_papk.metrics.significance import Comparison, ends_text, no_interval, paired_values
from structsvm_papk.metrics.table import MetricTable, evaluate_lists

_CURVE_POINTS = 1500
_BINS = 60
_USER_BINS = 20
_MAX_ROWS = 400


def page(
    evaluation: Evaluation,
    rows: RankedLists,
    title: str = "Ranking report",
    other: MetricTable | None = None,
    largest_k: int = 30,
    n_users: int = 40,
) -> str:
    """The page as a string of HTML, of an evaluation and the rows that were evaluated.

    The k slider goes from the first pAp@k of the table (or 10) to `largest_k`; the first `n_users`
    with positives and negatives can be looked at; `other` is the second scorer's table.
    """
    table = evaluation.table
    cutoffs = [int(name[4:]) for name in table.metrics if name.startswith("pap@")]
    k = cutoffs[0] if cutoffs else 10
    paps = [f"pap@{i}" for i in range(1, max(k, largest_k) + 1)]
    by_k = evaluate_lists(list(map(parse, paps)), rows, table.conventions, gain=table.gain)
    payload = {
        "title": title,
        "k": k,
        "data": f"{rows.scores.size} rows, {rows.n_users} users",
        "conventions": f"{table.conventions}; relevant items: {table.relevant_items}",
        "summary": _summary(evaluation),
        "meanings": [
            [name, parse(name).meaning + _sandwich(table, name)] for name in table.metrics
        ],
        "segments": _segments(evaluation),
        "comparison": _comparison(evaluation.compared),
        "distribution": _distribution(by_k, f"pap@{k}"),
        "differences": None if other is None else _differences(table, other),
        "mean_pap": [
            {"value": _plain(by_k.mean(name)), "n_used": int(by_k.used(name).sum())}
            for name in paps
        ],
        **_users(rows, by_k, n_users),
        **_whole_list(rows, _asked_for(evaluation.pooled)),
    }
    values = {"title": title, "payload": payload, "plotly_js": plotly_js()}
    return filled("plots/page.html", values)


def _asked_for(pooled: RankingReport | None) -> RankingReport:
    if pooled is None:
        raise InputError("the page needs the report of all rows as one list")
    return pooled


def plotly_js() -> str:
    """The source of plotly.js as the installed plotly package ships it, gzip in base64."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError(
            "the interactive page needs plotly; pip install 'structsvm-papk[report]'"
        ) from None
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _plain(value: float) -> float | None:
    """A JSON number, null where it is not finite."""
    value = float(value)
    return value if np.isfinite(value) else None


def mean_text(row: dict[str, Any], absent: str = "–") -> tuple[str, str]:
    """The mean and the interval of a row of an `Evaluation`."""
    value = row["value"]
    mean = absent if value is None or not np.isfinite(value) else f"{value:.4f}"
    return mean, ends_text(row["lower"], row["upper"], row["note"], absent)


def _summary(evaluation: Evaluation) -> dict[str, Any]:
    rows = []
    for summary, row in zip(evaluation.table.summary(), evaluation.overall, strict=True):
        mean, interval = mean_text(row)
        used = f"{summary.n_used} of {summary.n_users}"
        rows.append([summary.metric, mean, interval, used, summary.rules_applied() or "none"])
    head = ["metric", "mean", evaluation.heading, "users used", "rules applied"]
    return {"head": head, "rows": rows}


def _segments(evaluation: Evaluation) -> dict[str, Any] | None:
    if not evaluation.segments:
        return None
    rows = [
        [f"{row['column']} = {row['segment']}", str(row["n_rows"]), str(row["n_pos"]),
         row["metric"], *mean_text(row), str(row["n_used"])]
        for row in evaluation.segments
    ]  # fmt: skip
    head = ["segment", "rows", "positives", "metric", "mean", evaluation.heading, "users"]
    return {"title": "Segments", "head": head, "rows": rows}


def _sandwich(table: MetricTable, name: str) -> str:
    """What precision and recall of each user leave of pAp@k: ``P r <= gain <= P + r - P r``."""
    base, _, k = name.partition("@")
    if base != "pap" or f"precision@{k}" not in table.metrics or table.conventions.mean != "user":
        return ""
    used = table.used(name) & (table.n_neg >= int(k))
    if not used.any():
        return ""
    precision = table[f"precision@{k}"][used]
    recall = precision * int(k) / np.minimum(table.n_pos[used], int(k))
    low = (precision * recall).mean()
    high = (precision + recall - precision * recall).mean()
    return (
        f" How many relevant items are shown, without their order, leaves {low:.3f} to {high:.3f}."
    )


def _comparison(compared: Sequence[Comparison]) -> dict[str, Any] | None:
    if not compared:
        return None
    head = list(compared[0].cells())
    rows = [list(comparison.cells().values()) for comparison in compared]
    return {"title": "Comparison", "head": head, "rows": rows}


def _distribution(table: MetricTable, metric: str) -> dict[str, Any]:
    """How many users have which value."""
    values = table[metric][table.used(metric)]
    return {
        **_bars(values, np.linspace(0, 1, _USER_BINS + 1)),
        "title": f"{metric} of the users" + " (line: the mean)" * (not table.is_pooled),
        "axis": metric,
        "mean": None if table.is_pooled else _plain(table.mean(metric)),
        "note": f"{metric}: {values.size} users, {np.count_nonzero(values == 1)} at 1 and "
        f"{np.count_nonzero(values == 0)} at 0.",
    }


def _differences(table: MetricTable, other: MetricTable) -> dict[str, Any] | None:
    """By how much the scorers differ user by user, in the first metric that both tables have."""
    metric = next((name for name in table.metrics if name in other.metrics), None)
    if metric is None or not np.array_equal(table.users, other.users):
        return None
    values, other_values, weights = paired_values(table, other, metric)
    differences = values - other_values
    largest = float(np.abs(differences).max(initial=0.0)) or 1.0
    edges = np.linspace(-largest, largest, _USER_BINS + 2)  # an odd number: one bar at zero
    above = np.count_nonzero(differences > 0)
    below = np.count_nonzero(differences < 0)
    return {
        **_bars(differences, edges),
        "title": f"{metric}, this less other (line: the mean)",
        "axis": f"difference of {metric}",
        "mean": _plain(np.average(differences, weights=weights)),
        "note": f"Difference: above 0 for {above} users, below for {below}, "
        f"0 for {differences.size - above - below}.",
    }


def _bars(values: Array, edges: Array) -> dict[str, Any]:
    counts = np.histogram(values[np.isfinite(values)], edges)[0]
    centers = 0.5 * (edges[1:] + edges[:-1])
    ends = [float(edges[0]), float(edges[-1])]
    return {
        "centers": centers.tolist(),
        "width": edges[1] - edges[0],
        "range": ends,
        "users": counts.tolist(),
    }


def _whole_list(rows: RankedLists, areas: RankingReport) -> dict[str, Any]:
    """Curve, histogram, positive rates and warnings of all rows as one list."""
    thresholds, tp, fp = _counts(rows)
    tpr = tp / areas.n_pos
    fpr = fp / areas.n_neg
    # points that are evenly spread along the curve, whose length is tpr + fpr, and its end
    length = tpr + fpr
    last = length.size - 1
    wanted = np.searchsorted(length, np.linspace(0, 2, _CURVE_POINTS))
    shown = np.unique(np.append(np.minimum(wanted, last), last))
    return {
        "n_pos": areas.n_pos,
        "n_neg": areas.n_neg,
        "auroc": areas.auroc,
        "ap": areas.average_precision,
        "warnings": list(areas.warnings),
        "curve": {
            "thresholds": [_plain(threshold) for threshold in thresholds[shown]],
            "tp": tp[shown].tolist(),
            "fp": fp[shown].tolist(),
        },
        "rates": _rates(tpr, fpr, areas.positive_rate),
        "histogram": _histogram(rows),
    }


class _Counts(NamedTuple):
    """+inf and each distinct score, decreasing; positives and negatives at or above each."""

    thresholds: Array
    tp: Array
    fp: Array


def _counts(rows: RankedLists) -> _Counts:
    levels, level = np.unique(rows.scores, return_inverse=True)

    def at_or_above(mask: Array) -> Array:
        of_level = np.bincount(level[mask], minlength=levels.size)
        return np.append(0, np.cumsum(of_level[::-1]))

    return _Counts(
        thresholds=np.append(np.inf, levels[::-1]),
        tp=at_or_above(rows.relevant == 1),
        fp=at_or_above(rows.relevant == 0),
    )


def _rates(tpr: Array, fpr: Array, rate_of_data: float) -> list[dict[str, Any]]:
    """AUPRC at a grid of positive rates, that of the data among them: AP as a sum of recall steps
    times the precision rate TPR / (rate TPR + (1 - rate) FPR).
    """
    steps = np.diff(tpr)
    tpr = tpr[1:]
    fpr = fpr[1:]
    points = []
    for rate in np.unique(np.append(np.geomspace(1e-3, 0.5, 41), rate_of_data)):
        precision = rate * tpr / (rate * tpr + (1 - rate) * fpr)
        points.append(
            {
                "rate": float(rate),
                "ap": float(steps @ precision),
                "own": bool(rate == rate_of_data),
            }
        )
    return points


def _histogram(rows: RankedLists) -> dict[str, Any]:
    finite = np.isfinite(rows.scores)
    edges = np.histogram_bin_edges(rows.scores[finite], _BINS)

    def shares(mask: Array) -> list[float]:
        counts = np.histogram(rows.scores[mask & finite], edges)[0]
        of_rows: list[float] = (counts / max(int(mask.sum()), 1)).tolist()
        return of_rows

    centers = 0.5 * (edges[1:] + edges[:-1])
    return {
        "centers": centers.tolist(),
        "width": float(edges[1] - edges[0]),
        "positive": shares(rows.relevant == 1),
        "negative": shares(rows.relevant == 0),
    }


def _users(rows: RankedLists, by_k: MetricTable, n_users: int) -> dict[str, Any]:
    """The first users with both classes, and a sentence that says how many these are."""
    mixed = np.flatnonzero((by_k.n_pos > 0) & (by_k.n_neg > 0))
    chosen = mixed[:n_users] if mixed.size else np.arange(min(1, rows.n_users))
    note = f"{chosen.size} of {rows.n_users} users can be chosen"
    if chosen.size < mixed.size:
        note += f": the first of {mixed.size} that have positives and negatives"
    return {"users": [_user(rows, by_k, int(u)) for u in chosen], "users_note": note}


def _user(rows: RankedLists, by_k: MetricTable, u: int) -> dict[str, Any]:
    part = slice(rows.indptr[u], rows.indptr[u + 1])
    scores = rows.scores[part]
    relevant = rows.relevant[part]
    shown = np.lexsort((relevant, -scores))[:_MAX_ROWS]
    # pairs are counted in the whole list, only its best rows are drawn
    pos = scores[relevant == 1]
    neg = np.sort(scores[relevant == 0])
    below = np.searchsorted(neg, pos, "left").sum()  # pairs with the negative below
    not_above = np.searchsorted(neg, pos, "right").sum()
    n_pairs = pos.size * neg.size
    return {
        "name": str(by_k.users[u]),
        "n_pos": pos.size,
        "n_neg": neg.size,
        "concordant": int(below),
        "tied": int(not_above - below),
        "discordant": int(n_pairs - not_above),
        "auc": float((below + not_above) / 2 / n_pairs) if n_pairs else None,
        "scores": np.clip(scores[shown], -1e300, 1e300).tolist(),
        "labels": relevant[shown].tolist(),
        "pap": [_plain(value) for value in by_k.values[u]],
    }


WEAK_AUROC = 0.55
LEAKAGE_AUROC = 0.95


@dataclass(frozen=True)
class RankingReport:
    """AUROC and AUPRC beside those of a random ranking, 0.5 and `positive_rate`.

    `lift` is average_precision / positive_rate; `p_value` is Mann-Whitney's: could a random
    ranking give this AUROC?
    """

    n_pos: int
    n_neg: int
    positive_rate: float
    auroc: float
    average_precision: float
    lift: float
    p_value: float
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        text = (
            f"AUROC {self.auroc:.4f} (random 0.5, p = {self.p_value:.2g}), "
            f"AUPRC {self.average_precision:.4f} (random {self.positive_rate:.4f}, "
            f"lift {self.lift:.1f}), {self.n_pos} positives, {self.n_neg} negatives"
        )
        return "\n".join([text, *(f"warning: {warning}" for warning in self.warnings)])


def report(
    scores: ArrayLike, labels: ArrayLike, *, relevance_threshold: float | None = None
) -> RankingReport:
    """RankingReport of all rows as one list."""
    from scipy import stats  # a third of a second, and not of every program

    rows = lists.build(scores, labels, relevance_threshold=relevance_threshold)
    relevant = rows.relevant.astype(bool)
    n_pos = int(relevant.sum())
    n_neg = int((~relevant).sum())
    if min(n_pos, n_neg) == 0:
        raise InputError(
            f"there are {n_pos} positives and {n_neg} negatives; AUROC and AUPRC need both"
        )
    areas = evaluate_lists([parse("auc"), parse("ap")], rows, PRESETS["sklearn"])
    auroc, ap = map(float, areas.values[0])
    p_value = 1.0  # where all scores are tied, of which some versions of SciPy make NaN
    if rows.scores.min() < rows.scores.max():
        test = stats.mannwhitneyu(
            rows.scores[relevant], rows.scores[~relevant], method="asymptotic"
        )
        p_value = float(test.pvalue)
    rate = n_pos / (n_pos + n_neg)
    remarks: tuple[str, ...] = ()
    if auroc < WEAK_AUROC:
        remarks = (f"AUROC {auroc:.3f} is below {WEAK_AUROC}: hardly better than random",)
    if auroc > LEAKAGE_AUROC:
        remarks = (f"AUROC {auroc:.3f} is above {LEAKAGE_AUROC}: do features leak the label?",)
    return RankingReport(
        n_pos=n_pos,
        n_neg=n_neg,
        positive_rate=rate,
        auroc=auroc,
        average_precision=ap,
        lift=ap / rate,
        p_value=p_value,
        warnings=remarks,
    )


@dataclass(frozen=True)
class Evaluation:
    """A table of metrics, all rows as one list, comparisons, and how intervals are made.

    `method` is one of `metrics.interval`, or none.
    """

    table: MetricTable
    pooled: RankingReport | None
    compared: Sequence[Comparison] = ()
    method: str = "bootstrap"
    level: float = 0.95
    n_resamples: int = 2000
    seed: int = 0

    @property
    def heading(self) -> str:
        """The heading of a column of intervals."""
        if self.method == "none":
            return "interval"
        return f"{100 * self.level:g}% interval, {self.method}"

    @cached_property
    def overall(self) -> list[dict[str, Any]]:
        """Mean of each metric over all users, with what the rules did."""
        return [
            summary.as_dict() | self._ends(self.table, summary.metric) | {"interval": self.method}
            for summary in self.table.summary()
        ]

    @cached_property
    def segments(self) -> list[dict[str, Any]]:
        """Mean of each metric over each segment."""
        return [
            {
                "column": segment.column,
                "segment": segment.value,
                "kind": segment.kind,
                "metric": metric,
                "value": segment.table.mean(metric),
                **self._ends(segment.table, metric),
                "n_rows": segment.n_rows,
                "n_pos": segment.n_pos,
                "n_used": int(segment.table.used(metric).sum()),
            }
            for segment in self.table.segments
            for metric in self.table.metrics
        ]

    def _ends(self, table: MetricTable, metric: str) -> dict[str, Any]:
        """Both ends of the interval of a mean, and its note; None where there is no interval."""
        absent = {"lower": None, "upper": None, "note": ""}
        if self.method == "none" or table.is_pooled or not table.used(metric).any():
            return absent
        if self.method in ("bootstrap", "exact") and no_interval(table, metric, self.method):
            return absent  # too few users to resample, or values beside 0 and 1
        interval = metrics.interval(
            table, metric, method=self.method, level=self.level,
            n_resamples=self.n_resamples, seed=self.seed,
        )  # fmt: skip
        return {"lower": interval.lower, "upper": interval.upper, "note": interval.note}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metrics": self.overall,
            "relevant_items": self.table.relevant_items,
            "pooled": None if self.pooled is None else asdict(self.pooled),
            "segments": self.segments,
            "comparison": [asdict(comparison) for comparison in self.compared],
        }
