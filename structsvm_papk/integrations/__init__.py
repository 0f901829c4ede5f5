"""Adapters for other libraries: evaluation callables for LightGBM and XGBoost.

Neither is imported here; they call what they are given. May import `metrics` and below.
"""

from structsvm_papk.integrations.hooks import (
    lightgbm_eval_metric,
    lightgbm_feval,
    xgboost_custom_metric,
)

__all__ = ["lightgbm_eval_metric", "lightgbm_feval", "xgboost_custom_metric"]
