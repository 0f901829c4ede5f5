"""AUROC and AUPRC of all rows as one list: curves, lift and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists

WEAK_AUROC, LEAKAGE_AUROC = 0.55, 0.95


@dataclass(frozen=True)
class Curve:
    """Counts of positives and negatives at or above +inf and each distinct score, decreasing."""

    thresholds: np.ndarray
    tp: np.ndarray
    fp: np.ndarray

    @property
    def n_pos(self) -> int:
        """Positives in the data."""
        return int(self.tp[-1])

    @property
    def n_neg(self) -> int:
        """Negatives in the data."""
        return int(self.fp[-1])

    @property
    def positive_rate(self) -> float:
        """Share of positives, the AUPRC of a random ranking."""
        return self.n_pos / (self.n_pos + self.n_neg)

    @property
    def tpr(self) -> Array:
        """True positive rate at each threshold."""
        return self.tp / self.n_pos

    @property
    def fpr(self) -> Array:
        """False positive rate at each threshold."""
        return self.fp / self.n_neg

    @property
    def precision(self) -> Array:
        """Precision at each threshold; 1 at the first, where nothing is called positive."""
        called = self.tp + self.fp
        return np.divide(self.tp, called, out=np.ones(called.size), where=called > 0)

    def auroc(self) -> float:
        """Area under the ROC curve by the trapezoid rule (exact: ties are straight lines)."""
        return float(trapezoid(self.tpr, self.fpr))

    def average_precision(self, positive_rate: float | None = None) -> float:
        """AP = sum of (recall step) x precision, optionally at another positive rate."""
        return float(np.dot(np.diff(self.tpr), self.precision_at(positive_rate)[1:]))

    def precision_at(self, positive_rate: float | None = None) -> Array:
        """Precision at each threshold if positives were this share of all rows.

        rate * TPR / (rate * TPR + (1 - rate) * FPR)
        """
        if positive_rate is None:
            return self.precision
        if not 0 < positive_rate < 1:
            raise InputError(f"positive_rate={positive_rate} must lie between 0 and 1")
        won, lost = positive_rate * self.tpr, (1 - positive_rate) * self.fpr
        return np.divide(won, won + lost, out=np.ones(won.size), where=won + lost > 0)


def curve(
    scores: ArrayLike, labels: ArrayLike, *, relevance_threshold: float | None = None
) -> Curve:
    """Curve of all rows as one list; both classes must occur."""
    rows = lists.build(scores, labels, relevance_threshold=relevance_threshold)
    order = np.argsort(-rows.scores, kind="stable")
    ordered, relevant = rows.scores[order], rows.relevant[order].astype(np.int64)
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), ordered.size - 1)
    tp = np.cumsum(relevant)[ends]
    counts = Curve(np.append(np.inf, ordered[ends]), np.append(0, tp), np.append(0, ends + 1 - tp))
    if min(counts.n_pos, counts.n_neg) == 0:
        raise InputError(
            f"there are {counts.n_pos} positives and {counts.n_neg} negatives; "
            "AUROC and AUPRC need both"
        )
    return counts


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

    roc = curve(scores, labels, relevance_threshold=relevance_threshold)
    rows = lists.build(scores, labels, relevance_threshold=relevance_threshold)
    auroc, ap, relevant = roc.auroc(), roc.average_precision(), rows.relevant.astype(bool)
    test = stats.mannwhitneyu(rows.scores[relevant], rows.scores[~relevant], method="asymptotic")
    return RankingReport(
        n_pos=roc.n_pos,
        n_neg=roc.n_neg,
        positive_rate=roc.positive_rate,
        auroc=auroc,
        average_precision=ap,
        lift=ap / roc.positive_rate,
        p_value=float(test.pvalue),
        warnings=tuple(_warnings(auroc)),
    )


def _warnings(auroc: float) -> Iterator[str]:
    if auroc < WEAK_AUROC:
        yield f"AUROC {auroc:.3f} is below {WEAK_AUROC}: hardly better than random"
    if auroc > LEAKAGE_AUROC:
        yield f"AUROC {auroc:.3f} is above {LEAKAGE_AUROC}: do features leak the label?"
