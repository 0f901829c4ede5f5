"""What `evaluate` says of scores: means with intervals, comparisons, one list of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.conventions import PRESETS
from structsvm_papk.metrics.definitions import parse
from structsvm_papk.metrics.significance import Comparison, ends_text, interval, no_interval
from structsvm_papk.metrics.table import MetricTable, evaluate_lists

WEAK_AUROC = 0.55
LEAKAGE_AUROC = 0.95


@dataclass(frozen=True)
class OneList:
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


def as_one_list(
    scores: ArrayLike, labels: ArrayLike, *, relevance_threshold: float | None = None
) -> OneList:
    """AUROC and AUPRC of all rows as one list."""
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
    return OneList(
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
    pooled: OneList | None
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

    def _ends(self, table: MetricTable, metric: str) -> dict[str, Any]:
        """Both ends of the interval of a mean, and its note; None where there is no interval."""
        absent = {"lower": None, "upper": None, "note": ""}
        if self.method == "none" or table.is_pooled or not table.used(metric).any():
            return absent
        if self.method in ("bootstrap", "exact") and no_interval(table, metric, self.method):
            return absent  # too few users to resample, or values beside 0 and 1
        ends = interval(
            table, metric, method=self.method, level=self.level,
            n_resamples=self.n_resamples, seed=self.seed,
        )  # fmt: skip
        return {"lower": ends.lower, "upper": ends.upper, "note": ends.note}

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metrics": self.overall,
            "relevant_items": self.table.relevant_items,
            "pooled": None if self.pooled is None else asdict(self.pooled),
            "comparison": [asdict(comparison) for comparison in self.compared],
        }


def mean_text(row: dict[str, Any], absent: str = "–") -> tuple[str, str]:
    """The mean and the interval of a row of an `Evaluation`."""
    value = row["value"]
    mean = absent if value is None or not np.isfinite(value) else f"{value:.4f}"
    return mean, ends_text(row["lower"], row["upper"], row["note"], absent)
