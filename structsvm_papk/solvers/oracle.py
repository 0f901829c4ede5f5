"""What an oracle tells a cutting-plane solver about a convex risk at one point."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cuts:
    """Lower bounds of a convex risk that are tight at one point.

    The risk is ``R(w) = min_s sum_j R_j(w, s)`` with convex R_j, where s is one more variable, or
    none. Every cut reads ``R_j(z) >= slopes[j] . z + intercepts[j]`` for ``z = (w, s)``, and all of
    them are tight at `point`.

    Attributes
    ----------
    value : float
        R(w).
    slopes : ndarray of shape (n_blocks, n_features) or (n_blocks, n_features + 1)
    intercepts : ndarray of shape (n_blocks,)
    point : ndarray
        (w, s), with the s that attains the minimum; ``0 <= s <= R(w)``. w alone without s.
    errors : ndarray of shape (n_blocks,), optional
        How far rounding may have put each intercept above what is right for the slopes as they
        were meant, and together the value from the risk at the computed scores. Without it the
        solver assumes what the sums in ``intercepts = values - slopes . point`` may lose.
    """

    value: float
    slopes: np.ndarray
    intercepts: np.ndarray
    point: np.ndarray
    errors: np.ndarray | None = None


@dataclass(frozen=True)
class Rounding:
    """What rounding can do to a risk and its slopes, whatever w is.

    Attributes
    ----------
    scores : ndarray of shape (n_features,)
        The risk at the computed scores is within ``scores . |w|`` of R(w).
    slopes : ndarray of shape (n_features,)
        A sum of one slope of each block is within this of what it was meant to be.
    """

    scores: np.ndarray
    slopes: np.ndarray

    def value(self, w: np.ndarray) -> float:
        """The bound of what rounding of the scores does to the risk at w."""
        return float(self.scores @ np.abs(w))
