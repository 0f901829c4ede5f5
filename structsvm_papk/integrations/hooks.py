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

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.validation import as_array, check_ids, encode
from structsvm_papk.errors import InputError, as_floats, as_names, check_type
from structsvm_papk.metrics.conventions import resolve
from structsvm_papk.metrics.table import evaluate


def _mean(
    name: str, scores: Array, labels: Array, sizes: ArrayLike, options: Mapping[str, Any]
) -> float:
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return evaluate([name], scores, labels, indptr=bounds, **options).mean(name)


def _larger_is_better(options: Mapping[str, Any]) -> bool:
    return bool(options.get("gain", True))


def lightgbm_eval_metric(name: str, **options: Any) -> Callback:
    """Callable (y_true, y_pred, weight, group) -> (name, value, is_higher_better)."""

    def eval_metric(
        y_true: Array, y_pred: Array, weight: Array | None, group: Array
    ) -> tuple[str, float, bool]:
        if group is None:
            raise InputError("the metric needs groups; use LGBMRanker with group and eval_group")
        return name, _mean(name, y_pred, y_true, group, options), _larger_is_better(options)

    return eval_metric


def lightgbm_feval(name: str, **options: Any) -> Callback:
    """Callable (preds, eval_data) -> (name, value, is_higher_better)."""

    def feval(preds: Array, eval_data: Any) -> tuple[str, float, bool]:
        sizes = eval_data.get_group()
        if sizes is None:
            raise InputError("the metric needs groups; give Dataset(.., group=sizes)")
        value = _mean(name, preds, eval_data.get_label(), sizes, options)
        return name, value, _larger_is_better(options)

    return feval


def xgboost_custom_metric(name: str, **options: Any) -> Callback:
    """Callable (predt, dmatrix) -> (name, value) for `xgboost.train`."""

    def custom_metric(predt: Array, dmatrix: Any) -> tuple[str, float]:
        bounds = dmatrix.get_uint_info("group_ptr")
        if bounds.size < 2:
            raise InputError("the metric needs groups; give DMatrix(.., qid=users)")
        return name, _mean(name, predt, dmatrix.get_label(), np.diff(bounds), options)

    return custom_metric


def xgboost_eval_metric(
    name: str, groups: Array | Sequence[Any] | None = None, **options: Any
) -> Callback:
    """Callable (y_true, y_score) -> value of one user, for `XGBRanker`, which averages itself.

    Its mean weighs users by their rows, and takes 1 for a user with a single row. Where `groups`
    holds the users of the rows of the evaluation set (the last one, which decides on the best
    iteration), values are scaled so that the mean is that over the users. A user that the rules
    leave out counts 0, and so does one with a single row: the best iteration is the same.

    `XGBRanker` minimises callables unless the callback `EarlyStopping(maximize=True)` is given.
    """
    check_type("name", name, str, "the name of a metric")
    rules = resolve(options.get("preset", "icml2020"), mean=options.get("mean"))
    if rules.mean != "user":
        raise InputError(
            f"XGBRanker averages over users itself, so that mean={rules.mean!r} is not available "
            "here; xgboost_custom_metric has it"
        )
    if groups is None:
        return _OfOneUser(name, options)
    groups = as_array(groups, "groups")
    rows = np.bincount(encode(check_ids(groups, groups.size))[1])
    n_single = int(np.count_nonzero(rows == 1))
    several = max(int(rows.sum()) - n_single, 1)
    return _OfOneUser(name, options, float(rows.mean()), n_single / several)


@dataclass
class _OfOneUser:
    """A user's value v as XGBRanker is given it: ``v`` or ``v * mean_rows / rows - taken_off``.

    With users' rows as weights the second one's mean is ``sum v / n_users``; `taken_off` makes up
    for the users with a single row. An object, since a ranker that is pickled holds it.
    """

    name: str
    options: dict[str, Any]
    mean_rows: float | None = None
    taken_off: float = 0.0

    def __post_init__(self) -> None:
        self.__name__ = self.name  # XGBoost calls it so

    def __call__(self, y_true: Array, y_score: Array) -> float:
        value = _mean(self.name, y_score, y_true, [len(y_true)], self.options)
        value = float(np.nan_to_num(value))
        if self.mean_rows is None:
            return value
        return value * self.mean_rows / len(y_true) - self.taken_off


class CatBoostMetric:
    """Metric object for CatBoost, which passes no groups: they are given here.

    CatBoost shuffles the training rows before it asks for their metric, with
    ``boosting_type="Ordered"`` and with categorical features: then no row's user is known, and the
    metric refuses them. With ``has_time=True`` rows stay where they are.

    Parameters
    ----------
    name : str
    groups : list of array-like
        The `group_id` of every pool that is evaluated, for example [train, valid].
    labels : list of array-like
        Labels of the same pools, by which they and their order are recognised.
    **options
        Of `evaluate`.

    Raises
    ------
    InputError
        Two pools with the same labels and other groups; while CatBoost trains, rows that are those
        of no pool in its order, or a pool without a user for which the metric is defined (a NaN
        would end the training at its last step).
    """

    no_jit = True

    def __init__(
        self,
        name: str,
        groups: Sequence[Array | Sequence[Any]],
        labels: Sequence[ArrayLike],
        **options: Any,
    ) -> None:
        self.name = name
        self.options = options
        ids = [as_array(given, "groups") for given in as_names("groups", groups)]
        users = [encode(check_ids(given, given.size))[1] for given in ids]
        # CatBoost has labels in single precision
        known = [as_floats("labels", y).astype(np.float32) for y in as_names("labels", labels)]
        if [each.shape for each in users] != [y.shape for y in known]:
            raise InputError("groups and labels must be of the same pools, one entry for each row")
        self.pools = list(zip(known, users, strict=True))
        for place, (y, own) in enumerate(self.pools):
            for other_y, other in self.pools[:place]:
                if np.array_equal(y, other_y) and not np.array_equal(own, other):
                    raise InputError(
                        f"two pools of {y.size} rows have the same labels and other groups: they "
                        "cannot be told apart"
                    )

    def is_max_optimal(self) -> bool:
        """Whether larger is better."""
        return bool(_larger_is_better(self.options))

    def evaluate(
        self, approxes: Sequence[ArrayLike], target: ArrayLike, weight: ArrayLike | None
    ) -> tuple[float, float]:
        """(value, 1) of one pool."""
        scores = np.asarray(approxes[0])
        y = np.asarray(target)
        table = evaluate([self.name], scores, y, self._users_of(y), **self.options)
        value = table.mean(self.name)
        if np.isnan(value):
            raise InputError(f"{self.name} is defined for no user of the pool of {y.size} rows")
        return value, 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """The value."""
        return error / weight

    # CatBoost looks for this on each method
    evaluate.no_jit = is_max_optimal.no_jit = get_final_error.no_jit = True  # type: ignore[attr-defined]

    def _users_of(self, target: Array) -> Array:
        for y, users in self.pools:
            if np.array_equal(y, target.astype(np.float32)):
                return users
        if all(y.size != target.size for y, _ in self.pools):
            raise InputError(f"no groups were given for a pool of {target.size} rows")
        raise InputError(
            f"the labels of a pool of {target.size} rows are not those given, or not in their "
            "order: CatBoost shuffles the training rows with boosting_type='Ordered' and with "
            "categorical features; has_time=True keeps their order"
        )
