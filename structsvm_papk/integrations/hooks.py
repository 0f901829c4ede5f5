"""The metrics as callables for other libraries' training loops, so that they drive early stopping.

Each maker takes a metric name and the options of `evaluate`. The value is the mean over users by
the table's rule. Rows of a user must be adjacent, as these libraries demand.

============ =====================================================================================
LightGBM     `lightgbm_eval_metric` for `LGBMRanker.fit(eval_metric=..)`, `lightgbm_feval` for
             `lightgbm.train(feval=..)`
XGBoost      `xgboost_custom_metric` for `xgboost.train(custom_metric=..)` with
             `EarlyStopping(maximize=True)`
============ =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.table import evaluate


def _mean(
    name: str, scores: Array, labels: Array, sizes: ArrayLike, options: Mapping[str, Any]
) -> float:
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return evaluate([name], scores, labels, indptr=bounds, **options).mean(name)


def lightgbm_eval_metric(name: str, **options: Any) -> Callback:
    """Callable (y_true, y_pred, weight, group) -> (name, value, True): higher is better."""

    def eval_metric(
        y_true: Array, y_pred: Array, weight: Array | None, group: Array
    ) -> tuple[str, float, bool]:
        if group is None:
            raise InputError("the metric needs groups; use LGBMRanker with group and eval_group")
        return name, _mean(name, y_pred, y_true, group, options), True

    return eval_metric


def lightgbm_feval(name: str, **options: Any) -> Callback:
    """Callable (preds, eval_data) -> (name, value, True): higher is better."""

    def feval(preds: Array, eval_data: Any) -> tuple[str, float, bool]:
        sizes = eval_data.get_group()
        if sizes is None:
            raise InputError("the metric needs groups; give Dataset(.., group=sizes)")
        value = _mean(name, preds, eval_data.get_label(), sizes, options)
        return name, value, True

    return feval


def xgboost_custom_metric(name: str, **options: Any) -> Callback:
    """Callable (predt, dmatrix) -> (name, value) for `xgboost.train`."""

    def custom_metric(predt: Array, dmatrix: Any) -> tuple[str, float]:
        bounds = dmatrix.get_uint_info("group_ptr")
        if bounds.size < 2:
            raise InputError("the metric needs groups; give DMatrix(.., qid=users)")
        return name, _mean(name, predt, dmatrix.get_label(), np.diff(bounds), options)

    return custom_metric
