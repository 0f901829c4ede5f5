"""Solvers side by side on the same problem, given the same number of passes over the data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.errors import (
    InputError,
    OracleFailure,
    as_names,
    check_callback,
    check_type,
)
from structsvm_papk.files.model import certificate_of
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.folds import values_by_user
from structsvm_papk.rankers.one_list import automatic_alpha_of
from structsvm_papk.rankers.penalty import check_alpha, is_auto
from structsvm_papk.rankers.settings import ALPHA, make_solver
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.solvers.solver import check_signs
from structsvm_papk.surrogates import Surrogate, make_surrogate

ETAS = (0.01, 0.1, 1.0)  # which one is best depends on the data: none of them is tuned


@dataclass(frozen=True)
class Run:
    """One solver on one problem, with the users of the training data that were left out.

    `settings` are what else the solver was told; `pap_at_k` is the mean pAp@k gain (ties are
    errors) on 'train' and, where there is one, 'test'.
    """

    solver: str
    surrogate: str
    k: int
    alpha: float
    result: SolverResult
    exclusions: Exclusions
    settings: dict[str, Any]
    pap_at_k: dict[str, float]

    @property
    def label(self) -> str:
        """The solver in words, with its step size if it has one."""
        if "eta" in self.settings:
            return f"descent (eta {self.settings['eta']:g})"
        return self.solver.replace("_", " ")

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a bound that is not known is None."""
        return {
            "solver": self.solver,
            "surrogate": self.surrogate,
            "k": self.k,
            "alpha": self.alpha,
            **certificate_of(self.result),
            "message": self.result.message,
            "data_passes": self.result.data_passes,
            "seconds": self.result.seconds,
            "pap_at_k": self.pap_at_k,
            "settings": self.settings,
            "n_users": int(self.exclusions.n_used),
            "n_users_left_out": int(self.exclusions.n_excluded),
        }


def mean_pap_at_k(w: Array, data: RankingData, k: int) -> float:
    """Mean pAp@k gain of a linear scorer over the users that have k negatives and a positive."""
    values = values_by_user(f"pap@{k}", data.scores(w), data)
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def train_gain(risk: Any, w: Array) -> float:
    """Mean pAp@k gain on the users of a risk; NaN where its data cannot be reached any more."""
    if not hasattr(risk, "gain"):
        return mean_pap_at_k(w, risk.of_users, risk.surrogate.k)
    try:
        return float(risk.gain(w))  # of data in partitions
    except OracleFailure:
        return math.nan


def solve(
    name: str,
    risk: Any,
    alpha: float,
    test: RankingData | None = None,
    callback: Callback | None = None,
    **settings: Any,
) -> Run:
    """Run one solver of `make_solver` on a risk; `test` is held out, for the metric only."""
    surrogate = risk.surrogate
    solver = make_solver(name, surrogate, alpha, **settings)
    result = solver.solve(risk, callback=callback)
    gains = {"train": train_gain(risk, result.w)}
    if test is not None:
        gains["test"] = mean_pap_at_k(risk.data.divided(result.w), test, surrogate.k)
    return Run(name, surrogate.name, surrogate.k, alpha, result, risk.exclusions, settings, gains)


def compare(
    data: RankingData,
    surrogates: Sequence[str],
    k: int,
    alpha: Any = ALPHA,
    *,
    etas: Sequence[float] = ETAS,
    test: RankingData | None = None,
    watch: Callable[[str, str], Callback] | None = None,
    n_threads: int = 1,
    depth: int | float | None = None,
    standardize: bool | str = "auto",
    positive: bool = False,
    **limits: Any,
) -> list[Run]:
    """Solvers side by side: cutting plane and subgradient descent, surrogate by surrogate.

    Subgradient descent is given as many passes over the data as the cutting plane took. Two
    rankers are compared by `metrics.compare`.

    Parameters
    ----------
    data : RankingData
        Users without a positive or a negative are left out; fewer negatives than k count as they
        are.
    surrogates : sequence of str
        Convex ones.
    k : int
    alpha : float or 'auto'
        As for `PAPKRanker`.
    etas : sequence of float
        Step sizes of subgradient descent, one run each.
    test : RankingData, optional
    watch : callable, optional
        ``watch(solver, surrogate)`` returns the callback of one run.
    n_threads : int
    depth : int, float, optional
        Training depth, see `Surrogate`.
    standardize : {'auto', True, False}
        As for `PAPKRanker`.
    positive : bool
        Whether all of them minimise over w >= 0 only.
    **limits
        ``tol``, ``max_iter``, ``time_limit`` of the cutting plane.

    Returns
    -------
    list of Run
        On Ctrl-C the runs so far.
    """
    check_type("data", data, RankingData, "a RankingData")
    check_type("test", test, RankingData, "a RankingData", optional=True)
    check_callback(watch, "watch")
    etas = as_names("etas", etas)
    if test is not None and test.n_features != data.n_features:
        raise InputError(
            f"the test data has {test.n_features} features, the training data {data.n_features}"
        )
    losses = [make_surrogate(name, k, depth) for name in as_names("surrogates", surrogates)]
    check_alpha(alpha)
    check_signs(positive)
    lists = data.standardized(standardize)
    _warm_up(lists, losses)
    runs: list[Run] = []
    strength = None if is_auto(alpha) else alpha  # 'auto' is that of the first surrogate
    for loss in losses:
        risk, n_passes = EmpiricalRisk(loss, lists, "cap", n_threads=n_threads), 0
        if strength is None:
            strength = automatic_alpha_of(lists, risk, positive).alpha
        for eta in (None, *etas):
            solver = "cutting_plane" if eta is None else "subgradient"
            callback = watch(solver, loss.name) if watch else None
            settings = limits if eta is None else {"eta": eta, "max_iter": n_passes}
            settings = settings | ({"positive": True} if positive else {})
            runs.append(solve(solver, risk, strength, test, callback, **settings))
            if runs[-1].result.status == Status.INTERRUPTED:
                return runs
            n_passes = runs[-1].result.data_passes if eta is None else n_passes
    return runs


def _warm_up(data: RankingData, losses: Sequence[Surrogate]) -> None:
    """Load compiled code and libraries on two users, so that their time is counted for no run."""
    for loss in losses:
        usable = data.usable(1)
        risk = EmpiricalRisk(loss, usable.subset(np.arange(usable.n_users) < 2), "cap")
        solve("cutting_plane", risk, 1.0, max_iter=2)
        solve("subgradient", risk, 1.0, max_iter=2)
