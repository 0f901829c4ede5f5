"""Models for programs that know nothing of this package: ONNX, and plain JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.model import Model

_OPSET, _IR = 13, 8  # of 2021: read by everything since
_DTYPES = ("float64", "float32")


def weights_of(model: Model) -> dict[str, Any]:
    """A model as names and numbers that JSON can say; features without names are x0, x1, .."""
    names = model.feature_names or tuple(f"x{j}" for j in range(model.n_features))
    return {
        "weights": dict(zip(names, model.coef.tolist(), strict=True)),
        "k": int(model.k),
        "surrogate": model.surrogate,
        "depth": model.depth,
        "user_weight": model.user_weight,
        "standardized": model.standardized,
        "user_scaling": model.user_scaling,
        "alpha": float(model.alpha),
        "certificate": model.certificate,
    }


def write_onnx(path: PathLike, model: Model, dtype: str = "float64") -> None:
    """Write a graph of one product: input ``X`` (rows, features), output ``scores`` (rows,).

    The metadata ``structsvm_papk`` holds what `weights_of` gives, without the weights, and the
    names of the features in their order.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise InputError("to_onnx needs onnx: pip install 'structsvm-papk[onnx]'") from None
    check_choice("dtype", dtype, _DTYPES)
    coef = _as_type(model, dtype)
    kind = TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT
    about = weights_of(model)
    about["feature_names"] = list(about.pop("weights"))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "coef"], ["scores"])],
        "structsvm_papk",
        [helper.make_tensor_value_info("X", kind, ["rows", model.n_features])],
        [helper.make_tensor_value_info("scores", kind, ["rows"])],
        [numpy_helper.from_array(coef, "coef")],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    made = helper.make_model(
        graph, opset_imports=opsets, ir_version=_IR, producer_name="structsvm-papk"
    )
    helper.set_model_props(made, {"structsvm_papk": json.dumps(about)})
    write_atomically(path, made.SerializeToString())


def _as_type(model, dtype):
    """The weights in another precision, in which all of them have to be the same numbers."""
    with np.errstate(over="ignore", under="ignore"):
        coef = model.coef.astype(dtype)
        bad = ~(np.abs(coef - model.coef) <= 1e-6 * np.abs(model.coef))
    if bad.any():
        j = int(np.argmax(bad))
        raise InputError(
            f"the weight of feature {list(weights_of(model)['weights'])[j]!r} is "
            f"{model.coef[j]:g}, outside the range of {dtype}: use dtype='float64', or scale the "
            "feature"
        )
    return coef
