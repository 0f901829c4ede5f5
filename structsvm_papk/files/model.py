"""Model files: one array and a JSON description in the safetensors layout, see `tensors`.

For programs that know nothing of this package a model is written as ONNX, and as plain JSON.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import PathLike
from structsvm_papk._version import __version__
from structsvm_papk.data.column_scale import ScaleRule
from structsvm_papk.data.curves import Knots
from structsvm_papk.data.features import check_matrix, reported_scores
from structsvm_papk.data.grades import check_label_gain
from structsvm_papk.data.missing import (
    Completed,
    LowestInTraining,
    completed_rows,
    filled_lists,
)
from structsvm_papk.data.ranking_data import RankingData
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

_FILE = TensorFile("model", version=6)
_DTYPES = ("float64", "float32")
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
    "n_iter": {"least": 0},
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A trained ranker: a row scores ``x . coef``, or the sum of a curve for each column.

    There is no intercept: ranking ignores it.

    Examples
    --------
    >>> model = load_model("ranker.model")  # doctest: +SKIP
    >>> model.top(frame, n=3)  # the top-3 of each user  # doctest: +SKIP

    Attributes
    ----------
    coef : ndarray of float64, shape (n_features,)
        With `knots` the weights of the straight part of each column and, behind them, of the
        pieces, see `data.curves`.
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
        sparse X, the root of their mean variance within users. `coef` is in the columns' own units
        in any case.
    package_version : str
        The version that wrote the file.
    positive : bool
        Whether the certificate is of the problem with weights >= 0.
    missing_coef : ndarray of float64, shape (n_features,), or None
        What a hole (NaN) in each column adds to a score, beside `coef` times the lowest of its
        column in its list; None: X has no holes.
    one_list : LowestInTraining or None
        With holes, of a model of one list: the lowest values of its columns in training, which fill
        the holes of further rows, each by itself.
    knots : Knots or None
        Where the curves of the columns may change their slope; None: the columns are lines.
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
    label_gain: Any = None
    depth: int | float | None = None
    user_weight: str = "equal"
    scale_rule: str | None = None
    package_version: str = ""
    positive: bool = False
    missing_coef: np.ndarray | None = None
    one_list: LowestInTraining | None = None
    knots: Knots | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        if self.knots is None:
            return self.coef.size
        return self.knots.n_columns

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns; x0, x1, .. where they have none."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def standardized(self) -> bool:
        """Whether alpha and the certificate are of divided columns."""
        return self.scale_rule is not None

    @property
    def missing(self) -> str | None:
        """What holes count: 'lowest', or None where X has none."""
        return None if self.missing_coef is None else "lowest"

    @property
    def needs_lists(self) -> bool:
        """Whether the score of a row depends on the others of its list."""
        return self.one_list is None and self.missing is not None

    def in_columns(self, lists: RankingData) -> RankingData:
        """Lists with the columns that `list_weights` are of."""
        every_column = np.arange(self.n_features)
        filled = filled_lists(lists, self.missing, every_column, self.one_list)
        if self.knots is None:
            return filled
        return filled.with_curves(self.knots.with_lines(filled.n_features - self.n_features))

    def list_weights(self) -> np.ndarray:
        """Weights of `in_columns`: of the columns, of "is there" for each, and of pieces."""
        if self.missing_coef is None:
            return self.coef
        n_features = self.n_features
        parts = self.coef[:n_features], -self.missing_coef, self.coef[n_features:]
        return np.concatenate(parts)

    def predict(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """Scores, shape (n_rows,); larger ranks higher.

        Parameters
        ----------
        X : array-like, data frame (pandas, polars) or CSR of shape (n_rows, n_features)
            Of a frame the model takes its features by name, if it names them.
        groups : array-like of shape (n_rows,) or 'one_list', optional
            User of each row, for a model with `missing_coef` that is not of one list; of a user
            all rows have to be there.

        Warns
        -----
        DegenerateOptimumWarning
            All weights are zero.

        Raises
        ------
        InputError
            A feature is missing, or not a finite number; another number of columns; no groups.
        """
        if not self.list_weights().any():
            warn(
                f"every score is 0: all weights of this model are, as w = 0 is the optimum of "
                f"{self.surrogate} at depth {self.depth or self.k} on its training data",
                DegenerateOptimumWarning,
            )
        completed = self._completed(X, groups)
        weights = completed.weights(self.coef, self.missing_coef)
        return reported_scores(completed.columns(self.knots), weights)

    def contributions(self, X: Any, groups: ArrayLike | None = None) -> np.ndarray:
        """What each column adds to each score, as `PAPKRanker.contributions`."""
        completed = self._completed(X, groups)
        return completed.contributions(self.knots, self.coef, self.missing_coef)

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

    def _completed(self, X: Any, groups: ArrayLike | None) -> Completed:
        """The columns of the model, checked, without holes."""
        return completed_rows(self._features(X), groups, self.missing, self.one_list)

    def _features(self, X: Any) -> Any:
        """The columns of the model, checked."""
        columns = getattr(X, "columns", None)
        if columns is not None and self.feature_names is not None:
            for name in self.feature_names:
                if list(columns).count(name) != 1:
                    raise InputError(
                        f"X must have one column {name!r}, a feature of the model "
                        f"({listed(self.feature_names)})"
                    )
            X = X[list(self.feature_names)]
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
    entries = asdict(model) | {"package_version": model.package_version or __version__}
    del entries["one_list"], entries["knots"]
    arrays = {"coef": entries.pop("coef")}
    if model.knots is not None:
        arrays["knots"] = model.knots.positions
        arrays["knot_starts"] = model.knots.starts
    missing_coef = entries.pop("missing_coef")
    if missing_coef is not None:
        arrays["missing_coef"] = missing_coef
    if model.one_list is not None:
        arrays["lowest"] = model.one_list.lowest
    entries |= {"k": int(model.k), "alpha": float(model.alpha)}
    write_atomically(path, _FILE.encoded(entries, arrays))


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
    coef = arrays.pop("coef", None)
    if coef is None or coef.ndim != 1 or not coef.size:
        raise _FILE.damaged(path, "it does not hold one vector of coefficients")
    missing_coef = arrays.pop("missing_coef", None)
    try:
        knots = _knots(arrays, coef.size)
        n_features = coef.size if knots is None else knots.n_columns
        if missing_coef is not None and missing_coef.shape != (n_features,):
            raise ValueError("missing_coef must be a number for every column")
        return Model(
            coef=coef.astype(float),
            missing_coef=missing_coef,
            one_list=_one_list(arrays, n_features),
            knots=knots,
            **_checked(description, n_features),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _FILE.damaged(path, f"bad or missing entry ({error})") from None


def _knots(arrays: dict[str, np.ndarray], n_weights: int) -> Knots | None:
    """The knots of curves, of the arrays of a file."""
    positions = arrays.pop("knots", None)
    starts = arrays.pop("knot_starts", None)
    if positions is None or starts is None:
        if positions is not None or starts is not None:
            raise ValueError("knots and knot_starts must both be there, or neither")
        return None
    whole = starts.ndim == 1 and starts.size > 1 and starts.dtype.kind == "i"
    if positions.shape != (n_weights,) or not whole or starts[0] != 0 or starts[-1] != n_weights:
        raise ValueError("knots must be one or more for every column, and coef one for each knot")
    knots = Knots(positions.astype(float), starts.astype(np.int64))
    if (np.diff(starts) < 1).any() or (knots.widths <= 0.0).any():
        raise ValueError("the knots of a column must increase")
    return knots


def _one_list(arrays: dict[str, np.ndarray], n_features: int) -> LowestInTraining | None:
    """The lowest values of one list in training, of the arrays of a file beside weights."""
    if not arrays:
        return None
    lowest = arrays.pop("lowest")
    if arrays or lowest.shape != (n_features,):
        raise ValueError("lowest must be a value for every column, and nothing else beside it")
    return LowestInTraining(lowest)


def _checked(description, n_features):
    """The fields of a `Model` that a file has, each of a type and in a range."""
    arrays = ("coef", "missing_coef", "one_list", "knots")
    names = [field.name for field in fields(Model) if field.name not in arrays]
    entries = {name: description[name] for name in names}
    entries["certificate"] = {name: description["certificate"][name] for name in _CERTIFICATE}
    values = entries | entries["certificate"]
    for name in values.keys() & _TYPES.keys():
        check_type(name, values[name], _TYPES[name], f"of type {_TYPES[name].__name__}")
    for name, bounds in _NUMBERS.items():
        check_number(name, values[name], **bounds)
    feature_names = values["feature_names"]
    if feature_names is not None:
        entries["feature_names"] = as_names("feature_names", feature_names, str)
        n_names = len(set(feature_names))
        if not isinstance(feature_names, list) or not len(feature_names) == n_names == n_features:
            raise ValueError(f"feature_names must be a list of {n_features} different names")
    rule = values["scale_rule"]
    if rule is not None:
        entries["scale_rule"] = ScaleRule(rule).value
    if values["label_gain"] is not None:
        entries["label_gain"] = check_label_gain(values["label_gain"])
    return entries


# --- other formats ------------------------------------------------------------------------------

# of 2021: read by everything since
_OPSET = 13
_IR = 8


def weights_of(model: Model) -> dict[str, Any]:
    """A model as names and numbers that JSON can say; features without names are x0, x1, ..

    Of lines `weights` has one for each column. Of curves `curves` has for each column `knots`, the
    `values` of its function there, which is linear between them, and its `slope` beyond them.
    Of a model of one list with holes `lowest` has what a hole counts.
    """
    names = model.names
    entries: dict[str, Any] = {}
    if model.knots is None:
        entries["weights"] = dict(zip(names, model.coef.tolist(), strict=True))
    else:
        curves = model.knots.curves(model.coef, names, np.zeros(model.n_features))
        entries["curves"] = {
            curve.name: {
                "knots": curve.knots.tolist(),
                "values": curve.values.tolist(),
                "slope": curve.slope,
            }
            for curve in curves
        }
    if model.missing_coef is not None:
        entries["missing_weights"] = dict(zip(names, model.missing_coef.tolist(), strict=True))
    if model.one_list is not None:
        entries["lowest"] = dict(zip(names, model.one_list.lowest.tolist(), strict=True))
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
        "missing": model.missing,
        "solver": model.solver,
        "alpha": float(model.alpha),
        "certificate": model.certificate,
    }
    return entries


def write_onnx(path: PathLike, model: Model, dtype: str = "float64") -> None:
    """Write a graph: input ``X`` (rows, features), output ``scores`` (rows,).

    Plain models are one product. With `missing` the score of a row depends on the others of its
    list: X holds the rows of *one list*, and holes are NaN; its first dimension is called
    `rows_of_one_list`. Models of one list score each row by itself. The metadata ``structsvm_papk``
    holds what `weights_of` gives, without the weights, and the names of the features in their
    order.

    Raises
    ------
    InputError
        onnx is missing; weights outside the range of `dtype`.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise InputError("to_onnx needs onnx: pip install 'structsvm-papk[onnx]'") from None
    check_choice("dtype", dtype, _DTYPES)
    element_type = TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT
    metadata = weights_of(model)
    for long in ("weights", "curves"):
        metadata.pop(long, None)
    metadata["feature_names"] = list(model.names)
    graph = _Graph(dtype)
    columns = "X"
    if model.missing is not None:
        columns = graph.without_holes(columns, model.one_list)
    terms = graph.lines(columns, model)
    if model.knots is not None and model.knots.widths.size:
        terms.append(graph.pieces(columns, model))
    if model.missing_coef is not None:
        is_hole = graph.add("IsNaN", "X")
        holes = graph.add("Cast", is_hole, to=element_type)
        missing_coef = graph.constant(_as_type(model, model.missing_coef, dtype))
        terms.append(graph.add("MatMul", holes, missing_coef))
    graph.add("Sum", *terms, output="scores")
    rows = "rows"
    if model.needs_lists:
        rows = "rows_of_one_list"
    nodes = [
        helper.make_node(node.operator, node.inputs, [node.output], **node.attributes)
        for node in graph.nodes
    ]
    onnx_model = helper.make_model(
        helper.make_graph(
            nodes=nodes,
            name="structsvm_papk",
            inputs=[helper.make_tensor_value_info("X", element_type, [rows, model.n_features])],
            outputs=[helper.make_tensor_value_info("scores", element_type, [rows])],
            initializer=[
                numpy_helper.from_array(value, name) for name, value in graph.constants.items()
            ],
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="structsvm-papk",
    )
    helper.set_model_props(onnx_model, {"structsvm_papk": json.dumps(metadata)})
    write_atomically(path, onnx_model.SerializeToString())


class _Node(NamedTuple):
    """A node of an ONNX graph: an operator, and the names of what it reads and what it gives."""

    operator: str
    inputs: list[str]
    output: str
    attributes: dict[str, Any]


class _Graph:
    """The nodes of an ONNX graph as they are added, and its constants, of one type."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.nodes: list[_Node] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(_Node(operator, list(inputs), output, attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, self.dtype)
        return name

    def lines(self, X: str, model: Model) -> list[str]:
        """The straight parts, as terms of the score."""
        coef = self.constant(_as_type(model, model.coef[: model.n_features], self.dtype))
        if model.knots is not None:
            X = self.add("Sub", X, self.constant(model.knots.first))
        return [self.add("MatMul", X, coef)]

    def pieces(self, X: str, model: Model) -> str:
        """``sum_b w_b clip((x - t_b) / (t_{b+1} - t_b), 0, 1)``, over the pieces of all columns."""
        knots = model.knots
        assert knots is not None
        positions = knots.positions.astype(self.dtype)
        left = positions[knots.left]
        widths = positions[knots.left + 1] - left
        if (widths <= 0.0).any():
            name = model.names[knots.column_of_piece[np.argmin(widths)]]
            raise InputError(
                f"two knots of column {name!r} are the same in {self.dtype}: use dtype='float64'"
            )
        column = self.add("Constant", value_ints=knots.column_of_piece.tolist())
        gathered = self.add("Gather", X, column, axis=1)
        distance = self.add("Sub", gathered, self.constant(left))
        share = self.add("Div", distance, self.constant(widths))
        clipped = self.add("Clip", share, self.constant(0.0), self.constant(1.0))
        return self.add("MatMul", clipped, self.constant(model.coef[model.n_features :]))

    def without_holes(self, X: str, one_list: LowestInTraining | None) -> str:
        """The lowest of each column, of one list in training, in place of NaN; 0 without any."""
        is_hole = self.add("IsNaN", X)
        if one_list is not None:
            return self.add("Where", is_hole, self.constant(one_list.lowest), X)
        or_infinity = self.add("Where", is_hole, self.constant(np.inf), X)
        lowest = self.add("ReduceMin", or_infinity, axes=[0], keepdims=1)
        all_holes = self.add("IsInf", lowest)
        instead = self.add("Where", all_holes, self.constant(0.0), lowest)
        return self.add("Where", is_hole, instead, X)


def _as_type(model, weights, dtype):
    """Weights in another precision, in which all of them have to be the same numbers."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = weights.astype(dtype)
        bad = ~(np.abs(rounded - weights) <= 1e-6 * np.abs(weights))
    if bad.any():
        j = int(np.argmax(bad))
        raise InputError(
            f"the weight of feature {model.names[j]!r} is "
            f"{weights[j]:g}, outside the range of {dtype}: use dtype='float64', or scale the "
            "feature"
        )
    return rounded
