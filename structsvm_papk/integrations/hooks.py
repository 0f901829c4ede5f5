"""The metrics as callables for other libraries' training loops, so that they drive early stopping.

Each maker takes a metric name and the options of `evaluate`. The value is the mean over users by
the table's rule. Rows of a user must be adjacent, as these libraries demand.

============ =====================================================================================
LightGBM     `lightgbm_eval_metric` for `LGBMRanker.fit(eval_metric=..)`, `lightgbm_feval` for
             `lightgbm.train(feval=..)`
XGBoost      `xgboost_custom_metric` for `xgboost.train(custom_metric=..)` with
             `EarlyStopping(maximize=True)`, `xgboost_eval_metric` for `XGBRanker(eval_metric=..)`
CatBoost     `CatBoostMetric` for `CatBoostRanker(eval_metric=..)`
============ =====================================================================================
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.validation import as_array, check_ids, encode
from structsvm_papk.errors import InputError, as_floats, as_names, check_type
from structsvm_papk.metrics.table import evaluate


def _mean(name, scores, labels, sizes, options):
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return evaluate([name], scores, labels, indptr=bounds, **options).mean(name)


def _larger_is_better(options):
    return options.get("gain", True)


def lightgbm_eval_metric(name: str, **options: Any) -> Callback:
    """Callable (y_true, y_pred, weight, group) -> (name, value, is_higher_better)."""

    def eval_metric(y_true, y_pred, weight, group):
        if group is None:
            raise InputError("the metric needs groups; use LGBMRanker with group and eval_group")
        return name, _mean(name, y_pred, y_true, group, options), _larger_is_better(options)

    return eval_metric


def lightgbm_feval(name: str, **options: Any) -> Callback:
    """Callable (preds, eval_data) -> (name, value, is_higher_better)."""

    def feval(preds, eval_data):
        sizes = eval_data.get_group()
        if sizes is None:
            raise InputError("the metric needs groups; give Dataset(.., group=sizes)")
        value = _mean(name, preds, eval_data.get_label(), sizes, options)
        return name, value, _larger_is_better(options)

    return feval


def xgboost_custom_metric(name: str, **options: Any) -> Callback:
    """Callable (predt, dmatrix) -> (name, value) for `xgboost.train`."""

    def custom_metric(predt, dmatrix):
        bounds = dmatrix.get_uint_info("group_ptr")
        if bounds.size < 2:
            raise InputError("the metric needs groups; give DMatrix(.., qid=users)")
        return name, _mean(name, predt, dmatrix.get_label(), np.diff(bounds), options)

    return custom_metric


def xgboost_eval_metric(name: str, **options: Any) -> Callback:
    """Callable (y_true, y_score) -> value of one user, for `XGBRanker`, which averages itself.

    A user that the rules leave out counts 0 here: the library's mean is the mean over the used
    users times their share, so the best iteration is the same. `XGBRanker` minimises callables
    unless the callback `EarlyStopping(maximize=True)` is given.
    """

    check_type("name", name, str, "the name of a metric")

    def eval_metric(y_true, y_score):
        return float(np.nan_to_num(_mean(name, y_score, y_true, [len(y_true)], options)))

    eval_metric.__name__ = name
    return eval_metric


class CatBoostMetric:
    """Metric object for CatBoost, which passes no groups: they are given here.

    Parameters
    ----------
    name : str
    groups : list of array-like
        The `group_id` of every pool that is evaluated, for example [train, valid]; told apart by
        the number of rows, and by the labels where two have as many.
    labels : list of array-like, optional
        Labels of the same pools; needed where two pools have equally many rows.
    **options
        Of `evaluate`.
    """

    no_jit = True

    def __init__(
        self,
        name: str,
        groups: Sequence[Array | Sequence[Any]],
        labels: Sequence[ArrayLike] | None = None,
        **options: Any,
    ) -> None:
        self.name = name
        self.options = options
        ids = [as_array(given, "groups") for given in as_names("groups", groups)]
        self.users = [encode(check_ids(given, given.size))[1] for given in ids]
        self.labels = None
        if labels is not None:
            self.labels = [as_floats("labels", y) for y in as_names("labels", labels)]

    def is_max_optimal(self) -> bool:
        """Whether larger is better."""
        return bool(_larger_is_better(self.options))

    def evaluate(
        self, approxes: Sequence[ArrayLike], target: ArrayLike, weight: ArrayLike | None
    ) -> tuple[float, float]:
        """(value, 1) of one pool."""
        scores, y = np.asarray(approxes[0]), np.asarray(target)
        table = evaluate([self.name], scores, y, self._users_of(y), **self.options)
        return table.mean(self.name), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """The value."""
        return error / weight

    # CatBoost looks for this on each method
    evaluate.no_jit = is_max_optimal.no_jit = get_final_error.no_jit = True  # type: ignore[attr-defined]

    def _users_of(self, target):
        pools = [i for i, users in enumerate(self.users) if users.size == target.size]
        if len(pools) > 1 and self.labels is not None:
            pools = [i for i in pools if np.array_equal(self.labels[i], target)][:1]
        if not pools:
            raise InputError(f"no groups were given for a pool of {target.size} rows")
        if len(pools) > 1:
            raise InputError(f"two pools have {target.size} rows; give labels to tell them apart")
        return self.users[pools[0]]
