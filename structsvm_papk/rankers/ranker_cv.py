"""`PAPKRankerCV`: surrogate, depth, weights of users and alpha chosen on users left out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.model_selection import KFold

from structsvm_papk import metrics
from structsvm_papk._types import Array, Callback
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.checkpoint import as_checkpoint
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.ranker import PAPKRanker
from structsvm_papk.rankers.settings import Setting, make_solver, refuse_deeper_than_all
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import SURROGATES

SELECTIONS = ("best", "1se")
_ALPHAS = (1e-2, 1e-3, 1e-4)  # for features of unit variance
_DEPTHS = (0.0, 0.5, 0.75, 0.95)  # between k and all negatives, on a logarithmic scale
_CHUNK = 1 << 14  # rows at a time
_LOSING = 1e-3  # chance at which a setting that is as good as the leader would be dropped
_FEWEST = 10  # users on whom that is judged


@dataclass(frozen=True)
class Trial:
    """One setting on one fold, for the callback of `PAPKRankerCV`.

    Attributes
    ----------
    setting : Setting
    fold : int
        From 0.
    score : float
        Mean over the users left out.
    seconds : float
        Of the fit.
    n_done, n_planned : int
        Fits so far, and those that remain planned together with them.
    """

    setting: Setting
    fold: int
    score: float
    seconds: float
    n_done: int
    n_planned: int


class PAPKRankerCV(PAPKRanker):
    """`PAPKRanker` whose settings are chosen by cross-validation over users.

    Every combination of surrogate, depth, weights of users and alpha is trained on all folds but
    one and scored on the users of that one; the best trains on all users. Solves start where the
    one before ended, along alpha and depth. After each fold, settings whose users fare worse than
    with the leader beyond doubt are dropped (one-sided paired t-test at 0.1%, from ten users on).

    Parameters
    ----------
    k : int
        Number of items that a user is shown.
    surrogates : sequence of str
        Names, see `PAPKRanker`.
    depths : 'auto' or sequence of int, float, None
        Training depths, see `PAPKRanker`. 'auto': k and three numbers on a logarithmic scale up to
        nearly all negatives of the median user.
    user_weights : sequence of {'equal', 'positives'}
        Not used where `fit` gets a sample_weight.
    alphas : 'auto' or sequence of float
        Regularisation strengths. 'auto': 1e-2, 1e-3 and 1e-4 times the mean variance of a feature
        over all rows.
    cv : int or splitter
        Number of folds of users, or an object of scikit-learn's with ``split(X, y, groups)``. A
        splitter that cuts a user in two is refused.
    scoring : str, optional
        Metric of the package, see `metrics.evaluate`; by default pAp@k.
    selection : {'best', '1se'}
        The setting with the best mean, or the one with the largest alpha (then the smallest depth)
        within one standard error of it.
    tol : float
        Relative gap of the final fit.
    cv_tol : float
        Relative gap of the fits on folds.
    max_iter, relevance_threshold, n_threads, solver_options, one_list
        As for `PAPKRanker`; they apply to every solve.
    time_limit : float, optional
        Seconds for search and fit together. The search stops at two thirds of it and the best so
        far is taken.
    policy : {'exclude', 'raise', 'cap'}
        As for `PAPKRanker`. Here users with few negatives are capped by default.
    n_jobs : int, optional
        Processes that share the settings of a fold, as in scikit-learn.
    random_state : int, RandomState or None
        Of the folds.
    callback : callable, optional
        Called with a `Trial` after every fit on a fold; returning True ends the search.
    checkpoint : path-like or Checkpoint, optional
        Every solve keeps its state in a folder of its own inside this one.

    Attributes
    ----------
    best_params_ : dict
        surrogate, depth, user_weight and alpha.
    best_score_ : float
        Their mean score over users left out.
    cv_results_ : dict of str to ndarray
        As scikit-learn's searches have it: 'params', 'param_surrogate', .., 'split0_test_score',
        .., 'mean_test_score', 'std_test_score', 'rank_test_score', 'mean_fit_time'; also
        'se_test_score' over users and 'n_splits'. Scores of folds that a dropped setting did not
        see are NaN, and its mean is over the folds that it saw; it ranks behind the others.
    n_splits_ : int
    coef_, result_, exclusions_, classes_, n_iter_, n_features_in_, feature_names_in_
        As for `PAPKRanker`.
    """

    def __init__(
        self,
        k: int = 1,
        surrogates: Sequence[str] = ("ts", "avg", "clipped_ramp"),
        depths: str | Sequence[int | float | None] = "auto",
        user_weights: Sequence[str] = ("equal", "positives"),
        alphas: str | ArrayLike = "auto",
        cv: Any = 5,
        scoring: str | None = None,
        selection: str = "best",
        tol: float = 1e-4,
        cv_tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        policy: str = "cap",
        relevance_threshold: float | None = None,
        n_threads: int = 1,
        n_jobs: int | None = None,
        solver_options: dict[str, Any] | None = None,
        random_state: Any = 0,
        callback: Callback | None = None,
        checkpoint: Any | None = None,
        one_list: bool = False,
    ) -> None:
        self.k = k
        self.surrogates = surrogates
        self.depths = depths
        self.user_weights = user_weights
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.tol = tol
        self.cv_tol = cv_tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.policy = policy
        self.relevance_threshold = relevance_threshold
        self.n_threads = n_threads
        self.n_jobs = n_jobs
        self.solver_options = solver_options
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint
        self.one_list = one_list

    def _solver_name(self):
        return "auto"

    def _fit_dask(self, X, y, groups):
        raise InputError(
            "PAPKRankerCV needs the data in memory; choose on a sample of the users and fit "
            "PAPKRanker with best_params_ on the Dask collection"
        )

    def _fit_data(self, data: RankingData) -> PAPKRankerCV:
        """Choose, then train on all users."""
        if self.selection not in SELECTIONS:
            raise InputError(
                f"unknown selection={self.selection!r}; choose from {', '.join(SELECTIONS)}"
            )
        started = time.perf_counter()
        search = _Search(self, data)
        best, start = search.run(started)
        self.cv_results_, self.n_splits_ = search.results(), len(search.folds)
        self.best_params_, self.best_score_ = best.as_dict(), search.mean(best)
        self._setting = best
        left = None
        if self.time_limit is not None:
            left = max(self.time_limit - (time.perf_counter() - started), 1e-3)
        place = as_checkpoint(self.checkpoint)
        self.result_ = _solve_setting(
            self, best, search.weighted(best, data), self.tol, start, left,
            place and place.part("all-users"),
        )  # fmt: skip
        return self._finish(search.exclusions)


class _Search:
    """The settings of one search, and what each of them has scored so far."""

    def __init__(self, config: PAPKRankerCV, data: RankingData) -> None:
        self.config, self.data = config, data
        self.scoring = config.scoring or f"pap@{config.k}"
        self.settings = _grid(config, data)
        risks = [
            EmpiricalRisk(setting.make(config.k), self.weighted(setting, data), config.policy)
            for setting in {s.depth: s for s in self.settings}.values()
        ]
        self.exclusions = min((risk.exclusions for risk in risks), key=lambda e: e.n_excluded)
        self.folds = list(_folds(config, data, self.exclusions))
        shape = len(self.settings), data.n_users
        self.values = np.full(shape, np.nan)  # score of each user left out
        self.fold_scores = np.full((len(self.settings), len(self.folds)), np.nan)
        self.seconds = np.full_like(self.fold_scores, np.nan)
        self.alive = np.ones(len(self.settings), dtype=bool)
        self.weights: dict[int, list] = {}  # solutions of each setting on the folds

    def weighted(self, setting: Setting, data: RankingData) -> RankingData:
        """The data with the setting's weights; those of rows, where given, stay."""
        return data if data.user_weight is not None else data.weighted(setting.user_weight)

    def run(self, started: float) -> tuple[Setting, Array]:
        """Race the settings; returns the chosen one and the mean of its solutions."""
        limit = self.config.time_limit
        for fold in range(len(self.folds)):
            stop = self._one_fold(fold)
            late = limit is not None and time.perf_counter() - started > 2 / 3 * limit
            if stop or late:
                break
            self._drop_losers()
        best = self._choose()
        return self.settings[best], np.mean(self.weights[best], axis=0)

    def mean(self, setting: Setting) -> float:
        """Mean score over the users left out so far."""
        return float(np.nanmean(self.values[self.settings.index(setting)]))

    def _one_fold(self, fold):
        """Train and score what is alive; returns whether the callback ends the search."""
        chains = list(self._chains())
        part = as_checkpoint(self.config.checkpoint)
        part = part and part.part(f"fold-{fold}")
        held_out = self.folds[fold]
        jobs = (
            delayed(_follow)(self.config, chain, self.data, held_out, part) for _, chain in chains
        )
        stop, outcomes = False, Parallel(n_jobs=self.config.n_jobs, return_as="generator")(jobs)
        for (places, _), outcome in zip(chains, outcomes, strict=True):
            for i, (w, seconds) in zip(places, outcome, strict=True):
                stop |= self._note(i, fold, w, seconds)
        return stop

    def _note(self, i, fold, w, seconds):
        held_out = self.folds[fold]
        test = self.data.subset(held_out)
        table = metrics.evaluate(self.scoring, test.scores(w), test.labels, indptr=test.indptr)
        values = table[self.scoring]
        if np.isnan(values).all():
            raise InputError(
                f"fold {fold} has no user on which {self.scoring} is defined; use fewer folds"
            )
        self.values[i, held_out] = values
        self.fold_scores[i, fold] = np.nanmean(values)
        self.seconds[i, fold] = seconds
        self.weights.setdefault(i, []).append(w)
        if self.config.callback is None:
            return False
        done = int(np.isfinite(self.fold_scores).sum())
        planned = done + int(np.isnan(self.fold_scores[self.alive]).sum())
        trial = Trial(self.settings[i], fold, self.fold_scores[i, fold], seconds, done, planned)
        return bool(self.config.callback(trial))

    def _chains(self):
        """Settings that are alive, in runs that share warm starts: from deep and strong on."""
        order = sorted(np.flatnonzero(self.alive), key=lambda i: _path_key(self.settings[i]))
        for _, run in groupby(order, key=lambda i: self.settings[i].user_weight):
            places = list(run)
            yield places, [self.settings[i] for i in places]

    def _drop_losers(self):
        """Settings whose users fare worse than with the leader beyond doubt."""
        means = np.where(self.alive, np.nanmean(self.values, axis=1), -np.inf)
        leader = self.values[int(np.argmax(means))]
        for i in np.flatnonzero(self.alive):
            behind = leader - self.values[i]
            behind = behind[np.isfinite(behind)]
            if behind.size >= _FEWEST:
                error = behind.std(ddof=1) / np.sqrt(behind.size)
                border = stdtrit(behind.size - 1, 1.0 - _LOSING)
                self.alive[i] = not behind.mean() > border * error

    def _choose(self):
        """Index of the chosen setting among those that saw most folds."""
        seen = np.isfinite(self.fold_scores).sum(axis=1)
        full = seen == seen.max()
        means = np.where(full, np.nanmean(self.values, axis=1), -np.inf)
        best = int(np.argmax(means))
        if self.config.selection == "best":
            return best
        within = np.flatnonzero(means >= means[best] - self._errors()[best])

        def simplicity(i):
            return -self.settings[i].alpha, _order_of_depth(self.settings[i].depth)

        return int(min(within, key=simplicity))

    def _errors(self):
        """Standard errors over users."""
        n = np.isfinite(self.values).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nanstd(self.values, axis=1, ddof=1) / np.sqrt(n)

    def results(self) -> dict[str, Any]:
        """`cv_results_` as scikit-learn has it."""
        params = [setting.as_dict() for setting in self.settings]
        seen = np.isfinite(self.fold_scores).sum(axis=1)
        mean = np.nanmean(self.values, axis=1)
        order = np.lexsort([-mean, -seen])
        rank = np.empty(order.size, dtype=np.int32)
        rank[order] = np.arange(1, order.size + 1)
        columns = {
            f"param_{name}": np.array([p[name] for p in params], object) for name in params[0]
        }
        splits = {f"split{f}_test_score": s for f, s in enumerate(self.fold_scores.T)}
        return {
            "params": params,
            **columns,
            **splits,
            "mean_test_score": mean,
            "std_test_score": np.nanstd(self.fold_scores, axis=1),
            "se_test_score": self._errors(),
            "rank_test_score": rank,
            "mean_fit_time": np.nanmean(self.seconds, axis=1),
            "n_splits": seen,
        }


def _grid(config, data):
    """Every combination, without those that are the same."""
    weights = ("equal",) if data.user_weight is not None else config.user_weights
    depths = _auto_depths(config.k, data) if _is_auto(config.depths) else config.depths
    alphas = _auto_alphas(data) if _is_auto(config.alphas) else config.alphas
    lists = {"surrogates": config.surrogates, "depths": depths, "user_weights": weights}
    for name, values in {**lists, "alphas": alphas}.items():
        if isinstance(values, str) or not len(np.atleast_1d(np.asarray(values, object))):
            raise InputError(f"{name} must be a sequence with something in it, got {values!r}")
    grid = [
        Setting(name, depth, weight, float(alpha))
        for name, weight, depth, alpha in product(
            config.surrogates, weights, depths, np.unique(np.asarray(alphas, float))[::-1]
        )
    ]
    for setting in grid:  # names, depths and strengths that cannot be are refused here
        surrogate = setting.make(config.k)
        make_solver("auto", surrogate, setting.alpha)
        refuse_deeper_than_all(surrogate, data)
    return list(dict.fromkeys(grid))


def _is_auto(value):
    return isinstance(value, str) and value == "auto"


def _auto_depths(k, data):
    """k and three larger numbers, on a logarithmic scale up to most negatives of a usual user."""
    usual = float(np.median(data.n_neg[data.n_pos > 0])) if (data.n_pos > 0).any() else k
    ratio = max(usual / k, 1.0)
    return list(dict.fromkeys(round(k * ratio**power) for power in _DEPTHS))


def _auto_alphas(data):
    """Strengths in proportion to the mean variance of a feature over all rows."""
    total, n_rows = 0.0, data.rows.size
    mean = data.pullback(np.full(n_rows, 1.0 / n_rows))
    for f in range(0, n_rows, _CHUNK):
        rows = data.X[data.rows[f : f + _CHUNK]]
        total += (rows.multiply(rows) if hasattr(rows, "multiply") else np.square(rows)).sum()
    variance = max(total / n_rows - mean @ mean, 0.0) / data.n_features
    return [alpha * (variance or 1.0) for alpha in _ALPHAS]


def _folds(config: PAPKRankerCV, data: RankingData, exclusions: Any) -> Iterator[Array]:
    """Masks of the users left out by each fold."""
    if isinstance(config.cv, int | np.integer) and not isinstance(config.cv, bool):
        users = np.ones(data.n_users, dtype=bool)
        users[exclusions.no_positive] = users[exclusions.few_negatives] = False
        users = np.flatnonzero(users)
        if not 2 <= config.cv <= users.size:
            raise InputError(
                f"cv={config.cv} must be between 2 and the number of users that can be used "
                f"({users.size}): the folds are made of users"
            )
        for _, part in KFold(config.cv, shuffle=True, random_state=config.random_state).split(
            users
        ):
            held_out = np.zeros(data.n_users, dtype=bool)
            held_out[users[part]] = True
            yield held_out
        return
    if isinstance(config.cv, str) or not hasattr(config.cv, "split"):
        raise InputError(f"cv must be a number of folds or have split(X, y, groups): {config.cv!r}")
    user_of_row = np.empty(data.rows.size, dtype=np.int64)
    user_of_row[data.rows] = data.user_of_position
    labels = np.empty(data.rows.size, dtype=bool)
    labels[data.rows] = data.labels
    for train, test in config.cv.split(user_of_row[:, None], labels, user_of_row):
        both = np.intersect1d(user_of_row[train], user_of_row[test])
        if both.size:
            user = data.users[both[:1]].tolist()[0]
            raise InputError(
                f"the splitter {type(config.cv).__name__} puts rows of user {user!r} both in "
                "training and in validation; use a splitter by groups, such as GroupKFold"
            )
        yield np.isin(np.arange(data.n_users), user_of_row[test])


def _follow(config, chain, data, held_out, checkpoint):
    """Solutions and seconds of settings on one fold, each solve from what the last ones left."""
    train, out, known = data.subset(~held_out), [], {}
    last: dict[Any, SolverResult] = {}
    zero: list[Setting] = []  # whose optimum is zero
    for setting in chain:
        began = time.perf_counter()
        if any(_not_deeper(setting, other) for other in zero):
            w = np.zeros(data.n_features)
        else:
            lists = train if data.user_weight is not None else train.weighted(setting.user_weight)
            same = last.get((setting.surrogate, setting.depth))
            start = known.get(setting.alpha, next(iter(known.values()), None))
            part = checkpoint and checkpoint.part("-".join(map(str, setting.as_dict().values())))
            result = _solve_setting(config, setting, lists, config.cv_tol, start, None, part, same)
            w = result.w
            last[setting.surrogate, setting.depth] = result
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if result.status is Status.DEGENERATE:
                zero.append(setting)
        if w.any():
            known[setting.alpha] = w
        out.append((w, time.perf_counter() - began))
    return out


def _not_deeper(setting, other):
    """Whether a setting counts no more negatives of any user than another, all else the same.

    Then its surrogate is nowhere below, and where the other's optimum is zero so is its own.
    """
    if (setting.surrogate, setting.alpha) != (other.surrogate, other.alpha):
        return False
    shallow, deep = setting.depth, other.depth
    if shallow is None or deep is None:
        return shallow is None
    return (shallow < 1) == (deep < 1) and shallow <= deep


def _order_of_depth(depth):
    """From shallow to deep: k, numbers, shares."""
    return (0, 0) if depth is None else (2 if depth < 1 else 1, depth)


def _path_key(setting):
    """Convex surrogates first, deep before shallow, strong regularisation before weak."""
    kind, depth = _order_of_depth(setting.depth)
    nonconvex = not SURROGATES[setting.surrogate].convex
    return setting.user_weight, nonconvex, setting.surrogate, -kind, -depth, -setting.alpha


def _solve_setting(config, setting, data, tol, w_init, time_limit, checkpoint, warm_start=None):
    """Solve one setting on these lists."""
    surrogate = setting.make(config.k)
    settings = {"tol": tol, "max_iter": config.max_iter, "time_limit": time_limit}
    solver = make_solver(
        "auto", surrogate, setting.alpha, **settings, **(config.solver_options or {})
    )
    risk = EmpiricalRisk(surrogate, data, config.policy, n_threads=config.n_threads)
    if surrogate.convex and warm_start is not None:
        return solver.solve(risk, warm_start=warm_start, checkpoint=checkpoint)
    return solver.solve(risk, w_init=w_init, checkpoint=checkpoint)
