"""The cutting-plane model of a risk, and a dual point of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsvm_papk._cholesky import factor_of
from structsvm_papk._jit import kernel
from structsvm_papk._rounding import EPS, OF_A_FEW
from structsvm_papk._types import Array
from structsvm_papk.solvers.metric import WIDE, StepMetric
from structsvm_papk.solvers.oracle import Oracle
from structsvm_papk.solvers.qp import RestrictedQP, at_corner, onto_simplices

_SWEEPS = 20  # before each of the moves along a face
_MOVES = 4  # along faces that have to halve the gap, else the QP is asked
_CONJUGATE = 25  # steps in one of them; the face changes anyway
_ENOUGH = 1e-4  # of the square of the slope along a face: what may be left of it
_HALVINGS = 6  # of a move that would lower the dual
_STEPS = 2  # in one block and sweep, for each of its cuts; fewer where the block is as close
_CLOSE = 0.01  # to its maximum, as a share of how far it was
_FEW_BLOCKS = 8  # with fewer, coordinate steps crawl and the QP is small
_CORNER_BLOCKS = 32  # with more, to move weight to few cuts takes longer than these save
_ROUNDS = 12
_FREE_ROUNDS = 12  # guesses at which weights are zero, where some may not be negative
_WORTH = 1e-6  # of the gap, by which such a guess has to raise the dual for another one
_BISECTIONS = 40
_NEGLIGIBLE = 1e-10  # dual weight that only an interior point gives
_PRODUCTS = 1.7  # of an evaluation may be as many as those of cuts with cuts
_NUMBERS = 120_000  # in the cuts of an evaluation
_MOST = 400  # cuts of an evaluation,
_A_BLOCK = 2000  # numbers in the data for each of them
_SMALL = 0.1  # of the entries of the data: the numbers in the cuts of an evaluation
_WIDE_IDLE = 2  # iterations that a cut may be idle there


def default_blocks(oracle: Oracle) -> int:
    """As many cuts an iteration as save passes, as long as they stay small beside the data.

    At most 400, and fewer of many features: else restricted problems take longer than passes are
    saved.
    """
    usual = _usual_blocks(oracle)
    return usual if oracle.most_blocks is None else min(usual, oracle.most_blocks)


def _usual_blocks(oracle):
    d = oracle.n_features
    if d > WIDE:  # each cut costs a product with every other: not more than an evaluation does
        pays = np.sqrt(_PRODUCTS * oracle.n_entries / d)
        affordable = max(1, (8 << 20) // (8 * d))
        return int(min(np.clip(pays, 20, 100), affordable))
    usual = int(np.clip(min(_NUMBERS // d, oracle.n_entries // _A_BLOCK), 32, _MOST))
    small = int(_SMALL * oracle.n_entries / d)
    return min(usual, max(small, 32))


class CutModel:
    """Cuts ``R_j(z) >= a_i . z + b_i`` of every block j, and a dual point of them.

    The variables are ``z = w``, or ``z = (w, s)`` for a risk ``R(w) = min_s sum_j R_j(w, s)``. The
    model is ``sum_j max_(cuts i of block j) (a_i . z + b_i)``. The dual point `theta` is
    non-negative and sums to 1 over each block; see `lower_bound`.

    All minima are over the z whose weights are at least `floor`, shape (n_features,): 0, or -inf
    for a weight that may have any sign.

    Cuts live in slots that are reused; `order` lists the slots in use, block after block. With many
    features the cuts' inner products are kept, and the restricted problem is solved in their span.
    """

    def __init__(
        self,
        floor: Array,
        n_variables: int,
        n_blocks: int,
        qp_solver: str,
        metric: StepMetric | None = None,
    ) -> None:
        self.n_features = floor.size
        self._metric = StepMetric() if metric is None else metric
        self.n_blocks = n_blocks
        self.floor = np.full(n_variables, -np.inf)  # of z
        self.floor[: floor.size] = floor
        self.signed = bool(np.isfinite(floor).any())
        self.qp = RestrictedQP(qp_solver)
        self._slopes = np.empty((0, n_variables))
        self._turned = self._slopes.copy()  # along the axes of a metric that has some
        self._intercepts = np.empty(0)
        self._block = np.empty(0, dtype=np.int64)
        self._theta = np.empty(0)  # zero in the slots that are free
        self._total: Array | None = None  # slope by these weights, once it was asked for
        self._norms = np.empty(0)
        self._idle = np.empty(0, dtype=np.int64)
        self._kept = np.empty(0, dtype=bool)
        self._added = np.empty(0, dtype=np.int64)
        # where weights have signs, which features are free changes in every iteration
        wide = floor.size > WIDE and not self.signed
        self._gram = np.empty((0, 0)) if wide else None
        self.order = np.empty(0, dtype=np.int64)
        self.starts = np.zeros(n_blocks, dtype=np.int64)

    def cuts(self, active: bool = False) -> tuple[Array, Array, Array]:
        """``(slopes, intercepts, blocks)`` of all cuts, or of those with dual weight: the bound."""
        slots = self.order[self._theta[self.order] > 0.0] if active else self.order
        return self._slopes[slots], self._intercepts[slots], self._block[slots]

    def add(self, slopes: Array, intercepts: Array, blocks: Array) -> None:
        """Add cuts with dual weight zero, or one where their block had none."""
        slots = self._free_slots(intercepts.size)
        self._slopes[slots] = slopes
        if self._metric.axes is not None:
            self._turned[slots] = self._metric.along_axes(slopes)
        self._intercepts[slots] = intercepts
        self._block[slots] = blocks
        self._idle[slots] = 0
        self._theta[slots] = 0.0
        self._added = slots
        self._norms[slots] = np.linalg.norm(slopes, axis=1)
        self._list(np.concatenate([self.order, slots]))
        if self._gram is not None:
            used = self._slopes[self.order, : self.n_features]
            products = self._slopes[slots, : self.n_features] @ used.T
            self._gram[np.ix_(slots, self.order)] = products
            self._gram[np.ix_(self.order, slots)] = products.T
        without = np.add.reduceat(self._theta[self.order], self.starts) == 0.0
        if without.any():
            self._theta[self.order[self.starts[without]]] = 1.0
            self._total = None

    def keep_added(self) -> None:
        """Keep the cuts that were added last, of the best point, in place of those kept before.

        Without them the model would promise a decrease near that point that is none.
        """
        self._kept[:] = False
        self._kept[self._added] = True

    def drop_idle(self, max_idle: int) -> None:
        """Drop the cuts that have had no dual weight for more than `max_idle` iterations.

        Sooner where each costs a product with every other. Those that are kept stay.
        """
        if self._gram is not None:
            max_idle = min(max_idle, _WIDE_IDLE)
        active = self._theta[self.order] > 0.0
        self._idle[self.order] = np.where(active, 0, self._idle[self.order] + 1)
        keep = self._idle[self.order] <= max_idle
        keep |= self._kept[self.order]
        if not keep.all():
            self._list(self.order[keep])

    def minimise(self, centre: Array, curvature: Array, target: float) -> tuple[Array, float]:
        """Improve the dual point for ``min_z sum_a curvature_a/2 (z_a - centre_a)^2 + model(z)``.

        The sum is over the axes of the metric, or the features. Returns the z that belongs to the
        dual point, and ``model(z)``. Coordinate steps over the blocks first; where they do not
        reach the wanted duality gap `target`, the restricted QP on the cuts that matter. Both work
        in coordinates in which the curvature, the same for all axes, is 1 and the centre 0.
        """
        heights = self._intercepts[self.order] + (self._slopes @ centre)[self.order]
        theta = self._theta[self.order]
        if self.signed:
            theta, rise = self._rise_above_floor(heights, theta, centre, curvature, target)
        else:
            theta, rise = self._improve(self._products(curvature), heights, theta, target)
        self._theta[self.order] = theta
        self._total = None
        step = self._metric.along_axes(self._total_slope()) / curvature
        z = np.maximum(centre - self._metric.of_features(step), self.floor)
        return z, np.maximum.reduceat(heights + rise, self.starts).sum()

    def _improve(
        self, products: _Products, heights: Array, theta: Array, target: float
    ) -> _Improved:
        """Weights whose duality gap is `target`, or as close to it as the methods come.

        In coordinates with curvature 1 and centre 0. Each round works on the cuts that matter so
        far: those with weight, and the highest of each block.
        """
        theta = onto_simplices(theta, self.starts)  # the sums of weights drift
        rise = products.rise(theta)
        block = self._block[self.order]
        matter = np.zeros(theta.size, dtype=bool)
        for _ in range(_ROUNDS):
            now = heights + rise
            if self._gap(theta, now) <= target:
                break
            matter |= theta > 0.0  # also of cuts that only the QP has looked at
            matter |= now >= np.maximum.reduceat(now, self.starts)[block]
            better = self._restricted(products, heights, theta, matter, 0.5 * target)
            if better is None:
                break
            rise_there = products.rise(better)
            if _dual(better, heights, rise_there) < _dual(theta, heights, rise) - target:
                break  # rounding has spoilt the answer
            theta = better
            rise = rise_there
        return _Improved(theta, rise)

    def _restricted(
        self,
        products: _Products,
        heights: Array,
        theta: Array,
        matter: Array,
        target: float,
    ) -> Array | None:
        """Better weights of cuts that matter, of the others 0; None where every solver failed.

        Coordinate steps find which cuts have weight, steps by conjugate gradients how much, as in
        Moré and Toraldo, "On the solution of large quadratic programming problems with bound
        constraints", SIAM J. Optimization 1 (1991). Where they do not reach the target, the
        restricted QP, of all cuts where most matter: to ask it again with more takes longer.
        """
        better = np.zeros(theta.size)
        chosen = np.flatnonzero(matter)
        if self.n_blocks >= _FEW_BLOCKS:
            starts = self._starts_of(chosen)
            some = products.of(chosen)
            weights = theta[chosen]
            gaps = [np.inf]
            while len(gaps) <= _MOVES or gaps[-1] < 0.5 * gaps[-1 - _MOVES]:
                gaps.append(some.sweep(heights[chosen], starts, weights, target))
                if gaps[-1] <= target:
                    better[chosen] = onto_simplices(weights, starts)
                    return better
                weights = _along_face(some, heights[chosen], starts, weights)
        if 2 * chosen.size > theta.size:
            chosen = np.arange(theta.size)
        starts = self._starts_of(chosen)
        slopes = products.of(chosen).slopes()
        answer = self.qp.solve(slopes, heights[chosen], self._block[self.order[chosen]], target)
        if answer is None:
            return None
        weights = np.where(answer < _NEGLIGIBLE, 0.0, answer)  # else none ever idle
        if self.n_blocks <= _CORNER_BLOCKS:
            weights = at_corner(weights, slopes, heights[chosen], starts)
        better[chosen] = onto_simplices(weights, starts)
        return better

    def _starts_of(self, chosen: Array) -> Array:
        """Where each block's cuts begin among some of all, at least one of each block."""
        return np.searchsorted(self._block[self.order[chosen]], np.arange(self.n_blocks))

    def _gap(self, theta: Array, heights: Array) -> float:
        """Duality gap of weights at whose point the cuts have these heights."""
        return np.maximum.reduceat(heights, self.starts).sum() - heights @ theta

    def _rise_above_floor(
        self, heights: Array, theta: Array, centre: Array, curvature: Array, target: float
    ) -> tuple[Array, Array]:
        """As `_improve` where z has a floor; with what the cuts rise to at the new z.

        The z that belongs to weights is ``max(centre - A' theta / curvature, floor)``. While the
        features that are at the floor stay there, the dual is that of a problem in the others
        without signs: its answer is taken where it reaches `target` with the floor too. Else it is
        a Newton step for the weights, and as the dual is concave, an exact line search along the
        step makes sure that it rises. It ends when the guess at which features are at the floor was
        right.
        """
        root = np.sqrt(curvature)
        slopes = self._slopes_over(root)
        floor = root * (self.floor - centre)
        here = self._above_floor(theta, slopes, heights, floor)
        before = -np.inf
        for _ in range(_FREE_ROUNDS):
            dual = float(here.heights @ here.theta + here.v @ here.v / 2)
            if here.gap <= target or dual - before <= _WORTH * here.gap:
                break
            before = dual
            free = here.v > floor
            fixed = heights + slopes[:, ~free] @ floor[~free]
            products = _products_of(slopes[:, free])
            answer = self._improve(products, fixed, here.theta, 0.5 * target).theta
            there = self._above_floor(answer, slopes, heights, floor)
            # near the optimum the dual is flat: within its tolerance the answer may be below where
            # it came from, and its z far better
            if there.gap > target:
                length = self._length(answer - here.theta, here.theta, slopes, heights, floor)
                answer = onto_simplices(here.theta + length * (answer - here.theta), self.starts)
                there = self._above_floor(answer, slopes, heights, floor)
            here = there
        return here.theta, here.heights - heights

    def _above_floor(
        self, theta: Array, slopes: Array, heights: Array, floor: Array
    ) -> _AboveFloor:
        """What belongs to dual weights, in coordinates with curvature 1 and centre 0."""
        v = np.maximum(-(theta @ slopes), floor)
        now = heights + slopes @ v
        return _AboveFloor(theta, v, now, self._gap(theta, now))

    def _length(
        self, step: Array, theta: Array, slopes: Array, heights: Array, floor: Array
    ) -> float:
        """Where in [0, 1] the dual is largest along a step of the weights."""
        origin = -(theta @ slopes)
        direction = -(step @ slopes)
        gain = heights @ step

        def rises(t: float) -> bool:
            return gain - direction @ np.maximum(origin + t * direction, floor) >= 0.0

        if rises(1.0):
            return 1.0
        low = 0.0
        high = 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if rises(middle):
                low = middle
            else:
                high = middle
        return low

    def _products(self, curvature: Array) -> _Slopes | _InnerProducts:
        """The cuts in coordinates with curvature 1."""
        if self._gram is None:
            slopes = self._slopes if self._metric.axes is None else self._turned
            return _Slopes(slopes, self.order, curvature)
        gram = self._gram[np.ix_(self.order, self.order)] / curvature[0]
        others = self._slopes[self.order, self.n_features :] / np.sqrt(curvature[self.n_features :])
        return _InnerProducts(gram + others @ others.T if others.size else gram)

    def _slopes_over(self, root: Array) -> Array:
        """Slopes of the cuts divided by these numbers, in the memory of one copy."""
        slopes = self._slopes[self.order]
        slopes /= root
        return slopes

    def _total_slope(self) -> Array:
        """``A' theta``, the slope of all cuts by their weights."""
        if self._total is None:
            active = np.flatnonzero(self._theta)
            self._total = self._theta[active] @ self._slopes[active]
        return self._total

    def least_at_zero(self) -> float:
        """What the risk at w = 0 is at least; -inf where there is an s."""
        if self._slopes.shape[1] > self.n_features:
            return -np.inf
        heights = self._intercepts[self.order]
        return float(np.maximum.reduceat(heights, self.starts).sum())

    def dual_point(self, alpha: float) -> Array:
        """The w at which the dual point's bound is attained: ``max(-g_w / alpha, floor)``."""
        w = -self._total_slope()[: self.n_features] / alpha
        return np.maximum(w, self.floor[: self.n_features])

    def lower_bound(
        self, alpha: float, upper_bound: float, slope_errors: Array | float = 0.0
    ) -> float:
        """Certified lower bound of ``min_w alpha/2 ||w||^2 + R(w)`` from the dual point.

        With ``g = A' theta`` it is ``b . theta - ||g_w||^2 / (2 alpha)``; where there is an s, it
        lies between 0 and the optimum, so ``min(0, g_s)`` times an upper bound of that is added.
        Rounding may have put g off by `slope_errors` before it was summed, and by `off` in the sum:
        the bound is taken at the worst g within both, less what the other sums may have lost
        (``docs/math/proofs.md``). Of weights that are >= 0, ``(-g_w)_+`` is in place of g_w.
        """
        theta = self._theta
        d = self.n_features
        noise = OF_A_FEW + np.count_nonzero(theta) * EPS
        total = self._total_slope()
        slope = np.minimum(total[:d], -self.floor[:d])  # a w >= 0 cannot follow one that rises
        rest = total[d:] - noise * (theta @ np.abs(self._slopes[:, d:]))
        with np.errstate(over="ignore", invalid="ignore"):  # then there is no bound
            least = np.minimum(rest, 0.0).sum() * upper_bound
            square = slope @ slope / (2 * alpha)
            off = noise * (theta @ self._norms)
            worse = np.sum(slope_errors * np.abs(slope)) + off * np.linalg.norm(slope)
            worse += 0.5 * (off + np.linalg.norm(slope_errors)) ** 2
            rounding = noise * (theta @ np.abs(self._intercepts) + abs(least))
            rounding += (OF_A_FEW + d * EPS) * square
            return theta @ self._intercepts - square + least - worse / alpha - rounding

    def _free_slots(self, n: int) -> Array:
        size = self._block.size
        used = np.zeros(size, dtype=bool)  # `setdiff1d` would sort, in every iteration
        used[self.order] = True
        free = np.flatnonzero(~used)
        if free.size < n:
            extra = max(n - free.size, size // 2)
            self._slopes = _longer(self._slopes, extra)
            if self._metric.axes is not None:
                self._turned = _longer(self._turned, extra)
            self._intercepts = _longer(self._intercepts, extra)
            self._block = _longer(self._block, extra)
            self._theta = _longer(self._theta, extra)
            self._norms = _longer(self._norms, extra)
            self._idle = _longer(self._idle, extra)
            self._kept = _longer(self._kept, extra)
            if self._gram is not None:
                self._gram = np.pad(self._gram, (0, extra))
            free = np.append(free, np.arange(size, size + extra))
        return free[:n]

    def _list(self, slots: Array) -> None:
        self.order = slots[np.argsort(self._block[slots], kind="stable")]
        counts = np.bincount(self._block[self.order], minlength=self.n_blocks)
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])


class _AboveFloor(NamedTuple):
    """Dual weights, the point above the floor that belongs to them, the cuts there, their gap."""

    theta: Array
    v: Array
    heights: Array
    gap: float


def _longer(array: Array, n: int) -> Array:
    """An array with n zeros, or rows of zeros, after its own; `np.pad` takes ten times as long."""
    return np.concatenate([array, np.zeros((n, *array.shape[1:]), array.dtype)])


class _Improved(NamedTuple):
    """Weights of the cuts, and by how much each cut is higher at the point that belongs to them."""

    theta: Array
    rise: Array


class _Slopes:
    """Cuts by their slopes ``a_i / sqrt(curvature)``, in coordinates with curvature 1 and centre 0.

    They are not written out: of many cuts few matter. Cut i has the slope ``slopes[order[i]]``.
    """

    def __init__(self, slopes: Array, order: Array, curvature: Array) -> None:
        self._slopes = slopes
        self._order = order
        self._curvature = curvature

    def rise(self, theta: Array) -> Array:
        """By how much each cut is higher at ``-A' theta`` than at 0."""
        active = np.flatnonzero(theta)
        total = theta[active] @ self._slopes[self._order[active]]
        return -(self._slopes @ (total / self._curvature))[self._order]

    def of(self, chosen: Array) -> _WrittenOut:
        """Some of the cuts."""
        slopes = self._slopes[self._order[chosen]]
        slopes /= np.sqrt(self._curvature)
        return _WrittenOut(slopes)


class _WrittenOut:
    """The slopes of the cuts of a restricted problem, in these coordinates."""

    def __init__(self, slopes: Array) -> None:
        self._slopes = slopes

    def rise(self, theta: Array) -> Array:
        """By how much each cut is higher at ``-A' theta`` than at 0."""
        return -(self._slopes @ (theta @ self._slopes))

    def of(self, chosen: Array) -> _WrittenOut:
        """Some of the cuts."""
        return _WrittenOut(self._slopes[chosen])

    def slopes(self) -> Array:
        """Of each cut, a row."""
        return self._slopes

    def sweep(self, heights: Array, starts: Array, theta: Array, target: float) -> float:
        """Sweeps of coordinate steps on theta, in place; the gap that they leave."""
        v = -(theta @ self._slopes)
        return block_sweeps(self._slopes, heights, starts, theta, v, _SWEEPS, target)


class _InnerProducts:
    """Cuts by the inner products of their slopes, where features are more than cuts."""

    def __init__(self, gram: Array) -> None:
        self._gram = gram

    def rise(self, theta: Array) -> Array:
        """By how much each cut is higher at ``-A' theta`` than at 0."""
        return -(self._gram @ theta)

    def of(self, chosen: Array) -> _InnerProducts:
        """Some of the cuts."""
        return _InnerProducts(self._gram[np.ix_(chosen, chosen)])

    def slopes(self) -> Array:
        """Slopes with these inner products, in the span of the cuts.

        Old cuts may be a thousand times as steep as the ones that matter: nothing is left out but
        the rounding of one product.
        """
        return factor_of(self._gram, EPS * self._gram.diagonal().max(initial=0.0)).rows

    def sweep(self, heights: Array, starts: Array, theta: Array, target: float) -> float:
        """As of `_WrittenOut`; a step costs as many products as there are cuts."""
        now = heights + self.rise(theta)
        return gram_sweeps(self._gram, now, starts, theta, _SWEEPS, target)


_Products = _Slopes | _WrittenOut | _InnerProducts


def _along_face(
    cuts: _WrittenOut | _InnerProducts, heights: Array, starts: Array, theta: Array
) -> Array:
    """Weights with a higher dual, by a move of those above 0 that leaves the sum of each block.

    Conjugate gradients maximise the dual, as if weights could be negative, then the move is
    shortened until the dual rises at the nearest weights that are not; `theta` where it never does.
    """
    face = np.flatnonzero(theta > 0.0)
    on_face = cuts.of(face)
    face_starts = np.searchsorted(face, starts)
    sizes = np.diff(face_starts, append=face.size)

    def level(values: Array) -> Array:
        return values - np.repeat(np.add.reduceat(values, face_starts) / sizes, sizes)

    slope = level(heights[face] + on_face.rise(theta[face]))
    square = slope @ slope
    enough = _ENOUGH * square
    move = np.zeros(face.size)
    direction = slope
    for _ in range(_CONJUGATE):
        rise = on_face.rise(direction)
        curvature = -(rise @ direction)
        if square <= enough or curvature <= EPS * square:
            break
        move += square / curvature * direction
        slope = slope + square / curvature * level(rise)
        before = square
        square = slope @ slope
        direction = slope + square / before * direction

    here = _dual(theta, heights, cuts.rise(theta))
    for halving in range(_HALVINGS):
        there = theta.copy()
        there[face] += move / 2**halving
        there = onto_simplices(there, starts)
        if _dual(there, heights, cuts.rise(there)) > here:
            return there
    return theta


def _dual(theta: Array, heights: Array, rise: Array) -> float:
    """``heights . theta - ||A' theta||^2 / 2``, by how much the cuts rise at ``-A' theta``."""
    return float(heights @ theta + theta @ rise / 2)


def _products_of(slopes: Array) -> _WrittenOut | _InnerProducts:
    """By slopes or inner products, whatever is smaller."""
    if slopes.shape[1] <= max(WIDE, slopes.shape[0]):
        return _WrittenOut(slopes)
    return _InnerProducts(slopes @ slopes.T)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _height(slope: Array, intercept: float, v: Array) -> float:
    total = intercept
    for f in range(v.size):
        total += slope[f] * v[f]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _add(slope: Array, times: float, v: Array) -> None:
    for f in range(v.size):
        v[f] += times * slope[f]


@kernel
def _raise_block(products: Array, heights: Array, theta: Array) -> float:
    """Move dual weight between the cuts of one block; by how much its maximum was missed before.

    Each step moves weight from the lowest cut that has some to the highest, by an exact line search
    along the inner products of the slopes. `heights` of the cuts and `theta` are updated in place.
    """
    missed = 0.0
    enough = 0.0
    for step in range(_STEPS * theta.size):
        high = 0
        low = -1
        mean = 0.0  # of the heights, by weight
        for i in range(theta.size):
            if heights[i] > heights[high]:
                high = i
            if theta[i] > 0.0:
                mean += theta[i] * heights[i]
                if low < 0 or heights[i] < heights[low]:
                    low = i
        fall = heights[high] - heights[low]
        if step == 0:
            missed = heights[high] - mean
            enough = _CLOSE * fall
        if fall <= enough:
            break
        norm = products[high, high] + products[low, low] - 2.0 * products[high, low]
        moved = theta[low]
        if norm * moved > fall:
            moved = fall / norm
            theta[low] -= moved
        else:
            theta[low] = 0.0
        theta[high] += moved
        for i in range(theta.size):
            heights[i] -= moved * (products[high, i] - products[low, i])
    return missed


@kernel
def block_sweeps(
    slopes: Array,
    intercepts: Array,
    starts: Array,
    theta: Array,
    v: Array,
    max_sweeps: int,
    target: float,
) -> float:
    """Maximise the dual block by block; return the last sweep's gap.

    The problem is ``min_v ||v||^2 / 2 + sum over blocks of max_i slopes[i] . v + intercepts[i]``.
    `theta` and `v` are updated in place; stops after `max_sweeps` or when the gap falls to
    `target`.
    """
    ends = np.append(starts[1:], theta.size)
    largest = (ends - starts).max()
    products = np.empty((theta.size, largest))  # of the cuts of each block
    for block in range(starts.size):
        first = starts[block]
        for i in range(first, ends[block]):
            for j in range(first, i + 1):
                product = _height(slopes[i], 0.0, slopes[j])
                products[i, j - first] = product
                products[j, i - first] = product
    heights = np.empty(largest)
    before = np.empty(largest)
    gap = np.inf
    for _ in range(max_sweeps):
        gap = 0.0
        for block in range(starts.size):
            first = starts[block]
            last = ends[block]
            size = last - first
            if size < 2:
                continue
            for i in range(size):
                heights[i] = _height(slopes[first + i], intercepts[first + i], v)
                before[i] = theta[first + i]
            own = theta[first:last]
            gap += _raise_block(products[first:last], heights[:size], own)
            for i in range(size):
                if own[i] != before[i]:
                    _add(slopes[first + i], before[i] - own[i], v)
        if gap <= target:
            break
    return gap


@kernel
def gram_sweeps(
    gram: Array, heights: Array, starts: Array, theta: Array, max_sweeps: int, target: float
) -> float:
    """As `block_sweeps`, by the inner products of all slopes.

    `heights` are those of the cuts at the v of `theta`, and are updated in place of v.
    """
    ends = np.append(starts[1:], theta.size)
    before = np.empty(theta.size)
    gap = np.inf
    for _ in range(max_sweeps):
        gap = 0.0
        for block in range(starts.size):
            first = starts[block]
            last = ends[block]
            if last - first < 2:
                continue
            before[first:last] = theta[first:last]
            own = heights[first:last].copy()
            gap += _raise_block(gram[first:last, first:last], own, theta[first:last])
            for i in range(first, last):
                if theta[i] != before[i]:
                    _add(gram[i], before[i] - theta[i], heights)
        if gap <= target:
            break
    return gap
