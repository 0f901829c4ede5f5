"""AUROC and AUPRC of all rows as one list, beside those of a random ranking."""

from collections.abc import Iterator
from dataclasses import dataclass

from numpy.typing import ArrayLike

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics.conventions import PRESETS
from structsvm_papk.metrics.parsing import parse
from structsvm_papk.metrics.table import evaluate_lists

WEAK_AUROC, LEAKAGE_AUROC = 0.55, 0.95


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
    n_pos, n_neg = int(relevant.sum()), int((~relevant).sum())
    if min(n_pos, n_neg) == 0:
        raise InputError(
            f"there are {n_pos} positives and {n_neg} negatives; AUROC and AUPRC need both"
        )
    areas = evaluate_lists([parse("auc"), parse("ap")], rows, PRESETS["sklearn"])
    auroc, ap = map(float, areas.values[0])
    sides = rows.scores[relevant], rows.scores[~relevant]
    p_value = 1.0  # where all scores are tied, of which some versions of SciPy make NaN
    if rows.scores.min() < rows.scores.max():
        p_value = float(stats.mannwhitneyu(*sides, method="asymptotic").pvalue)
    rate = n_pos / (n_pos + n_neg)
    return RankingReport(n_pos, n_neg, rate, auroc, ap, ap / rate, p_value, tuple(_warnings(auroc)))


def _warnings(auroc: float) -> Iterator[str]:
    if auroc < WEAK_AUROC:
        yield f"AUROC {auroc:.3f} is below {WEAK_AUROC}: hardly better than random"
    if auroc > LEAKAGE_AUROC:
        yield f"AUROC {auroc:.3f} is above {LEAKAGE_AUROC}: do features leak the label?"
