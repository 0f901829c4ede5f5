"""Other convex majorants of Ramp and ClippedRamp at a point where scores tie.

A majorant freezes the beta best positives and the clipped pairs (`surrogates.majorants`).
Where scores tie there is a choice, and along a direction v the right one is that of the scores just
ahead: ties are broken by ``x . v``. With M_v the latent majorant that breaks them so, and R' the
derivative of the risk along a direction,

    R'(w; v) = M_v'(w; v),     R'(w; u) <= M_v'(w; u)  for every u,

so w is stationary if and only if it minimises ``alpha/2 ||.||^2 + M_v`` for every v. There are as
many majorants as ways in which a direction can break the ties: finitely many, but too many to
try them all. Those of a fixed number of directions are tried, the steepest first: in one dimension
that is all, in two nearly so. None is tried where scores come only as near each other as chance
brings them: those do not tie at w, which has one latent majorant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.majorants import Majorant

_NEAR = 1e-3  # scores that differ by less tie, as w is not exact either; a margin is 1
_FEW = 20  # ties that are tried whether or not they are more than chance brings
_DIRECTIONS = 16  # looked at, and their opposites; more if more majorants may be tried
_IN_THE_PLANE = 4  # times as many with two features, whose directions can be covered


def tied_majorants(risk: ListRisk, w: Array, alpha: float, limit: int) -> Iterator[Majorant]:
    """Majorants at w with ties broken along other directions, each once, the steepest first.

    They are of kind 'latent', at most `limit`; at w each exceeds the risk by what was taken for a
    tie, at most. "Steepest" is said of ``alpha/2 ||w||^2 + R(w)``. Choosing them costs 16 products
    ``X @ v`` (64 in the plane), and one where nothing ties but by chance.
    """
    ties = _Ties(risk, w)
    if ties.by_chance():
        return
    directions = _directions(w.size, limit)
    if ties.kept(ties.majorant(directions[0])) == ties.kept(ties.majorant(-directions[0])):
        return  # what ties differently along a direction does so the other way round against it
    signed = [(sign, v) for v in directions for sign in (1.0, -1.0)]
    slopes = [
        alpha * sign * (v @ w) + slope
        for v in directions
        for sign, slope in zip((1.0, -1.0), ties.slopes(v), strict=True)
    ]
    yielded = set()
    for place in np.argsort(slopes, kind="stable"):
        sign, v = signed[place]
        majorant = ties.majorant(sign * v)
        kept = ties.kept(majorant)
        if kept not in yielded:
            yielded.add(kept)
            yield majorant
        if len(yielded) == limit:
            return


def _directions(n_features, limit):
    """Unit vectors, without their opposites: all in one dimension, spread evenly in two."""
    if n_features == 1:
        return np.array([[1.0]])
    count = max(_DIRECTIONS, limit)
    if n_features == 2:
        count *= _IN_THE_PLANE
        angle = np.pi * (np.arange(count) + 0.5) / count
        return np.column_stack([np.cos(angle), np.sin(angle)])
    vectors = np.random.default_rng(0).normal(size=(count, n_features))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


class _Ties:
    """The scores at a point, those that nearly tie made equal, and how directions break them."""

    def __init__(self, risk, w):
        self.risk, data = risk, risk.data
        scores = risk.scores(w)
        order = np.lexsort((scores, data.user_of_position))
        gaps = np.diff(scores[order], prepend=-np.inf)
        gaps[data.indptr[:-1]] = np.inf
        ahead = gaps > _NEAR
        first = np.flatnonzero(ahead)
        self._cluster = np.empty(scores.size, dtype=np.int64)
        self._cluster[order] = np.cumsum(ahead) - 1
        self.scores = scores[order][first][self._cluster]
        self._near = np.flatnonzero(np.bincount(self._cluster)[self._cluster] > 1)
        positive = data.labels[order]
        positive[1:] |= positive[:-1]
        self._gaps = gaps[positive]

    def by_chance(self):
        """Whether no more scores come near those of positives than by chance.

        Those of real numbers come ten times as near to each other a tenth as often.
        """
        near, around = (int((self._gaps <= width).sum()) for width in (_NEAR, 10.0 * _NEAR))
        return near == 0 or (near > _FEW and around > 5 * near)

    def _ahead(self, rise):
        """The scores a little way along a direction: those that differ keep their order."""
        largest = np.abs(rise).max()
        return self.scores + rise * (0.25 * _NEAR / max(largest, 1e-300))

    def slopes(self, v):
        """``R'(w; v)`` and ``R'(w; -v)``."""
        rise = self.risk.scores(v)
        return [self._slope(rise), self._slope(-rise)]

    def _slope(self, rise):
        return self.risk.mean_slope(self.risk.user_values(self._ahead(rise))[1], rise)

    def kept(self, majorant):
        """What a majorant freezes where scores tie, as a key."""
        return hashlib.blake2b(majorant.surrogate.selection()[:, self._near].tobytes()).digest()

    def majorant(self, v):
        """The majorant that breaks ties along v."""
        data, ahead = self.risk.data, self._ahead(self.risk.scores(v))
        return Majorant(self.risk.surrogate.majorant(ahead, data.indptr, data.n_pos), self.risk)
