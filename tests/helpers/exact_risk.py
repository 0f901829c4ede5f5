"""Surrogate risks from their definitions, in extended precision or exactly; own code throughout.

Every surrogate is unchanged when a user's rows all move alike. So the first row of each user is
subtracted first: the difference of two numbers of one magnitude is exact, and what is left of a
column with an offset of 1e12 is its spread. After that `numpy.longdouble` has 64 bits.

Floating-point data are rational numbers, and so is the minimum of ``alpha/2 ||w||^2 + R(w)`` for a
piecewise linear R: `minimise` has it without rounding and without a tolerance.
"""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

Wide = np.longdouble
_TINY = Fraction(1, 2**300)


class ExactRisk:
    """``R(w)``, the mean of a surrogate over the users with a positive and enough negatives.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The stored values, dense.
    positive : ndarray of bool, shape (n_rows,)
    user : ndarray of int, shape (n_rows,)
    k : int
    depth : int, float or None
        Negatives that count, or a share of them; None for k.
    weight : ndarray, optional
        Of each user, by its number.
    """

    def __init__(self, X, positive, user, k, depth=None, weight=None):
        self.k, self.n_features = k, X.shape[1]
        self.stored, self.lists, self.counted, self.users = [], [], [], []
        needed = depth if isinstance(depth, int) else k
        for u in np.unique(user):
            rows, own = X[user == u], positive[user == u]
            n_neg = int((~own).sum())
            if own.any() and n_neg >= needed:
                self.stored.append((rows[own], rows[~own]))
                rows = rows.astype(Wide) - rows[0].astype(Wide)
                self.lists.append((rows[own], rows[~own]))
                share = isinstance(depth, float)
                self.counted.append(max(math.ceil(depth * n_neg), k) if share else needed)
                self.users.append(u)
        weight = np.ones(user.max() + 1) if weight is None else weight
        self.weight = weight[self.users].astype(Wide)

    def values(self, formula, W):
        """Risks by a formula of this page at the columns of W; shape (n_points,), longdouble."""
        W = np.asarray(W).astype(Wide)
        total = np.zeros(W.shape[1], dtype=Wide)
        for (P, Q), m, weight in zip(self.lists, self.counted, self.weight, strict=True):
            total += weight * _of_lists(formula, P @ W, Q @ W, m, self.k)
        return total / self.weight.sum()

    def cut(self, formula, w):
        """Slope and intercept of a linear piece of R that is exact at w, in fractions.

        It is read off a tiny simplex beside w, at random, as R has no kink there.
        """
        beside = w + _TINY * fractions(np.random.default_rng(0).random(w.size))
        value = self._exact(formula, beside)
        around = beside + _TINY**2 * np.eye(w.size, dtype=int)
        slope = np.array([self._exact(formula, point) - value for point in around]) / _TINY**2
        height = value - slope @ beside
        assert slope @ w + height == self._exact(formula, w)
        return slope, height

    @cached_property
    def _rational(self):
        return [[fractions(rows) for rows in pair] for pair in self.stored]

    def _exact(self, formula, w):
        """R(w) as a fraction."""
        total, weights = Fraction(0), fractions(self.weight)
        for pair, m, weight in zip(self._rational, self.counted, weights, strict=True):
            p, q = ((rows @ w)[:, None] for rows in pair)
            total += weight * Fraction(_of_lists(formula, p, q, m, self.k)[0])
        return total / weights.sum()

    def sizes(self, W):
        """``max over rows of sum_f |x_f w_f|`` at each column: what rounding is relative to."""
        W = np.abs(np.asarray(W)).astype(Wide)
        blocks = [np.abs(np.vstack(pair)) for pair in self.lists]
        return np.max([(block @ W).max(axis=0) for block in blocks], axis=0).astype(float)

    def centred(self):
        """The rows with each user's first one subtracted, in double: X, positive, user."""
        X = np.vstack([np.vstack(pair) for pair in self.lists]).astype(float)
        positive = [np.arange(len(P) + len(Q)) < len(P) for P, Q in self.lists]
        user = np.repeat(np.arange(len(self.lists)), [each.size for each in positive])
        return X, np.concatenate(positive), user


def fractions(numbers):
    """An array of floating-point numbers as fractions."""
    return np.vectorize(lambda x: Fraction(*x.as_integer_ratio()), otypes=[object])(numbers)


def wide(fraction):
    """A fraction in extended precision."""
    return Wide(float(fraction)) + Wide(float(fraction - Fraction(float(fraction))))


def _of_lists(formula, p, q, m, k):
    """Of all scores of positives and negatives, one column a point; m negatives count."""
    return formula(-np.sort(-p, axis=0), -np.sort(-q, axis=0)[:m], k)


def avg(p, q, k):
    return np.maximum(1 - p.mean(axis=0) + q, 0).mean(axis=0)


def _pairs(some, most=math.inf):
    """Mean hinge, of at most so much, of the pairs with some of the positives."""

    def risk(p, q, k):
        hinges = np.maximum(1 - p[some(min(len(p), k))][:, None] + q, 0)
        return np.minimum(hinges, most).mean(axis=(0, 1))

    return risk


def ts(p, q, k):
    """``1/(beta m) sum_i sum_j (q_(j) - t~_i)_+``, t~ the non-increasing regression of t."""
    beta = min(len(p), k)
    t = p.copy()
    t[:beta] -= 1
    for point in range(t.shape[1]):
        t[:, point] = _non_increasing(t[:, point])
    return np.maximum(q[None, :] - t[:, None], 0).sum(axis=(0, 1)) / (beta * len(q))


def _non_increasing(t):
    """Least-squares non-increasing regression, by pooling adjacent violators."""
    sums, counts = [], []
    for value in t:
        sums.append(value)
        counts.append(1)
        while len(sums) > 1 and sums[-2] * counts[-1] < sums[-1] * counts[-2]:
            value, count = sums.pop(), counts.pop()
            sums[-1] += value
            counts[-1] += count
    return np.repeat(np.array(sums) / np.array(counts, dtype=t.dtype), counts)


maximum = _pairs(lambda beta: slice(-beta, None))
pauc = _pairs(lambda beta: slice(None))
ramp = _pairs(slice)
clipped_ramp = _pairs(slice, 1)


def minimise(cut, alpha, w):
    """``min alpha/2 ||w||^2 + R(w)`` in fractions; ``cut(w)`` is a piece of R, w where to start.

    An active-set method on the dual of a cutting-plane model: the weights of at most d + 2 cuts
    solve their optimality conditions exactly, and when the cut at their point lies nowhere above
    the model there, the optimum is reached.
    """
    alpha, theta = Fraction(alpha), np.array([Fraction(1)])
    slopes, heights = (np.array([part]) for part in cut(fractions(w)))
    while True:
        w = -(theta @ slopes) / alpha
        slope, height = cut(w)
        level = theta @ (slopes @ w + heights)
        if slope @ w + height <= level:
            return alpha / 2 * (w @ w) + level
        slopes, heights = np.vstack([slopes, slope]), np.append(heights, height)
        slopes, heights, theta = _settled(slopes, heights, np.append(theta, Fraction(0)), alpha)


def _settled(slopes, heights, theta, alpha):
    """Optimal weights of the cuts; those without weight are dropped.

    maximise ``heights . theta - ||slopes' theta||^2 / (2 alpha)``, theta >= 0, sum theta = 1
    """
    while True:
        n = len(theta)
        system = np.full((n + 1, n + 2), Fraction(1))
        system[:n, :n], system[:n, -1] = slopes @ slopes.T / alpha, heights
        system[n, n] = Fraction(0)
        solution, null = _solve(system)
        if null is None:
            direction, longest = solution[:n] - theta, Fraction(1)
        else:  # the slopes cancel, the heights do not: no end in this direction
            direction, longest = null[:n] * (1 if heights @ null[:n] > 0 else -1), math.inf
        blocking = [-t / d for t, d in zip(theta, direction, strict=True) if d < 0]
        step = min([*blocking, longest])
        theta = theta + step * direction
        used = theta > 0
        slopes, heights, theta = slopes[used], heights[used], theta[used]
        if step == longest:
            return slopes, heights, theta


def _solve(system):
    """Gaussian elimination: (solution, None), or (None, a vector that the matrix sends to zero)."""
    for c in range(len(system)):
        pivot = next((r for r in range(c, len(system)) if system[r, c]), None)
        if pivot is None:
            rest = [Fraction(1)] + [Fraction(0)] * (len(system) - c - 1)
            return None, np.concatenate([-system[:c, c], rest])
        system[[c, pivot]] = system[[pivot, c]]
        system[c] /= system[c, c]
        others = np.arange(len(system)) != c
        system[others] -= np.outer(system[others, c], system[c])
    return system[:, -1], None
