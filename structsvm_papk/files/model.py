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

from structsvm_papk._types import Array, PathLike
from structsvm_papk._version import __version__
from structsvm_papk.data.columns.additive import AdditiveFunction, FilledRows
from structsvm_papk.data.columns.checks import LOWEST, MISSING, as_frame, check_matrix
from structsvm_papk.data.columns.tables import in_numbers
from structsvm_papk.data.columns.terms import Curve, Cut, Levels, Pair, Term
from structsvm_papk.data.columns.units import ScaleRule
from structsvm_papk.data.grades import check_label_gain
from structsvm_papk.data.missing import Filling, falling_columns
from structsvm_papk.data.roles import listed
from structsvm_papk.data.top import ids_of, top_rows
from structsvm_papk.errors import (
    DegenerateOptimumWarning,
    InputError,
    as_names,
    check_choice,
    check_number,
    check_type,
    warn,
    whole_number,
)
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.tensors import TensorFile

if TYPE_CHECKING:
    import pandas as pd

_FILE = TensorFile("model", version=8)
_SHOWN_TERMS = 6  # by `repr`, those that move scores most
_CERTIFICATE = ("objective", "lower_bound", "gap", "status", "converged", "n_iter")
_TYPES = {
    **dict.fromkeys(("surrogate", "solver", "user_weight", "package_version", "status"), str),
    **dict.fromkeys(("converged", "positive"), bool),
    **dict.fromkeys(("k", "n_iter"), int),
}
_NUMBERS: dict[str, dict[str, Any]] = {
    "k": {"least": 1, "below": 2**63}, "alpha": {"least": 0.0},
    "depth": {"above": 0, "optional": True}, "relevance_threshold": {"optional": True},
    "first_index": {"least": 0, "below": 2**63, "optional": True},
    "objective": {}, "lower_bound": {"optional": True}, "gap": {"optional": True},
    "n_iter": {"least": 0}, "stiffness": {"above": 0},
    "curves": {"least": 1, "optional": True},
}  # fmt: skip


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
            `metrics.evaluate_recommendations` reads it as it is.

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


def save_model(path: PathLike, model: Model) -> None:
    """Write a `Model`; an existing file is replaced in one step or kept."""
    entries = {field.name: getattr(model, field.name) for field in fields(Model)}
    entries["package_version"] = model.package_version or __version__
    function = entries.pop("function")
    arrays = _arrays_of(function)
    entries["n_features"] = function.n_columns
    entries["other_terms"] = list(map(_entry_of, (*function.of_levels, *function.pairs)))
    fill = entries.pop("fill")
    if fill is not None:
        arrays["fill"] = fill
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
    columns = arrays.pop("columns")
    starts = arrays.pop("knot_starts")
    knots = arrays.pop("knots").astype(float)
    values = arrays.pop("values").astype(float)
    slopes, deviations, has_gap, gaps = (
        arrays.pop(name) for name in ("slopes", "deviations", "has_gap", "gaps")
    )
    n = columns.size
    same = all(array.shape == (n,) for array in (columns, slopes, deviations, has_gap, gaps))
    whole = all(array.dtype.kind == "i" for array in (columns, starts, has_gap))
    if not (same and whole and starts.shape == (n + 1,) and knots.shape == values.shape):
        raise ValueError("a slope, a deviation and a gap for every curve")
    if starts[0] != 0 or starts[-1] != knots.size or (np.diff(starts) < 1).any():
        raise ValueError("knot_starts must say which knots every curve has, one or more")
    if n and (columns.min() < 0 or columns.max() >= len(names)):
        raise ValueError("a curve is of no column")
    if (deviations < 0.0).any() or not np.isin(has_gap, [0, 1]).all():
        raise ValueError("deviations must be 0 or above, has_gap 0 or 1")
    curves = []
    for i, j in enumerate(columns.tolist()):
        own = slice(starts[i], starts[i + 1])
        if (np.diff(knots[own]) <= 0.0).any():
            raise ValueError("the knots of a column must increase")
        gap = float(gaps[i]) if has_gap[i] else None
        curves.append(
            Curve(names[j], j, knots[own], values[own], float(slopes[i]), float(deviations[i]), gap)
        )
    return curves


def _entry_of(term: Term) -> dict[str, Any]:
    """A term that is no curve, as JSON says it; of its columns the numbers."""
    return {
        **term.description(),
        "columns": list(term.columns),
        "deviation": term.deviation,
    }


def _term_of(entry: dict[str, Any], names: tuple[str, ...]) -> Term:
    """A term that is no curve, of its entry in a file; each part of a type and in a range."""
    columns = tuple(entry["columns"])
    if not all(type(j) is int and 0 <= j < len(names) for j in columns):
        raise ValueError("a term is of no column")
    check_number("deviation", entry["deviation"], least=0.0)
    weights = np.array(entry["weights"])
    if weights.size and (weights.dtype.kind not in "if" or not np.isfinite(weights).all()):
        raise ValueError("a term must have finite weights")
    term: Term = _KINDS[entry["kind"]](entry, columns, names, weights.astype(float))
    return term


def _levels_of(entry: Any, columns: tuple[int, ...], names: Any, weights: Array) -> Levels:
    levels = entry["levels"]
    plain = isinstance(levels, list) and {type(x) for x in levels} <= {str, bool, int, float}
    if not plain or len(set(levels)) < len(levels):
        raise ValueError("levels must be a list of different texts, numbers or booleans")
    if len(columns) != 1 or weights.shape != (len(levels),):
        raise ValueError("a column, and a weight for every level")
    check_number("gap", entry["gap"], optional=True)
    j = columns[0]
    return Levels(names[j], j, tuple(levels), weights, float(entry["deviation"]), entry["gap"])


def _pair_of(entry: Any, columns: tuple[int, ...], names: Any, weights: Array) -> Pair:
    cuts = tuple(_cut_of(cut) for cut in entry["cells"])
    shape = tuple(cut.n_cells + 1 for cut in cuts)
    if len(set(columns)) != 2 or len(columns) != 2 or weights.shape != shape or len(cuts) != 2:
        raise ValueError("two columns, and a weight for every cell")
    own = names[columns[0]], names[columns[1]]
    return Pair(own, (columns[0], columns[1]), cuts, weights, float(entry["deviation"]))


_KINDS = {"levels": _levels_of, "pair": _pair_of}


def _cut_of(entry: dict[str, Any]) -> Cut:
    if "levels" in entry:
        return Cut(None, len(entry["levels"]), tuple(entry["levels"]))
    edges = np.array(entry["edges"], dtype=float)
    if not np.isfinite(edges).all() or (np.diff(edges) <= 0.0).any():
        raise ValueError("edges that increase")
    return Cut(edges, edges.size + 1)


def _function_of(
    curves: Sequence[Curve], of_levels: Sequence[Levels], pairs: Sequence[Pair]
) -> AdditiveFunction:
    """A term for every column, and those of two; cells are of what is there."""
    function = AdditiveFunction(tuple(curves), tuple(of_levels), tuple(pairs))
    if [term.columns for term in function.of_columns] != [(j,) for j in range(function.n_columns)]:
        raise ValueError("a term for every column")
    if len({pair.columns for pair in pairs}) < len(pairs):
        raise ValueError("two pairs are of the same columns")
    levels = function.levels
    for pair in pairs:
        for j, cut in zip(pair.columns, pair.cuts, strict=True):
            names = levels.get(j)
            is_number = names is None and cut.edges is not None
            is_level = names == cut.names and cut.edges is None
            if not (is_number or is_level):
                raise ValueError("a cell for every level")
    return function


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
        n_features = whole_number("n_features", description["n_features"])
        entries = _checked(description, n_features)
        names = entries["feature_names"] or tuple(f"x{j}" for j in range(n_features))
        curves = _curves_of(arrays, names)
        others: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
        for entry in description["other_terms"]:
            others[entry["kind"]].append(_term_of(entry, names))
        fill = arrays.pop("fill", None)
        if arrays or (fill is not None and fill.shape != (n_features,)):
            raise ValueError("fill must be a value for every column, and nothing else beside it")
        function = _function_of(curves, others["levels"], others["pair"])
        if function.n_columns != n_features:
            raise ValueError(f"{n_features} columns")
        return Model(function=function, fill=fill, **entries)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _FILE.damaged(path, f"bad or missing entry ({error})") from None


def _checked(description, n_features):
    """The fields of a `Model` that a file has, each of a type and in a range."""
    names = [field.name for field in fields(Model) if field.name not in ("function", "fill")]
    entries = {name: description[name] for name in names}
    entries["certificate"] = {name: description["certificate"][name] for name in _CERTIFICATE}
    values = entries | entries["certificate"]
    for name in values.keys() & _TYPES.keys():
        check_type(name, values[name], _TYPES[name], f"of type {_TYPES[name].__name__}")
    for name, bounds in _NUMBERS.items():
        check_number(name, values[name], **bounds)
    feature_names = values["feature_names"]
    if feature_names is not None:
        check_type("feature_names", feature_names, list, "a list")
        entries["feature_names"] = as_names("feature_names", feature_names, str)
        if not len(feature_names) == len(set(feature_names)) == n_features:
            raise ValueError(f"feature_names must be a list of {n_features} different names")
    rule = values["scale_rule"]
    if rule is not None:
        entries["scale_rule"] = ScaleRule(rule).value
    if values["missing"] is not None:
        check_choice("missing", values["missing"], MISSING)
    signs = values["monotonic_cst"]
    if signs is not None:
        if list(map(type, signs)) != [int] * n_features or not set(signs) <= {-1, 0, 1}:
            raise ValueError(f"monotonic_cst must be {n_features} of 1, -1 and 0")
        entries["monotonic_cst"] = tuple(signs)
    if values["label_gain"] is not None:
        entries["label_gain"] = check_label_gain(values["label_gain"])
    return entries


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
