"""AUROC and AUPRC of one list of rows: curves, five views of one number, lift and warnings.

Ranking only: nothing here asks whether scores are probabilities. See `calibration` for that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.integrate import trapezoid

from structsvm_papk._types import Array
from structsvm_papk.data.validation import as_vector
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _auc, segments
from structsvm_papk.metrics import ranked_lists as lists

WEAK_AUROC, LEAKAGE_AUROC = 0.55, 0.95


@dataclass(frozen=True)
class Confusion:
    """Counts when rows with `score >= threshold` are called positive.

    Attributes
    ----------
    tp, fn, fp, tn : int
    """

    tp: int
    fn: int
    fp: int
    tn: int

    @property
    def tpr(self) -> float:
        """True positive rate (recall), TP / (TP + FN)."""
        return self.tp / (self.tp + self.fn)

    @property
    def fpr(self) -> float:
        """False positive rate, FP / (FP + TN)."""
        return self.fp / (self.fp + self.tn)

    @property
    def precision(self) -> float:
        """TP / (TP + FP); 1 when nothing is called positive, the limit that curves use."""
        called = self.tp + self.fp
        return self.tp / called if called else 1.0

    def at_positive_rate(self, rate: float) -> float:
        """Precision if positives were this share of all rows: classes are reweighted.

            rate * TPR / (rate * TPR + (1 - rate) * FPR)

        TPR and FPR, and so the ROC curve, do not change.
        """
        called = rate * self.tpr + (1 - rate) * self.fpr
        return rate * self.tpr / called if called else 1.0


@dataclass(frozen=True)
class Curve:
    """Counts at every threshold, from the highest score down.

    Attributes
    ----------
    thresholds : ndarray, shape (n_points,)
        +inf (nothing called positive), then each distinct score, decreasing.
    tp, fp : ndarray of int, shape (n_points,)
        Positives and negatives with at least that score.
    """

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

    def confusion(self, threshold: float) -> Confusion:
        """Counts when rows with `score >= threshold` are called positive."""
        point = np.searchsorted(-self.thresholds, -threshold, side="right") - 1
        tp, fp = int(self.tp[point]), int(self.fp[point])
        return Confusion(tp, self.n_pos - tp, fp, self.n_neg - fp)

    def auroc(self) -> float:
        """Area under the ROC curve by the trapezoid rule (exact: ties are straight lines)."""
        return float(trapezoid(self.tpr, self.fpr))

    def average_precision(self, positive_rate: float | None = None) -> float:
        """AP = sum of (recall step) x precision, optionally at another positive rate."""
        return float(np.dot(np.diff(self.tpr), self.precision_at(positive_rate)[1:]))

    def precision_at(self, positive_rate: float | None = None) -> Array:
        """Precision at each threshold if positives were this share of all rows."""
        if positive_rate is None:
            return self.precision
        if not 0 < positive_rate < 1:
            raise InputError(f"positive_rate={positive_rate} must lie between 0 and 1")
        won, lost = positive_rate * self.tpr, (1 - positive_rate) * self.fpr
        return np.divide(won, won + lost, out=np.ones(won.size), where=won + lost > 0)

    def trapezoid_auprc(self) -> float:
        """Area under straight lines between PR points; too large, shown for comparison only.

        Constant scores at a positive rate of 2% give 0.51, though the ranking is worthless.
        """
        return float(trapezoid(self.precision, self.tpr))


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


def five_views(scores: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """AUROC computed in five ways that must agree.

    Returns
    -------
    dict of str to float
        `sweep`: area under the points (FPR, TPR) of a threshold sweep.
        `concordance`: share of positive-negative pairs in the right order, half for ties.
        `integral`: mean TPR at the negatives' scores, the integral of TPR over FPR.
        `distributions`: Pr(S+ > S-) + Pr(S+ = S-)/2 from the two score distributions.
        `rank_sum`: Mann-Whitney U / (n_pos n_neg) of scipy.
    """
    roc = curve(scores, labels)
    points = roc.tp, roc.fp
    rows = lists.build(scores, labels)
    scores, relevant = rows.scores, rows.relevant.astype(bool)
    negatives = np.sort(scores[~relevant])
    wins = np.searchsorted(negatives, scores[relevant], side="left")
    wins_and_ties = np.searchsorted(negatives, scores[relevant], side="right")
    _, tpr_at_negatives = _auc.shares(scores, relevant)
    pos_at, neg_at = np.diff(points[0]) / roc.n_pos, np.diff(points[1]) / roc.n_neg
    below = 1.0 - np.cumsum(neg_at)
    return {
        "sweep": roc.auroc(),
        "concordance": float((wins + wins_and_ties).sum() / (2 * roc.n_pos * roc.n_neg)),
        "integral": float(tpr_at_negatives.mean()),
        "distributions": float(np.dot(pos_at, below + 0.5 * neg_at)),
        "rank_sum": rank_sum(scores, relevant)[0],
    }


def rank_sum(scores: Array, relevant: Array) -> tuple[float, float]:
    """Mann-Whitney U / (n_pos n_neg) and its two-sided p-value (normal, tie-corrected)."""
    pos, neg = scores[relevant], scores[~relevant]
    test = stats.mannwhitneyu(pos, neg, method="asymptotic")
    return float(test.statistic / (pos.size * neg.size)), float(test.pvalue)


@dataclass(frozen=True)
class RankingReport:
    """AUROC and AUPRC beside their baselines.

    Attributes
    ----------
    n_pos, n_neg : int
    positive_rate : float
        The AUPRC of a random ranking.
    auroc, average_precision : float
    lift : float
        average_precision / positive_rate.
    p_value : float
        Mann-Whitney: could a random ranking give this AUROC?
    warnings : tuple of str
    """

    n_pos: int
    n_neg: int
    positive_rate: float
    auroc: float
    average_precision: float
    lift: float
    p_value: float
    warnings: tuple[str, ...]

    auroc_baseline = 0.5

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
    roc = curve(scores, labels, relevance_threshold=relevance_threshold)
    rows = lists.build(scores, labels, relevance_threshold=relevance_threshold)
    auroc, ap = roc.auroc(), roc.average_precision()
    return RankingReport(
        n_pos=roc.n_pos,
        n_neg=roc.n_neg,
        positive_rate=roc.positive_rate,
        auroc=auroc,
        average_precision=ap,
        lift=ap / roc.positive_rate,
        p_value=rank_sum(rows.scores, rows.relevant.astype(bool))[1],
        warnings=tuple(_warnings(auroc)),
    )


def _warnings(auroc: float) -> Iterator[str]:
    if auroc < WEAK_AUROC:
        yield f"AUROC {auroc:.3f} is below {WEAK_AUROC}: hardly better than random"
    if auroc > LEAKAGE_AUROC:
        yield f"AUROC {auroc:.3f} is above {LEAKAGE_AUROC}: do features leak the label?"


def segment_reports(
    scores: ArrayLike, labels: ArrayLike, values: ArrayLike
) -> dict[Any, RankingReport | None]:
    """RankingReport per value of a column; None where a class is missing.

    Returns
    -------
    dict of value to RankingReport or None
    """
    rows = lists.build(scores, labels)
    names, codes = segments.levels(as_vector(values, "segments", rows.scores.size))
    reports = {}
    for code, value in enumerate(names):
        mask = codes == code
        both = np.unique(rows.relevant[mask]).size == 2
        reports[value] = report(rows.scores[mask], rows.relevant[mask]) if both else None
    return reports
