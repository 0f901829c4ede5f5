"""`PAPKRanker`: an additive ranker by the rules of scikit-learn.

    minimise over w    alpha/2 ||w||^2 + R(w),    R(w) = mean over users of S(X_u w)

`fit` lays the rows out as lists (`data.ranking_data`), makes the risk R of a surrogate S
(`oracles.list_risk`, `surrogates`) and hands it to a solver (`solvers.cutting_plane`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback, Features
from structsvm_papk.data.columns.checks import LOWEST, SEPARATE, check_missing
from structsvm_papk.data.columns.knots import check_curves
from structsvm_papk.data.columns.monotonic import signs_of_columns
from structsvm_papk.data.columns.pairs import PairCuts
from structsvm_papk.data.columns.tables import FROM_DTYPE, is_from_dtype, refuse_categories
from structsvm_papk.data.columns.units import check_standardize
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.roles import warn_of_ids
from structsvm_papk.errors import (
    AUTO,
    InputError,
    check_number,
    check_type,
    count_or_auto,
    is_auto,
)
from structsvm_papk.files.checkpoint import as_checkpoint
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.partitions import Partitions
from structsvm_papk.rankers.additive import AdditiveRanker, take_columns
from structsvm_papk.rankers.candidates import Training
from structsvm_papk.rankers.choosing import Decided, Left, decide, pairs_left
from structsvm_papk.rankers.in_columns import (
    ColumnsInPartitions,
    ColumnsToFit,
    TrainingColumns,
)
from structsvm_papk.rankers.settings import (
    ALPHA,
    DEPTH,
    SURROGATE,
    Evidence,
    Setting,
    as_surrogate,
    automatic_alpha,
    check_alpha,
)
from structsvm_papk.rankers.solver_choice import Log, Told, solver_choice
from structsvm_papk.solvers.oracle import Oracle
from structsvm_papk.solvers.solver import SolverResult, Status, check_signs
from structsvm_papk.surrogates import Surrogate


@dataclass(eq=False, repr=False)
class PAPKRanker(AdditiveRanker):
    """Ranker trained for pAp@k, with a certificate of how close to the optimum it is.

    A score is the sum over the columns of a function of each: a straight line, or a piecewise
    linear curve (`curves`). With a convex surrogate both are found by one convex problem,
    whose optimum is certified.
    You need not scale columns or choose the regularization strength.

    Parameters
    ----------
    k : int, optional
        Number of items of a list that are shown. Choose it for your task. By default that of a
        surrogate that is an object, else 1.
    surrogate : {'auto', 'avg', 'max', 'ts', 'pauc', 'ts_alg2', 'ramp', 'clipped_ramp'} or Surrogate
        The loss in place of pAp@k. 'auto' is Avg; for one list folds choose Avg or pAUC. Try
        'ts' for long lists, 'clipped_ramp' where labels are wrong. Avg, Max, TS and pAUC are
        convex; the ramps are solved to a certified critical point. An object of your own class is
        checked first (`check_surrogate`); model files store its name.
    depth : int, float, 'auto' or None
        How many of the best negatives of a list count in training: a number of at least k, a share
        of the negatives, or None for k, as in the paper, where many optima are w = 0. 'auto' is
        0.9, or 0.5 with ``missing='lowest'``.
    user_weight : {'equal', 'positives'}
        What a list counts in the mean: the same, or its number of positives. For other weights
        give `fit` a sample_weight.
    alpha : float or 'auto'
        Regularization strength, above 0. 'auto' is a rule (Notes); for one list folds choose it.
        Change it only by cross-validation: ten times more or less seldom costs much.
    solver : str, object or function
        'auto' suits the surrogate. By name: 'cutting_plane', 'one_slack', 'dual_ascent' (of Avg),
        'cccp', and without a certificate 'subgradient', 'averaged', 'stochastic'.
        An object such as ``CuttingPlane(alpha=0.1, tol=1e-8)`` is used as it is; what is given here
        as well has to agree. A function is called as ``solver(risk, alpha)`` (Notes).
    tol : float
        Relative gap, ``(objective - lower_bound) / max(objective, 1e-3)``, at which to stop, below
        1; for CCCP the gap to the best point of the last majorant.
    max_iter : int, optional
        Largest number of iterations; by default the solver's own.
    time_limit : float, optional
        Seconds after which the best solution so far is returned. Half of them are for the choice by
        folds; where that ends early a note says so.
    policy : {'cap', 'exclude', 'raise'}
        What to do in training with lists that have no positive or fewer negatives than `depth`.
        'cap' counts the negatives that they have; 'exclude' leaves them out, as the metric pAp@k
        and the paper do; 'raise' refuses them.
    relevance_threshold : float, optional
        ``y >= relevance_threshold`` is relevant. Without it y is 0/1, -1/1, boolean, or grades, of
        which 0 and another one suffice.
    label_gain : {'linear', 'exponential'}, sequence of float, or None
        What a grade g counts where y has more than two whole values, up to 30: g, ``2**g - 1``, or
        entry g, as LightGBM's parameter of this name. Grades below 0 count as 0. None refuses
        grades.
    n_threads : int
        Threads that share each pass over the data; the result does not depend on it.
    warm_start : bool
        Start a fit at the functions of the one before.
    callback : callable, optional
        Called with the progress after every iteration of the fit; returning True stops.
    checkpoint : path-like or Checkpoint, optional
        File where the result so far is kept: a fit of the same problem goes on from there. It
        belongs to one fit; clones in a grid search refuse it.
    groups : 'one_list', optional
        What rows are that come without `groups`: one list, for tools that pass none. By default
        they are refused, as forgotten groups would give another problem without a word.
    verbose : int
        1: print at most one line a second that says how far the fit is. The lines also go to the
        log `structsvm_papk` of Python's logging, level INFO.
    standardize : {'auto', True, False}
        Whether the penalty is on weights of columns in units of their deviation within lists.
        'auto' divides binary columns by half the difference of their values, and all columns of a
        sparse X by one number, so that rare ones are not nearly free. False is the paper's problem.
    positive : bool
        Minimise over weights >= 0 only, with a certificate of that problem: for scores of other
        systems, none of which may count against an item. With curves every one of them rises.
        'dual_ascent' cannot.
    missing : {'separate', 'lowest', None}
        What NaN (None, pandas' NA) in X means. 'separate': the value is not known; a missing value
        has a weight of its own in its column, which adds nothing else. 'lowest': a source did not
        return the item, which takes the lowest value of the column in its list (the highest where
        `monotonic_cst` is -1), and has that weight beside it; `predict` needs `groups` then, and
        sparse X is refused. None refuses them.
    categorical_features : {'from_dtype', None} or array-like
        Columns whose values have a weight each, at most 254 of them. 'from_dtype': those of text,
        categories and booleans of a data frame. Else a mask, numbers or names of columns.
    curves : {'auto', None} or int
        Whether a column is a curve of so many pieces, between quantiles of its values, or a line
        (None). 'auto': folds of the lists choose between lines and curves of 16 pieces; lines where
        X is sparse or not in memory. Take a number to have curves for sure. A curve is flat beyond
        the values of training.
    monotonic_cst : array-like of shape (n_features,), dict, or None
        1 for columns whose function has to rise, -1 to fall, 0 for free, as scikit-learn's
        parameter; a dict, or a series with an index of names, names columns of a data frame. The
        certificate is of the constrained problem. Take it where a wrong direction would be noticed.
        A solver that is an object does not take it.
    pairs : {'auto', None} or int
        How many pairs of columns have a weight for each of their cells: sixths of numbers, each
        level. 'auto': where folds choose curves or lines, they also choose none or 20 pairs beside
        curves, or 300 of 16 columns and more (of one list 150). Those are taken that lower the loss
        most after a fit without pairs. A column that has to rise or fall is in no pair.

    Attributes
    ----------
    terms_ : list of Curve, Levels or Pair
        What each column, and each pair of columns, adds to a score: `name`, `deviation`, how much
        it moves scores within lists, and `gap`, what a missing value adds. A `Curve` has `knots`,
        `values` at the knots, and `slope`; a line has one knot. `Levels` have `levels` and
        `weights`, a `Pair` has `cuts` and `weights` of its cells.
    curves_ : list of Curve
        Those of `terms_` that are of columns of numbers.
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the columns, where they are lines; with curves there is none, and asking for it
        says so.
    alpha_ : float
        The regularization strength that was taken.
    surrogate_ : str
        The surrogate that was taken.
    missing_coef_ : ndarray of shape (n_features_in_,) or None
        What a missing value of the column adds to a score, with 'lowest' beside what the lowest
        value adds; 0 for columns that had none in training. None without `missing`.
    scale_ : ndarray of shape (n_features_in_,) or None
        What the columns were divided by, of curves their straight part; NaN for columns without
        one: text and curves that have to rise. None without `standardize`.
    result_ : SolverResult
        objective, lower_bound, gap, status, n_iter, converged, history and notes of the problem
        that was solved, that of the divided columns.
    exclusions_ : Exclusions
        Lists that were left out, and why.
    classes_ : ndarray
        Not relevant, relevant (labels, or False and True with a threshold), or the grades.
    label_gain_ : str, tuple of float, or None
        What grades counted; None where y was binary.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X was a data frame.

    Notes
    -----
    The problem, over the weights w of all columns (`data.columns.knots` says what those of a
    curve are):

        minimise    alpha/2 ||w||^2 + sum_u v_u S(X_u w) / sum_u v_u

    S is the surrogate of the pAp@k risk of one list and v the weights of the lists; of grades every
    list is there once for each grade t, with "at least t" as relevant, and weighs what t adds to
    the gain. There is no intercept: ranking ignores it. Columns are divided by their deviation
    within lists, ``sqrt(sum_u sum_i (x_if - mean_uf)^2 / n_rows)``, and so are the pieces of
    curves, whose weights the penalty holds 3 or 30 times stronger. It holds twice those of the
    cells of a pair, and that of the product of the two columns, which cells may follow.

    ``alpha="auto"`` is ``12 m (d / p)^1.5``: d the effective number of columns that vary within
    lists, ``(sum var)^2 / sum var^2``, m their mean variance as the penalty sees them, p the number
    of positives of the lists that train. Of one list alpha is chosen by folds of its rows, by
    average precision; it is ``.1 m`` with fewer than five positives or more than 5,000,000 values.

    Five folds of the lists choose by the average precision of the lists that a fold leaves out:
    lines; or curves, where with 20 pairs of columns they gain more than a quarter of the standard
    error of the gain, or two without. Pairs have to gain one and a half over the same curves, 300
    as much over 20, and curves ten times as stiff as much over the winner. Fewer folds are enough
    where one of them is far ahead, or lines are behind and pairs or stiff curves gain nothing.
    `result_.notes` says what was chosen.

    A solver of your own is an object with a number `alpha` and a method ``solve(risk, w_init,
    callback)``, or a function. It returns a `SolverResult`, whose objective is checked at its w,
    or the weights alone: then there is no lower bound.

    `groups` (alias `qid`) names the list of each row, in `fit` and in `score`;
    ``groups="one_list"`` says that all rows are one list, there or as a setting. Groups are
    requested by default, so with ``sklearn.set_config(enable_metadata_routing=True)`` a
    `GridSearchCV` with `GroupKFold` passes them on; without metadata routing scikit-learn hands
    `groups` to the splitter only, and `fit` refuses the rows.

    scikit-learn's estimator checks pass no groups either: they hold for
    ``PAPKRanker(groups="one_list")``, but for those with the labels 1 and 2 or other weights on
    each row, and skip an estimator that needs groups.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm_papk import PAPKRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + rng.normal(size=300) > 1
    >>> ranker = PAPKRanker(k=3, surrogate="ts").fit(X, y, groups=np.repeat(np.arange(10), 30))
    >>> ranker.result_.converged
    True
    """

    k: int | None = None
    surrogate: str | Surrogate = SURROGATE
    depth: int | float | str | None = DEPTH
    user_weight: str = "equal"
    alpha: float | str = ALPHA
    solver: Any = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    policy: str = "cap"
    relevance_threshold: float | None = None
    label_gain: Any = "linear"
    n_threads: int = 1
    warm_start: bool = False
    callback: Callback | None = None
    checkpoint: Any | None = None
    groups: str | None = None
    verbose: int = 0
    standardize: bool | str = "auto"
    positive: bool = False
    missing: str | None = SEPARATE
    categorical_features: Any = FROM_DTYPE
    curves: int | str | None = AUTO
    monotonic_cst: Any = None
    pairs: int | str | None = AUTO

    @classmethod
    def paper(
        cls, k: int, surrogate: str | Surrogate = "avg", alpha: float = 1e-2, **settings: Any
    ) -> Self:
        """Ranker of the paper's problem: a user's best k negatives count, columns are as they are.

        ``PAPKRanker(k, surrogate, alpha=alpha, depth=None, standardize=False, policy="exclude",
        label_gain=None)``: users with fewer than k negatives are left out, and grades refused.
        `settings` are further parameters, such as `solver`.
        """
        binary: dict[str, Any] = {"label_gain": None, "missing": None, "pairs": None}
        as_they_are = {"policy": "exclude", "standardize": False, "curves": None}
        settings = binary | as_they_are | settings
        return cls(k, surrogate, None, alpha=alpha, **settings)

    def fit(
        self,
        X: ArrayLike,
        y: Any,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows of any order.

        Parameters
        ----------
        X : array-like, data frame or CSR of shape (n_rows, n_features)
            A Dask array or data frame is fitted where its blocks are: on the current Dask client's
            cluster, or in this process where there is none.
        y : array-like of shape (n_rows,)
            Relevance.
        groups : array-like of shape (n_rows,) or 'one_list'
            User of each row; 'one_list' (not with Dask collections) says that all rows are one
            list. Rows of a user in several Dask blocks are brought together.
        qid : array-like of shape (n_rows,), optional
            Another name for `groups`; give one of them.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row's user, the same on all rows of a user, instead of `user_weight`.

        Warns
        -----
        DegenerateOptimumWarning
            To within `tol` the minimiser is w = 0, which ranks nothing.
        UserWarning
            A frame X has columns that are called as ids are.
        ConvergenceWarning
            The gap is still above `tol`.

        Raises
        ------
        InputError
            Data or settings that cannot be used, or no groups.
        """
        groups = self._groups(groups, qid)
        if hasattr(X, "__dask_graph__"):
            if sample_weight is not None:
                raise InputError("sample_weight is not available for Dask; use user_weight")
            with self._dask_partitions(X, y, groups) as partitions:
                return self._fit_partitions(partitions)
        return self._fit_in_memory(self._lists_of(X, y, groups, sample_weight))

    def fit_lists(self, lists: RankingData) -> Self:
        """Train on lists that are laid out already; their weights of users count, if they have any.

        Raises
        ------
        InputError
            As for `fit`.
        """
        self._take_lists(lists)
        return self._fit_in_memory(lists)

    def fit_risk(self, risk: Any) -> Self:
        """Train on a `StreamedRisk` or `DaskRisk` of `make_surrogate`.

        Policy, users' weights, gains of grades and threads are the risk's own.

        Raises
        ------
        TypeError
            The risk is of lists in memory.
        InputError
            The risk is of another surrogate, k, depth or number of pieces.
        """
        check_type("risk", risk, PartitionedRisk, "a StreamedRisk or a DaskRisk")
        self.refuse_outside_memory("a risk in parts")
        if risk.surrogate != self.make_surrogate():
            raise InputError(f"the risk has {risk.surrogate}, the settings {self.make_surrogate()}")
        knots = risk.partitions.knots
        if not is_auto(self.curves) and (knots is None) != (self.curves is None):
            raise InputError(
                f"curves={self.curves!r}, but the columns of the risk are "
                f"{'lines' if knots is None else 'curves'}: give the risk the same `curves`"
            )
        if knots is not None and (knots.is_rising != (~knots.is_line & self.positive)).any():
            raise InputError(
                f"positive={self.positive}, but the curves of the risk "
                f"{'need not' if self.positive else 'have to'} rise: give the risk the same "
                "`positive`"
            )
        self._take_lists(risk.partitions)
        return self._fit_partitions(risk.partitions)

    @contextmanager
    def _dask_partitions(self, X: Features, y: Any, groups: Any) -> Iterator[Partitions]:
        """The lists of a Dask collection where its blocks are, while the context lasts."""
        from structsvm_papk.oracles import dask_collections
        from structsvm_papk.oracles import dask_risk as cluster

        surrogate = self.make_surrogate()
        self.check_settings()  # before anything is loaded
        self.refuse_outside_memory("a Dask collection")
        with dask_collections.current_client() as client:
            lists = dask_collections.DaskLists(client, X, y, groups)
            if self.categorical_features is not None:
                refuse_categories(lists.sample)
            take_columns(self, lists.sample)
            warn_of_ids(X)
            self._take_classes(lists.classes)
            threshold = self.relevance_threshold
            partitions = lists.partitions(
                self.classes_[1] if threshold is None else threshold,
                self.label_gain_,
            )
            risk = cluster.DaskRisk(
                surrogate,
                partitions,
                client,
                self.policy,
                user_weight=self.user_weight,
                curves=self._given_setting().pieces,
                positive=self.positive,
            )
            del lists  # the blocks as they were read leave the workers
            yield risk.partitions

    def refuse_outside_memory(self, where: str) -> None:
        """Refuse settings that need the lists in memory."""
        if self.missing == LOWEST:
            raise InputError(
                f"missing={self.missing!r} needs the lists in memory, not {where}: which columns "
                "have holes must be known before the first pass; give a sample of the users"
            )
        if self.monotonic_cst is not None:
            raise InputError("monotonic_cst= needs the lists in memory; give a sample of the users")
        categorical = self.categorical_features
        if not (categorical is None or is_from_dtype(categorical)):
            raise InputError(
                "categorical_features= needs the lists in memory; give a sample of the users"
            )
        if self._given_setting().n_pairs is not None:
            raise InputError("pairs= needs the lists in memory; give a sample of the users")

    def _fit_in_memory(self, lists: RankingData) -> Self:
        """Train on lists in memory, in the columns that folds choose."""
        self._check_numbers()
        check_signs(self.positive)
        self._weights_given = lists.user_weight is not None
        if not self._weights_given:
            lists = lists.weighted(self.user_weight)
        elif self.user_weight != "equal":
            raise InputError("give sample_weight or user_weight='positives', not both")
        signs = self._checked_signs(lists.n_columns, lists.levels)
        columns = TrainingColumns(lists, self.missing, self.standardize, signs, self.positive)
        chosen = self._choose(columns)
        training = Training(n_threads=self.n_threads)
        return self._fit(columns, chosen, pairs_left(columns, chosen.setting, training))

    def _fit_partitions(self, partitions: Partitions) -> Self:
        """Train on lists in files or on workers."""
        self._check_numbers()
        self._weights_given = False
        names = getattr(self, "feature_names_in_", None)
        columns = ColumnsInPartitions(partitions, names, self.standardize, self.positive)
        return self._fit(columns, Decided(self._given_setting()))

    def _check_numbers(self) -> None:
        """Refuse settings that say how a fit runs and are none."""
        check_number("n_threads", self.n_threads, least=1)
        check_number("verbose", self.verbose, least=0)
        check_number("time_limit", self.time_limit, above=0, optional=True)
        check_type("warm_start", self.warm_start, bool | np.bool_, "True or False")

    def _fit(
        self, columns: ColumnsToFit[Any], chosen: Decided, pairs: PairCuts | None = None
    ) -> Self:
        """Minimise what was chosen, with `warm_start` from the last function; take the result."""
        setting = chosen.setting
        surrogate = setting.surrogate
        most = columns.given.most_negatives
        refuse_deeper_than_all(surrogate, most)
        in_columns = columns.of(setting, pairs)
        risk = columns.risk(surrogate, in_columns.lists, self.policy, self.n_threads)
        if is_auto(setting.alpha):
            alpha = automatic_alpha(Evidence.of(in_columns.for_alpha, risk.of_users))
            setting = replace(setting, alpha=alpha)
        self._setting = setting
        self._signs = columns.signs
        self._filling = columns.filling
        solver = self._make_solver(setting, in_columns.constrained, risk, chosen.seconds)
        start = None
        if self.warm_start and hasattr(self, "function_"):
            start = in_columns.weights(self.function_)
        checkpoint = None if self.checkpoint is None else as_checkpoint(self.checkpoint)
        if checkpoint is not None and chosen.kept is not None:
            checkpoint = replace(checkpoint, choice=chosen.kept.content())
        log = Log(self.verbose)
        remarks = in_columns.lists.remarks
        if self.n_shown > most:
            remarks += (
                f"k={self.n_shown} is above the negatives of every list (at most {most}), so that "
                f"pAp@{self.n_shown} is defined for none of them.",
            )
        for remark in remarks:
            log.say(remark)
        watch = log.watching(self.callback)
        result: SolverResult = solver.solve(risk, start, watch, checkpoint=checkpoint)
        self._zero_is_proved = False
        if result.status is Status.CRITICAL:
            result, self._zero_is_proved = columns.beside_zero(risk, solver, result, watch)
        log.say(f"{result.n_iter} iterations, {result.seconds:.1f} s: {result.message}")
        self.alpha_ = setting.known_alpha
        self.surrogate_ = setting.name
        self._solver_name = solver_choice(solver if is_auto(self.solver) else self.solver).name_for(
            surrogate
        )
        self.scale_ = in_columns.scale
        self._scale_rule = in_columns.lists.units.rule
        self.function_ = columns.fitted(in_columns, result.w)
        self._take(result, risk.exclusions, chosen.notes + remarks)
        self._warn_of_result(in_columns.lists)
        return self

    def _checked_signs(self, n_features: int, levels: Any = ()) -> Array | None:
        """The sign of each column in `monotonic_cst`; None without any."""
        if self.monotonic_cst is None:
            return None
        names = getattr(self, "feature_names_in_", None)
        signs = signs_of_columns(self.monotonic_cst, n_features, names)
        if signs is not None and self.positive:
            raise InputError("give monotonic_cst or positive=True, which is 1 for every column")
        if signs is None:
            return None
        for j in levels:
            if signs[j] != 0:
                name = j if names is None else repr(str(names[j]))
                raise InputError(
                    f"monotonic_cst of column {name} is {signs[j]:g}, but the column holds text or "
                    "categories, which do not rise or fall"
                )
        return signs

    def _choose(self, columns: TrainingColumns) -> Decided:
        """What is minimised: as it was given, but for what folds decide."""
        given = self._given_setting()
        lists = columns.given
        if given.n_pairs is not None and lists.is_sparse:
            raise InputError(f"pairs={self.pairs} needs a dense X: give X.toarray(), or pairs=None")
        one_list = lists.n_users == 1
        left = Left(
            curves=is_auto(self.curves) and not lists.is_sparse,
            surrogate=one_list and is_auto(self.surrogate),
            alpha=one_list and is_auto(given.alpha),
            pairs=is_auto(self.pairs) and is_auto(self.curves) and not lists.is_sparse,
        )
        checkpoint = None if self.checkpoint is None else as_checkpoint(self.checkpoint)
        return decide(columns, given, left, checkpoint, self.n_threads, self.time_limit)

    def make_surrogate(self) -> Surrogate:
        """The surrogate of the settings, for a risk that `fit_risk` is to minimise."""
        return self._given_setting().surrogate

    def check_settings(self) -> None:
        """Refuse settings that no data could be fitted with."""
        check_missing(self.missing)
        check_standardize(self.standardize)
        setting = self._given_setting()
        if is_auto(setting.alpha):
            setting = replace(setting, alpha=1.0)
        self._make_solver(setting, self.positive)

    def _given_setting(self) -> Setting:
        """The setting as it was given; alpha may be that of a solver object, or still 'auto'."""
        alpha = self.alpha
        check_alpha(alpha)
        if is_auto(alpha):
            alpha = solver_choice(self.solver).alpha or alpha
        surrogate = as_surrogate(self.surrogate, self.n_shown, self.depth, self.missing)
        pieces = check_curves(self.curves)
        return Setting(surrogate, self.user_weight, alpha, pieces, n_pairs=self._n_pairs())

    def _n_pairs(self) -> int | None:
        """The number of pairs of columns that was given; None for none, or where folds decide."""
        n_pairs = count_or_auto("pairs", self.pairs, "a number of pairs")
        if n_pairs is not None and self.positive:
            raise InputError("give pairs or positive=True: what pairs add does not rise")
        return n_pairs

    def _make_solver(
        self, setting: Setting, constrained: Any, risk: Oracle | None = None, spent: float = 0.0
    ) -> Any:
        """The solver of the settings, with what is left of the time after so many seconds."""
        check_signs(self.positive)
        limits = {name: self._given(name) for name in ("tol", "max_iter", "time_limit")}
        limits = {name: value for name, value in limits.items() if value is not None}
        told = Told(
            limits=limits,
            positive=self.positive,
            constrained=constrained,
            has_signs=self.monotonic_cst is not None and bool(np.any(constrained)),
            has_callback=self.callback is not None,
            spent=spent,
        )
        choice = solver_choice(self.solver)
        return choice.make(setting.surrogate, setting.known_alpha, told, risk)

    def _given(self, name: str) -> Any:
        """A setting that is not as by default; else None."""
        defaults = {field.name: field.default for field in fields(PAPKRanker)}
        value = getattr(self, name)
        if value is None and defaults[name] is not None:
            raise InputError(f"{name} must not be None: leave it out to have {defaults[name]!r}")
        is_usual = type(value) is type(defaults[name]) and value == defaults[name]
        return None if is_usual else value
