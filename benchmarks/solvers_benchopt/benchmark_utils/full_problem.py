"""The whole training problem written out for cvxpy, from the definitions, without cuts.

With ``p`` and ``q`` the scores of one user's positives and negatives, ``beta = min(n_pos, k)`` and
``topsum_k`` the sum of the k largest entries:

    avg    1/k         topsum_k over j of (1 - mean(p) + q_j)_+
    pauc   1/(n_pos k) sum over i of topsum_k over j of (1 - p_i + q_j)_+
    max    1/(beta k)  topsum_beta over i of topsum_k over j of (1 - p_i + q_j)_+
    ts     1/(beta k)  min over 0 <= a <= 1, sum(a) = beta, of
                       topsum_k over j of sum over i of (a_i - p_i + q_j)_+

The last line is the linear-programming dual of the maximum over orderings: the beta smallest row
sums of an ordering are ``min over a of a . r``, and the coefficient of entry (i, j) is then
``a_i - p_i + q_j``.
"""

import cvxpy as cp


def full_problem(risk, alpha):
    """Return the problem and its variable w."""
    data, k = risk.data, risk.surrogate.k
    write = _WRITERS[risk.surrogate.name]
    w = cp.Variable(data.n_features)
    values, constraints = [], []
    for u in range(data.n_users):
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
        n_pos = data.n_pos[u]
        value, more = write(rows[:n_pos] @ w, rows[n_pos:] @ w, k)
        values.append(value)
        constraints += more
    objective = alpha / 2 * cp.sum_squares(w) + sum(values) / data.n_users
    return cp.Problem(cp.Minimize(objective), constraints), w


def n_hinges(risk):
    """Number of pairs (i, j), the size of the problem."""
    return int((risk.data.n_pos * risk.data.n_neg).sum())


def _avg(p, q, k):
    return cp.sum_largest(cp.pos(1 - cp.sum(p) / p.size + q), k) / k, []


def _pauc(p, q, k):
    return sum(_rows(p, q, k)) / (p.size * k), []


def _max(p, q, k):
    beta = min(p.size, k)
    return cp.sum_largest(cp.hstack(_rows(p, q, k)), beta) / (beta * k), []


def _ts(p, q, k):
    beta, a = min(p.size, k), cp.Variable(p.size)
    columns = [cp.sum(cp.pos(a - p + q[j])) for j in range(q.size)]
    constraints = [a >= 0, a <= 1, cp.sum(a) == beta]
    return cp.sum_largest(cp.hstack(columns), k) / (beta * k), constraints


def _rows(p, q, k):
    return [cp.sum_largest(cp.pos(1 - p[i] + q), k) for i in range(p.size)]


_WRITERS = {"avg": _avg, "pauc": _pauc, "max": _max, "ts": _ts}
