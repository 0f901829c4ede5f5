"""Adapters for other libraries: evaluation callables for LightGBM, XGBoost and CatBoost.

None of these libraries is imported here; they call what they are given. `integrations.rectools`,
with the re-ranker for RecTools, imports that library. May import `metrics` and below.
"""

from structsvm_papk.integrations.hooks import (
    CatBoostMetric,
    lightgbm_eval_metric,
    lightgbm_feval,
    xgboost_custom_metric,
    xgboost_eval_metric,
)

__all__ = [
    "CatBoostMetric",
    "lightgbm_eval_metric",
    "lightgbm_feval",
    "xgboost_custom_metric",
    "xgboost_eval_metric",
]
