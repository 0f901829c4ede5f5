"""The race of `PAPKRankerCV`: settings on folds of users, losers dropped after each fold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import stdtrit
from sklearn.model_selection import KFold

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.coordinates import spread_within_users
from structsvm_papk.errors import InputError
from structsvm_papk.files.checkpoint import as_checkpoint
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.settings import (
    Setting,
    as_depth,
    make_solver,
    refuse_deeper_than_all,
)
from structsvm_papk.solvers.dual_ascent import suited
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import SURROGATES

if TYPE_CHECKING:
    from structsvm_papk.rankers.ranker_cv import PAPKRankerCV

ALPHAS = (1e-2, 1e-3, 1e-4)  # of features that vary by 1 within users
_DEPTHS = (0.0, 0.5, 0.75, 0.95)  # between k and all negatives, on a logarithmic scale
_MANY_ROWS = 10_000  # from which 'auto' tries surrogates that are not convex at one point only
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


class Search:
    """The settings of one search, and what each of them has scored so far."""

    def __init__(self, config: PAPKRankerCV, data: RankingData) -> None:
        self.config, self.data = config, data
        self.scoring = config.scoring or f"pap@{config.k}"
        self.settings = _grid(config, data)
        risks = [
            EmpiricalRisk(setting.make(config.k), weighted(setting, data), config.policy)
            for setting in {s.depth: s for s in self.settings}.values()
        ]
        self.exclusions = min((risk.exclusions for risk in risks), key=lambda e: e.n_excluded)
        self.folds = list(_folds(config, data, self.exclusions))
        shape = len(self.settings), data.n_users
        self.values = np.full(shape, np.nan)  # score of each user left out
        self.fold_scores = np.full((len(self.settings), len(self.folds)), np.nan)
        self.seconds = np.full_like(self.fold_scores, np.nan)
        self.alive = np.ones(len(self.settings), dtype=bool)
        self.weights: dict[int, list[Array]] = {}  # solutions of each setting on the folds

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

    def _one_fold(self, fold: int) -> bool:
        """Train and score what is alive; returns whether the callback ends the search.

        Surrogates that are not convex come last and start from the optima of those that are.
        """
        held_out, stop = self.folds[fold], False
        test, lists = self.data.subset(held_out), self._training_lists(~held_out)
        part = as_checkpoint(self.config.checkpoint)
        part = part and part.part(f"fold-{fold}")
        starts: dict[str, dict[float, Array]] = {}
        for convex in (True, False):
            chains = list(self._chains(convex))
            jobs = [
                delayed(_follow)(
                    self.config, settings, lists[weight], starts.get(weight, {}), part
                )
                for weight, _, settings in chains
            ]  # fmt: skip
            outcomes = Parallel(n_jobs=self.config.n_jobs, return_as="generator")(jobs)
            for (weight, places, _), outcome in zip(chains, outcomes, strict=True):
                for i, (w, seconds) in zip(places, outcome, strict=True):
                    stop |= self._note(i, fold, test, w, seconds)
                    if w.any():
                        starts.setdefault(weight, {})[self.settings[i].alpha] = w
        return stop

    def _training_lists(self, keep: Array) -> dict[str, RankingData]:
        """The lists of a fold with each weighting; what solvers ask about them is computed once."""
        train, out = self.data.subset(keep), {}
        train.spread()
        for weight in {setting.user_weight for setting in self.settings}:
            out[weight] = train if train.user_weight is not None else train.weighted(weight)
            out[weight].fingerprint()
        return out

    def _note(self, i: int, fold: int, test: RankingData, w: Array, seconds: float) -> bool:
        table = metrics.evaluate(self.scoring, test.scores(w), test.labels, indptr=test.indptr)
        values = table[self.scoring]
        if np.isnan(values).all():
            raise InputError(
                f"fold {fold} has no user on which {self.scoring} is defined; use fewer folds"
            )
        self.values[i, self.folds[fold]] = values
        self.fold_scores[i, fold] = np.nanmean(values)
        self.seconds[i, fold] = seconds
        self.weights.setdefault(i, []).append(w)
        if self.config.callback is None:
            return False
        done = int(np.isfinite(self.fold_scores).sum())
        planned = done + int(np.isnan(self.fold_scores[self.alive]).sum())
        trial = Trial(self.settings[i], fold, self.fold_scores[i, fold], seconds, done, planned)
        return bool(self.config.callback(trial))

    def _chains(self, convex: bool) -> Iterator[tuple[str, list[int], list[Setting]]]:
        """Settings that are alive, in runs that share warm starts: from deep and strong on."""
        alive = [
            i
            for i in np.flatnonzero(self.alive).tolist()
            if SURROGATES[self.settings[i].surrogate].convex == convex
        ]
        alive.sort(key=lambda i: _path_key(self.settings[i]))
        for key, run in groupby(alive, key=lambda i: _path_key(self.settings[i])[:2]):
            places = list(run)
            yield key[0], places, [self.settings[i] for i in places]

    def _drop_losers(self) -> None:
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

    def _choose(self) -> int:
        """Index of the chosen setting among those that saw most folds."""
        seen = np.isfinite(self.fold_scores).sum(axis=1)
        full = seen == seen.max()
        means = np.where(full, np.nanmean(self.values, axis=1), -np.inf)
        best = int(np.argmax(means))
        if self.config.selection == "best":
            return best
        within = np.flatnonzero(means >= means[best] - self._errors()[best]).tolist()

        def simplicity(i: int) -> tuple[float, tuple[float, float]]:
            return -self.settings[i].alpha, order_of_depth(self.settings[i].depth)

        return min(within, key=simplicity)

    def _errors(self) -> Array:
        """Standard errors over users."""
        n = np.isfinite(self.values).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            errors: Array = np.nanstd(self.values, axis=1, ddof=1) / np.sqrt(n)
        return errors

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


def weighted(setting: Setting, data: RankingData) -> RankingData:
    """The data with the setting's weights; those of rows, where given, stay."""
    return data if data.user_weight is not None else data.weighted(setting.user_weight)


def _grid(config: PAPKRankerCV, data: RankingData) -> list[Setting]:
    """Every combination, without those that are the same."""
    weights = ("equal",) if data.user_weight is not None else config.user_weights
    depths, few_depths = _depths(config, data)
    alphas, few_alphas = _alphas(config, data)
    lists = {"surrogates": config.surrogates, "depths": depths, "user_weights": weights}
    for name, values in {**lists, "alphas": alphas}.items():
        if isinstance(values, str) or not len(np.atleast_1d(np.asarray(values, object))):
            raise InputError(f"{name} must be a sequence with something in it, got {values!r}")
    grid = []
    for name, weight in product(config.surrogates, weights):
        known = SURROGATES.get(name)
        convex = known is None or known.convex
        for depth, alpha in product(
            depths if convex else few_depths, alphas if convex else few_alphas
        ):
            grid.append(Setting(name, as_depth(depth), weight, float(alpha)))
    for setting in grid:  # names, depths and strengths that cannot be are refused here
        surrogate = setting.make(config.k)
        make_solver("auto", surrogate, setting.alpha)
        refuse_deeper_than_all(surrogate, data)
    return list(dict.fromkeys(grid))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _depths(config: PAPKRankerCV, data: RankingData) -> tuple[Any, Any]:
    """Depths of the convex surrogates, and of the others.

    'auto': k and three larger numbers, on a logarithmic scale up to most negatives of a usual user;
    for the others the lower half, or k where the data are large.
    """
    if not _is_auto(config.depths):
        return config.depths, config.depths
    k, learnable = config.k, data.n_pos > 0
    usual = float(np.median(data.n_neg[learnable])) if learnable.any() else k
    ratio = max(usual / k, 1.0)
    depths = list(dict.fromkeys(round(k * ratio**power) for power in _DEPTHS))
    return depths, depths[:1] if data.rows.size >= _MANY_ROWS else depths[:2]


def _alphas(config: PAPKRankerCV, data: RankingData) -> tuple[Any, Any]:
    """Strengths for the convex surrogates, and for the others, from the strongest on.

    'auto': in proportion to the mean variance of a feature within users, constant ones left out.
    """
    if not _is_auto(config.alphas):
        alphas = np.unique(np.asarray(config.alphas, float))[::-1]
        return alphas, alphas
    spread = spread_within_users(data)
    unit = float(np.mean(np.square(spread[spread > 0.0]))) if (spread > 0.0).any() else 1.0
    alphas = np.array([float(f"{alpha * unit:.3g}") for alpha in ALPHAS])
    return alphas, alphas[1:2] if data.rows.size >= _MANY_ROWS else alphas


def _folds(config: PAPKRankerCV, data: RankingData, exclusions: Any) -> Iterator[Array]:
    """Masks of the users left out by each fold."""
    if isinstance(config.cv, int | np.integer) and not isinstance(config.cv, bool):
        usable = np.ones(data.n_users, dtype=bool)
        usable[exclusions.no_positive] = usable[exclusions.few_negatives] = False
        users = np.flatnonzero(usable)
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


@dataclass
class _Path:
    """What a run of solves leaves to the next one."""

    starts: dict[float, Array]  # solutions that are not zero, by alpha
    last: dict[Any, SolverResult] = field(default_factory=dict)  # by depth, for its cuts
    zero: list[Setting] = field(default_factory=list)  # whose optimum is zero


def _follow(
    config: PAPKRankerCV,
    chain: Sequence[Setting],
    lists: RankingData,
    starts: dict[float, Array],
    checkpoint: Any,
) -> list[tuple[Array, float]]:
    """Solutions and seconds of settings on one fold, each solve from what the last ones left."""
    path, out = _Path(dict(starts)), []
    for setting in chain:
        began = time.perf_counter()
        w = np.zeros(lists.n_features)
        if not any(_not_deeper(setting, other) for other in path.zero):
            part = checkpoint and checkpoint.part("-".join(map(str, setting.as_dict().values())))
            start = path.starts.get(setting.alpha, next(iter(path.starts.values()), None))
            same = path.last.get(setting.depth)
            result = solve_setting(
                config, setting, lists, config.cv_tol, start, None, part, same, in_fold=True
            )
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            w, path.last[setting.depth] = result.w, result
            if result.status is Status.DEGENERATE:
                path.zero.append(setting)
        if w.any():
            path.starts[setting.alpha] = w
        out.append((w, time.perf_counter() - began))
    return out


def _not_deeper(setting: Setting, other: Setting) -> bool:
    """Whether a setting counts no more negatives of any user than another, all else the same.

    Then its surrogate is nowhere below, and where the other's optimum is zero so is its own.
    """
    if (setting.surrogate, setting.alpha) != (other.surrogate, other.alpha):
        return False
    shallow, deep = setting.depth, other.depth
    if shallow is None or deep is None:
        return shallow is None
    return (shallow < 1) == (deep < 1) and shallow <= deep


def order_of_depth(depth: int | float | None) -> tuple[float, float]:
    """From shallow to deep: k, numbers, shares."""
    return (0, 0) if depth is None else (2 if depth < 1 else 1, depth)


def _path_key(setting: Setting) -> tuple[str, str, float, float, float]:
    """Deep before shallow, strong regularisation before weak."""
    kind, depth = order_of_depth(setting.depth)
    return setting.user_weight, setting.surrogate, -kind, -depth, -setting.alpha


def solve_setting(
    config: PAPKRankerCV,
    setting: Setting,
    lists: RankingData,
    tol: float,
    w_init: Array | None,
    time_limit: float | None,
    checkpoint: Any,
    warm_start: SolverResult | None = None,
    in_fold: bool = False,
) -> SolverResult:
    """Solve one setting on these lists; in folds without trying other ways to break ties."""
    surrogate = setting.make(config.k)
    settings = {"tol": tol, "max_iter": config.max_iter, "time_limit": time_limit}
    if in_fold and surrogate.majorised:
        settings["max_ties"] = 0
    settings |= config.solver_options or {}
    solver = make_solver("auto", surrogate, setting.alpha, **settings)
    risk = EmpiricalRisk(surrogate, lists, config.policy, n_threads=config.n_threads)
    if surrogate.convex and warm_start is not None:
        w_init = None  # the cuts bring their point along
    else:
        warm_start = None
    solver = suited(solver, risk)
    result: SolverResult = solver.solve(risk, w_init, None, warm_start, checkpoint)
    return result
