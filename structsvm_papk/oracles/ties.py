"""Other convex majorants of Ramp and ClippedRamp at a point where scores tie.

A majorant freezes the beta best positives and the clipped pairs (`surrogates.losses`).
Where scores tie there is a choice, and along a direction v the right one is that of the scores just
ahead: ties are broken by ``x . v``. With M_v the majorant that breaks them so, and R' the
derivative of the risk along a direction,

    R'(w; v) = M_v'(w; v),     R'(w; u) <= M_v'(w; u)  for every u,

so w is stationary if and only if it minimises ``alpha/2 ||.||^2 + M_v`` for every v. Those of a
fixed number of directions are tried, the steepest first: in one dimension that is all, in two
nearly so. None is tried where scores come only as near each other as chance brings them.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.surrogates.base import MajorantSurrogate

_NEAR = 1e-3  # scores that differ by less tie, as w is not exact either; a margin is 1
_FEW = 20  # ties that are tried whether or not they are more than chance brings
_DIRECTIONS = 16  # looked at, and their opposites; more if more majorants may be tried
_IN_THE_PLANE = 4  # times as many with two features, whose directions can be covered


@dataclass(frozen=True)
class TieLook:
    """What users show of the ties at a point.

    `counts` are the gaps between scores, one of them a positive's, below two widths; `slopes` are
    ``R'(w; v)`` along v_1, -v_1, v_2, -v_2, ...; and `keys` tell what the majorant there keeps.
    """

    counts: Array
    slopes: Array
    keys: list[bytes]


def ways_to_break(
    look: Callable[[Array], TieLook], w: Array, alpha: float, limit: int
) -> Iterator[Array]:
    """Directions along which ties at w break differently, the steepest first, at most `limit`.

    "Steepest" is said of ``alpha/2 ||w||^2 + R(w)``. Choosing them costs 16 products ``X @ v`` (64
    in the plane), and one where nothing ties but by chance.
    """
    directions = _directions(w.size, limit)
    if _by_chance(*look(directions[:0]).counts):
        return
    ahead, behind = look(directions[:1]).keys
    if ahead == behind:
        return  # what ties differently along a direction does so the other way round against it
    seen = look(directions)
    signed = np.stack([directions, -directions], axis=1).reshape(-1, w.size)
    tried: set[bytes] = set()
    for place in np.argsort(alpha * signed @ w + seen.slopes, kind="stable"):
        if len(tried) < limit and seen.keys[place] not in tried:
            tried.add(seen.keys[place])
            yield signed[place]


def _by_chance(near, around):
    """Whether no more scores come near those of positives than by chance.

    Those of real numbers come ten times as near to each other a tenth as often.
    """
    return near == 0 or (near > _FEW and around > 5 * near)


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


class Ties:
    """The scores at a point, those that nearly tie made equal, and how directions break them."""

    def __init__(self, risk: ListRisk, w: Array) -> None:
        self.risk, data = risk, risk.data
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

    def look(self, directions: Array) -> TieLook:
        """What these users show along each direction and against it."""
        slopes, keys = [], []
        for v in directions:
            for sign in (1.0, -1.0):
                rise = sign * self.risk.scores(v)
                _, coef = self.risk.user_values(self._ahead(rise))
                slopes.append(self.risk.mean_slope(coef, rise))
                kept = self._frozen(rise).held[:, self._near]
                keys.append(hashlib.blake2b(kept.tobytes()).digest())
        return TieLook(self._counts, np.array(slopes), keys)

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
