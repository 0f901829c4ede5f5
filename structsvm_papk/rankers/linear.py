"""What a trained linear ranker can do: score rows, be judged, and be written to files."""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from structsvm_papk import metrics
from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import validation
from structsvm_papk.data.rows import ONE_LIST, refuse_misread, required
from structsvm_papk.data.user_scaling import scaled_rows
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files.model import Model, certificate_of, save_model, weights_of, write_onnx
from structsvm_papk.rankers.settings import Setting, solver_name
from structsvm_papk.solvers.result import SolverResult


def validated(ranker: Any, X: Any, *y: Any, finite: bool = False, **how: Any) -> Any:
    """scikit-learn's `validate_data` of a matrix, whose complaints are the package's here.

    Masks, which it drops, and dates, which it takes for numbers, are refused before. NaN are left
    to `RankingData`, which names the place.
    """
    if "skip_check_array" not in how:
        for values, name in zip((X, *y), "Xy", strict=False):
            validation.refuse_masked(values, name)
        refuse_misread(X)
    how |= {"accept_sparse": "csr", "accept_large_sparse": True, "ensure_all_finite": finite}
    try:
        return validate_data(ranker, X, *y, dtype=(np.float64, np.float32), **how)
    except ValueError as error:
        raise InputError(str(error)) from None
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X and y must be arrays of numbers: {error}") from None


def check_seed(random_state: Any) -> None:
    """Refuse what scikit-learn cannot draw numbers with."""
    try:
        check_random_state(random_state)
    except ValueError:
        raise InputError(
            "random_state must be None, a whole number or a numpy RandomState, got "
            f"{random_state!r}"
        ) from None


class LinearRanker(BaseEstimator):
    """Scores ``X @ coef_``, for lists of users. A subclass finds `coef_`."""

    __metadata_request__decision_function: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}

    policy: str
    solver: str
    relevance_threshold: float | None
    one_list: bool
    coef_: Array
    scale_: Array | None
    user_scaling_: str | None
    result_: SolverResult
    classes_: Array
    _setting: Setting

    @property
    def n_shown(self) -> int:
        """Number of items that a user is shown: k, where it is given."""
        raise NotImplementedError

    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """Scores ``X @ coef_``, shape (n_rows,); larger ranks higher.

        With `user_scaling` X is scaled first, inside the list of each user that `groups` names, of
        whom all rows have to be there; without it `groups` is not needed.

        Warns
        -----
        DegenerateOptimumWarning
            The weights are zero, and so are all scores.
        """
        check_is_fitted(self)
        if not self.coef_.any():
            warnings.warn(
                "the weights of this model are zero: all scores are 0 and rank nothing",
                DegenerateOptimumWarning,
                stacklevel=2,
            )
        X = validated(self, X, finite=True, reset=False)
        if self.user_scaling_ is not None:
            groups = ONE_LIST if groups is None and self.one_list else groups
            X = scaled_rows(X, groups, self.user_scaling_)
        return X @ self.coef_

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """The same as `decision_function`."""
        return self.decision_function(X, groups)

    def score(
        self, X: Any, y: Any, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> float:
        """Mean over users of the pAp@k gain, ties counting as errors.

        Users without a positive or with fewer than k negatives are left out (with the policy
        'raise' they raise). Groups are those of `fit`.

        Raises
        ------
        InputError
            No groups, no user that can be used, or labels that were not there in training.
        """
        groups, k = self._groups(groups, qid), self.n_shown
        scores = self.decision_function(X, ONE_LIST if groups is None else groups)
        y = validation.check_grades(y, scores.size, name="labels y")
        table = metrics.evaluate(
            f"pap@{k}",
            scores,
            self._relevance(y),
            groups,
            few_negatives="raise" if self.policy == "raise" else "exclude",
            no_positives="raise" if self.policy == "raise" else "exclude",
        )
        summary = table.summary()[0]
        if summary.n_used == 0:
            raise InputError(f"no user has a positive and k={k} negatives: {summary}")
        return summary.value

    def to_model(self) -> Model:
        """What is needed to score new rows, as a `Model`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        surrogate = self._setting.make(self.n_shown)
        return Model(
            coef=self.coef_,
            k=surrogate.k,
            surrogate=surrogate.label,
            alpha=self.result_.alpha,
            solver="dual_ascent"
            if self.result_.duals is not None
            else solver_name(self.solver, surrogate),
            depth=surrogate.depth,
            user_weight=self._setting.user_weight,
            standardized=self.scale_ is not None,
            user_scaling=self.user_scaling_,
            certificate=certificate_of(self.result_),
            feature_names=None if names is None else tuple(map(str, names)),
            relevance_threshold=self.relevance_threshold,
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
        groups = _one_of(groups, qid)
        return required(ONE_LIST if groups is None and self.one_list else groups)

    def _find_classes(self, y: Array) -> Array:
        if self.relevance_threshold is not None:
            return np.array([False, True])
        classes = np.unique(y)
        if classes.size == 1:
            raise InputError(f"y holds one class only ({classes[0]}): there is nothing to rank")
        if classes.size > 2:
            raise InputError(
                f"y holds {classes.size} values; for graded labels give relevance_threshold"
            )
        if classes[1] == 0:  # where -1/1 and 0/1 are both read, neither is relevant
            raise InputError(
                f"y holds {classes[0]} and 0 only, of which neither means relevant; give 0/1, "
                "-1/1 or booleans, or relevance_threshold"
            )
        return classes

    def _relevance(self, y: Array) -> Array:
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
        tags.input_tags.sparse = True
        # no classifier, but y takes two values
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags._skip_test = not self.one_list  # the checks have no groups to give
        return tags


def _one_of(groups: ArrayLike | None, qid: ArrayLike | None) -> ArrayLike | None:
    if groups is not None and qid is not None:
        raise InputError("give groups or qid, not both: they are two names of the same thing")
    return groups if qid is None else qid
