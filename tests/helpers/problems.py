"""Small ranking problems that several test modules share."""

import cvxpy as cp
import numpy as np

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.data.partitions import array_partitions
from structsvm_papk.datasets.synthetic import stacked
from structsvm_papk.oracles.list_risk import users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk, summarise


def ranking_data(n_users=12, n_items=14, n_features=4, seed=0, noise=0.5):
    """Lists whose relevance is the upper third of a noisy linear score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_items, n_features))
    score = X @ rng.normal(size=n_features) + noise * rng.normal(size=X.shape[0])
    y = score.reshape(n_users, n_items)
    y = y > np.quantile(y, 0.7, axis=1, keepdims=True)
    return RankingData(X, y.ravel(), np.arange(0, X.shape[0] + 1, n_items))


def uneven(seed=0, n_features=4):
    """15 users with 1 to 8 positives and 3 to 30 negatives."""
    rng = np.random.default_rng(seed)
    n_neg, n_pos = rng.integers(3, 31, 15), rng.integers(1, 9, 15)
    groups = np.repeat(np.arange(15), n_pos + n_neg)
    y = np.concatenate([np.arange(p + n) < p for p, n in zip(n_pos, n_neg, strict=True)])
    X = rng.normal(size=(y.size, n_features))
    X[y, 0] += 1.0
    return RankingData.from_groups(X, y, groups)


def degenerate_lists(n_users=50, n_pos=10, n_neg=40, n_features=8, noise=1.0, seed=0):
    """Lists on which ``w = 0`` is an exact minimiser of Avg, TS, pAUC and Max for every alpha.

    In each user the positives, with standard deviation `noise`, have the mean of the negatives.
    Then for every w the top-k negatives score at least ``mean(p)`` on average, hence ``Avg(w) >= 1
    = Avg(0)``; so it is for pAUC and Max, which are above Avg, and for TS, which is at least ``1 +
    n_pos/beta (mean of the top-k negatives - mean(p))``.
    """
    rng = np.random.default_rng(seed)
    neg = rng.standard_normal((n_users, n_neg, n_features))
    pos = noise * rng.standard_normal((n_users, n_pos, n_features))
    pos += (neg.mean(axis=1) - pos.mean(axis=1))[:, None, :]
    return stacked(pos, neg, np.zeros(n_features))


def risk(name, k=3, **options):
    return EmpiricalRisk(make_surrogate(name, k), ranking_data(**options))


def one_user_risk(name, k=10, n_pos=25, n_neg=160, seed=0):
    """A single long list, positives shifted along one feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_pos + n_neg, 5))
    X[:n_pos, 0] += 2.5
    data = RankingData(X, np.arange(n_pos + n_neg) < n_pos, [0, n_pos + n_neg])
    return EmpiricalRisk(make_surrogate(name, k), data)


def one_list(name, k, p, q, depth=None):
    """Value and subgradient of a surrogate at the scores of one list."""
    scores = np.concatenate([p, q]).astype(float)
    indptr, n_pos = np.array([0, scores.size]), np.array([len(p)])
    values, coef = make_surrogate(name, k, depth).value_and_subgradient(scores, indptr, n_pos)
    return values[0], coef


def objective(oracle, alpha, w):
    """``alpha/2 ||w||^2 + R(w)``."""
    return alpha / 2 * (w @ w) + oracle(w)[0]


def full_problem(oracle, alpha):
    """``alpha/2 ||w||^2 + R(w)`` of a convex surrogate written in full in cvxpy; its optimum."""
    problem = written_in_full(oracle, alpha)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def written_in_full(oracle, alpha):
    """The whole problem, every pair of it, for any solver that cvxpy knows."""
    w = cp.Variable(oracle.n_features)
    users = [user_in_full(oracle, u, w) for u in range(oracle.data.n_users)]
    weight = oracle.data.user_weight
    weight = np.ones(len(users)) if weight is None else weight
    mean = sum(share * user for share, user in zip(weight / weight.sum(), users, strict=True))
    return cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + mean))


def user_in_full(oracle, u, w):
    """The surrogate of one user's list at the cvxpy variable w."""
    data, surrogate = oracle.data, oracle.surrogate
    rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    P, Q = rows[: data.n_pos[u]], rows[data.n_pos[u] :]
    m = surrogate.depth_of_list(len(Q))
    return _FULL[surrogate.name](P, Q, min(surrogate.k, len(P)), m, w)


def _avg(P, Q, beta, m, w):
    margin = 1 - cp.sum(P @ w) / P.shape[0] + Q @ w
    return cp.sum_largest(cp.pos(margin), m) / m


def _pair_sums(P, Q, m, w):
    """For every positive, the sum of its hinges with the top-m negatives."""
    return [cp.sum_largest(cp.pos(1 - P[i] @ w + Q @ w), m) for i in range(P.shape[0])]


def _pauc(P, Q, beta, m, w):
    return sum(_pair_sums(P, Q, m, w)) / (P.shape[0] * m)


def _max(P, Q, beta, m, w):
    return cp.sum_largest(cp.hstack(_pair_sums(P, Q, m, w)), beta) / (beta * m)


def _ts(P, Q, beta, m, w):
    """Equation (14) with the loss of an ordering as a maximum over tau.

    The sum of the beta smallest row sums r is the maximum over whole tau of
    ``beta tau - sum_i (tau - r_i)_+``, so the rows separate for each tau; row i with sum r has the
    r best negatives above it.
    """
    n_pos = P.shape[0]
    best = [cp.sum_largest(Q @ w, r) if r else 0.0 for r in range(m + 1)]
    values = []
    for tau in range(m + 1):
        rows = [
            cp.maximum(*[best[r] - r * (P[i] @ w) - max(tau - r, 0) for r in range(m + 1)])
            for i in range(n_pos)
        ]
        values.append(beta * tau + sum(rows))
    return cp.maximum(*values) / (beta * m)


_FULL = {"avg": _avg, "max": _max, "ts": _ts, "pauc": _pauc}


class InProcess:
    """Partitions in this process; the `hook` is called with the number of each look at them."""

    notes = ()

    def __init__(self, data, n, surrogate, policy):
        *needed, _ = users_needed(surrogate, policy)
        loaded = [summarise(each.load(), *needed) for each in array_partitions(data, n)]
        self.summaries = [summary for _, summary in loaded]
        self.data = [data for data, _ in loaded if data is not None]
        self.n_looks, self.hook = 0, lambda n_looks: None

    def run(self, task, shares):
        self.n_looks += 1
        self.hook(self.n_looks)
        for data, share in zip(self.data, shares, strict=True):
            yield task(data, share, 1, None)


def partitioned(surrogate, data, n, policy="exclude"):
    """The risk of data cut into at most n partitions."""
    return PartitionedRisk(surrogate, InProcess(data, n, surrogate, policy))


def walk(d, steps=40, seed=1):
    """Points as a solver asks for them: zero, large steps, small ones, scalings, returns."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    points = [np.zeros(d), w]
    for step in np.geomspace(1.0, 1e-9, steps):
        w = w + step * rng.normal(size=d)
        points.append(w)
    return [*points, 3.0 * w, -w, np.zeros(d), points[3], 1e150 * w, 1e-150 * w, 1e160 * w, w]
