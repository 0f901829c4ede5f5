"""What several baselines share."""

import numpy as np

from structsvm_papk import SolverResult, metrics


def uncertified(w, objective, alpha=0.0):
    """The outcome of a method that has no lower bound."""
    return SolverResult(w, float(objective), -np.inf, "finished", alpha=alpha)


def mean_pap_at_k(w, data, k):
    """Mean pAp@k gain of a linear scorer over the users that have k negatives and a positive."""
    name = f"pap@{k}"
    return metrics.evaluate(name, data.scores(w), data.labels, indptr=data.indptr).mean(name)
