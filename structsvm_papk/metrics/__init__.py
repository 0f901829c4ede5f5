"""Ranking metrics per user, their means, and what each convention did to them.

`evaluate` makes the table users x metrics in one pass; `per_user` gives one column of it. Every
value is a gain (larger is better, 1 is perfect); `gain=False` gives the risk, 1 - gain.
Frames: `evaluate_frame`, `evaluate_recommendations`. Further modules: `curves` (AUROC and AUPRC of
one list), `calibration`, `discounts`, `hooks` (LightGBM, XGBoost, CatBoost).
"""

from structsvm_papk.metrics.conventions import PRESETS, Conventions
from structsvm_papk.metrics.frames import evaluate_frame, evaluate_recommendations
from structsvm_papk.metrics.named import (
    auc,
    auc_at_k,
    average_precision,
    ndcg_at_k,
    pap_at_k,
    pauc_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from structsvm_papk.metrics.scorers import mean_score
from structsvm_papk.metrics.segments import Segment
from structsvm_papk.metrics.significance import (
    AucTest,
    Comparison,
    adjust,
    compare,
    delong,
    held_out_interval,
    interval,
    no_interval,
    pooled_auc_interval,
)
from structsvm_papk.metrics.table import MetricTable, Summary, evaluate, per_user

__all__ = [
    "PRESETS",
    "AucTest",
    "Comparison",
    "Conventions",
    "MetricTable",
    "Segment",
    "Summary",
    "adjust",
    "auc",
    "auc_at_k",
    "average_precision",
    "compare",
    "delong",
    "evaluate",
    "evaluate_frame",
    "evaluate_recommendations",
    "held_out_interval",
    "interval",
    "mean_score",
    "ndcg_at_k",
    "no_interval",
    "pap_at_k",
    "pauc_at_k",
    "per_user",
    "pooled_auc_interval",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
]
