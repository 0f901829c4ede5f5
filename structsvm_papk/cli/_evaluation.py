"""What `evaluate` prints and writes."""

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.markup import escape

from structsvm_papk.cli._shared import console
from structsvm_papk.metrics import MetricTable
from structsvm_papk.metrics.significance import ends_text
from structsvm_papk.plots.page import Intervals


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
        lines = [
            {name: row[name] for name in ("column", "segment", *kept)}
            for row in (*parts, *self.segments())
        ]
        return _as_csv(lines)

    def users_csv(self) -> str:
        """The value of every user."""
        cells = self.table.to_columns()
        return _as_csv(
            [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        )

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


def _as_csv(lines: list[dict[str, Any]]) -> str:
    """Text of a CSV file, from dicts with the same keys."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
