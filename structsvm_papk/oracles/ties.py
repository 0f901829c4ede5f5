"""Other convex majorants of Ramp and ClippedRamp at a point where scores tie.

A majorant freezes the beta best positives and the clipped pairs (`surrogates.majorants`).
Where scores tie there is a choice, and along a direction v the right one is that of the scores just
ahead: ties are broken by ``x . v``. With M_v the latent majorant that breaks them so, and R' the
derivative of the risk along a direction,

    R'(w; v) = M_v'(w; v),     R'(w; u) <= M_v'(w; u)  for every u,

so w is stationary if and only if it minimises ``alpha/2 ||.||^2 + M_v`` for every v. There are as
many majorants as ways in which a direction can break the ties: finitely many, but too many to
try them all. Those of a fixed number of directions are tried, the steepest first: in one dimension
that is all, in two nearly so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.majorants import Majorant

_NEAR = 1e-3  # scores that differ by less tie, as w is not exact either; a margin is 1
_DIRECTIONS = 2  # looked at for each majorant that may be tried
_IN_THE_PLANE = 8  # with two features, whose directions can be covered


def tied_majorants(risk: ListRisk, w: Array, alpha: float, limit: int) -> Iterator[Majorant]:
    """Majorants at w with ties broken along other directions, each once, the steepest first.

    They are of kind 'latent', at most `limit`; at w each exceeds the risk by what was taken for a
    tie, at most. "Steepest" is said of ``alpha/2 ||w||^2 + R(w)``. Choosing them
    costs a few times as many products ``X @ v``, and two where nothing ties.
    """
    ties = _Ties(risk, w)
    directions = _directions(w.size, limit)
    if not ties.any_near() or ties.kept(directions[0]) == ties.kept(directions[1]):
        return  # what ties differently along a direction does so the other way round against it
    slopes = alpha * (directions @ w) + np.array([ties.slope(v) for v in directions])
    yielded = set()
    for v in directions[np.argsort(slopes, kind="stable")]:
        majorant = ties.majorant(v)
        kept = hashlib.blake2b(majorant.surrogate.selection()).digest()
        if kept not in yielded:
            yielded.add(kept)
            yield majorant
        if len(yielded) == limit:
            return


def _directions(n_features, limit):
    """Unit vectors, each followed by its opposite: all in one dimension, spread evenly in two."""
    if n_features == 1:
        return np.array([[1.0], [-1.0]])
    if n_features == 2:
        count = max(1, _IN_THE_PLANE * limit // 2)
        angle = np.pi * (np.arange(count) + 0.5) / count
        half = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        half = np.random.default_rng(0).normal(size=(max(1, _DIRECTIONS * limit // 2), n_features))
        half /= np.linalg.norm(half, axis=1)[:, None]
    return np.stack([half, -half], axis=1).reshape(-1, n_features)


class _Ties:
    """The scores at a point, those that nearly tie made equal, and how directions break them."""

    def __init__(self, risk, w):
        self.risk, data = risk, risk.data
        scores = risk.scores(w)
        order = np.lexsort((scores, data.user_of_position))
        ahead = np.diff(scores[order], prepend=-np.inf) > _NEAR
        ahead[data.indptr[:-1]] = True
        first = np.flatnonzero(ahead)
        self._cluster = np.empty(scores.size, dtype=np.int64)
        self._cluster[order] = np.cumsum(ahead) - 1
        self.scores = scores[order][first][self._cluster]

    def any_near(self):
        """Whether any positive ties."""
        sizes = np.bincount(self._cluster)
        return bool((sizes[self._cluster[self.risk.data.labels]] > 1).any())

    def _ahead(self, v):
        """The scores a little way along v: those that differ keep their order."""
        rise = self.risk.scores(v)
        largest = np.abs(rise).max()
        return self.scores + rise * (0.25 * _NEAR / max(largest, 1e-300)), rise

    def slope(self, v):
        """``R'(w; v)``."""
        ahead, rise = self._ahead(v)
        return self.risk.mean_slope(self.risk.user_values(ahead)[1], rise)

    def kept(self, v):
        """What is frozen along v, as bytes."""
        return self.majorant(v).surrogate.selection().tobytes()

    def majorant(self, v):
        """The majorant that breaks ties along v."""
        data = self.risk.data
        frozen = self.risk.surrogate.majorant(self._ahead(v)[0], data.indptr, data.n_pos)
        return Majorant(frozen, self.risk)
