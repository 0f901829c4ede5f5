"""Ranking metrics per user, their means, and what each convention did to them.

`evaluate` makes the table users x metrics in one pass; `per_user` gives one column of it. Every
value is a gain (larger is better, 1 is perfect); `gain=False` gives the risk, 1 - gain.
Frames: `evaluate_frame`, `evaluate_recommendations`. How sure a mean or a difference is:
`interval`, `compare`. What NDCG tends to: `ndcg_limit`. May import `bounds`, `data` and below;
knows nothing of training.
"""

from structsvm_papk.metrics.conventions import PRESETS, Conventions
from structsvm_papk.metrics.frames import evaluate_frame, evaluate_recommendations
from structsvm_papk.metrics.limits import ndcg_limit
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
from structsvm_papk.metrics.significance import Comparison, compare, interval
from structsvm_papk.metrics.table import MetricTable, evaluate, per_user

__all__ = [
    "PRESETS",
    "Comparison",
    "Conventions",
    "MetricTable",
    "auc",
    "auc_at_k",
    "average_precision",
    "compare",
    "evaluate",
    "evaluate_frame",
    "evaluate_recommendations",
    "interval",
    "mean_score",
    "ndcg_at_k",
    "ndcg_limit",
    "pap_at_k",
    "pauc_at_k",
    "per_user",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
]
