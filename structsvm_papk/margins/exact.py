"""Exact rational arithmetic: re-checking scorers, and making infeasibility proofs exact.

Floats are rational numbers, so ``w.x`` has an exact value; the functions here use it.
"""

import math
from fractions import Fraction

import numpy as np
from scipy import linalg

EPS = np.finfo(float).eps


def dense_rows(X, rows):
    """Return the chosen rows of a dense or sparse matrix as dense float64."""
    part = X[rows]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def fractions(values):
    """Floats, or Fractions among them, as Fractions without rounding."""
    return [v if isinstance(v, Fraction) else Fraction(float(v)) for v in values]


def exact_scores(X, w):
    """``w.x`` for each row of a small dense matrix, as Fractions; w holds floats or Fractions."""
    weights = [(j, v) for j, v in enumerate(fractions(w)) if v]
    return [sum((Fraction(float(x[j])) * v for j, v in weights), Fraction(0)) for x in X]


def exact_linf(w):
    """Largest absolute entry of w, as a Fraction."""
    return max(map(abs, fractions(w)))


def fill_to_share(weights, share, r):
    """Exact weights in [0, share/r] that add to `share`, near the floats; None when impossible."""
    cap = share / r
    exact = [min(cap, v) for v in fractions(weights)]
    missing = share - sum(exact)
    for i in np.argsort(weights)[::-1]:
        if missing == 0:
            break
        change = min(missing, cap - exact[i]) if missing > 0 else max(missing, -exact[i])
        exact[i] += change
        missing -= change
    return exact if missing == 0 else None


def score_errors(X, w):
    """Bound on the error of ``X @ w`` in float64, rounding of w included: ``4 d eps |X| |w|``."""
    return 4 * (len(w) + 2) * EPS * np.asarray(abs(X).astype(np.float64) @ np.abs(w)).ravel()


class ExactLists:
    """Exact order statistics of the scores ``w.x`` of every user.

    Only rows that rounding leaves in doubt are evaluated exactly.
    """

    def __init__(self, data, w):
        self._data, self._w = data, w
        rounded = np.array([float(v) for v in w])
        self._scores = data.scores(rounded)
        self._errors = score_errors(data.X, rounded)[data.rows]

    def largest(self, positions, n):
        """Return the `n` largest scores among these list positions, decreasing."""
        high, low = self._range(positions)
        limit = np.partition(low, len(low) - n)[len(low) - n]
        return sorted(self._exact(positions[high >= limit]), reverse=True)[:n]

    def smallest(self, positions, n):
        """Return the `n` smallest scores among these list positions, increasing."""
        high, low = self._range(positions)
        limit = np.partition(high, n - 1)[n - 1]
        return sorted(self._exact(positions[low <= limit]))[:n]

    def _range(self, positions):
        scores, errors = self._scores[positions], self._errors[positions]
        return scores + errors, scores - errors

    def _exact(self, positions):
        return exact_scores(dense_rows(self._data.X, self._data.rows[positions]), self._w)


def exact_margins(data, w, k, condition):
    """Exact largest margin of each user for a condition and a given w (None: no margin at all)."""
    lists = ExactLists(data, w)
    margins = []
    for start, n_pos, stop in zip(data.indptr[:-1], data.n_pos, data.indptr[1:], strict=True):
        pos = np.arange(start, start + n_pos)
        beta = min(int(n_pos), k)
        top = lists.largest(np.arange(start + n_pos, stop), 1)[0]
        if condition in ("strong", "beta"):
            n = 1 if condition == "strong" else beta
            margin = sum(lists.smallest(pos, n), Fraction(0)) / n - top
        else:
            margin = lists.largest(pos, beta)[-1] - top
            if condition == "moderate" and lists.smallest(pos, 1)[0] < top:
                margin = None
        margins.append(margin)
    return margins


def solve_near(columns, target, values):
    """Exact solution of ``sum_j x_j columns[j] = target`` close to the floats `values`.

    A well-conditioned set of columns is chosen by pivoted QR (scaled by `values`, so that entries
    far from zero are preferred); the others keep their float value exactly.

    Returns None where the chosen columns do not solve the system exactly.
    """
    x = fractions(values)
    A = np.array([[float(v) for v in column] for column in columns]).T
    _, R, order = linalg.qr(A * np.maximum(np.abs(values), 1e-12), mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > diagonal[0] * 1e-11).sum()) if diagonal.size and diagonal[0] else 0
    basis, rest = order[:rank], order[rank:]
    residual = list(target)
    for j in rest:
        if x[j]:
            residual = [r - x[j] * v for r, v in zip(residual, columns[j], strict=True)]
    solution = _eliminate([columns[j] for j in basis], residual)
    if solution is None:
        return None
    for j, value in zip(basis, solution, strict=True):
        x[j] = value
    return x


def _eliminate(columns, target):
    """Solve a full-column-rank system exactly; None when it is inconsistent.

    Fraction-free elimination (Bareiss) on whole numbers: every division leaves no remainder.
    """
    n, previous = len(columns), 1
    rows = [_whole([column[i] for column in columns] + [target[i]]) for i in range(len(target))]
    rows.sort(key=lambda row: max(abs(v).bit_length() for v in row))  # short numbers first
    for j in range(n):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        head = rows[j]
        for i in range(j + 1, len(rows)):
            row, first = rows[i], rows[i][j]
            rows[i] = [0] * (j + 1) + [
                (head[j] * row[c] - first * head[c]) // previous for c in range(j + 1, n + 1)
            ]
        previous = head[j]
    if any(row[n] for row in rows[n:]):
        return None
    return _back_substitute(rows, n)


def _whole(row):
    """Multiply a row of Fractions by the common denominator."""
    common = math.lcm(*(v.denominator for v in row))
    return [int(v * common) for v in row]


def _back_substitute(rows, n):
    x = [Fraction(0)] * n
    for j in reversed(range(n)):
        known = sum((rows[j][c] * x[c] for c in range(j + 1, n)), Fraction(0))
        x[j] = (rows[j][n] - known) / rows[j][j]
    return x
