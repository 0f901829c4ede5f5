"""How strong the penalty is where nobody says: the rule behind ``alpha="auto"``.

    alpha = 12 m (d / p)^1.5        d = (sum_f var_f)^2 / sum_f var_f^2,    m = mean of var_f

over the columns f that vary within lists, by their variances var_f there as the penalty sees them;
p is the number of positives of the lists that train. Where each column is divided by its deviation
m = 1 and d is their number: columns against labels that say something. A list of eighty positives
says more than one of three, so lists do not count. Where the columns are not of one size, as those
of a sparse X and rare indicators beside numbers, d is their effective number (the participation
ratio), and with m their unit does not matter.

Power and factor are measured (`docs/howto/tune.md`, `docs/howto/sparse.md`): loss to the best alpha
in hindsight on seven sets, 2 to 1,000 lists. The default C of SVM^light (Joachims, Making
large-scale SVM learning practical, 1999) has the sum of the variances in it, too.

One list says nothing about other lists, and how clean its labels are decides: there alpha is chosen
by folds of its rows (`one_list`), and is .1 m where they are too few or too many for that.

This is the only place where the rule stands; `Evidence` is all that it looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number

AUTO = "auto"
FACTOR = 12.0
POWER = 1.5
OF_ONE_LIST = 0.1
_LEAST = 1e-150
_MOST = 1e150
_OVERFLOWS = 1e300  # as the variance of a column that is not divided by its own deviation


@dataclass(frozen=True)
class Evidence:
    """What the rule knows of a problem.

    Attributes
    ----------
    variances : ndarray of shape (n_features,)
        Of the columns within lists, in the units in which the penalty sees them.
    n_lists : float
        Lists that train; with weights v of users ``(sum v)^2 / sum v^2``, their effective number.
    n_pos : float
        Positives of these lists: their mean number times `n_lists`; of grades as
        `RankingData.total_positives` counts.
    """

    variances: Array
    n_lists: float
    n_pos: float

    @classmethod
    def of(cls, given: Any, trained: Any) -> Evidence:
        """Of what `fit` was given, and of the lists of it that train: lists, or a risk of both."""
        deviation = given.deviation()
        if given.column_scale is not None:
            deviation = deviation / given.column_scale
        n_lists = trained.effective_users
        with np.errstate(over="ignore"):  # of columns that are left out below
            variances = np.square(deviation)
        return cls(
            variances=variances,
            n_lists=n_lists,
            n_pos=n_lists * (trained.total_positives / trained.n_users),
        )

    @property
    def n_columns(self) -> float:
        """Effective number of columns, ``(sum var)^2 / sum var^2``; 1 where none varies."""
        varying = self._varying
        if not varying.size:
            return 1.0
        shares = varying / varying.max()  # so that their squares are numbers
        return float(shares.sum() ** 2 / np.square(shares).sum())

    @property
    def mean_variance(self) -> float:
        """Of the columns that vary; 1 where none does."""
        varying = self._varying
        if not varying.size:
            return 1.0
        mean = varying.max() * np.mean(varying / varying.max())
        return float(np.clip(mean, _LEAST, _MOST))

    @property
    def _varying(self) -> Array:
        """Variances above zero.

        One that overflows would make the penalty so strong that the other columns had no weight,
        so it counts, as the largest number there is room for, only where all overflow.
        """
        varying = self.variances[self.variances > 0.0]
        usual = varying[varying < _OVERFLOWS]
        return usual if usual.size else np.minimum(varying, _OVERFLOWS)


def automatic_alpha(evidence: Evidence) -> float:
    """The strength that ``alpha="auto"`` stands for."""
    if evidence.n_lists <= 1.0:
        return OF_ONE_LIST * evidence.mean_variance
    return FACTOR * evidence.mean_variance * (evidence.n_columns / evidence.n_pos) ** POWER


def check_alpha(alpha: Any) -> None:
    """Refuse what is neither 'auto' nor a number above zero."""
    if isinstance(alpha, str):
        if alpha != AUTO:
            raise InputError(f"alpha={alpha!r} must be a number above 0, or 'auto'")
        return
    check_number("alpha", alpha, above=0)


def is_auto(value: Any) -> bool:
    """Whether something is left to the rule."""
    return isinstance(value, str) and value == AUTO
