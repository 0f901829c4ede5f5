"""Are probabilities right? Kept apart from ranking, which ignores any increasing transformation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data.validation import check_labels, check_scores
from structsvm_papk.errors import InputError


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted against observed rates per bin.

    Attributes
    ----------
    predicted, observed : ndarray, shape (n_bins_used,)
        Mean probability and share of positives in each non-empty bin.
    count : ndarray of int, shape (n_bins_used,)
    """

    predicted: np.ndarray
    observed: np.ndarray
    count: np.ndarray

    def expected_error(self) -> float:
        """Count-weighted mean distance |predicted - observed|."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.count))


def brier(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean squared distance of probability and label, in [0, 1], smaller is better."""
    probabilities, labels = _checked(probabilities, labels)
    return float(np.mean((probabilities - labels) ** 2))


def calibration_curve(
    probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10, strategy: str = "uniform"
) -> CalibrationCurve:
    """CalibrationCurve over equally wide (`uniform`) or equally full (`quantile`) bins."""
    probabilities, labels = _checked(probabilities, labels)
    if strategy == "uniform":
        inner = np.linspace(0, 1, n_bins + 1)[1:-1]
    elif strategy == "quantile":
        inner = np.quantile(probabilities, np.linspace(0, 1, n_bins + 1)[1:-1])
    else:
        raise InputError(f"strategy={strategy!r} is not known; choose uniform or quantile")
    bins = np.searchsorted(inner, probabilities, side="right")
    count = np.bincount(bins, minlength=n_bins)
    used = count > 0
    predicted = np.bincount(bins, probabilities, n_bins)[used] / count[used]
    observed = np.bincount(bins, labels, n_bins)[used] / count[used]
    return CalibrationCurve(predicted, observed, count[used])


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    probabilities = check_scores(probabilities, name="probabilities")
    labels = check_labels(labels, probabilities.size).astype(float)
    outside = ~((probabilities >= 0) & (probabilities <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"row {row} has the probability {probabilities[row]}; calibration needs values in "
            "[0, 1]. Scores that only rank have no calibration"
        )
    return probabilities, labels
