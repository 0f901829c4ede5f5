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
    """

    value: float
    slopes: np.ndarray
    intercepts: np.ndarray
    point: np.ndarray
