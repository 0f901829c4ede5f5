"""Models as ONNX graphs, for programs that know nothing of this package."""

from __future__ import annotations

import json
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.columns.checks import LOWEST
from structsvm_papk.data.columns.terms import Cut, Levels, Pair, Term
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import Model, weights_of

_DTYPES = ("float64", "float32")
# of 2021: read by everything since
_OPSET = 13
_IR = 8


def write_onnx(path: PathLike, model: Model, dtype: str = "float64") -> None:
    """Write a graph: input ``X`` (rows, features), output ``scores`` (rows,).

    A missing value is NaN, and a column of levels holds the place of each value among them, -1 for
    a value that is none of them. With ``missing="lowest"`` the score of a row depends on the others
    of its list: X holds the rows of *one list*, and its first dimension is called
    `rows_of_one_list`. Models of one list score each row by itself. Else NaN in a column of numbers
    that had none in training makes the score NaN. The metadata ``structsvm_papk``
    holds what `weights_of` gives, without the weights of lines, and the names of the features in
    their order.

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
    metadata.pop("weights", None)
    metadata["feature_names"] = list(model.names)
    graph = _Graph(dtype, element_type)
    graph.add("Sum", *_terms(graph, model), output="scores")
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

    def __init__(self, dtype: str, element_type: int) -> None:
        self.dtype = dtype
        self.element_type = element_type
        self.nodes: list[_Node] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(_Node(operator, list(inputs), output, attributes))
        return output

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, self.dtype if dtype is None else dtype)
        return name

    def column(self, X: str, j: int) -> str:
        """One column of X, a vector."""
        return self.add("Gather", X, self.constant(j, np.int64), axis=1)

    def number(self, condition: str) -> str:
        """1 where a condition holds, else 0."""
        return self.add("Cast", condition, to=self.element_type)


def _terms(graph: _Graph, model: Model) -> list[str]:
    """What is added up: lines in one product, pieces of all curves in another, and the others."""
    curves = model.function.curves
    n = model.n_features
    is_hole = graph.add("IsNaN", "X")
    X = _filled(graph, model, is_hole)
    slopes = np.zeros(n)
    origins = np.zeros(n)
    gaps = np.zeros(n)
    for curve in curves:
        slopes[curve.column] = curve.slope
        origins[curve.column] = curve.knots[0]
        gaps[curve.column] = curve.gap or 0.0
    away = graph.add("Sub", X, graph.constant(_as_type(model, origins, graph.dtype)))
    parts = [graph.add("MatMul", away, graph.constant(_as_type(model, slopes, graph.dtype)))]
    if any(not curve.is_line for curve in curves):
        parts.append(_pieces(graph, X, model))
    if gaps.any():
        holes = graph.number(is_hole)
        weights = graph.constant(_as_type(model, gaps, graph.dtype))
        parts.append(graph.add("MatMul", holes, weights))
    function = model.function
    parts += [_look_up(term, graph) for term in (*function.of_levels, *function.pairs)]
    return parts


def _filled(graph: _Graph, model: Model, is_hole: str) -> str:
    """X with numbers in place of NaN: of one list the lowest; else where the term is 0.

    Columns that fall are turned first: of them it is the highest. NaN that training did not know
    stays, and so there is no score.
    """
    instead = np.zeros(model.n_features)
    for curve in model.function.curves:
        instead[curve.column] = np.nan if curve.gap is None else curve.knots[0]
    if model.missing != LOWEST:
        return graph.add("Where", is_hole, graph.constant(instead), "X")
    if model.fill is not None:
        return graph.add("Where", is_hole, graph.constant(model.fill), "X")
    signs = np.ones(model.n_features)
    signs[model.falling] = -1.0
    turned = graph.add("Mul", "X", graph.constant(signs))
    or_infinity = graph.add("Where", is_hole, graph.constant(np.inf), turned)
    lowest = graph.add("ReduceMin", or_infinity, axes=[0], keepdims=1)
    all_holes = graph.add("IsInf", lowest)
    or_zero = graph.add("Where", all_holes, graph.constant(0.0), lowest)
    of_list = graph.add("Mul", or_zero, graph.constant(signs))
    return graph.add("Where", is_hole, of_list, "X")


def _pieces(graph: _Graph, X: str, model: Model) -> str:
    """``sum_i (f(t_{i+1}) - f(t_i)) clip((x - t_i) / (t_{i+1} - t_i), 0, 1)`` of all curves."""
    columns: list[int] = []
    left: list[Array] = []
    widths: list[Array] = []
    rises: list[Array] = []
    for curve in model.function.curves:
        knots = curve.knots.astype(graph.dtype)
        if (np.diff(knots) <= 0.0).any():
            raise InputError(
                f"two knots of column {curve.name!r} are the same in {graph.dtype}: use "
                "dtype='float64'"
            )
        columns += [curve.column] * (knots.size - 1)
        left.append(knots[:-1])
        widths.append(np.diff(knots))
        rises.append(np.diff(curve.values))
    gathered = graph.add("Gather", X, graph.constant(columns, np.int64), axis=1)
    distance = graph.add("Sub", gathered, graph.constant(np.concatenate(left)))
    share = graph.add("Div", distance, graph.constant(np.concatenate(widths)))
    clipped = graph.add("Clip", share, graph.constant(0.0), graph.constant(1.0))
    return graph.add("MatMul", clipped, graph.constant(np.concatenate(rises)))


@singledispatch
def _look_up(term: Term, graph: _Graph) -> str:
    """The weights of a term that is a table."""
    raise NotImplementedError


@_look_up.register
def _(term: Levels, graph: _Graph) -> str:
    table = np.concatenate([term.weights, [term.gap or 0.0, 0.0]])
    place = _places(graph, graph.column("X", term.column), len(term.levels))
    return graph.add("Gather", graph.constant(table), place, axis=0)


@_look_up.register
def _(term: Pair, graph: _Graph) -> str:
    first, second = (
        _cells(graph, graph.column("X", j), cut)
        for j, cut in zip(term.columns, term.cuts, strict=True)
    )
    n_first, n_second = term.weights.shape
    table = np.zeros((n_first + 1, n_second + 1))  # the last: of no cell
    table[:n_first, :n_second] = term.weights
    row = graph.add("Mul", first, graph.constant(n_second + 1, np.int64))
    place = graph.add("Add", row, second)
    return graph.add("Gather", graph.constant(table.ravel()), place, axis=0)


def _cells(graph: _Graph, values: str, cut: Cut) -> str:
    """The cell of each value: ``n_cells`` where it is missing, one more where it is in none."""
    if cut.edges is None:
        return _places(graph, values, cut.n_cells)
    is_hole = graph.add("IsNaN", values)
    filled = graph.add("Where", is_hole, graph.constant(0.0), values)
    cell = graph.constant(0, np.int64)
    for edge in cut.edges.tolist():
        below = graph.add("Less", filled, graph.constant(edge))
        above = graph.add("Cast", graph.add("Not", below), to=_INT64)
        cell = graph.add("Add", cell, above)
    return graph.add("Where", is_hole, graph.constant(cut.n_cells, np.int64), cell)


_INT64 = 7  # as ONNX numbers types


def _places(graph: _Graph, values: str, n_levels: int) -> str:
    """The place of each level: `n_levels` where it is missing, one more where it is none."""
    is_hole = graph.add("IsNaN", values)
    filled = graph.add("Where", is_hole, graph.constant(float(n_levels)), values)
    unknown = graph.add("Less", filled, graph.constant(0.0))
    place = graph.add("Where", unknown, graph.constant(float(n_levels + 1)), filled)
    return graph.add("Cast", place, to=_INT64)


def _as_type(model: Model, weights: Array, dtype: str) -> Array:
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
