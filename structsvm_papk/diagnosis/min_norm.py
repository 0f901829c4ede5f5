"""The point of smallest norm in a convex set that is known by its support points.

    minimise ||x||    over x in K = conv(V),    lmo(w) in argmax_{v in V} v . w

Wolfe's algorithm keeps few affinely independent support points, finds the point of smallest norm
in their affine hull, and ends after finitely many steps. At x with support point ``v = lmo(-x)``,

    v . x / ||x||  <=  dist(0, K)  <=  ||x||

so -x separates 0 from K as soon as ``v . x > 0``.

P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11 (1976).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structsvm_papk._types import Array

_ROUNDING = 1e-12


@dataclass(frozen=True)
class NearestPoint:
    """A convex combination `x` of support points, and bounds of the distance of 0 from K.

    `direction` is a unit vector w with ``max_{v in K} v . w = -lower_bound < 0``, or None; `scale`
    the largest norm of a support point; `n_steps` how many were asked for.
    """

    x: Array
    distance: float
    lower_bound: float
    direction: Array | None
    scale: float
    n_steps: int


def min_norm_point(
    lmo: Callable[[Array], Array],
    n_features: int,
    tol: float = 1e-9,
    max_iter: int | None = None,
    noise: float | Array = 0.0,
    any_direction: bool = False,
) -> NearestPoint:
    """Find the point of smallest norm, to a distance or a difference of bounds of ``tol * scale``.

    `lmo` gives the support point of K in a direction, with entries in error by up to `noise`; by
    default it is asked 2000 times, and 20 more for each feature. `any_direction` stops at the first
    direction that separates 0 from K, however far the bounds are apart.
    """
    max_iter = max_iter or 2000 + 20 * n_features
    first = lmo(np.zeros(n_features))
    state = _Corral(first)
    lower, direction = 0.0, None
    scale = np.linalg.norm(first)
    n_steps = 1
    while n_steps < max_iter:
        norm = np.linalg.norm(state.x)
        if norm <= tol * scale or norm - lower <= tol * scale:
            break
        vertex = lmo(-state.x)
        n_steps += 1
        scale = max(scale, np.linalg.norm(vertex))
        height = vertex @ state.x / norm
        unsure = _ROUNDING * scale + np.sum(noise * np.abs(state.x)) / norm
        if height > max(lower, unsure):
            lower, direction = height, -state.x / norm
            if any_direction:
                break
        if norm - height <= tol * scale or not state.add(vertex):
            break
    distance = float(np.linalg.norm(state.x))
    return NearestPoint(state.x, distance, float(lower), direction, float(scale), n_steps)


class _Corral:
    """Affinely independent support points, and the point of smallest norm in their hull."""

    def __init__(self, point: Array) -> None:
        self.points, self.weights = point[None, :].copy(), np.ones(1)
        self.x = point.copy()

    def add(self, point: Array) -> bool:
        """Take in a support point; return whether the norm went down."""
        before = self.x @ self.x
        self.points = np.vstack([self.points, point])
        self.weights = np.append(self.weights, 0.0)
        for _ in range(self.weights.size + 1):
            target = self._affine_minimiser()
            if target.min() > _ROUNDING:
                self.weights = target
                break
            falling = target <= _ROUNDING
            drop = np.maximum(self.weights - target, 1e-300)
            step = min(1.0, (self.weights / drop)[falling].min())
            self.weights = np.maximum(self.weights + step * (target - self.weights), 0.0)
            keep = self.weights > _ROUNDING
            keep[np.argmax(self.weights)] = True
            self.points, self.weights = self.points[keep], self.weights[keep]
        self.weights /= self.weights.sum()
        self.x = self.weights @ self.points
        return bool(self.x @ self.x < before)

    def _affine_minimiser(self) -> Array:
        """Weights that sum to 1 of the smallest point in the affine hull."""
        base = self.points[0]
        edges = self.points[1:] - base
        if not edges.size:
            return np.ones(1)
        rest = np.linalg.lstsq(edges.T, -base, rcond=1e-13)[0]
        return np.concatenate([[1.0 - rest.sum()], rest])
