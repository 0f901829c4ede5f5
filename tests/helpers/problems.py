"""Small ranking problems that several test modules share."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
from scipy import sparse

from helpers.catalogue import SURROGATES
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets.generators import LabelledRows, two_gaussians
from structsvm_papk.files.partitions import array_partitions
from structsvm_papk.oracles.list_risk import Partition, users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.partitions import Partitions, summarise


def ranking_data(n_users=12, n_items=14, n_features=4):
    """Lists whose relevance is the upper third of a noisy linear score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_users * n_items, n_features))
    score = X @ rng.normal(size=n_features) + 0.5 * rng.normal(size=X.shape[0])
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


def wide_data(n_users=8, n_items=14, n_features=60, per_row=8, seed=0):
    """Sparse lists with more features than rows of a user, some rows stored twice."""
    rng = np.random.default_rng(seed)
    n = n_users * n_items
    X = np.zeros((n, n_features))
    for row in X:
        row[rng.choice(n_features, per_row, replace=False)] = rng.random(per_row)
    X[3::14] = X[4::14]
    score = (X @ rng.normal(size=n_features) + 0.3 * rng.normal(size=n)).reshape(n_users, n_items)
    y = score > np.quantile(score, 0.6, axis=1, keepdims=True)
    return RankingData(sparse.csr_array(X), y.ravel(), np.arange(0, n + 1, n_items))


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
    X = np.concatenate([pos, neg], axis=1).reshape(-1, n_features)
    y = np.tile(np.repeat([1, 0], [n_pos, n_neg]), n_users)
    return LabelledRows(X, y, np.repeat(np.arange(n_users), n_pos + n_neg), np.zeros(n_features))


def risk(name, k=3, **options):
    return EmpiricalRisk(make_surrogate(name, k), ranking_data(**options))


def one_user_risk(name, k=10, n_neg=160):
    """A single long list, positives shifted along one feature."""
    lists = two_gaussians(25, n_neg, 5, 2.5, np.eye(5)[0])
    return EmpiricalRisk(make_surrogate(name, k), RankingData.from_groups(lists.X, lists.y))


def one_list(name, k, p, q, depth=None):
    """Value and subgradient of a surrogate at the scores of one list."""
    return at_one_list(make_surrogate(name, k, depth), p, q)


def at_one_list(surrogate, p, q):
    scores = np.concatenate([p, q]).astype(float)
    lists = np.array([0, scores.size]), np.array([len(p)])
    values, coef = surrogate.value_and_subgradient(scores, *lists)
    return values[0], coef


def draw_scores(rng, n):
    """Scores on a lattice full of ties, or of any size."""
    if rng.random() < 0.4:
        return rng.integers(-2, 3, n) / 2
    return 10.0 ** rng.integers(-1, 2) * rng.normal(size=n)


def objective(oracle, alpha, w):
    """``alpha/2 ||w||^2 + R(w)``."""
    return alpha / 2 * (w @ w) + oracle(w)[0]


def full_problem(risk, alpha, signs=False):
    """The whole training problem for cvxpy, every pair of it, and its variable w.

    `signs`: which weights have to be >= 0, all or none.
    """
    data, surrogate = risk.data, risk.surrogate
    w = cp.Variable(data.n_features)
    values, constraints = [], [w[np.flatnonzero(np.broadcast_to(signs, w.shape))] >= 0]
    for u in range(data.n_users):
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        n_pos, m = data.n_pos[u], surrogate.depth_of_list(data.n_neg[u])
        p, q = rows[:n_pos] @ w, rows[n_pos:] @ w
        program = SURROGATES[surrogate.name].program
        value, more = program(p, q, min(n_pos, surrogate.k), m)
        values.append(value)
        constraints += more
    weight = np.ones(data.n_users) if data.user_weight is None else data.user_weight
    mean = sum(share * value for share, value in zip(weight / weight.sum(), values, strict=True))
    return cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + mean), constraints), w


def full_optimum(risk, alpha, signs=False):
    """The optimum of the whole problem, by an interior-point method.

    Of a surrogate that no program is known of, the bundle's, closer than what is held against it.
    """
    if SURROGATES[risk.surrogate.name].program is None:
        return CuttingPlane(alpha, tol=1e-9, positive=signs).solve(risk).objective
    problem = full_problem(risk, alpha, signs)[0]
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


class InProcess(Partitions):
    """Partitions in this process."""

    def __init__(self, surrogate, data, n, policy="exclude"):
        need = users_needed(surrogate, policy)
        loaded = [
            summarise(each.load(), need.negatives, need.setting)
            for each in array_partitions(data, n)
        ]
        self.data = [data for data, _ in loaded if data is not None]
        super().__init__([summary for _, summary in loaded], surrogate)

    def run(self, task, shares):
        for data, share in zip(self.data, shares, strict=True):
            yield task(Partition(data, share, n_threads=1, cache=None))


def partitioned(surrogate, data, n, policy="exclude"):
    """The risk of data cut into at most n partitions."""
    return PartitionedRisk(surrogate, InProcess(surrogate, data, n, policy))


def walk(d, steps=40, seed=1):
    """Points as a solver asks for them: zero, large steps, small ones, scalings, returns."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    points = [np.zeros(d), w]
    for step in np.geomspace(1.0, 1e-9, steps):
        w = w + step * rng.normal(size=d)
        points.append(w)
    return [*points, 3.0 * w, -w, np.zeros(d), points[3], 1e150 * w, 1e-150 * w, 1e160 * w, w]


def warm_path(risk, alphas, solver):
    """A result for each alpha; each solve starts with the cuts of the next larger one."""
    results = {}
    last = None
    for alpha in sorted(alphas, reverse=True):
        last = results[alpha] = replace(solver, alpha=alpha).solve(risk, warm_start=last)
    return [results[alpha] for alpha in alphas]
