"""Model files: arrays and a JSON description in the safetensors layout, see `tensors`.

For programs that know nothing of this package a model is written as ONNX (`onnx`), and as plain
JSON (`weights_of`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import PathLike
from structsvm_papk._version import __version__
from structsvm_papk.data.columns.checks import LOWEST, as_frame, check_matrix
from structsvm_papk.data.columns.missing import Filling, falling_columns
from structsvm_papk.data.columns.tables import in_numbers
from structsvm_papk.data.columns.terms import (
    AdditiveFunction,
    Curve,
    Cut,
    FilledRows,
    Levels,
    Pair,
    Term,
)
from structsvm_papk.data.roles import listed
from structsvm_papk.data.top import ids_of, top_rows
from structsvm_papk.data.validation import warn_of_other_order
from structsvm_papk.errors import (
    DegenerateOptimumWarning,
    InputError,
    warn,
    whole_number,
)
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.tensors import TensorFile

if TYPE_CHECKING:
    import pandas as pd

_FILE = TensorFile("model", version=8)
_SHOWN_TERMS = 6  # by `repr`, those that move scores most


@dataclass(frozen=True, repr=False)
class Model:
    """A trained ranker: a row scores the sum of its terms.

    There is no intercept: ranking ignores it.

    Examples
    --------
    >>> model = load_model("ranker.model")  # doctest: +SKIP
    >>> model.top(frame, n=3)  # the top-3 of each user  # doctest: +SKIP

    Attributes
    ----------
    function : AdditiveFunction
        Its `terms`, see `data.columns.terms`.
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
        Labels of at least this were relevant; None: the labels were binary, or grades.
    label_gain : {'linear', 'exponential'}, tuple of float, or None
        What the grades counted; None: the labels were binary.
    depth : int, float or None
        Training depth, see `Surrogate`.
    user_weight : str
        'equal', 'positives', or 'given' by the sample_weight of `fit`, which no file holds.
    scale_rule : {None, 'each', 'indicators', 'common'}
        What the columns were divided by in the problem that alpha and the certificate are of; None:
        nothing. 'each': by their standard deviations within users. 'indicators': the same, but
        columns of two values by half the difference of these. 'common': by one number, as for a
        sparse X, the root of their mean variance within users. The terms are in the columns' own
        units in any case.
    package_version : str
        The version that wrote the file.
    positive : bool
        Whether the certificate is of the problem with weights >= 0.
    missing : {None, 'separate', 'lowest'}
        What missing values count, as of `PAPKRanker`.
    fill : ndarray of shape (n_features,), or None
        With ``missing='lowest'``, of a model of one list: the lowest values of its columns in
        training, of those that fall the highest, which fill further rows, each by itself.
    monotonic_cst : tuple of int, or None
        1 for columns that had to rise, -1 for those that had to fall, 0 for free ones; None: all
        were free.
    curves : int or None
        Pieces of a curve that were asked for; None: columns of numbers are lines.
    stiffness : float
        How many times stronger the penalty is on pieces, and on cells of pairs.
    """

    function: AdditiveFunction
    k: int
    surrogate: str
    alpha: float
    solver: str
    certificate: dict[str, Any]
    feature_names: tuple[str, ...] | None = None
    first_index: int | None = None
    relevance_threshold: float | None = None
    label_gain: Any = None
    depth: int | float | None = None
    user_weight: str = "equal"
    scale_rule: str | None = None
    package_version: str = ""
    positive: bool = False
    missing: str | None = None
    fill: np.ndarray | None = None
    monotonic_cst: tuple[int, ...] | None = None
    curves: int | None = None
    stiffness: float = 1.0

    def __repr__(self) -> str:
        gap = self.certificate["gap"]
        lines = [
            f"Model of {self.n_features} columns, trained for k = {self.k}",
            f"{self.surrogate}, depth {self.depth or 'k'}, alpha {self.alpha:.3g}, {self.solver}",
            f"{self.certificate['status']}, gap {'not known' if gap is None else f'{gap:.1e}'}",
        ]
        largest = sorted(self.function.terms, key=lambda term: -term.deviation)
        lines += [
            f"{term.name[:40]:>40}  {term.deviation:.4g} {term.course}"
            for term in largest[:_SHOWN_TERMS]
        ]
        n_others = len(largest) - _SHOWN_TERMS
        return "\n".join([*lines, f"and {n_others} more"] if n_others > 0 else lines)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.function.n_columns

    @property
    def levels(self) -> dict[int, tuple[Any, ...]]:
        """The levels of each column that has some."""
        return self.function.levels

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns; x0, x1, .. where they have none."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def standardized(self) -> bool:
        """Whether alpha and the certificate are of divided columns."""
        return self.scale_rule is not None

    @property
    def falling(self) -> list[int]:
        """The columns that had to fall."""
        return falling_columns(self.monotonic_cst)

    @property
    def needs_lists(self) -> bool:
        """Whether the score of a row depends on the others of its list."""
        return self.fill is None and self.missing == LOWEST

    def predict(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """Scores, shape (n_rows,); larger ranks higher.

        Parameters
        ----------
        X : array-like, data frame (pandas, polars) or CSR of shape (n_rows, n_features)
            Of a frame the model takes its features by name, if it names them.
        groups : array-like of shape (n_rows,) or 'one_list', optional
            User of each row, for a model that `needs_lists`; of a user all rows have to be there.

        Warns
        -----
        DegenerateOptimumWarning
            All weights are zero.

        Raises
        ------
        InputError
            A feature is missing, or not a finite number; another number of columns; no groups.
        """
        return self.scores(self._filled(X, groups))

    def scores(self, rows: FilledRows) -> np.ndarray:
        """Scores of rows that `filled` has returned; warns as `predict`."""
        if self.function.is_zero:
            ended = "training ended there with"
            if self.certificate["status"] == "degenerate":
                ended = "w = 0 is the optimum of"
            warn(
                f"every score is 0: all weights of this model are, as {ended} {self.surrogate} at "
                f"depth {self.depth or self.k} on its training data",
                DegenerateOptimumWarning,
            )
        return self.function.scores(rows)

    def contributions(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """What each term adds to each score, as `PAPKRanker.contributions`."""
        return self.function.contributions(self._filled(X, groups))

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
            Users in the order of their first rows; of tied items the earlier row is first. Items
            keep the name of their column (item, docno, movieid, ..); without one in X there is
            `row`, counted from 0, in its place; with 'one_list' there is no user.
            `metrics.evaluate_frame` reads it, with ``rank="rank"`` and all relevant pairs.

        Raises
        ------
        InputError
            As `predict`; no groups.
        """
        n = whole_number("n", self.k if n is None else n)
        users, items = ids_of(X, groups)
        scores = self.predict(X, "one_list" if users is None else users)
        return top_rows(scores, users, items, n)

    def _filled(self, X: Any, groups: ArrayLike | None) -> FilledRows:
        """The columns of the model, checked; missing values are filled or known to terms."""
        warn_of_other_order(X=X, groups=groups)
        return self.filled(self._features(X), groups)

    def filled(self, X: Any, groups: ArrayLike | None) -> FilledRows:
        """Rows of a table whose `levels` are the model's, as `function` takes them."""
        filling = Filling(self.missing, self.falling, self.fill)
        return filling.rows_for(self.function, X, groups, self.feature_names)

    def _features(self, X: Any) -> Any:
        """The columns of the model, checked."""
        X = as_frame(X)
        columns = getattr(X, "columns", None)
        if columns is not None and self.feature_names is not None:
            present = list(columns)
            absent = [name for name in self.feature_names if present.count(name) != 1]
            if absent:
                raise InputError(
                    f"X must have one column {listed(absent)}, of the features of the model "
                    f"({listed(self.feature_names)})"
                )
            X = X[list(self.feature_names)]
        if self.levels and np.shape(X)[1:] == (self.n_features,):
            X = in_numbers(X, self.function.levels)
        X = check_matrix(X, self.feature_names, self.missing)
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


_ENTRIES = [each.name for each in fields(Model) if each.name not in ("function", "fill")]


def save_model(path: PathLike, model: Model) -> None:
    """Write a `Model`; an existing file is replaced in one step or kept."""
    entries = {name: getattr(model, name) for name in _ENTRIES}
    entries["package_version"] = model.package_version or __version__
    function = model.function
    arrays = _arrays_of(function)
    entries["n_features"] = function.n_columns
    entries["other_terms"] = list(map(_entry_of, (*function.of_levels, *function.pairs)))
    if model.fill is not None:
        arrays["fill"] = model.fill
    entries |= {"k": int(model.k), "alpha": float(model.alpha)}
    write_atomically(path, _FILE.encoded(entries, arrays))


def _arrays_of(function: AdditiveFunction) -> dict[str, np.ndarray]:
    """The terms of columns of numbers, one behind the other."""
    curves = function.curves
    nothing = [np.zeros(0)]
    sizes = [curve.knots.size for curve in curves]
    return {
        "columns": np.array([curve.column for curve in curves], dtype=np.int64),
        "knots": np.concatenate([curve.knots for curve in curves] or nothing),
        "values": np.concatenate([curve.values for curve in curves] or nothing),
        "knot_starts": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "slopes": np.array([curve.slope for curve in curves], dtype=float),
        "deviations": np.array([curve.deviation for curve in curves], dtype=float),
        "has_gap": np.array([curve.gap is not None for curve in curves], dtype=np.int64),
        "gaps": np.array([curve.gap or 0.0 for curve in curves], dtype=float),
    }


def _curves_of(arrays: dict[str, np.ndarray], names: tuple[str, ...]) -> list[Curve]:
    """The terms of columns of numbers, of the arrays of a file."""
    starts = arrays["knot_starts"]
    slopes = arrays["slopes"].tolist()
    deviations = arrays["deviations"].tolist()
    gaps = np.where(arrays["has_gap"], arrays["gaps"], np.nan).tolist()
    curves = []
    for i, j in enumerate(arrays["columns"].tolist()):
        own = slice(starts[i], starts[i + 1])
        knots = arrays["knots"][own]
        gap = None if np.isnan(gaps[i]) else gaps[i]
        values = arrays["values"][own]
        curves.append(Curve(names[j], j, knots, values, slopes[i], deviations[i], gap))
    return curves


def _entry_of(term: Term) -> dict[str, Any]:
    """A term that is no curve, as JSON says it; of its columns the numbers."""
    return {
        **term.description(),
        "columns": list(term.columns),
        "deviation": term.deviation,
    }


def _levels_of(entry: dict[str, Any], names: Sequence[str]) -> Levels:
    (j,) = entry["columns"]
    weights = np.array(entry["weights"], dtype=float)
    return Levels(names[j], j, tuple(entry["levels"]), weights, entry["deviation"], entry["gap"])


def _pair_of(entry: dict[str, Any], names: Sequence[str]) -> Pair:
    i, j = entry["columns"]
    first, second = map(_cut_of, entry["cells"])
    weights = np.array(entry["weights"], dtype=float)
    return Pair((names[i], names[j]), (i, j), (first, second), weights, entry["deviation"])


def _cut_of(entry: dict[str, Any]) -> Cut:
    if "levels" in entry:
        return Cut(None, len(entry["levels"]), tuple(entry["levels"]))
    edges = np.array(entry["edges"], dtype=float)
    return Cut(edges, edges.size + 1)


def load_model(path: PathLike) -> Model:
    """Read a `Model`.

    Raises
    ------
    InputError
        The file cannot be read, is not a model file, is damaged, or of another format.
    """
    description, arrays = _FILE.read(path)
    for values in arrays.values():
        if not np.isfinite(values).all():
            raise _FILE.damaged(path, "a coefficient is not finite")
    try:
        entries = {name: description[name] for name in _ENTRIES}
        for name in ("feature_names", "monotonic_cst", "label_gain"):
            if isinstance(entries[name], list):
                entries[name] = tuple(entries[name])
        names = entries["feature_names"] or tuple(f"x{j}" for j in range(description["n_features"]))
        others = description["other_terms"]
        function = AdditiveFunction(
            curves=tuple(_curves_of(arrays, names)),
            of_levels=tuple(_levels_of(x, names) for x in others if x["kind"] == "levels"),
            pairs=tuple(_pair_of(x, names) for x in others if x["kind"] == "pair"),
        )
        return Model(function=function, fill=arrays.get("fill"), **entries)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _FILE.damaged(path, f"bad or missing entry ({error})") from None


_FORMULA = (
    "A score is the sum of weights[column] * x, or of the terms. A curve is linear between its "
    "values at the knots, and goes on beyond them with its slope (0: flat). A missing value adds "
    "gap instead; with missing = lowest, gap on top of what the lowest value of the list adds, of "
    "columns in falling the highest. A value that is none of the levels adds 0. A pair adds "
    "weights[i][j]: of numbers i is how many edges are at or below x, of levels the place of the "
    "level; the last is that of a missing value."
)

# --- other formats ------------------------------------------------------------------------------


def weights_of(model: Model) -> dict[str, Any]:
    """A model as names and numbers that JSON can say; features without names are x0, x1, ..

    Where all terms are lines and nothing was missing, `weights` has one for each column. Else
    `terms` has what `Term.description` says of each. Of a model of one list with ``missing =
    "lowest"``, `lowest` has what stands in for a missing value.
    """
    names = model.names
    function = model.function
    entries: dict[str, Any] = {"formula": _FORMULA}
    if function.lines is not None and np.isnan(function.gaps).all():
        entries["weights"] = dict(zip(names, function.lines.tolist(), strict=True))
    else:
        entries["terms"] = [term.renamed(names).description() for term in function.terms]
    if model.fill is not None:
        entries["lowest"] = dict(zip(names, model.fill.tolist(), strict=True))
    entries |= {
        "k": int(model.k),
        "surrogate": model.surrogate,
        "depth": model.depth,
        "user_weight": model.user_weight,
        "relevance_threshold": model.relevance_threshold,
        "label_gain": model.label_gain,
        "standardized": model.standardized,
        "scale_rule": model.scale_rule,
        "positive": model.positive,
        "falling": [names[j] for j in model.falling],
        "missing": model.missing,
        "solver": model.solver,
        "alpha": float(model.alpha),
        "certificate": model.certificate,
    }
    return entries
