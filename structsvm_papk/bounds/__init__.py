"""Bounds on the distance between the pAp@k risk of a sample and that of the population.

`uniform` holds for all scorers of a class at once (training data); `held_out` is for one scorer
chosen before its data were seen. Both are about the risk R_{a,b} of the population
(`docs/bounds.md`) with ``a = beta/n_pos``, ``b = k/n_neg``. `many_users` is about another quantity,
the mean list risk: the expected risk of the list of a user drawn at random. All levels are
``1 - rho``. `stability` bounds that risk from a certified fit and its training users, in
expectation. May import `data` and below.
"""

from structsvm_papk.bounds.class_bound import uniform
from structsvm_papk.bounds.intervals import held_out, many_users
from structsvm_papk.bounds.planning import required_items, required_users
from structsvm_papk.bounds.stability import stability

__all__ = [
    "held_out",
    "many_users",
    "required_items",
    "required_users",
    "stability",
    "uniform",
]
