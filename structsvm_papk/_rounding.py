"""What rounding can do to sums: certificates rest on it.

The computed sum of n terms, in whatever order they are added, is off by at most n times `EPS` times
the sum of their absolute values. EPS is twice the unit roundoff u of docs/math/proofs.md, so that
terms of higher order have room. Bounds are lowered, and objectives raised, by what rounding may
have done to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array

EPS = float(np.finfo(np.float64).eps)
FEW_ROUNDINGS = 24  # of one number, beside the sums: margins, scales, counts, differences
OF_A_FEW = 16 * EPS  # of a number that few sums and products lead to, relative to their sizes


def error_of_sum(n_terms: Array | int, sizes: Array | float) -> Any:
    """How far sums of so many terms may be off; `sizes` are those of the absolute terms."""
    return (n_terms + FEW_ROUNDINGS) * EPS * sizes


@dataclass(frozen=True)
class Rounding:
    """What rounding can do to a risk and its slopes, whatever w is.

    The risk at the computed scores is within ``scores . |w|`` of R(w), and a sum of one slope of
    each block is within `slopes` of what it was meant to be; both of shape (n_features,).
    """

    scores: np.ndarray
    slopes: np.ndarray

    def scaled(self, scale: np.ndarray | None) -> Rounding:
        """The bounds for features that are divided by a scale, of any sign."""
        if scale is None:
            return self
        return Rounding(scores=self.scores / np.abs(scale), slopes=self.slopes / np.abs(scale))
