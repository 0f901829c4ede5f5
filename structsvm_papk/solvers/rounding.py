"""What rounding may do, in double precision, and below what a difference is taken for rounding.

The computed sum of n terms, in whatever order they are added, is off by at most n times `EPS` times
the sum of their absolute values (`EPS` is twice the unit roundoff u of ``paper/proofs.md``, so that
terms of higher order have room). Certificates rest on that: bounds are lowered, and objectives
raised, by what rounding may have done to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

EPS = float(np.finfo(np.float64).eps)
FEW = 24  # roundings of one number, beside the sums: margins, scales, counts, differences
OF_A_FEW = 16 * EPS  # of a number that few sums and products lead to, relative to their sizes

# shares of the objective, or of another number that a difference is compared with
NO_DECREASE = 1e-12  # a decrease below this one is rounding
CONTRADICTION = 1e-9  # a bound above the objective by this one proves that something is wrong


def error_of_sum(n_terms: Any, sizes: Any) -> Any:
    """How far sums of so many terms may be off; `sizes` are those of the absolute terms."""
    return (n_terms + FEW) * EPS * sizes


@dataclass(frozen=True)
class Rounding:
    """What rounding can do to a risk and its slopes, whatever w is.

    The risk at the computed scores is within ``scores . |w|`` of R(w), and a sum of one slope of
    each block is within `slopes` of what it was meant to be; both of shape (n_features,).
    """

    scores: np.ndarray
    slopes: np.ndarray

    def scaled(self, scale: np.ndarray | None) -> Rounding:
        """The bounds for features that are divided by a scale."""
        if scale is None:
            return self
        return Rounding(scores=self.scores / scale, slopes=self.slopes / scale)
