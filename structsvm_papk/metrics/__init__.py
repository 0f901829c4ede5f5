"""Ranking metrics per user, their means, and what each convention did to them.

`evaluate` makes the table users x metrics in one pass. Larger is better, 1 is perfect;
1 - pAp@k is the risk of the paper. Frames: `evaluate_frame`. How sure a mean or a difference is:
`interval`, `compare`. May import `bounds`, `data` and below; knows nothing of training.
"""

from structsvm_papk.metrics.definitions import described
from structsvm_papk.metrics.significance import compare, interval
from structsvm_papk.metrics.table import evaluate, evaluate_frame, scorer

__doc__ += f"\n\nThe table of metrics:\n\n{described()}\n"

__all__ = [
    "compare",
    "evaluate",
    "evaluate_frame",
    "interval",
    "scorer",
]
