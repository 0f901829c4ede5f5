"""What an additive ranker does: rows become lists; functions score, are judged and written."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm_papk import metrics
from structsvm_papk._types import Array, Features, PathLike
from structsvm_papk.data import validation
from structsvm_papk.data.columns.checks import (
    LOWEST,
    as_frame,
    check_missing,
    finite_matrix,
    readable,
)
from structsvm_papk.data.columns.missing import Filling
from structsvm_papk.data.columns.tables import in_numbers, levels_of
from structsvm_papk.data.columns.terms import AdditiveFunction, Curve, FilledRows, Term
from structsvm_papk.data.columns.units import ScaleRule
from structsvm_papk.data.grades import are_grades, check_label_gain, gains_of
from structsvm_papk.data.lists import Exclusions
from structsvm_papk.data.ranking_data import Parts, RankingData
from structsvm_papk.data.roles import warn_of_ids
from structsvm_papk.data.validation import (
    ONE_LIST,
    is_one_list,
    refuse_weights,
    required_groups,
    warn_of_other_order,
)
from structsvm_papk.errors import DegenerateOptimumWarning, InputError, warn
from structsvm_papk.files.model import Model, certificate_of, save_model, weights_of
from structsvm_papk.files.onnx import write_onnx
from structsvm_papk.metrics.table import evaluate_by_grade
from structsvm_papk.rankers.settings import AUTO_DEPTH, Setting, k_of
from structsvm_papk.solvers.solver import SolverResult, Status
from structsvm_papk.surrogates import Surrogate

REMARKS = {
    ScaleRule.EACH: "The columns are divided by their standard deviations within users.",
    ScaleRule.INDICATORS: (
        "The columns are divided by their standard deviations within users, those of two values by "
        "half the difference of these."
    ),
    ScaleRule.COMMON: (
        "All columns of the sparse X are divided by one number, the root of their mean variance "
        "within users."
    ),
}


def validated(
    ranker: Any, X: Features, *y: Any, missing: str | None = None, reset: bool = True
) -> Any:
    """X (and y) as scikit-learn's `validate_data` gives them, with finite values in X.

    Before it come masks, which it drops, and dates, which it takes for numbers; after it what is
    not finite, of which it does not say where. NaN may be there with `missing`.
    """
    check_missing(missing)
    for values, name in zip((X, *y), "Xy", strict=False):
        validation.refuse_masked(values, name)
    checked = _by_scikit_learn(
        ranker, readable(X), *y, reset=reset, accept_sparse="csr", accept_large_sparse=True,
        ensure_all_finite=False, dtype=(np.float64, np.float32),
    )  # fmt: skip
    names = getattr(ranker, "feature_names_in_", None)
    if not y:
        return finite_matrix(checked, names, missing)
    X, labels = checked
    return finite_matrix(X, names, missing), labels


def take_columns(ranker: Any, sample: Any) -> None:
    """Note number and names of the columns, and nothing else, as scikit-learn does."""
    _by_scikit_learn(ranker, sample, skip_check_array=True)


def _by_scikit_learn(ranker: Any, *given: Any, **how: Any) -> Any:
    """scikit-learn's `validate_data`, whose complaints are the package's here."""
    try:
        return validate_data(ranker, *given, **how)
    except ValueError as error:
        text = str(error)
        if text.startswith("Input y contains"):  # it does not say where
            text += f" {_labels_to_mend(given[1])}"
        elif text.startswith("The feature names") and "missing" not in text:
            text = f"{text.rstrip()}\nTake the columns of training: X[ranker.feature_names_in_]"
        raise InputError(text) from None
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X and y must be arrays of numbers: {error}") from None


def _labels_to_mend(y: Any) -> str:
    """Which rows have no label, and what to do with them."""
    labels = validation.as_numbers(validation.as_array(y, "labels y").ravel(), "labels y")
    bad = ~np.isfinite(labels)
    return f"See {validation.rows_of(bad)}: leave out what has no label, or give it one."


def _checked_labels(y: Any, n_rows: int) -> Array:
    """Labels as numbers or booleans; of text it is said how to make booleans."""
    labels = validation.as_vector(y, "labels y", n_rows)
    if {validation.family(kind) for kind in set(map(type, labels))} == {"text"}:
        values, counts = np.unique(labels.astype(str), return_counts=True)
        rarest = values[np.argmin(counts)]
        raise InputError(f'labels y are text: give y == "{rarest}", or the label that is relevant')
    return validation.check_grades(y, n_rows, name="labels y")


def weights_of_users(data: RankingData, sample_weight: ArrayLike) -> Array:
    """One weight for each user, from weights of rows that are the same on all rows of a user."""
    weight = validation.check_grades(sample_weight, data.rows.size, name="sample_weight")
    weight = weight.astype(float)[data.rows]
    first = weight[data.indptr[:-1]]
    other = (weight != first.repeat(data.sizes)).nonzero()[0]
    if other.size:
        u = data.user_of_position[other[0]]
        user = data.users[u : u + 1].tolist()[0]
        raise InputError(
            f"sample_weight is {first[u]:g} and {weight[other[0]]:g} on rows of user {user!r}: it "
            "weighs users, and has to be the same on all rows of a user"
        )
    refuse_weights(first, data.users, "sample_weight")
    return first


def _nothing_varies(names: Sequence[str]) -> DegenerateOptimumWarning:
    """The warning that all columns are constant within lists, which no other setting changes."""
    some = ", ".join(names[:5]) + (", .." if len(names) > 5 else "")
    return DegenerateOptimumWarning(
        f"w = 0 is the optimum: every column ({some}) is constant within every list, so no "
        "weights put one row of a list before another. Features have to differ between the rows of "
        "a list; are groups= those of the lists?"
    )


def _zero_weights(
    surrogate: Surrogate, positive: bool, monotonic: bool, proved: bool
) -> DegenerateOptimumWarning:
    """The warning that training ended at zero, with what to try first.

    `proved`: that no w is better; of what is not convex seldom is.
    """
    signs = ""
    if positive:
        signs = " among weights >= 0"
    elif monotonic:
        signs = " among functions that rise and fall as monotonic_cst says"
    settings: dict[str, Any] = {}
    if surrogate.depth != AUTO_DEPTH:
        settings = {"depth": AUTO_DEPTH}
        if surrogate.is_custom:
            settings = {"surrogate": replace(surrogate, depth=None)} | settings
    elif positive:
        settings = {"positive": False}
    elif monotonic:
        settings = {"monotonic_cst": None}
    elif surrogate.name != "clipped_ramp":
        settings = {"surrogate": "clipped_ramp"}
    name = f"{surrogate.label} at depth {surrogate.depth or surrogate.k}{signs}"
    advice = "count more negatives in training, or take another surrogate."
    if proved:
        text = f"w = 0 is the optimum of {name}, to within the tolerance, and ranks nothing: "
    else:
        text = (
            f"training of {name} ended at w = 0, which ranks nothing; it is not proved that no w "
            "is better: "
        )
    return DegenerateOptimumWarning(text + advice, settings)


class AdditiveRanker(BaseEstimator):
    """Scores, the sum over the columns of a function of each. A subclass finds them: `fit`."""

    __metadata_request__fit: ClassVar = {"groups": True, "qid": True, "sample_weight": None}
    # Pipeline.score always passes sample_weight=None on, which has to be a known name
    __metadata_request__score: ClassVar = {"groups": True, "qid": True, "sample_weight": None}
    __metadata_request__decision_function: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}

    k: int | None
    surrogate: str | Surrogate
    policy: str
    solver: Any
    n_threads: int
    relevance_threshold: float | None
    label_gain: Any
    groups: str | None
    positive: bool
    monotonic_cst: Any
    missing: str | None
    categorical_features: Any
    function_: AdditiveFunction
    alpha_: float
    surrogate_: str
    scale_: Array | None
    exclusions_: Exclusions
    n_iter_: int
    result_: SolverResult
    classes_: Array
    label_gain_: Any
    _setting: Setting
    _scale_rule: ScaleRule | None  # by which `scale_` was chosen
    _zero_is_proved: bool  # where the weights are 0, and the surrogate is not convex
    _filling: Filling
    _signs: Array | None  # 1 and -1 for columns that had to rise and to fall
    _weights_given: bool

    @property
    def n_shown(self) -> int:
        """Number of items that a user is shown: k, where it is given."""
        return k_of(self.k, [self.surrogate])

    def _lists_of(self, X: Features, y: Any, groups: Any, sample_weight: ArrayLike | None) -> Any:
        """Checked rows of users as lists, in memory."""
        warn_of_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
        X = as_frame(X)
        warn_of_ids(X)
        levels = levels_of(X, self.categorical_features)
        matrix, y = validated(self, in_numbers(X, levels), y, missing=self.missing)
        y = _checked_labels(y, len(y))
        self._take_classes(y)
        names = getattr(self, "feature_names_in_", None)
        data = RankingData.from_matrix(
            matrix, self._known_labels(y), groups, feature_names=names, label_gain=self.label_gain_
        )
        data.levels = levels
        if sample_weight is not None:
            data = data.weighted(weights_of_users(data, sample_weight))
        return data

    def _take_lists(self, lists: Parts) -> None:
        """Note what columns and labels lists have that were laid out elsewhere."""
        self.n_features_in_ = lists.n_columns
        self.classes_ = lists.classes
        self.label_gain_ = lists.label_gain
        if lists.feature_names is not None:
            self.feature_names_in_ = np.asarray(lists.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _take(
        self, result: SolverResult, exclusions: Exclusions, remarks: tuple[str, ...] = ()
    ) -> None:
        """Take over a result, whose function is known."""
        notes = (*result.notes, *remarks)
        if self._scale_rule is not None:
            notes = (*notes, REMARKS[self._scale_rule])
        self.result_ = replace(result.without_data(), notes=notes)
        self.n_iter_ = result.n_iter
        self.exclusions_ = exclusions

    def _warn_of_result(self, given: Any) -> None:
        """Warn of weights that are zero, and of a gap that is left; `given`: lists, or a risk."""
        result = self.result_
        if not given.deviation().any():
            warn(_nothing_varies([term.name for term in self.terms_]))
        elif not result.w.any() and (result.converged or result.status == Status.FINISHED):
            surrogate = self._setting.surrogate
            monotonic = self.monotonic_cst is not None
            proved = result.status == Status.DEGENERATE or self._zero_is_proved
            warn(_zero_weights(surrogate, self.positive, monotonic, proved))
        elif not (result.converged or result.status in (Status.FINISHED, Status.INCONSISTENT)):
            warn(result.message, ConvergenceWarning)

    @property
    def terms_(self) -> list[Term]:
        """What each column, and each pair of columns, adds to a score."""
        check_is_fitted(self)
        return list(self.function_.terms)

    @property
    def curves_(self) -> list[Curve]:
        """Those of `terms_` that are of columns of numbers."""
        if not hasattr(self, "function_"):
            raise AttributeError("curves_ is there after fit")
        return list(self.function_.curves)

    @property
    def missing_coef_(self) -> Array | None:
        """What a missing value of each column adds, see `missing`; 0 where training had none."""
        check_is_fitted(self)
        return None if self.missing is None else np.nan_to_num(self.function_.gaps)

    @property
    def coef_(self) -> Array:
        """Weights of the columns, shape (n_features,), where these are lines."""
        if not hasattr(self, "function_"):
            raise AttributeError("coef_ is there after fit")
        if self.function_.slopes is None:
            raise AttributeError(
                "coef_: the columns of this ranker are curves or levels, which no single weight "
                "describes: see terms_ and contributions(X), or fit with curves=None"
            )
        return self.function_.slopes

    def decision_function(self, X: Features, groups: ArrayLike | None = None) -> Array:
        """Scores, shape (n_rows,): the sum of `contributions`; larger ranks higher.

        Rows with the same values have the same score to the last bit, wherever they stand, and in
        whatever storage. Beyond the values of training a curve is flat, and a line goes on. A level
        that training did not have adds 0.

        With ``missing="lowest"`` missing values are filled inside the list of each user that
        `groups` names, of whom all rows have to be there; else, and after a fit of one list,
        `groups` is not needed.

        Warns
        -----
        DegenerateOptimumWarning
            The weights are zero, and so are all scores.

        Raises
        ------
        InputError
            A missing value of a column of numbers that had none in training; text where training
            had numbers, or the other way round.
        """
        rows = self._filled(X, groups)
        return self.function_.scores(rows, n_threads=self.n_threads)

    def contributions(self, X: Features, groups: ArrayLike | None = None) -> Array:
        """What each term adds to the score of each row, shape (n_rows, n_terms).

        Its sum, ``((c_1 + c_2) + c_3) + ..``, is the score to the last bit. Only differences
        between rows of a list count: they say why one stands above the other. What a curve adds is
        0 at its first knot, not in the middle as in `TermsDisplay`.

        Parameters
        ----------
        X, groups
            As for `decision_function`.

        Raises
        ------
        InputError
            As for `decision_function`.
        """
        rows = self._filled(X, groups)
        return self.function_.contributions(rows)

    def _filled(self, X: Features, groups: ArrayLike | None) -> FilledRows:
        """Checked rows of a fitted ranker, whose missing values are filled or known to terms."""
        check_is_fitted(self)
        if self.function_.is_zero:
            warn(
                "the weights of this model are zero: all scores are 0 and rank nothing",
                DegenerateOptimumWarning,
            )
        warn_of_other_order(X=X, groups=groups)
        X = self._features(X)
        names = getattr(self, "feature_names_in_", None)
        return self._filling.rows_for(self.function_, X, self._or_setting(groups), names)

    def _features(self, X: Features) -> Any:
        """Rows as a checked matrix of numbers, of levels their places."""
        X = as_frame(X)
        if hasattr(X, "iloc") and hasattr(self, "feature_names_in_"):
            _by_scikit_learn(self, X, reset=False, skip_check_array=True)  # names before values
        if self.function_.levels and np.shape(X)[1:] == (self.n_features_in_,):
            X = in_numbers(X, self.function_.levels)
        return validated(self, X, missing=self.missing, reset=False)

    def predict(self, X: Features, groups: ArrayLike | None = None) -> Array:
        """The same as `decision_function`."""
        return self.decision_function(X, groups)

    def score(
        self, X: Features, y: Any, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> float:
        """Mean over users of the pAp@k gain, ties counting as errors.

        Of grades each user has the mean over them of the gains at "this grade or a higher one",
        weighted by what the grades add in `label_gain`. Users without a positive or with fewer than
        k negatives are left out (with the policy 'raise' they raise). Groups are those of `fit`.

        Raises
        ------
        InputError
            No groups, no user that can be used, or labels that were not there in training.
        """
        k = self.n_shown
        groups = self._groups(groups, qid)
        warn_of_other_order(X=X, y=y, groups=groups)
        scores = self.decision_function(X, ONE_LIST if groups is None else groups)
        labels = self._known_labels(_checked_labels(y, scores.size))
        rule = "raise" if self.policy == "raise" else "exclude"
        rules: dict[str, Any] = {"few_negatives": rule, "no_positives": rule}
        if self.label_gain_ is None:
            table = metrics.evaluate(f"pap@{k}", scores, labels, groups, **rules)
        else:
            lists = RankingData.from_matrix(
                scores[:, None], labels, groups, label_gain=self.label_gain_
            )
            table = evaluate_by_grade(f"pap@{k}", scores[lists.rows], lists, **rules)
        value = float(table.summary()[0].value)
        if np.isnan(value):
            raise InputError(f"no user has a positive and k={k} negatives")
        return value

    def gain_on(self, lists: RankingData) -> float:
        """The mean pAp@k gain on lists that are laid out already, ties counting as errors."""
        check_is_fitted(self)
        scores = self._filling.scores(self.function_, lists)
        return evaluate_by_grade(f"pap@{self.n_shown}", scores, lists).mean(f"pap@{self.n_shown}")

    def to_model(self) -> Model:
        """What is needed to score new rows, as a `Model`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        surrogate = self._setting.surrogate
        threshold = self.relevance_threshold
        return Model(
            function=self.function_,
            k=surrogate.k,
            surrogate=surrogate.label,
            alpha=self.result_.alpha,
            solver=self._solver_name,
            depth=surrogate.depth,
            user_weight="given" if self._weights_given else self._setting.user_weight,
            scale_rule=None if self._scale_rule is None else str(self._scale_rule),
            missing=self.missing,
            fill=self._filling.constant if self.missing == LOWEST else None,
            curves=self._setting.pieces,
            stiffness=self._setting.stiffness,
            certificate=certificate_of(self.result_),
            feature_names=None if names is None else tuple(map(str, names)),
            relevance_threshold=None if threshold is None else float(threshold),
            label_gain=self.label_gain_,
            positive=self.positive,
            monotonic_cst=None if self._signs is None else tuple(self._signs.astype(int).tolist()),
        )

    def save(self, path: PathLike) -> None:
        """Write a model file (safe to load: no pickle), for `load_model` and the command line."""
        save_model(path, self.to_model())

    def to_onnx(self, path: PathLike, dtype: str = "float64") -> None:
        """Write an ONNX graph: input ``X`` (rows, features) of `dtype`, output ``scores`` (rows,).

        Needs the extra 'onnx'; its metadata hold names and certificate.
        """
        write_onnx(path, self.to_model(), dtype)

    def export_weights(self) -> dict[str, Any]:
        """Weights by feature name, settings and certificate, as plain values for JSON."""
        return weights_of(self.to_model())

    def _groups(self, groups: ArrayLike | None, qid: ArrayLike | None) -> Any:
        """The user of each row; None where all rows are one list, which has to be said."""
        if groups is not None and qid is not None:
            raise InputError("give groups or qid, not both: they are two names of the same thing")
        return required_groups(self._or_setting(qid if groups is None else groups))

    def _or_setting(self, groups: ArrayLike | None) -> Any:
        """The groups of a call, or those of the setting where it has none."""
        if not (self.groups is None or is_one_list(self.groups)):
            raise InputError(
                f"the setting groups is {ONE_LIST!r} or None, got {self.groups!r}: the user of "
                "each row is given to fit"
            )
        return self.groups if groups is None else groups

    def _take_classes(self, y: Array) -> None:
        """Note the values of the labels, and what grades count where they are grades."""
        self.classes_ = self._find_classes(y)
        gains = None if self.label_gain is None else check_label_gain(self.label_gain)
        self.label_gain_ = gains if self.classes_.size > 2 else None

    def _find_classes(self, y: Array) -> Array:
        if self.relevance_threshold is not None:
            return np.array([False, True])
        classes = np.unique(y)
        if classes.size == 1:
            raise InputError(f"y holds one class only ({classes[0]}): there is nothing to rank")
        if classes.size > 2 and self.label_gain is not None and are_grades(classes):
            gains_of(classes, self.label_gain)  # or refuse
            return classes
        if classes.size > 2:
            shown = ", ".join(map(str, classes[:3])) + (", .." if classes.size > 3 else "")
            raise InputError(
                f"y holds {shown}: {classes.size} values, and grades are whole numbers; give "
                "relevance_threshold, from which value on a row is relevant"
            )
        if not (validation.is_binary(classes) or self._are_zero_and_a_grade(classes)):
            raise InputError(
                f"y holds {classes[0]} and {classes[1]} only, which do not say what is relevant; "
                "give 0/1, -1/1 or booleans, or relevance_threshold, from which value on a row is "
                "relevant"
            )
        return classes

    def _are_zero_and_a_grade(self, classes: Array) -> bool:
        """Whether of the grades only 0 and another one occur, as in some lists of more."""
        grade = classes[1]
        return self.label_gain is not None and classes[0] == 0 and grade == np.floor(grade)

    def _known_labels(self, y: Array) -> Array:
        """Grades as they are, or relevance as booleans."""
        if self.label_gain_ is not None:
            return y
        if self.relevance_threshold is not None:
            return validation.relevance(y, self.relevance_threshold)
        relevant: Array = y == self.classes_[1]
        unknown = ~relevant & (y != self.classes_[0])
        if unknown.any():
            raise InputError(f"label {y[unknown][0]} in y was not there in training")
        return relevant

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.missing != LOWEST
        tags.input_tags.allow_nan = self.missing is not None
        # no classifier, but y takes two values
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags._skip_test = self.groups is None  # the checks have none to give
        return tags
