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
