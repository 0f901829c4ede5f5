"""Model files: one array and a JSON description in the safetensors layout, see `tensors`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._html import html_table
from structsvm_papk._types import PathLike
from structsvm_papk.errors import DegenerateOptimumWarning, InputError, whole_number
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.tensors import TensorFile, package_version

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12  # weights in a notebook
_PLAIN = TensorFile("model", version=1)
_FILE = TensorFile("model", version=2, older=(1,))  # 2: X is scaled before it is multiplied


@dataclass(frozen=True)
class Model:
    """A trained linear ranker: a row scores ``x . coef``; no intercept, ranking ignores it.

    Examples
    --------
    >>> model = load_model("ranker.model")  # doctest: +SKIP
    >>> model.top(frame, n=3)  # the top-3 of each user  # doctest: +SKIP

    Attributes
    ----------
    coef : ndarray of float64, shape (n_features,)
    k : int
        Number of recommended items that it was trained for.
    surrogate, solver : str
        By name. Of a surrogate of a user's own the name is all that a file holds; the weights
        predict without it.
    alpha : float
        Regularisation strength.
    certificate : dict
        objective, lower_bound (None: not known), gap (None: not known), status, converged, n_iter.
    feature_names : tuple of str, or None
        Columns, where the training data named them.
    first_index : int or None
        svmlight index of the first feature, where the training data was svmlight.
    relevance_threshold : float or None
        Labels of at least this were relevant; None: the labels were binary.
    depth : int, float or None
        Training depth, see `Surrogate`.
    user_weight : str
        'equal' or 'positives'.
    standardized : bool
        Whether alpha and the certificate are of the problem with columns divided by their standard
        deviations within users; `coef` is in the columns' own units in any case.
    user_scaling : {None, 'standardise', 'rank'}
        How columns are scaled inside each user's list before they are multiplied by `coef`.
    package_version : str
        The version that wrote the file.
    """

    coef: np.ndarray
    k: int
    surrogate: str
    alpha: float
    solver: str
    certificate: dict[str, Any]
    feature_names: tuple[str, ...] | None = None
    first_index: int | None = None
    relevance_threshold: float | None = None
    depth: int | float | None = None
    user_weight: str = "equal"
    standardized: bool = False
    user_scaling: str | None = None
    package_version: str = ""

    @property
    def n_features(self) -> int:
        """Length of coef."""
        return self.coef.size

    def predict(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """Scores, shape (n_rows,); larger ranks higher.

        Parameters
        ----------
        X : array-like, data frame (pandas, polars) or CSR of shape (n_rows, n_features)
            Of a frame the model takes its features by name, if it names them.
        groups : array-like of shape (n_rows,) or 'one_list', optional
            User of each row, for a model with `user_scaling`; of a user all rows have to be there.

        Warns
        -----
        DegenerateOptimumWarning
            All weights are zero.

        Raises
        ------
        InputError
            A feature is missing, or not a finite number; another number of columns; no groups.
        """
        from structsvm_papk.data.user_scaling import scaled_rows

        if not self.coef.any():
            warnings.warn(
                f"every score is 0: all weights of this model are, as w = 0 is the optimum of "
                f"{self.surrogate} at depth {self.depth or self.k} on its training data",
                DegenerateOptimumWarning,
                stacklevel=2,
            )
        return np.asarray(scaled_rows(self._features(X), groups, self.user_scaling) @ self.coef)

    def top(self, X: Any, groups: ArrayLike | None = None, n: int | None = None) -> pd.DataFrame:
        """The best items of each user, as a frame with columns user, item, score and rank.

        Parameters
        ----------
        X : as for `predict`
        groups : array-like of shape (n_rows,) or 'one_list', optional
            User of each row; by default the column of a frame that is called as users usually are
            (user, user_id, group, qid, ..).
        n : int, optional
            How many; by default k.

        Returns
        -------
        pandas.DataFrame
            Users in the order of their first rows; of tied items the earlier row is first. Without
            a column item or item_id in X there is `row`, counted from 0, in its place; with
            'one_list' there is no user.

        Raises
        ------
        InputError
            As `predict`; no groups.
        """
        from structsvm_papk.data.top import ids_of, top_rows

        n = whole_number("n", self.k if n is None else n)
        users, items = ids_of(X, groups)
        scores = self.predict(X, "one_list" if users is None else users)
        return top_rows(scores, users, items, n)

    def _repr_html_(self) -> str:
        """The largest weights, and what they are the optimum of."""
        names = self.feature_names or tuple(f"x{j}" for j in range(self.n_features))
        largest = np.argsort(-np.abs(self.coef), kind="stable")[:_SHOWN]
        gap = self.certificate["gap"]
        caption = (
            f"{self.surrogate}, k = {self.k}, depth {self.depth or 'k'}, alpha = {self.alpha:g}, "
            f"columns {self.user_scaling or 'as they are'}, "
            f"{'no certificate' if gap is None else f'gap {gap:.1e}'}; "
            f"{len(largest)} of {self.n_features} weights"
        )
        rows = [(names[j], f"{self.coef[j]:.6g}") for j in largest]
        return html_table(("feature", "weight"), rows, caption)

    def _features(self, X: Any) -> Any:
        """The columns of the model, checked."""
        from structsvm_papk.data.matrix import check_matrix

        columns = getattr(X, "columns", None)
        if columns is not None and self.feature_names is not None:
            for name in self.feature_names:
                if list(columns).count(name) != 1:
                    raise InputError(f"X must have one column {name!r}, a feature of the model")
            X = X[list(self.feature_names)]
        X = check_matrix(X)
        if X.shape[1] != self.n_features:
            raise InputError(f"X has {X.shape[1]} columns, the model {self.n_features} features")
        return X


def certificate_of(result: Any) -> dict[str, str | bool | int | float | None]:
    """What a `SolverResult` proves, as plain values: infinities become None."""
    return {
        "objective": float(result.objective),
        "lower_bound": _finite_or_none(result.lower_bound),
        "gap": _finite_or_none(result.gap),
        "status": str(result.status),
        "converged": bool(result.converged),
        "n_iter": int(result.n_iter),
    }


def _finite_or_none(value):
    return float(value) if math.isfinite(value) else None


def save_model(path: PathLike, model: Model) -> None:
    """Write a `Model`; an existing file is replaced in one step or kept."""
    file = _PLAIN if model.user_scaling is None else _FILE
    write_atomically(path, file.encoded(_description(model), {"coef": model.coef}))


def load_model(path: PathLike) -> Model:
    """Read a `Model`.

    Raises
    ------
    InputError
        The file cannot be read, is not a model file, is damaged, or of a later format.
    """
    description, arrays = _FILE.read(path)
    coef = _checked_coef(path, arrays)
    model = _model_from(path, description, coef)
    if model.feature_names is not None and len(model.feature_names) != coef.size:
        raise _FILE.damaged(
            path, f"{len(model.feature_names)} feature names, {coef.size} coefficients"
        )
    return model


def _description(model):
    return {
        "k": int(model.k),
        "surrogate": model.surrogate,
        "alpha": float(model.alpha),
        "solver": model.solver,
        "certificate": model.certificate,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "first_index": model.first_index,
        "relevance_threshold": model.relevance_threshold,
        "depth": model.depth,
        "user_weight": model.user_weight,
        "standardized": model.standardized,
        "user_scaling": model.user_scaling,
        "package_version": model.package_version or package_version(),
    }


def _checked_coef(path, arrays):
    coef = arrays.get("coef")
    if len(arrays) != 1 or coef is None or coef.ndim != 1 or not coef.size:
        raise _FILE.damaged(path, "it does not hold one vector of coefficients")
    if not np.isfinite(coef).all():
        raise _FILE.damaged(path, "a coefficient is not finite")
    return coef.astype(np.float64)


def _model_from(path, description, coef):
    try:
        return Model(
            coef=coef,
            k=_whole(description["k"], 1),
            surrogate=_a(str, description["surrogate"]),
            alpha=_strength(description["alpha"]),
            solver=_a(str, description["solver"]),
            certificate=_certificate_from(_a(dict, description["certificate"])),
            feature_names=_names_from(description.get("feature_names")),
            first_index=_optional(_whole, description["first_index"]),
            relevance_threshold=_optional(_number, description["relevance_threshold"]),
            depth=_optional(_depth, description.get("depth")),
            user_weight=_a(str, description.get("user_weight", "equal")),
            standardized=_a(bool, description.get("standardized", False)),
            user_scaling=_optional(_scaling, description.get("user_scaling")),
            package_version=_a(str, description["package_version"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _FILE.damaged(path, f"bad or missing entry ({error})") from None


def _certificate_from(entries):
    return {
        "objective": _number(entries["objective"]),
        "lower_bound": _optional(_number, entries["lower_bound"]),
        "gap": _optional(_number, entries["gap"]),
        "status": _a(str, entries["status"]),
        "converged": _a(bool, entries["converged"]),
        "n_iter": _whole(entries["n_iter"]),
    }


def _names_from(names):
    if names is None:
        return None
    names = tuple(_a(str, name) for name in _a(list, names))
    if len(set(names)) < len(names):
        raise ValueError("a feature name appears twice")
    return names


def _a(types, value):
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise TypeError(f"unexpected {type(value).__name__}")
    return value


def _whole(value, least=0):
    if not least <= _a(int, value) < 2**63:
        raise ValueError("a whole number is out of range")
    return value


def _scaling(value):
    if value not in ("standardise", "rank"):
        raise ValueError(f"unknown scaling {value!r}")
    return value


def _number(value):
    value = float(_a((int, float), value))
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _depth(value):
    if not _number(value) > 0:
        raise ValueError("a depth is not positive")
    return value


def _strength(value):
    if not _number(value) >= 0:
        raise ValueError("a strength is negative")
    return float(value)


def _optional(check, value):
    return None if value is None else check(value)
