"""The whole training problem written out for cvxpy, from the definitions, without cuts.

With ``p`` and ``q`` the scores of one user's positives and negatives, ``beta = min(n_pos, k)``,
m the depth (k where none is given) and ``topsum_m`` the sum of the m largest entries:

    avg    1/m         topsum_m over j of (1 - mean(p) + q_j)_+
    pauc   1/(n_pos m) sum over i of topsum_m over j of (1 - p_i + q_j)_+
    max    1/(beta m)  topsum_beta over i of topsum_m over j of (1 - p_i + q_j)_+
    ts     1/(beta m)  min over 0 <= a <= 1, sum(a) = beta, of
                       topsum_m over j of sum over i of (a_i - p_i + q_j)_+

The last line is the linear-programming dual of the maximum over orderings: the beta smallest row
sums of an ordering are ``min over a of a . r``, and the coefficient of entry (i, j) is then
``a_i - p_i + q_j``.
"""

import cvxpy as cp
import numpy as np


def full_problem(risk, alpha):
    """Return the problem and its variable w."""
    data, surrogate = risk.data, risk.surrogate
    w = cp.Variable(data.n_features)
    values, constraints = [], []
    for u in range(data.n_users):
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        n_pos, m = data.n_pos[u], surrogate.depth_of_list(data.n_neg[u])
        p, q = rows[:n_pos] @ w, rows[n_pos:] @ w
        value, more = _WRITERS[surrogate.name](p, q, min(n_pos, surrogate.k), m)
        values.append(value)
        constraints += more
    weight = np.ones(data.n_users) if data.user_weight is None else data.user_weight
    mean = sum(share * value for share, value in zip(weight / weight.sum(), values, strict=True))
    return cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + mean), constraints), w


def _avg(p, q, beta, m):
    return cp.sum_largest(cp.pos(1 - cp.sum(p) / p.size + q), m) / m, []


def _pauc(p, q, beta, m):
    return sum(_rows(p, q, m)) / (p.size * m), []


def _max(p, q, beta, m):
    return cp.sum_largest(cp.hstack(_rows(p, q, m)), beta) / (beta * m), []


def _ts(p, q, beta, m):
    a = cp.Variable(p.size)
    columns = [cp.sum(cp.pos(a - p + q[j])) for j in range(q.size)]
    constraints = [a >= 0, a <= 1, cp.sum(a) == beta]
    return cp.sum_largest(cp.hstack(columns), m) / (beta * m), constraints


def _rows(p, q, m):
    return [cp.sum_largest(cp.pos(1 - p[i] + q), m) for i in range(p.size)]


_WRITERS = {"avg": _avg, "pauc": _pauc, "max": _max, "ts": _ts}
