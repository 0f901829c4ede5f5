"""Whether 0 lies in the subdifferential at w = 0: the test for convex risks, see `zero_test`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.diagnosis.coordinates import Coordinates
from structsvm_papk.diagnosis.min_norm import min_norm_point
from structsvm_papk.oracles.list_risk import ListRisk

_SUM_ROUNDING = 64 * np.finfo(float).eps  # of a slope, relative to the entries that it is made of


class Verdict(StrEnum):
    """Whether w = 0 is optimal; each answer but the last has a proof."""

    DEGENERATE = "degenerate"  # 0 is the exact minimiser for every alpha
    INFORMATIVE = "informative"  # a direction lowers the surrogate
    UNDECIDED = "undecided"  # no direction was found, and no proof that there is none


@dataclass(frozen=True)
class ZeroTest:
    """Whether w = 0 minimises one risk.

    Attributes
    ----------
    verdict : Verdict
    distance : float
        Distance of 0 from the subdifferential at 0, from above: the norm of an element of it. For
        the surrogates that are not convex, of that of Avg, Max or a majorant, see `diagnose`; nan
        where nothing was computed.
    lower_bound : float
        Of the distance: ``-D(direction)``, how fast the surrogate falls along `direction`.
    direction : ndarray or None
        Unit vector along which the surrogate falls from 0.
    """

    verdict: Verdict
    distance: float
    lower_bound: float
    direction: Array | None = field(default=None, repr=False)


class Slopes:
    """The support points of the subdifferential at 0: gradients at tiny w.

    How tiny: let all scores be within s of 0. For TS, beta thresholds ``p - 1`` come first, then
    the others, ``p``. A pooled block of a of the former and b of the latter has its mean within s
    of ``-a/(a+b)``; the next threshold on its left is below that, and the next one on its right
    above, as soon as ``2 s < min(a, b)/(a+b)``, which is at least 1/n_pos. So all of them pool, at
    a threshold of ``mean(p) - beta/n_pos``, and a negative is above it if ``2 s < 1/n_pos``: all
    pairs count, which makes the slope n_pos/beta times that of Avg. The other hinges are active as
    soon as ``2 s < 1``. A tenth of what that allows is taken.
    """

    def __init__(self, risk: ListRisk) -> None:
        self.risk = risk
        self.n_features = risk.n_features
        self.small = 0.05 / risk.data.n_pos.max()

    def __call__(self, w: Array) -> Array:
        """A support point, shape (n_features,)."""
        slope: Array = self.of_blocks(w).sum(axis=0)
        return slope

    def of_blocks(self, w: Array) -> Array:
        """What each block adds to a support point, shape (n_blocks, n_features)."""
        scores = self.risk.scores(w)
        largest = np.abs(scores).max()
        if largest > 0.0:
            scores *= self.small / largest
        return self.risk.blocks_from_scores(scores)[1]


def convex_test(
    slopes: Slopes,
    tol: float,
    coordinates: Coordinates | None = None,
    max_iter: int | None = None,
    any_direction: bool = False,
) -> ZeroTest:
    """Whether 0 is in the subdifferential; a second look in other coordinates where it seems so."""
    noise = rounding_of(slopes.risk)
    how: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "any_direction": any_direction}
    nearest = min_norm_point(slopes, slopes.n_features, noise=noise, **how)
    if nearest.direction is not None:
        fall, w = nearest.lower_bound, nearest.direction
        return ZeroTest(Verdict.INFORMATIVE, nearest.distance, fall, w)
    there = coordinates or Coordinates(slopes.risk.data)
    scaled_noise = there.noise(noise)
    again = min_norm_point(there.of(slopes), slopes.n_features, noise=scaled_noise, **how)
    if again.direction is not None:
        w = there.T @ again.direction
        norm = float(np.linalg.norm(w))
        fall = again.lower_bound / norm
        return ZeroTest(Verdict.INFORMATIVE, nearest.distance, fall, w / norm)
    inside = all(one.distance <= 10 * tol * one.scale for one in (nearest, again))
    inside &= bool((noise <= 10 * tol * there.scale).all())  # otherwise X has too few digits
    verdict = Verdict.DEGENERATE if inside else Verdict.UNDECIDED
    return ZeroTest(verdict, nearest.distance, 0.0)


def rounding_of(risk: ListRisk) -> Array:
    """Bound of the rounding error of each entry of a slope: sums of multiples of rows of X."""
    data = risk.data
    heaviest = (data.n_pos / np.minimum(data.n_pos, risk.surrogate.k)).max()
    bound: Array = _SUM_ROUNDING * 2 * heaviest * data.divided(data.spread().largest)
    return bound
