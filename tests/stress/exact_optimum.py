"""The optimum of a small problem in rational arithmetic: no rounding, no tolerance.

Floating-point data are rational numbers, and so is the minimiser of ``alpha/2 ||w||^2 + R(w)`` for
a piecewise linear R. It is found by an active-set method on the dual of a cutting-plane model: the
weights theta of at most d + 2 cuts solve their optimality conditions exactly, the surrogate at
``w = -sum theta_i a_i / alpha`` gives another cut, and when that cut lies nowhere above the model
at w, the optimum is reached. The surrogates are written here from their definitions, with nothing
of the package.
"""

from fractions import Fraction
from itertools import combinations_with_replacement

ZERO, ONE = Fraction(0), Fraction(1)


class ExactRisk:
    """Cuts of the mean surrogate over users, in fractions.

    Parameters
    ----------
    name : {'avg', 'max', 'ts', 'pauc'}
    k : int
    data : RankingData
        Every user has a positive and k negatives.
    """

    def __init__(self, name, k, data):
        self.piece, self.k = PIECES[name], k
        X = data.X[data.rows]
        bounds = zip(data.indptr[:-1], data.indptr[:-1] + data.n_pos, data.indptr[1:], strict=True)
        self.users = [(exact(X[lo:middle]), exact(X[middle:hi])) for lo, middle, hi in bounds]

    def cut(self, w):
        """Slope and intercept of a linear piece of R that is exact at w."""
        slope, intercept = [ZERO] * len(w), ZERO
        for positives, negatives in self.users:
            positives = ranked(positives, w)
            negatives = ranked(negatives, w)[: self.k]
            p, q = [dot(x, w) for x in positives], [dot(x, w) for x in negatives]
            down, up, constant, scale = self.piece(p, q, min(len(p), self.k))
            for coef, row in zip([-c for c in down] + list(up), positives + negatives, strict=True):
                if coef:
                    slope = [s + coef * x / scale for s, x in zip(slope, row, strict=True)]
            intercept += Fraction(constant) / scale
        return [s / len(self.users) for s in slope], intercept / len(self.users)


def exact(rows):
    """Rows of floating-point numbers as lists of fractions."""
    return [[Fraction(float(x)) for x in row] for row in rows]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def ranked(rows, w):
    return sorted(rows, key=lambda x: dot(x, w), reverse=True)


# Each piece takes decreasing scores p of the positives and q of the top-k negatives, and beta. It
# returns how often each positive counts down and each negative up, the constant, and the divisor.


def hinges(p, q, counted):
    """Active pairs of ``sum_{i in counted} sum_j (1 - p_i + q_j)_+``."""
    active = [(i, j) for i in counted for j in range(len(q)) if 1 - p[i] + q[j] > 0]
    down, up = [0] * len(p), [0] * len(q)
    for i, j in active:
        down[i] += 1
        up[j] += 1
    return down, up, len(active)


def max_piece(p, q, beta):
    return *hinges(p, q, range(len(p) - beta, len(p))), beta * len(q)


def pauc_piece(p, q, beta):
    return *hinges(p, q, range(len(p))), len(p) * len(q)


def avg_piece(p, q, beta):
    mean = sum(p, ZERO) / len(p)
    up = [int(1 - mean + score > 0) for score in q]
    return [Fraction(sum(up), len(p))] * len(p), up, sum(up), len(q)


def ts_piece(p, q, beta):
    """Equation (14) by enumeration: row i of the ordering puts the r_i best negatives above p_i.

    The loss depends on the rows as a set, so the lowest positive takes the largest row.
    """
    tops = [sum(q[:r], ZERO) for r in range(len(q) + 1)]

    def value(rows):
        gain = sum((tops[r] - r * a for r, a in zip(rows, p, strict=True)), ZERO)
        return sum(rows[:beta]) + gain

    best = max(combinations_with_replacement(range(len(q) + 1), len(p)), key=value)
    up = [sum(r > j for r in best) for j in range(len(q))]
    return list(best), up, sum(best[:beta]), beta * len(q)


PIECES = {"avg": avg_piece, "max": max_piece, "ts": ts_piece, "pauc": pauc_piece}


def minimise(risk, alpha, w):
    """The minimiser, the minimum and the number of cuts, as fractions; w is where to start."""
    alpha, w = Fraction(float(alpha)), [Fraction(float(x)) for x in w]
    cuts, theta, n_cuts = [risk.cut(w)], [ONE], 1
    while True:
        w = point(cuts, theta, alpha)
        cut = risk.cut(w)
        level = sum((t * height(c, w) for t, c in zip(theta, cuts, strict=True)), ZERO)
        if height(cut, w) <= level:
            return w, alpha / 2 * dot(w, w) + level, n_cuts
        cuts, theta, n_cuts = *settle([*cuts, cut], [*theta, ZERO], alpha), n_cuts + 1


def objective(risk, alpha, w):
    """``alpha/2 ||w||^2 + R(w)`` at a floating-point w, exactly."""
    w = [Fraction(float(x)) for x in w]
    return Fraction(float(alpha)) / 2 * dot(w, w) + height(risk.cut(w), w)


def height(cut, w):
    return dot(cut[0], w) + cut[1]


def point(cuts, theta, alpha):
    slopes = zip(*(cut[0] for cut in cuts), strict=True)
    return [-dot(column, theta) / alpha for column in slopes]


def settle(cuts, theta, alpha):
    """Optimal weights of the cuts; those without weight are dropped.

    maximise ``b . theta - ||A' theta||^2 / (2 alpha)``, theta >= 0, sum theta = 1
    """
    while True:
        direction, longest = towards_optimum(cuts, theta, alpha)
        blocking = [-t / d for t, d in zip(theta, direction, strict=True) if d < 0]
        step = min([*blocking, longest] if longest else blocking)
        theta = [t + step * d for t, d in zip(theta, direction, strict=True)]
        done = step == longest
        cuts = [cut for cut, t in zip(cuts, theta, strict=True) if t]
        theta = [t for t in theta if t]
        if done:
            return cuts, theta


def towards_optimum(cuts, theta, alpha):
    """Where the weights go if their signs are free, and the step that gets there (None: no end)."""
    n = len(cuts)
    matrix = [[dot(a, other) / alpha for other, _ in cuts] + [ONE] for a, _ in cuts]
    matrix.append([ONE] * n + [ZERO])
    solution, null = solve(matrix, [cut[1] for cut in cuts] + [ONE])
    if null is None:
        return [s - t for s, t in zip(solution, theta, strict=False)], ONE
    direction = null[:n]  # the slopes cancel, the intercepts do not
    rises = dot([cut[1] for cut in cuts], direction) > 0
    return [d if rises else -d for d in direction], None


def solve(matrix, right):
    """Gaussian elimination: (solution, None), or (None, a vector that the matrix sends to zero)."""
    n = len(matrix)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for c in range(n):
        pivot = next((r for r in range(c, n) if rows[r][c]), None)
        if pivot is None:
            null = [-rows[r][c] for r in range(c)] + [ONE] + [ZERO] * (n - c - 1)
            return None, null
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(n):
            if r != c and rows[r][c]:
                factor = rows[r][c]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[n] for row in rows], None
