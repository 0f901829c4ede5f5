"""Bounds on the distance between the pAp@k risk of a sample and that of the population.

`uniform` holds for all scorers of a class at once (training data); `held_out` is for one scorer
chosen before its data were seen. Both are about R_{a,b} of `structsvm_papk.bounds.population` with
``a = beta/n_pos``, ``b = k/n_neg``. `many_users` is about another quantity, the mean list risk: the
expected risk of the list of a user drawn at random. All levels are ``1 - rho``.
"""

from structsvm_papk.bounds.class_bound import (
    FORMS,
    NotGuaranteedWarning,
    UniformBound,
    absolute_deviation,
    bounded_differences,
    log_cover,
    log_sauer,
    relative_deviation,
    shares,
    theorem2_counterexamples,
    uniform,
)
from structsvm_papk.bounds.interval import Interval
from structsvm_papk.bounds.intervals import (
    HELD_OUT,
    MANY_USERS,
    held_out,
    kl_bernoulli,
    kl_inverse_down,
    kl_inverse_up,
    many_users,
)
from structsvm_papk.bounds.planning import plot_uniform, required_items, required_users

__all__ = [
    "FORMS",
    "HELD_OUT",
    "MANY_USERS",
    "Interval",
    "NotGuaranteedWarning",
    "UniformBound",
    "absolute_deviation",
    "bounded_differences",
    "held_out",
    "kl_bernoulli",
    "kl_inverse_down",
    "kl_inverse_up",
    "log_cover",
    "log_sauer",
    "many_users",
    "plot_uniform",
    "relative_deviation",
    "required_items",
    "required_users",
    "shares",
    "theorem2_counterexamples",
    "uniform",
]
