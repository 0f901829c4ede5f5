"""`PAPKRankerCV`: surrogate, depth, weights, alpha and scaling chosen on held-out users."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback, PathLike
from structsvm_papk.data.features import check_matrix, reported_scores
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.user_scaling import OneListColumns, scaled_lists
from structsvm_papk.data.validation import ONE_LIST
from structsvm_papk.errors import (
    InputError,
    as_names,
    as_path,
    check_callback,
    check_choice,
    check_number,
)
from structsvm_papk.oracles.list_risk import users_needed
from structsvm_papk.rankers.choice import SELECTIONS, Choice, ScoreTable, choose, nearest
from structsvm_papk.rankers.folds import (
    ByMetric,
    ByScorer,
    make_folds,
    rule_for_short_lists,
    shown,
    value_of,
)
from structsvm_papk.rankers.grid import (
    Candidate,
    ColumnScaling,
    column_choices,
    grid,
    users_without_use,
)
from structsvm_papk.rankers.linear import LinearRanker
from structsvm_papk.rankers.log import Log
from structsvm_papk.rankers.one_list import best_on_folds, can_be_cut
from structsvm_papk.rankers.ranker import PAPKRanker
from structsvm_papk.rankers.search import KeptFits, Plan, Training, Trial, search
from structsvm_papk.rankers.settings import (
    AUTO,
    SURROGATES_OF_ONE_LIST,
    USER_WEIGHTS,
    Evidence,
    Setting,
    automatic_alpha,
    default_setting,
    is_auto,
    k_of,
    weighted,
)
from structsvm_papk.solvers.solver import SolverResult, check_signs
from structsvm_papk.surrogates import Surrogate

__all__ = ["PAPKRankerCV", "Trial"]

_SHARE_OF_ALPHA = 0.1  # of the time, once for each scaling of columns
_MOST_JOBS = 1 << 16


class _OnFold(PAPKRanker):
    """A ranker with the weights of a fold, for scorers."""

    def decision_function(self, X: Any, groups: Any = None) -> Array:
        """Scores of rows scaled already, of zero weights without a warning."""
        return reported_scores(check_matrix(X), self.coef_)


@dataclass(eq=False, repr=False)
class PAPKRankerCV(LinearRanker):
    """`PAPKRanker` whose settings are chosen by cross-validation over users.

    Every combination of surrogate, depth, weights of users, alpha and scaling is trained on all
    folds but one and scored on the users of that one; the chosen one trains on all users. Solves
    start where the one before ended, with its cuts along alpha; surrogates that are not convex
    start from the optima of those that are.

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
        fold, so that standard errors are over folds. `score` goes by it, too.
    selection : {'significant', 'best'}
        'significant' takes `PAPKRanker`'s default (of the settings tried the one nearest to it),
        unless others are ahead of it on held-out users by more than chance explains: the 95%
        interval of the paired difference, by Student's t at a level shared among all settings
        (Bonferroni), is above zero. Of these it takes the largest mean, of those with a certificate
        where there are such. 'best' takes the largest mean, by chance or not.
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
    relevance_threshold, label_gain, one_list, verbose, standardize, missing
        As for `PAPKRanker`; they apply to every solve. On a fold columns have the scale of its
        training rows.
    time_limit : float, optional
        Seconds for search and fit together. The search stops at two thirds of it and the best so
        far is taken.
    policy : {'cap', 'exclude', 'raise'}
        As for `PAPKRanker`.
    n_jobs : int, optional
        Threads that share the fits, as joblib counts them: -1 for one each core.
    callback : callable, optional
        Called with a `Trial` for every fit on a fold; returning True ends the search.
    checkpoint : path-like, optional
        Folder where finished fits on folds are kept, under all that determines them. A search that
        was stopped, or another one on the same data, takes those that it would compute itself.
    positive : bool
        As for `PAPKRanker`, in every solve.

    Attributes
    ----------
    best_params_ : dict
        surrogate, depth, user_weight, alpha, user_scaling and standardize.
    best_score_ : float
        Their mean score over held-out users.
    choice_ : Choice
        The chosen setting, by how much it (or the best other one, where it is the default) is ahead
        of the default, up to where chance explains that, and whether it is certified;
        ``print(ranker.choice_)`` says it in a line.
    cv_results_ : dict of str to ndarray
        As scikit-learn's searches have it: 'params', 'param_surrogate', .., 'split0_test_score',
        .., 'mean_test_score' over the held-out users of all splits, 'std_test_score' over splits,
        'rank_test_score', 'mean_fit_time'; also 'se_test_score', the standard error over users
        (over folds where all is one list), and 'n_splits'. Of a search that was ended folds that
        some settings did not see are NaN.
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
    selection: str = "significant"
    tol: float = 1e-4
    cv_tol: float = 1e-2
    time_limit: float | None = None
    policy: str = "cap"
    relevance_threshold: float | None = None
    label_gain: Any = "linear"
    n_jobs: int | None = None
    callback: Callback | None = None
    checkpoint: PathLike | None = None
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

    @property
    def n_threads(self) -> int:  # type: ignore[override]
        """Threads of the fit on all users, and of `predict`."""
        return int(effective_n_jobs(self.n_jobs))

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
        self._weights_given = data.user_weight is not None
        kept = None
        if self.checkpoint is not None:
            kept = KeptFits(as_path(self.checkpoint, "checkpoint") / "fits.jsonl")
        log = Log(self.verbose)
        scaled, candidates, usual = self._candidates(data, kept)
        settings = [candidate.setting for candidate in candidates]
        exclusions = users_without_use(settings, self.n_shown, self.policy, data)
        folds = make_folds(self.cv, data, exclusions)
        plan = Plan(
            folds=folds,
            scoring=self._scoring(shown(self.n_shown, folds, data), data),
            training=Training(self.n_shown, self.policy, self.positive, self.cv_tol),
            kept=kept,
            deadline=None if self.time_limit is None else started + 2 / 3 * self.time_limit,
        )
        table = search(plan, settings, scaled, self.n_jobs, log, self.callback)
        among = table.finished()
        default = nearest(usual, candidates, among)
        chosen = choose(self.selection, candidates, table, default, among)
        self._setting = settings[chosen]
        self._one_list = OneListColumns.of(data, self._setting.user_scaling, self.missing)
        start = np.mean(table.weights[chosen], axis=0)
        result = self._refit(scaled[self._setting.user_scaling], start, started)
        self._take(result, exclusions, data.remarks)
        self.cv_results_ = table.results()
        self.n_splits_ = len(folds)
        self.best_params_ = self._setting.as_dict()
        self.best_score_ = float(table.means()[chosen])
        self.choice_ = self._choice(table, chosen, default, among, plan.scoring.name)
        log.say(str(self.choice_))
        self._warn_of_result(data)
        return self

    def score(
        self, X: ArrayLike, y: Any, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> float:
        """The mean of `scoring` over users, by default of pAp@k; as `PAPKRanker.score` else."""
        if self.scoring is None:
            return super().score(X, y, groups, qid)
        groups = self._groups(groups, qid)
        if isinstance(self.scoring, str):
            return self._mean(self.scoring, X, y, groups)
        return value_of(self.scoring, self, X, y, ONE_LIST if groups is None else groups)

    def _candidates(
        self, data: RankingData, kept: KeptFits | None
    ) -> tuple[dict[str | None, RankingData], list[Candidate], Setting]:
        """The lists with each user scaling that is tried, all settings, and the default."""
        choices = column_choices(self.user_scaling, self.standardize, data)
        is_given = self.user_scaling is not None and not is_auto(self.user_scaling)
        surrogates = as_names("surrogates", self.surrogates)
        ways = dict.fromkeys(columns.user_scaling for columns in choices)
        scaled = {how: scaled_lists(data, how, self.missing) for how in ways}
        # which surrogate hardly matters for how columns are scaled
        tried = dict.fromkeys(choices, surrogates if is_given else surrogates[:1])
        tried[choices[0]] = surrogates
        kept = KeptFits() if kept is None else kept
        by_ranker = {c: tried[c] for c in choices if c.standardize == self.standardize}
        best = self._best_of_one_list(data, by_ranker, kept)
        default = default_setting(self.missing)
        if best is not None:
            default = replace(best, alpha=AUTO)
        candidates: list[Candidate] = []
        for columns in choices:
            own = best
            if best is None or columns != (best.user_scaling, best.standardize):
                own = self._best_of_one_list(data, {columns: tried[columns]}, kept)
            lists = scaled[columns.user_scaling].standardized(columns.standardize)
            if own is None:
                usual_alphas = self._usual_alphas(lists)
            else:
                usual_alphas = dict.fromkeys(USER_WEIGHTS, own.known_alpha)
            candidates += grid(
                self.n_shown,
                lists,
                usual_alphas,
                surrogates=tried[columns],
                depths=self.depths,
                user_weights=self.user_weights,
                alphas=self.alphas,
                columns=columns,
                usual_columns=columns == choices[0] or is_given,
                missing=self.missing,
            )
        return scaled, candidates, default

    def _best_of_one_list(
        self, data: RankingData, tried: Mapping[ColumnScaling, Sequence[Any]], kept: KeptFits
    ) -> Setting | None:
        """What folds of one list choose among scalings of columns and surrogates.

        None where these are not asked.
        """
        if not is_auto(self.alphas) or not can_be_cut(data):
            return None
        settings = []
        for columns, surrogates in tried.items():
            default = replace(default_setting(self.missing), **columns._asdict())
            names = [name for name in surrogates if name in SURROGATES_OF_ONE_LIST]
            settings += [replace(default, surrogate=name) for name in names] or [default]
        deadline = None
        if self.time_limit is not None:
            deadline = time.perf_counter() + self.time_limit * _SHARE_OF_ALPHA
        return best_on_folds(
            data,
            settings,
            self.n_shown,
            positive=self.positive,
            missing=self.missing,
            n_threads=self.n_threads,
            deadline=deadline,
            kept=kept,
        )

    def _usual_alphas(self, lists: RankingData) -> dict[str, float]:
        """What `PAPKRanker` takes on several lists with each weighting of users."""
        usual = default_setting(self.missing).make(self.n_shown)
        need = users_needed(usual, self.policy)
        alphas = {}
        for weight in USER_WEIGHTS:
            weighed = lists if lists.user_weight is not None else lists.weighted(weight)
            trained = weighed.usable(need.negatives, need.policy, need.setting)
            alphas[weight] = automatic_alpha(Evidence.of(lists, trained))
        return alphas

    def _refit(self, data: RankingData, start: Array, started: float) -> SolverResult:
        """Train the chosen setting on all users, from weights of the columns as they are."""
        lists = weighted(self._setting, data.standardized(self._setting.standardize))
        self.alpha_ = self._setting.known_alpha
        self.surrogate_ = self._setting.name
        self.user_scaling_ = self._setting.user_scaling
        self.scale_ = lists.column_scale
        self._scale_rule = lists.scale_rule
        left = None
        if self.time_limit is not None:
            left = max(started + self.time_limit - time.perf_counter(), 1e-3)
        training = Training(
            self.n_shown, self.policy, self.positive, self.tol, n_threads=self.n_threads
        )
        risk = training.risk(self._setting, lists)
        if self.scale_ is not None:
            start = start * self.scale_
        return training.solve(risk, self.alpha_, start=start, time_limit=left)

    def _choice(
        self, table: ScoreTable, chosen: int, default: int, among: list[int], scoring: str
    ) -> Choice:
        """What was chosen, beside the default and the best of the others."""
        means = table.means()
        others = [i for i in among if i != default]
        rival = chosen
        if chosen == default:
            rival = max(others, key=lambda i: means[i], default=default)
        lead = table.lead(rival, default)
        shown = [
            replace(table.settings[i], user_weight="given")
            if self._weights_given
            else table.settings[i]
            for i in (chosen, default, rival)
        ]
        return Choice(
            setting=shown[0],
            default=shown[1],
            rival=shown[2] if others else None,
            scoring=scoring,
            score=self.best_score_,
            lead=lead.mean,
            error=lead.error,
            by_chance=lead.by_chance(max(len(others), 1)),
            gap=self.result_.gap,
        )

    def _check_settings(self) -> None:
        check_choice("selection", self.selection, SELECTIONS)
        check_callback(self.callback)
        check_number("tol", self.tol, above=0)
        check_number("cv_tol", self.cv_tol, above=0)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if (
            not isinstance(jobs, Integral)
            or isinstance(jobs, bool)
            or not 0 < abs(jobs) < _MOST_JOBS
        ):
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
