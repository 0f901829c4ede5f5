"""Exact short lists: the rows that decide a surrogate, found without scoring all the others.

With a reference v at which the score ``x . v`` of a row is known, any c, any centre mu and any
positive diagonal D,

    x . w = c (x . v) + mu . r + (x - mu) . r,    r = w - c v,
    |(x - mu) . r| <= ||(x - mu) / D|| ||D r||,

so a row whose upper bound lies below the scores of m others is not among the m highest. The
rounding of both sides is added: the lists are those of a full pass (paper/proofs.md,
"Rows that need no score").
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import top_k
from structsvm_papk._types import Array, Callback
from structsvm_papk.data import features
from structsvm_papk.data.file_rows import FileRows
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.solvers.rounding import EPS
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.base import check_scores

_CHUNK_ROWS = 1 << 16
_SAMPLE_ROWS = 2000
_REFERENCE_BYTES = 1 << 25
_FEWEST_REFERENCES = 8
_MOST_REFERENCES = 1 << 10
_WORTH = 16  # positives for each one that is wanted, below which all are scored


class ShortLists:
    """For every user the positives (Max: the lowest of them) and the m highest negatives.

    `data` are the short lists of the last call: its `rows` change with every call, `indptr` and
    `n_pos` stay. `positions` says where each of its rows stands in the full lists. A row's last
    known score is that at one of `n_references` points, by default as many as fit in 32 MB.
    """

    def __init__(
        self,
        data: RankingData,
        surrogate: Surrogate,
        run: Callback,
        n_references: int | None = None,
    ) -> None:
        self._full = data
        self._run = run
        if n_references is None:
            affordable = _REFERENCE_BYTES // (8 * data.n_features)
            n_references = int(np.clip(affordable, _FEWEST_REFERENCES, _MOST_REFERENCES))
        self._n_references = n_references
        self._origins = data.origins() if surrogate.shift_invariant else None
        beta = np.minimum(data.n_pos, surrogate.k)
        low_only = surrogate.low_positives_only and data.n_pos.sum() > _WORTH * beta.sum()
        n_pos = beta if low_only else data.n_pos
        n_neg = surrogate.negatives_counted(data.n_neg)
        self._lay_out(n_pos, n_neg)
        first_slot = self.data.indptr[:-1]
        first_negative = data.indptr[:-1] + data.n_pos
        self._sides = [
            _Side(
                low=first_negative,
                high=data.indptr[1:],
                first_slot=first_slot + n_pos,
                wanted=n_neg,
                sign=1.0,
            )
        ]
        if low_only:
            self._sides.append(
                _Side(
                    low=data.indptr[:-1],
                    high=first_negative,
                    first_slot=first_slot,
                    wanted=n_pos,
                    sign=-1.0,
                )
            )
        self._start_at_the_origin()
        # slots of the rows that are in the short lists at every w
        self._fixed = np.empty(0, np.int64) if low_only else np.flatnonzero(self.data.labels)
        self._bounds: _Bounds | None = None
        self.n_visits = 0  # rows scored so far

    def _lay_out(self, n_pos, n_neg):
        full = self._full
        origins = self._origins
        sizes = n_pos + n_neg
        if origins is not None:
            # all rows of a user have one origin; a last user without rows has no first one
            first = np.minimum(full.indptr[:-1], full.rows.size - 1)
            origins = origins.at_positions(np.repeat(first, sizes))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.empty(indptr[-1], dtype=np.int64)
        X = full.X.kept if isinstance(full.X, FileRows) else full.X
        self.data = RankingData.from_parts(
            X=X,
            rows=rows,
            indptr=indptr,
            n_pos=n_pos,
            users=full.users,
            user_weight=full.user_weight,
            feature_names=full.feature_names,
            spread=full.spread(),
            origins=origins,
            column_scale=full.column_scale,
        )

    def _start_at_the_origin(self):
        """Every list's first rows: at w = 0 all rows tie."""
        short = self.data
        full = self._full
        within = np.arange(short.indptr[-1]) - np.repeat(short.indptr[:-1], short.sizes)
        n_pos = np.repeat(short.n_pos, short.sizes)
        left_out = np.repeat(full.n_pos - short.n_pos, short.sizes)
        within += np.where(within >= n_pos, left_out, 0)  # negatives stand behind all positives
        self.positions = np.repeat(full.indptr[:-1], short.sizes) + within
        self._at_the_origin = self.positions.copy()
        short.rows = full.rows[self.positions]

    def _take_rows(self):
        """Let the rows of the short lists be those at the present positions."""
        rows = self._full.rows[self.positions]
        X = self._full.X
        self.data.rows = X.keep(rows) if isinstance(X, FileRows) else rows

    def find(self, w: Array) -> Array:
        """Find the short lists at w; return their scores."""
        w = self._full.divided(np.ascontiguousarray(w, dtype=np.float64))
        if not w.any():
            self.positions[:] = self._at_the_origin
            self._take_rows()
            return np.zeros(self.positions.size)
        if self._bounds is None:
            self._bounds = _Bounds(self._full, self._run, self._origins, self._n_references)
        bounds = self._bounds
        bounds.move_to(w)
        scores = np.empty(self.positions.size)
        for side in self._sides:
            extremes = bounds.extremes(side, self.positions[side.slots])
            self.positions[side.slots] = extremes.positions
            scores[side.slots] = extremes.scores
            self.n_visits += extremes.n_visits
        scores[self._fixed] = bounds.score(self.positions[self._fixed])
        self.n_visits += self._fixed.size
        self._take_rows()
        return scores


class _Side:
    """One range of each user's list, and how many of its highest (sign 1) or lowest are wanted.

    These stand one user after the other, from `edges` on; `slots` are their places in the short
    lists.
    """

    def __init__(self, low, high, first_slot, wanted, sign):
        self.low = low
        self.high = high
        self.sign = sign
        self.wanted = np.broadcast_to(wanted, low.shape).astype(np.int64)
        self.edges = np.concatenate([[0], np.cumsum(self.wanted)])
        self.slots = np.arange(self.edges[-1])
        self.slots += np.repeat(first_slot - self.edges[:-1], self.wanted)
        self.pieces = _pieces(low, high)


class _Piece(NamedTuple):
    """Some of a side's rows: of each of these users the list positions from `low` to `high`."""

    users: Array
    low: Array
    high: Array


class _Extremes(NamedTuple):
    """List positions and scores of the rows that are wanted; how many were scored to find them."""

    positions: Array
    scores: Array
    n_visits: int


class _Bounds:
    """Last known score of every row, and how far it can be from there."""

    def __init__(self, data, run, origins, n_references):
        self.data = data
        self._run = run
        self._origins = origins
        self._centre, self._scale = _centre_and_scale(data, origins)
        self._norms = np.empty(data.rows.size, dtype=np.float32)
        run(self._measure, list(pairwise(_edges(data.rows.size))))
        self._scores = np.zeros(data.rows.size)
        self._reference = np.zeros(data.rows.size, dtype=np.int16)
        # the origin is the first, and stays
        self._points = np.zeros((n_references, data.n_features))
        self._present = 0  # the reference that is the present point
        self._n_used = 1

    def move_to(self, w):
        """Take w as the present point: bounds are for it, and rows are scored there."""
        self._present = 1 + self._present % (self._points.shape[0] - 1)
        if self._points[self._present].any():  # taken over from an older point
            stale = self._reference == self._present
            self._reference[stale] = 0  # at the origin every score is known
            self._scores[stale] = 0.0
        self._points[self._present] = w
        self._n_used = max(self._n_used, self._present + 1)
        with np.errstate(over="ignore", invalid="ignore"):  # a bound that is NaN excludes no row
            self._table = self._from_references(w)

    def _from_references(self, w):
        """Columns c, mu . r, ``||D r||`` and what rounding may add; one row for each reference."""
        points = self._points[: self._n_used]
        scaled = points * self._scale
        target = w * self._scale
        squares = np.einsum("rf,rf->r", scaled, scaled)
        # the c for which ||D r|| is smallest
        factor = scaled @ target / np.where(squares > 0.0, squares, 1.0)
        rest = w - factor[:, None] * points
        noise = 8.0 * EPS * (w.size + 8)
        radius = np.linalg.norm(rest * self._scale, axis=1)
        radius += noise * (radius + np.linalg.norm(target) + np.abs(factor) * np.sqrt(squares))
        centre = np.abs(self._centre)
        slack = noise * (centre @ np.abs(w) + np.abs(factor) * (np.abs(points) @ centre))
        return np.column_stack([factor, rest @ self._centre, radius, slack])

    def extremes(self, side, guess):
        """The rows of a side that are wanted. `guess` names as many rows of each user."""
        # as many rows as are wanted score at least this much: no row below it is one of them
        guessed = side.sign * self.score(guess)
        border = np.minimum.reduceat(guessed, side.edges[:-1])
        of_pieces: list[Any] = [None] * len(side.pieces)

        def visit(number):
            of_pieces[number] = self._visit(side, side.pieces[number], border)

        self._run(visit, [(number,) for number in range(len(side.pieces))])
        positions = np.concatenate([extremes.positions for extremes in of_pieces])
        scores = np.concatenate([extremes.scores for extremes in of_pieces])
        chosen = _highest(positions, side.sign * scores, side.low, side.high, side.wanted)
        return _Extremes(
            positions=positions[chosen],
            scores=scores[chosen],
            n_visits=guess.size + sum(extremes.n_visits for extremes in of_pieces),
        )

    def _visit(self, side, piece, border):
        """Score the rows of a piece that may be above the border; keep the highest of each user."""
        users, low, high = piece
        positions = _may_reach(
            self._scores,
            self._norms,
            self._reference,
            self._table,
            side.sign,
            border[users],
            low,
            high,
        )
        scores = self.score(positions)
        self._scores[positions] = scores
        self._reference[positions] = self._present
        kept = _highest(positions, side.sign * scores, low, high, side.wanted[users])
        return _Extremes(positions=positions[kept], scores=scores[kept], n_visits=positions.size)

    def score(self, positions):
        """``x . w`` of the rows at these list positions."""
        data = self.data
        out = np.empty(positions.size)
        w = self._points[self._present]
        origins = None if self._origins is None else self._origins.at_positions(positions)
        for X, rows, which in _parts_in_memory(data.X, data.rows[positions]):
            part = np.empty(rows.size)
            features.scores(X, rows, w, 0, rows.size, part, origins)
            out[which] = part
        check_scores(out)  # the selection must not meet NaN
        return out

    def _measure(self, low, high):
        """Norms of the centred and scaled rows, rounded up."""
        squares = np.empty(high - low)
        for X, rows, which in _parts_in_memory(self.data.X, self.data.rows[low:high]):
            if self._origins is not None:
                origins = self._origins.at_positions(slice(low, high))
                X = features.shifted_rows(X, rows, origins)
                rows = np.arange(high - low)
            if sparse.issparse(X):
                squares[which] = _csr_squares(X.data, X.indptr, rows)
            else:
                squares[which] = _squares(
                    features.read_only(X), rows, self._centre, 1.0 / self._scale
                )
        # 1e-6 is more than rounding to float32 takes away, 1e-37 more than underflow does
        with np.errstate(over="ignore"):  # an infinite norm excludes no row
            self._norms[low:high] = np.sqrt(squares) * (1.0 + 1e-6) + 1e-37


def _parts_in_memory(X, rows):
    """The rows as they are in memory: of a file a part at a time, else all.

    Yields ``(X, rows, which)``: the part's matrix, its rows there, and which of the rows they are.
    """
    if isinstance(X, FileRows):
        return X.pieces(rows)
    return ((X, rows, slice(None)),)


def _centre_and_scale(data, origins):
    """Mean and mean deviation of the features on a sample of rows; for sparse ones zero and one."""
    n_rows, d = data.X.shape if origins is None else (data.rows.size, data.n_features)
    chosen = np.linspace(0, n_rows - 1, min(n_rows, _SAMPLE_ROWS)).astype(np.int64)
    if origins is None:
        sample = data.X[chosen]
    else:
        sample = features.shifted_rows(data.X, data.rows[chosen], origins.at_positions(chosen))
    if sparse.issparse(sample):
        return np.zeros(d), np.ones(d)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = sample.mean(axis=0, dtype=np.float64)
        scale = np.abs(sample - centre).mean(axis=0)
        largest = scale.max()
    if not 0.0 < largest < np.inf:
        return np.zeros(d), np.ones(d)
    return centre, np.maximum(scale, 1e-3 * largest)


def _edges(n_rows):
    return np.linspace(0, n_rows, 2 + n_rows // _CHUNK_ROWS).astype(np.int64)


def _pieces(low, high):
    """The rows in pieces of about equal size; a long list is cut."""
    sizes = high - low
    before = np.concatenate([[0], np.cumsum(sizes)])
    pieces = []
    for start, stop in pairwise(_edges(before[-1])):
        first = np.searchsorted(before, start, side="right") - 1
        last = np.searchsorted(before, stop)
        users = np.arange(first, last)
        begin = np.maximum(start - before[users], 0) + low[users]
        end = np.minimum(stop - before[users], sizes[users]) + low[users]
        pieces.append(_Piece(users, begin, end))
    return pieces


@kernel
def _may_reach(scores, norms, reference, table, sign, border, low, high):
    """Positions of the rows whose upper bound is not below their list's border."""
    n_rows = 0
    for u in range(low.size):
        n_rows += high[u] - low[u]
    reached = np.empty(n_rows, dtype=np.int64)
    n_reached = 0
    for u in range(low.size):
        for p in range(low[u], high[u]):
            row = table[reference[p]]
            factor = row[0]
            shift = row[1]
            radius = row[2]
            slack = row[3]
            upper = sign * (factor * scores[p] + shift) + norms[p] * radius + slack
            if not upper < border[u]:  # a bound that is NaN excludes no row
                reached[n_reached] = p
                n_reached += 1
    return reached[:n_reached].copy()


def _highest(positions, scores, low, high, wanted):
    """Indices of the `wanted` highest scores between each pair of bounds, in order of position."""
    first = np.searchsorted(positions, low)
    last = np.searchsorted(positions, high)
    wanted = np.minimum(wanted, last - first)
    chosen = np.empty(wanted.sum(), dtype=np.int64)
    _choose(scores, first, last, wanted, chosen)
    return chosen


@kernel
def _choose(scores, first, last, wanted, chosen):
    n_chosen = 0
    for u in range(first.size):
        for position in top_k(scores[first[u] : last[u]], wanted[u]):
            chosen[n_chosen] = first[u] + position
            n_chosen += 1


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _squares(X, rows, centre, inverse):
    out = np.empty(rows.size)
    for i in range(rows.size):
        row = X[rows[i]]
        total = 0.0
        for f in range(centre.size):
            away = (row[f] - centre[f]) * inverse[f]
            total += away * away
        out[i] = total
    return out


@kernel
def _csr_squares(data, indptr, rows):
    out = np.zeros(rows.size)
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            out[i] += data[e] * data[e]
    return out
