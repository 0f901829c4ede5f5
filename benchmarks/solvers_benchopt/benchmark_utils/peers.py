"""Other programs for the same problem, in their own units.

dlib's `svm_rank_trainer` minimises ``1/2 ||w||^2 + C (mean over pairs of (1 - p_i + q_j)_+)`` and
stops when the risk gap is below `epsilon`. With one user that is F of the surrogate pauc with k =
n_neg, divided by alpha, at C = 1/alpha; epsilon is a gap in the units of F.
"""

import numpy as np


def dlib_pairs(data):
    """One user's rows as dlib's vectors (slow, done once)."""
    import dlib

    rows = data.X[data.rows]
    pair = dlib.ranking_pair()
    n_pos = data.n_pos[0]
    pair.relevant = dlib.vectors([dlib.vector(row) for row in rows[:n_pos].tolist()])
    pair.nonrelevant = dlib.vectors([dlib.vector(row) for row in rows[n_pos:].tolist()])
    return pair


def dlib_weights(pair, alpha, epsilon, max_iterations=100_000):
    """Train dlib's ranker; `epsilon` is the wanted ``F - F*``."""
    import dlib

    trainer = dlib.svm_rank_trainer()
    trainer.c = 1.0 / alpha
    trainer.epsilon = epsilon
    trainer.max_iterations = max_iterations
    return np.array(trainer.train(pair).weights)


def is_auc_hinge(risk):
    """Whether a risk is the mean hinge over all pairs of one user."""
    one_user = risk.n_users == 1
    return one_user and risk.surrogate.name == "pauc" and risk.surrogate.k == risk.data.n_neg[0]


def pair_differences(data):
    """Rows ``s (x_i - x_j)`` of every user's pairs with signs s = 1, -1, 1, .., and pair weights.

    The weighted hinges add up to the risk of pauc with k = n_neg.
    """
    differences, weights = [], []
    for u in range(data.n_users):
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1]]]
        n_pos = data.n_pos[u]
        pairs = (rows[:n_pos, None, :] - rows[None, n_pos:, :]).reshape(-1, data.n_features)
        differences.append(pairs)
        weights.append(np.full(len(pairs), 1.0 / (len(pairs) * data.n_users)))
    differences = np.concatenate(differences)
    signs = np.where(np.arange(len(differences)) % 2, -1, 1)
    return differences * signs[:, None], signs, np.concatenate(weights)
