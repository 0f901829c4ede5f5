"""Ties in the scores, at which the majorants of a risk that is not convex have a choice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.surrogates.base import MajorantSurrogate

_NEAR = 1e-3  # scores that differ by less tie, as w is not exact either; a margin is 1
_FEW = 20  # ties that are tried whether or not they are more than chance brings
_DIRECTIONS = 16  # looked at, and their opposites; more if more majorants may be tried
_IN_THE_PLANE = 4  # times as many with two features, whose directions can be covered


class Ties:
    """Other convex majorants of Ramp and ClippedRamp at a point where scores tie.

    A majorant freezes the beta best positives and the clipped pairs (`surrogates.losses`). Where
    scores tie there is a choice, and along a direction v the right one is that of the scores just
    ahead: ties are broken by ``x . v``. With M_v the majorant that breaks them so, and R' the
    derivative of the risk along a direction,

        R'(w; v) = M_v'(w; v),     R'(w; u) <= M_v'(w; u)  for every u,

    so w is stationary if and only if it minimises ``alpha/2 ||.||^2 + M_v`` for every v. Those of a
    fixed number of directions are tried, the steepest first: in one dimension that is all, in two
    nearly so. None is tried where scores come only as near each other as chance brings them.
    """

    def __init__(self, risk: ListRisk, w: Array) -> None:
        self.risk = risk
        data = risk.data
        scores = risk.scores(w)
        order = np.lexsort((scores, data.user_of_position))
        gaps = np.diff(scores[order], prepend=-np.inf)
        gaps[data.indptr[:-1]] = np.inf
        ahead = gaps > _NEAR
        first = np.flatnonzero(ahead)
        cluster = np.empty(scores.size, dtype=np.int64)
        cluster[order] = np.cumsum(ahead) - 1
        self._scores = scores[order][first][cluster]
        self._near = np.flatnonzero(np.bincount(cluster)[cluster] > 1)
        positive = data.labels[order]
        positive[1:] |= positive[:-1]
        self._counts = np.array([(gaps[positive] <= x).sum() for x in (_NEAR, 10.0 * _NEAR)])

    def look(self, directions: Array) -> tuple[Array, Array, list[bytes]]:
        """What these users show along v_1, -v_1, v_2, -v_2, ..; sums and means of it can be taken.

        How many gaps between scores, one of them a positive's, are below two widths; ``R'(w; v)``;
        and what tells what the majorant there keeps.
        """
        slopes = []
        keys = []
        for v in directions:
            for sign in (1.0, -1.0):
                rise = sign * self.risk.scores(v)
                _, coef = self.risk.user_values(self._ahead(rise))
                slopes.append(self.risk.mean_slope(coef, rise))
                kept = self._frozen(rise).frozen[:, self._near]
                keys.append(hashlib.blake2b(kept.tobytes()).digest())
        return self._counts, np.array(slopes), keys

    def majorant(self, v: Array) -> MajorantSurrogate:
        """The surrogate's majorant that breaks ties along v."""
        return self._frozen(self.risk.scores(v))

    def _frozen(self, rise):
        data = self.risk.data
        return self.risk.surrogate.majorant(self._ahead(rise), data.indptr, data.n_pos)

    def _ahead(self, rise):
        """The scores a little way along a direction: those that differ keep their order."""
        largest = np.abs(rise).max()
        return self._scores + rise * (0.25 * _NEAR / max(largest, 1e-300))


def ways_to_break(look: Callback, w: Array, alpha: float, limit: int) -> Iterator[Array]:
    """Directions along which ties at w break differently, at most `limit`; `look` as in `Ties`.

    The steepest of ``alpha/2 ||w||^2 + R(w)`` first. Choosing them costs 16 products ``X @ v`` (64
    in the plane), and one where nothing ties but by chance.
    """
    directions = _directions(w.size, limit)
    near, around = look(directions[:0])[0]
    # the scores of real numbers come ten times as near to each other a tenth as often
    if near == 0 or (near > _FEW and around > 5 * near):
        return
    ahead, behind = look(directions[:1])[2]
    if ahead == behind:
        return  # what ties differently along a direction does so the other way round against it
    _, slopes, keys = look(directions)
    signed = np.stack([directions, -directions], axis=1).reshape(-1, w.size)
    tried: set[bytes] = set()
    for place in np.argsort(alpha * signed @ w + slopes, kind="stable"):
        if len(tried) < limit and keys[place] not in tried:
            tried.add(keys[place])
            yield signed[place]


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
