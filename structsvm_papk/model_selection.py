"""Choosing alpha by cross-validation over users, along regularisation paths."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import GroupKFold

from structsvm_papk import metrics
from structsvm_papk._types import Callback
from structsvm_papk.checkpoint import as_checkpoint
from structsvm_papk.errors import InputError
from structsvm_papk.estimator import PAPKRanker
from structsvm_papk.result import Status
from structsvm_papk.risk import EmpiricalRisk
from structsvm_papk.solvers.path import alpha_path


class PAPKRankerCV(PAPKRanker):
    """`PAPKRanker` with alpha chosen by cross-validation over users.

    Each fold's path of alphas is solved from the largest to the smallest, every solve starting
    with the cuts of the one before (`alpha_path`). The alpha with the largest mean pAp@k gain on
    the users left out is taken, the larger one where two tie, and all users train the final model.

    Parameters
    ----------
    k : int
        Number of items that a user is shown.
    surrogate : {'avg', 'max', 'ts', 'pauc'}
        A convex surrogate.
    alphas : array-like of float
        Regularisation strengths to try.
    n_folds : int
        Folds of users, at least 2.
    tol, max_iter, time_limit, policy, relevance_threshold, n_threads, solver_options, callback
        As for `PAPKRanker`; they apply to every solve.
    checkpoint : path-like or Checkpoint, optional
        Every solve keeps its state in a folder of its own inside this one.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    cv_scores_ : ndarray of shape (n_alphas, n_folds)
        Mean pAp@k gain over the users left out.
    path_ : list of SolverResult
        Results on all users, from the largest alpha down to `alpha_`, in that order.
    coef_, result_, exclusions_, classes_, n_iter_, n_features_in_, feature_names_in_
        As for `PAPKRanker`.
    """

    def __init__(
        self,
        k: int = 1,
        surrogate: str = "avg",
        alphas: ArrayLike = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
        n_folds: int = 5,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        policy: str = "exclude",
        relevance_threshold: float | None = None,
        n_threads: int = 1,
        solver_options: Any = None,
        callback: Callback | None = None,
        checkpoint: Any | None = None,
    ) -> None:
        super().__init__(
            k=k,
            surrogate=surrogate,
            solver="cutting_plane",
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            policy=policy,
            relevance_threshold=relevance_threshold,
            n_threads=n_threads,
            solver_options=solver_options,
            callback=callback,
            checkpoint=checkpoint,
        )
        self.alphas = alphas
        self.n_folds = n_folds

    def _solve(self, solver, risk):
        """Choose alpha on folds of the users of `risk`, then solve for it on all of them."""
        alphas = np.sort(np.unique(np.asarray(self.alphas, dtype=np.float64)))[::-1]
        if not 2 <= self.n_folds <= risk.n_users:
            raise InputError(
                f"n_folds={self.n_folds} must be between 2 and the number of users that can be "
                f"used ({risk.n_users}): the folds are made of users"
            )
        place = as_checkpoint(self.checkpoint)
        scores = []
        for number, held_out in enumerate(self._folds(risk)):
            part = place and place.part(f"fold-{number}")
            scores.append(self._score_fold(solver, risk, held_out, alphas, part))
        self.cv_scores_ = np.array(scores).T
        best = int(np.argmax(self.cv_scores_.mean(axis=1)))
        self.alpha_ = float(alphas[best])
        part = place and place.part("all-users")
        path = alpha_path(risk, alphas[: best + 1], solver, None, self.callback, part)
        self.path_ = [result for result in path if result is not None]
        return self.path_[-1]

    def _folds(self, risk):
        """Masks of held-out users: folds with about the same number of rows."""
        users = risk.data.user_of_position
        for _, rows in GroupKFold(self.n_folds).split(users, groups=users):
            held_out = np.zeros(risk.n_users, dtype=bool)
            held_out[users[rows]] = True
            yield held_out

    def _score_fold(self, solver, risk, held_out, alphas, checkpoint):
        train, test = risk.data.subset(~held_out), risk.data.subset(held_out)
        fold = EmpiricalRisk(risk.surrogate, train, n_threads=self.n_threads)
        path = alpha_path(fold, alphas, solver, None, self.callback, checkpoint)
        last = [result for result in path if result is not None][-1]
        if last.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        if path[-1] is None:
            raise RuntimeError("the callback stopped the cross-validation before it had an alpha")
        return [self._gain(test, result.w) for result in path]

    def _gain(self, data, w):
        gains = metrics.per_user(
            f"pap@{self.k}", data.scores(w), data.labels, data.user_of_position
        )
        return np.nanmean(gains)
