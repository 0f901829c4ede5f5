"""The loss of one list as a convex program for cvxpy, from the definition, without cuts.

With ``p`` and ``q`` the scores of one user's positives and negatives, ``beta = min(n_pos, k)``,
m the depth (k where none is given) and ``topsum_m`` the sum of the m largest entries:

    avg    1/m         topsum_m over j of (1 - mean(p) + q_j)_+
    pauc   1/(n_pos m) sum over i of topsum_m over j of (1 - p_i + q_j)_+
    max    1/(beta m)  topsum_beta over i of topsum_m over j of (1 - p_i + q_j)_+
    ts     1/(beta m)  min over 0 <= a <= 1, sum(a) = beta, of
                       topsum_m over j of sum over i of (a_i - p_i + q_j)_+

The last line is the linear-programming dual of the maximum over orderings: the beta smallest row
sums of an ordering are ``min over a of a . r``, and the coefficient of entry (i, j) is then
``a_i - p_i + q_j``. Each gives the value and constraints that belong to it.
"""

import cvxpy as cp


def avg(p, q, beta, m):
    return cp.sum_largest(cp.pos(1 - cp.sum(p) / p.size + q), m) / m, []


def pauc(p, q, beta, m):
    return sum(_rows(p, q, m)) / (p.size * m), []


def maximum(p, q, beta, m):
    return cp.sum_largest(cp.hstack(_rows(p, q, m)), beta) / (beta * m), []


def ts(p, q, beta, m):
    a = cp.Variable(p.size)
    columns = [cp.sum(cp.pos(a - p + q[j])) for j in range(q.size)]
    constraints = [a >= 0, a <= 1, cp.sum(a) == beta]
    return cp.sum_largest(cp.hstack(columns), m) / (beta * m), constraints


def _rows(p, q, m):
    return [cp.sum_largest(cp.pos(1 - p[i] + q), m) for i in range(p.size)]
