"""What a ranker adds to a score for one column: a straight line, or a piecewise linear curve.

    f(x) = values[b] + (values[b + 1] - values[b]) (x - t_b) / (t_{b+1} - t_b)     t_b <= x <= t_{b+1}

with knots ``t_0 < .. < t_B``, and the same straight line ``slope`` before the first and behind the
last of them. A score is the sum over the columns, ``sum_j f_j(x_j)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array


@dataclass(frozen=True)
class Curve:
    """The function of one column.

    Attributes
    ----------
    name : str
        Of the column: as in the data frame, else its number, counted from 0.
    knots : ndarray of shape (n_knots,)
        Where the slope may change, increasing. One knot says that the function is a straight line.
    values : ndarray of shape (n_knots,)
        The function at the knots; 0 at the first.
    slope : float
        Before the first knot and behind the last one.
    deviation : float
        Standard deviation within lists of what the column added to the scores in training.
    """

    name: str
    knots: Array
    values: Array
    slope: float
    deviation: float

    def __call__(self, x: ArrayLike) -> Array:
        """The function at some values of the column, an array of the same shape; NaN stays NaN."""
        x = np.asarray(x, dtype=np.float64)
        first = self.knots[0]
        last = self.knots[-1]
        beyond = np.minimum(x - first, 0.0) + np.maximum(x - last, 0.0)
        inside = np.interp(np.clip(x, first, last), self.knots, self.values)
        return np.asarray(inside + self.slope * beyond)
