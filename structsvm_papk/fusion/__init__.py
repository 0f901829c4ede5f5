"""Fusion: the ranked lists of several retrievers or recommenders, put into one.

A query is a list, a run a column, judgments are labels: `join_lists` makes the frame that
`PAPKRanker(missing="lowest")` learns weights from; `cross_validate` says what the weights are worth
beside every run alone and beside the yardsticks `rrf` and `combsum`. May import
`rankers`, `metrics` and below; training is the estimator's.
"""

from structsvm_papk.files.trec import write_run
from structsvm_papk.fusion.comparing import cross_validate, for_engine
from structsvm_papk.fusion.engines import combsum, rrf
from structsvm_papk.fusion.joining import join_lists
from structsvm_papk.fusion.requests import fuse, load_weights

__all__ = [
    "combsum",
    "cross_validate",
    "for_engine",
    "fuse",
    "join_lists",
    "load_weights",
    "rrf",
    "write_run",
]
