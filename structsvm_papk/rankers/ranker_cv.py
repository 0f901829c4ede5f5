"""`PAPKRankerCV`: surrogate, depth, weights, alpha and scaling chosen on held-out users."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.features import reported_scores
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.rows import ONE_LIST, check_matrix
from structsvm_papk.data.user_scaling import OneListColumns, scaled_lists
from structsvm_papk.errors import (
    InputError,
    as_names,
    as_path,
    check_callback,
    check_choice,
    check_number,
)
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.list_risk import users_needed
from structsvm_papk.plots.figures import depth_figure
from structsvm_papk.rankers.choice import (
    SELECTIONS,
    Candidates,
    Choice,
    column_choices,
    grid,
    users_without_use,
)
from structsvm_papk.rankers.folds import (
    ByMetric,
    ByScorer,
    make_folds,
    rule_for_short_lists,
    shown,
    value_of,
)
from structsvm_papk.rankers.linear import LinearRanker, check_seed
from structsvm_papk.rankers.one_list import automatic_alpha_of
from structsvm_papk.rankers.penalty import Evidence, automatic_alpha, is_auto
from structsvm_papk.rankers.ranker import PAPKRanker
from structsvm_papk.rankers.search import KeptFits, Search, Training, Trial
from structsvm_papk.rankers.settings import (
    USER_WEIGHTS,
    Lines,
    OfLists,
    Setting,
    default_setting,
    k_of,
    name_of,
    order_of_depth,
    weighted,
)
from structsvm_papk.solvers.result import SolverResult
from structsvm_papk.solvers.solver import check_signs
from structsvm_papk.surrogates import Surrogate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPKRankerCV", "Trial"]

_SHARE_OF_ALPHA = 0.2  # of the time: half of it is for folds, once for each scaling of columns


class _OnFold(PAPKRanker):
    """A ranker with the weights of a fold, for scorers."""

    def decision_function(self, X: Any, groups: Any = None) -> Array:
        """Scores of rows scaled already, of zero weights without a warning."""
        return reported_scores(check_matrix(X), self.coef_)


@dataclass(eq=False, repr=False)
class PAPKRankerCV(LinearRanker):
    """`PAPKRanker` whose settings are chosen by cross-validation over users.

    Every combination of surrogate, depth, weights of users, alpha and scaling is trained on all
    folds but one and scored on the users of that one; the best trains on all users. Solves start
    where the one before ended, along alpha and depth, with its cuts along alpha; where w = 0 is
    optimal, it is at smaller depths too, which are not solved. Surrogates that are not convex start
    from the optima of those that are. After each fold, from fifty held-out users on, settings that
    fall behind the leader are dropped, by paired t-tests that together drop a setting which is as
    good as the best with a probability of 0.1% at most.

    Parameters
    ----------
    k : int, optional
        As for `PAPKRanker`.
    surrogates : sequence of str or Surrogate
        As for `PAPKRanker`.
    depths : 'auto' or sequence of int, float, None
        Training depths, see `PAPKRanker`, such as ``(None, 0.5, 0.9)``. 'auto': a surrogate
        object's own, else a share of 0.9 (0.5 with `missing`), or k for surrogates that are not
        convex.
    user_weights : sequence of {'equal', 'positives'}
        Not used where `fit` gets a sample_weight.
    alphas : 'auto' or sequence of float
        Regularisation strengths. 'auto': 100, 10, 1 and 0.1 times what `PAPKRanker` takes (on one
        list what its own folds choose), and for other scalings of columns and other surrogates than
        the first what it takes.
    cv : int or splitter
        Number of folds of users, or an object of scikit-learn's with ``split(X, y, groups)``: each
        split trains on the rows that it names for training, and a user may be held out by several.
        A splitter with a user on both sides is refused. One list is cut into folds of its rows,
        each with the same share of positives.
    scoring : str or callable, optional
        Metric of the package, see `metrics.evaluate`; by default pAp@k, which leaves out lists of
        fewer than k negatives, or where all are such divides by the pairs that there are. Where all
        is one list, a fold holds a part of its negatives, and by default the same part of k counts
        there. A callable is a scorer as scikit-learn has it, ``scorer(estimator, X, y)``, such as
        one of `make_scorer`; it also gets ``groups=`` where it takes them. It gives one value a
        fold, so that standard errors are over folds, and no setting is dropped early. `score` goes
        by it, too.
    selection : {'1se', 'best'}
        'best' takes the largest mean. '1se' takes, of the settings that are behind it by at most
        one standard error of the paired difference, one with a certificate, and of these the one
        that differs from `PAPKRanker`'s default in the fewest parts; of several, one whose penalty
        is no weaker than the default's. Settings that were dropped early do not come back.
    tol : float
        Relative gap of the final fit.
    cv_tol : float
        Relative gap of the fits on folds.
    user_scaling : None, 'auto', {'standardize', 'rank', 'minmax'} or sequence
        As for `PAPKRanker`; of a sequence such as ``[None, "standardize", "rank"]`` each is tried,
        and held in memory as a copy of X. None: the columns as they are, and for the first of the
        surrogates also ``standardize=False`` where they may share a unit (of what they are divided
        by, the usual large number is 1.5 to 30 times the usual small one), and 'rank' of one list.
        'auto': 'rank' of several lists, too; where it is chosen, `predict` needs `groups`. A sparse
        X is tried as it is.
    max_iter, relevance_threshold, n_threads, solver_options, one_list, verbose, standardize,
    missing
        As for `PAPKRanker`; they apply to every solve. On a fold columns have the scale of its
        training rows.
    time_limit : float, optional
        Seconds for search and fit together. The search stops at two thirds of it and the best so
        far is taken.
    policy : {'cap', 'exclude', 'raise'}
        As for `PAPKRanker`.
    n_jobs : int, optional
        Threads that share the settings of a fold; -1 for one each core.
    random_state : int, RandomState or None
        Of the folds.
    callback : callable, optional
        Called with a `Trial` after every fit on a fold; returning True ends the search.
    checkpoint : path-like, optional
        Folder where fits on folds are kept, under all that determines them. A search that was
        stopped, or another one on the same data, takes those that it would compute itself.
    positive : bool
        As for `PAPKRanker`, in every solve.

    Attributes
    ----------
    best_params_ : dict
        surrogate, depth, user_weight, alpha, user_scaling and standardize.
    best_score_ : float
        Their mean score over held-out users.
    choice_ : Choice
        The chosen setting, by how much it is ahead of the default with the standard error of that,
        and whether it is certified; ``print(ranker.choice_)`` says it in a line.
    cv_results_ : dict of str to ndarray
        As scikit-learn's searches have it: 'params', 'param_surrogate', .., 'split0_test_score',
        .., 'mean_test_score' over the held-out users of all splits, 'std_test_score' over splits,
        'rank_test_score', 'mean_fit_time'; also 'se_test_score', the standard error over users
        (over folds where all is one list), and 'n_splits'. Scores of folds that a dropped setting
        did not see are NaN, and its mean is over the folds that it saw; it ranks behind the others.
    n_splits_ : int
    coef_, missing_coef_, result_, exclusions_, classes_, n_iter_, n_features_in_, feature_names_in_
        As for `PAPKRanker`.
    """

    solver = "auto"

    k: int | None = None
    surrogates: Sequence[str | Surrogate] = ("avg", "ts")
    depths: str | Sequence[int | float | None] = "auto"
    user_weights: Sequence[str] = ("equal",)
    alphas: str | ArrayLike = "auto"
    cv: Any = 5
    scoring: Any = None
    selection: str = "1se"
    tol: float = 1e-4
    cv_tol: float = 1e-2
    max_iter: int | None = None
    time_limit: float | None = None
    policy: str = "cap"
    relevance_threshold: float | None = None
    n_threads: int = 1
    n_jobs: int | None = None
    solver_options: dict[str, Any] | None = None
    random_state: Any = 0
    callback: Callback | None = None
    checkpoint: Any | None = None
    one_list: bool = False
    verbose: int = 0
    standardize: bool | str = "auto"
    user_scaling: Any = None
    positive: bool = False
    missing: str | None = None

    @property
    def n_shown(self) -> int:
        """Number of items that a user is shown: k, where it is given."""
        return k_of(self.k, as_names("surrogates", self.surrogates))

    def fit(
        self,
        X: ArrayLike,
        y: Any,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose on held-out users, then train on all rows; parameters as of `PAPKRanker.fit`.

        Raises
        ------
        InputError
            As for `PAPKRanker.fit`; a Dask collection.
        """
        groups = self._groups(groups, qid)
        if hasattr(X, "__dask_graph__"):
            raise InputError(
                "PAPKRankerCV needs the data in memory; choose on a sample of the users and fit "
                "PAPKRanker with best_params_ on the Dask collection"
            )
        return self._fit_lists(self._lists_of(X, y, groups, sample_weight))

    def _fit_lists(self, data: RankingData) -> Self:
        """Choose, train the chosen setting on all users, report."""
        started = time.perf_counter()
        self._check_settings()
        self._with_holes = np.flatnonzero(data.with_holes)
        kept = None
        if self.checkpoint is not None:
            kept = KeptFits(as_path(self.checkpoint, "checkpoint"))
        training = Training(self, self._extra_settings(), kept)
        lines = Lines(self.verbose)
        candidates = self._candidates(data)
        exclusions = users_without_use(candidates.settings, self.n_shown, self.policy, data)
        folds = make_folds(self.cv, data, exclusions, self.random_state)
        scoring = self._scoring(shown(self.n_shown, folds, data), data)
        search = Search(candidates, folds, scoring, training, lines, self.callback)
        search.run(None if self.time_limit is None else started + 2 / 3 * self.time_limit)
        best = search.chosen(self.selection)
        how = search.settings[best].user_scaling
        self._one_list = OneListColumns.of(data, how, self.missing)
        self._take(self._refit(search, best, started), exclusions)
        self._report(search, best)
        lines.say(str(self.choice_))
        self._warn_of_result(lists=data)
        return self

    def score(
        self, X: ArrayLike, y: Any, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> float:
        """The mean of `scoring` over users, by default of pAp@k; as `PAPKRanker.score` else."""
        if self.scoring is None:
            return super().score(X, y, groups, qid)
        groups = self._groups(groups, qid)
        if isinstance(self.scoring, str):
            value: float = self._mean(self.scoring, X, y, groups).value
            return value
        return value_of(self.scoring, self, X, y, ONE_LIST if groups is None else groups)

    def _candidates(self, data: RankingData) -> Candidates:
        """What is tried: lists with each scaling of columns, settings, the default's strengths."""
        choices = column_choices(self.user_scaling, self.standardize, data)
        is_given = self.user_scaling is not None and not is_auto(self.user_scaling)
        scaled: dict[str | None, RankingData] = {}
        for columns in choices:
            if columns.user_scaling not in scaled:
                how = columns.user_scaling
                scaled[how] = scaled_lists(data, how, self.missing)
        settings: list[Setting] = []
        rule: dict[OfLists, float] = {}
        for columns in choices:
            lists = scaled[columns.user_scaling].standardized(columns.standardize)
            if lists.n_users == 1 and is_auto(self.alphas):
                by_folds = self._alpha_of_one_list(lists)
                rule |= {OfLists(*columns, weight): by_folds for weight in USER_WEIGHTS}
            else:
                for weight in USER_WEIGHTS:
                    rule[OfLists(*columns, weight)] = self._usual_alpha(lists, weight)
            surrogates = as_names("surrogates", self.surrogates)
            if columns != choices[0] and not is_given:
                surrogates = surrogates[:1]  # which one hardly matters for how columns are scaled
            settings += grid(
                self.n_shown,
                lists,
                rule,
                surrogates=surrogates,
                depths=self.depths,
                user_weights=self.user_weights,
                alphas=self.alphas,
                columns=columns,
                usual_columns=columns == choices[0] or is_given,
                missing=self.missing,
            )
        return Candidates(scaled, settings, rule, default_setting(self.missing))

    def _alpha_of_one_list(self, list_: RankingData) -> float:
        """What `PAPKRanker` takes on one list: by folds of its rows, where these are enough."""
        default = default_setting(self.missing).make(self.n_shown)
        risk = EmpiricalRisk(default, list_, self.policy, n_threads=self.n_threads)
        limit = None if self.time_limit is None else self.time_limit * _SHARE_OF_ALPHA
        return automatic_alpha_of(list_, risk, self.positive, limit).alpha

    def _usual_alpha(self, lists: RankingData, user_weight: str) -> float:
        """What `PAPKRanker` takes on several lists, of how many columns and positives there are."""
        weighed = lists if lists.user_weight is not None else lists.weighted(user_weight)
        usual = default_setting(self.missing).make(self.n_shown)
        need = users_needed(usual, self.policy)
        trained = weighed.usable(need.negatives, need.policy, need.setting)
        return automatic_alpha(Evidence.of(lists, trained))

    def _refit(self, search: Search, best: int, started: float) -> SolverResult:
        """Train the chosen setting on all users, from the mean of its weights on folds."""
        training = search.training
        setting = search.settings[best]
        lists = search.data[setting.user_scaling].standardized(setting.standardize)
        self._weights_given = lists.user_weight is not None
        lists = weighted(setting, lists)
        self._setting = setting
        self.alpha_ = setting.strength
        self.user_scaling_ = setting.user_scaling
        self.scale_ = lists.column_scale
        self._scale_rule = lists.scale_rule
        start = np.mean(search.weights[best], axis=0)
        start = start if self.scale_ is None else start * self.scale_
        limit = None
        if self.time_limit is not None:
            limit = max(started + self.time_limit - time.perf_counter(), 1e-3)
        risk = training.risk(setting, lists)
        return training.solve(setting, risk, self.tol, w_init=start, time_limit=limit)

    def _report(self, search: Search, best: int) -> None:
        """What was tried and chosen, and by how much that is ahead of the default."""
        self.cv_results_ = search.results()
        self.n_splits_ = len(search.folds)
        self.best_params_ = self._setting.as_dict()
        self.best_score_ = float(self.cv_results_["mean_test_score"][best])
        lead, error = search.scores.lead(best, search.default)
        chosen = self._setting
        usual = search.settings[search.default]
        if self._weights_given:
            chosen = replace(chosen, user_weight="given")
            usual = replace(usual, user_weight="given")
        self.choice_ = Choice(
            setting=chosen,
            default=usual,
            scoring=search.scoring.name,
            score=self.best_score_,
            lead=lead,
            error=error,
            gap=self.result_.gap,
        )

    def _check_settings(self) -> None:
        check_choice("selection", self.selection, SELECTIONS)
        check_callback(self.callback)
        check_seed(self.random_state)
        check_number("tol", self.tol, above=0)
        check_number("cv_tol", self.cv_tol, above=0)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        check_number("n_threads", self.n_threads, least=1)
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs == 0:
            raise InputError(f"n_jobs must be a whole number, -1 for all cores, got {jobs!r}")
        check_number("verbose", self.verbose, least=0)
        check_signs(self.positive)

    def _scoring(self, k: int, data: RankingData) -> ByMetric | ByScorer:
        """How held-out lists are scored; by default by pAp@k."""
        if self.scoring is None or isinstance(self.scoring, str):
            return ByMetric(self.scoring or f"pap@{k}", rule_for_short_lists(k, data))
        if callable(self.scoring):
            return ByScorer(self.scoring, self._on_fold, self.classes_)
        raise InputError(
            "scoring must be the name of a metric such as 'ndcg@10', or a callable "
            f"scorer(estimator, X, y), got {self.scoring!r}"
        )

    def _on_fold(self, coef: Array) -> PAPKRanker:
        ranker = _OnFold(self.n_shown, policy=self.policy, one_list=self.one_list)
        ranker.classes_ = self.classes_
        ranker.coef_ = coef
        ranker.n_features_in_ = coef.size
        return ranker

    def plot(self) -> Figure:
        """Draw the validated metric against the training depth, a line for each surrogate.

        Of each surrogate and depth the best alpha and weighting count; bars are standard errors
        over users. Settings that were dropped early are left out where others of the same surrogate
        and depth saw more folds.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            matplotlib (the extra `plot`) is missing.
        """
        check_is_fitted(self)
        results = self.cv_results_
        best = {}
        for i in results["rank_test_score"].argsort(kind="stable")[::-1]:
            params = results["params"][i]
            best[name_of(params["surrogate"]), params["depth"]] = i
        points = {
            key: (results["mean_test_score"][i], results["se_test_score"][i])
            for key, i in sorted(best.items(), key=lambda item: order_of_depth(item[0][1]))
        }
        chosen = name_of(self.best_params_["surrogate"]), self.best_params_["depth"]
        return depth_figure(points, chosen, self.choice_.scoring)
