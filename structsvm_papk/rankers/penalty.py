"""How strong the penalty is where nobody says: the rule behind ``alpha="auto"``.

    alpha = 2 d / n        d = sum_f var_f,    n = (sum_u v_u)^2 / sum_u v_u^2

d is the sum of the variances of the columns within lists, as the penalty sees them: the number of
columns that are not constant, where each is divided by its deviation. n is the number of lists that
train, with weights v of users their effective number. It is the mean squared norm of a row over the
number of lists, as in the default C of SVM^light (Joachims, Making large-scale SVM learning
practical, 1999), counted in lists because a list has one loss.

This is the only place where the rule stands; `Evidence` is all that it looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number

AUTO = "auto"
FACTOR = 2.0
_LEAST = 1e-150
_MOST = 1e150


@dataclass(frozen=True)
class Evidence:
    """What the rule knows of a problem.

    Attributes
    ----------
    variances : ndarray of shape (n_features,)
        Of the columns within lists, in the units in which the penalty sees them.
    row_entries : float
        Stored values of a row, in the mean: fewer than columns where X is sparse.
    is_sparse : bool
    n_lists : float
        Effective number of lists that train.
    n_pos : float
        Positives of those lists, in all.
    """

    variances: Array
    row_entries: float
    is_sparse: bool
    n_lists: float
    n_pos: float

    @classmethod
    def of(cls, given: Any, trained: Any) -> Evidence:
        """Of what `fit` was given, and of the lists of it that train: lists, or a risk of both."""
        deviation = given.deviation()
        scale = given.column_scale
        return cls(
            variances=np.square(deviation if scale is None else deviation / scale),
            row_entries=given.row_entries,
            is_sparse=given.is_sparse,
            n_lists=trained.effective_users,
            n_pos=trained.total_positives,
        )


def automatic_alpha(evidence: Evidence) -> float:
    """The strength that ``alpha="auto"`` stands for: ``2 d / n``.

    Of a sparse X, d is the stored values of a row times the mean variance of a column: the same
    number where every row stores every column, and less where most columns are rare.
    """
    variances = evidence.variances
    varying = variances[variances > 0.0]
    if not varying.size:
        return FACTOR / evidence.n_lists  # nothing to rank by: any strength gives w = 0
    d = float(varying.sum())
    if evidence.is_sparse:
        d = evidence.row_entries * float(varying.mean())
    n = evidence.n_lists
    if n < 2.0:
        n = max(evidence.n_pos, 1.0)  # one list has as much to say as it has positives
    return float(np.clip(FACTOR * d / n, _LEAST, _MOST))


def check_alpha(alpha: Any) -> None:
    """Refuse what is neither 'auto' nor a number above zero."""
    if isinstance(alpha, str):
        if alpha != AUTO:
            raise InputError(f"alpha={alpha!r} must be a number above 0, or 'auto'")
        return
    check_number("alpha", alpha, above=0)


def is_auto(alpha: Any) -> bool:
    """Whether a strength is left to the rule."""
    return isinstance(alpha, str) and alpha == AUTO
