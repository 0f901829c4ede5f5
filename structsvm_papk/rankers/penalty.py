"""How strong the penalty is where nobody says: the rule behind ``alpha="auto"``.

    alpha = 2 d / p        d = sum_f var_f,    p = positives of the lists that train

d is the sum of the variances of the columns within lists, as the penalty sees them: the number of
columns that are not constant, where each is divided by its deviation. It is the mean squared norm
of a row over the number of labels that say something, of which there are as many as positives:
lists of one positive say as much as there are lists, and one list of a hundred positives about as
much as a hundred of one. The default C of SVM^light has the same norm in it (Joachims, Making
large-scale SVM learning practical, 1999).

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
        Lists that train; with weights v of users ``(sum v)^2 / sum v^2``, their effective number.
    n_pos : float
        Positives of these lists: their mean number times `n_lists`.
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
        n_lists = trained.effective_users
        return cls(
            variances=np.square(deviation if scale is None else deviation / scale),
            row_entries=given.row_entries,
            is_sparse=given.is_sparse,
            n_lists=n_lists,
            n_pos=n_lists * (trained.total_positives / trained.n_users),
        )


def automatic_alpha(evidence: Evidence) -> float:
    """The strength that ``alpha="auto"`` stands for: ``2 d / p``.

    Of a sparse X, d is the stored values of a row times the mean variance of a column: the same
    number where every row stores every column, and less where most columns are rare.
    """
    variances = evidence.variances
    varying = variances[variances > 0.0]
    if not varying.size:
        return FACTOR / evidence.n_pos  # nothing to rank by: any strength gives w = 0
    d = float(varying.sum())
    if evidence.is_sparse:
        d = evidence.row_entries * float(varying.mean())
    return float(np.clip(FACTOR * d / evidence.n_pos, _LEAST, _MOST))


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
