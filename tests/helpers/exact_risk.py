"""Surrogate risks from their definitions, in extended precision or exactly; own code throughout.

Every surrogate is unchanged when a user's rows all move alike. So the first row of each user is
subtracted first: the difference of two numbers of one magnitude is exact, and what is left of a
column with an offset of 1e12 is its spread. After that `numpy.longdouble` has 64 bits.

Floating-point data are rational numbers, and so is the minimum of ``alpha/2 ||w||^2 + R(w)`` for a
piecewise linear R: `minimise` has it without rounding and without a tolerance.
"""

import math
from fractions import Fraction
from functools import total_ordering

import numpy as np

Wide = np.longdouble


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

    def values(self, name, W):
        """Risks at the columns of W; shape (n_points,), longdouble."""
        W = np.asarray(W).astype(Wide)
        total = np.zeros(W.shape[1], dtype=Wide)
        for (P, Q), m, weight in zip(self.lists, self.counted, self.weight, strict=True):
            total += weight * _surrogate(name, _scores(P, W), _scores(Q, W), m, self.k)
        return total / self.weight.sum()

    def cut(self, name, w):
        """Slope and intercept of a linear piece of R that is exact at w, in fractions."""
        total, weights = Affine(Fraction(0), 0 * w), fractions(self.weight)
        for pair, m, weight in zip(self.stored, self.counted, weights, strict=True):
            p, q = (_exact_scores(fractions(rows), w) for rows in pair)
            total = total + _surrogate(name, p, q, m, self.k)[0] * weight
        value, *slope = total.parts / weights.sum()
        return np.array(slope), value - slope @ w

    def sizes(self, W):
        """``max over rows of sum_f |x_f w_f|`` at each column: what rounding is relative to."""
        W = np.abs(np.asarray(W)).astype(Wide)
        blocks = [np.abs(np.vstack(pair)) for pair in self.lists]
        return np.max([_scores(block, W).max(axis=0) for block in blocks], axis=0).astype(float)

    def differences(self):
        """Mean difference of positives and negatives of each user, shape (n_users, n_features)."""
        return np.array([P.mean(axis=0) - Q.mean(axis=0) for P, Q in self.lists]).astype(float)

    def centred(self):
        """The rows with each user's first one subtracted, in double: X, positive, user."""
        X = np.vstack([np.vstack(pair) for pair in self.lists]).astype(float)
        positive = [np.arange(len(P) + len(Q)) < len(P) for P, Q in self.lists]
        user = np.repeat(np.arange(len(self.lists)), [each.size for each in positive])
        return X, np.concatenate(positive), user


def _scores(rows, W):
    """``rows @ W``; a loop over features, as there is no matrix product in this precision."""
    out = np.zeros((rows.shape[0], W.shape[1]), dtype=Wide)
    for f in range(rows.shape[1]):
        out += rows[:, f, None] * W[f]
    return out


@total_ordering
class Affine:
    """A number with its slope in w, in fractions; ordered by its value at w alone.

    Of several with the same value any may lead: each choice is a linear piece of the surrogate.
    """

    def __init__(self, value, slope):
        self.parts = np.array([value, *slope])

    def __add__(self, other):
        if not isinstance(other, Affine):
            other = Affine(Fraction(other), 0 * self.parts[1:])  # 0, 1, or a mean of zeros
        return _affine(self.parts + other.parts)

    def __mul__(self, number):
        return _affine(self.parts * number)

    def __truediv__(self, number):
        return _affine(self.parts / Fraction(number))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __lt__(self, other):
        return self.parts[0] < (other.parts[0] if isinstance(other, Affine) else other)

    def __eq__(self, other):
        return self.parts[0] == (other.parts[0] if isinstance(other, Affine) else other)

    __radd__, __hash__ = __add__, None


def _affine(parts):
    return Affine(parts[0], parts[1:])


def fractions(numbers):
    """An array of floating-point numbers as fractions."""
    return np.vectorize(lambda x: Fraction(*x.as_integer_ratio()), otypes=[object])(numbers)


def wide(fraction):
    """A fraction in extended precision."""
    return Wide(float(fraction)) + Wide(float(fraction - Fraction(float(fraction))))


def _exact_scores(rows, w):
    out = np.empty((len(rows), 1), dtype=object)
    out[:, 0] = [Affine(row @ w, row) for row in rows]
    return out


def _surrogate(name, p, q, m, k):
    """Of all scores of positives and negatives, one column a point; m negatives count."""
    return SURROGATES[name](-np.sort(-p, axis=0), -np.sort(-q, axis=0)[:m], k)


def _hinges(p, q):
    return np.maximum(1 - p[:, None] + q[None, :], 0)


def _mean_of_pairs(hinges):
    return hinges.mean(axis=(0, 1))


def avg(p, q, k):
    return np.maximum(1 - p.mean(axis=0) + q, 0).mean(axis=0)


def pauc(p, q, k):
    return _mean_of_pairs(_hinges(p, q))


def largest(p, q, k):
    return _mean_of_pairs(_hinges(p[-min(len(p), k) :], q))


def ramp(p, q, k):
    return _mean_of_pairs(_hinges(p[: min(len(p), k)], q))


def clipped_ramp(p, q, k):
    return _mean_of_pairs(np.minimum(_hinges(p[: min(len(p), k)], q), 1))


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


SURROGATES = {
    "avg": avg,
    "max": largest,
    "ts": ts,
    "pauc": pauc,
    "ramp": ramp,
    "clipped_ramp": clipped_ramp,
}


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
