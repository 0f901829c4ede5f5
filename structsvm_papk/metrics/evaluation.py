"""What `evaluate` says of scores: means with intervals, and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk.metrics.significance import Comparison, ends_text, interval, no_interval
from structsvm_papk.metrics.table import MetricTable


@dataclass(frozen=True)
class Evaluation:
    """A table of metrics, comparisons, and how intervals are made.

    `method` is one of `metrics.interval`, or none.
    """

    table: MetricTable
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
            "label_gain": self.table.label_gain,
            "comparison": [asdict(comparison) for comparison in self.compared],
        }


def mean_text(row: dict[str, Any]) -> tuple[str, str]:
    """The mean and the interval of a row of an `Evaluation`."""
    value = row["value"]
    mean = "-" if value is None or not np.isfinite(value) else f"{value:.4f}"
    return mean, ends_text(row["lower"], row["upper"], row["note"])
