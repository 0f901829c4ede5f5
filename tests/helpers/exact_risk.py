"""Surrogate risks in extended precision, from their definitions; shares no code with the package.

Every surrogate is unchanged when a user's rows all move alike. So the first row of each user is
subtracted first: the difference of two numbers of one magnitude is exact, and what is left of a
column with an offset of 1e12 is its spread. After that `numpy.longdouble` has 64 bits.
"""

import math

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
        self.lists, self.counted, self.users = [], [], []
        needed = depth if isinstance(depth, int) else k
        X = X.astype(Wide)
        for u in np.unique(user):
            rows = X[user == u]
            own = positive[user == u]
            n_neg = int((~own).sum())
            if own.any() and n_neg >= needed:
                rows = rows - rows[0]
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
            p = -np.sort(-_scores(P, W), axis=0)
            q = -np.sort(-_scores(Q, W), axis=0)[:m]
            total += weight * SURROGATES[name](p, q, self.k)
        return total / self.weight.sum()

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
    return np.repeat(np.array(sums) / np.array(counts, dtype=Wide), counts)


SURROGATES = {
    "avg": avg,
    "max": largest,
    "ts": ts,
    "pauc": pauc,
    "ramp": ramp,
    "clipped_ramp": clipped_ramp,
}
