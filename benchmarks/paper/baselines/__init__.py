"""The methods that the paper compares with, each with ``solve(data, k) -> SolverResult``.

`SGDAtKAvg`, `GreedyPAPK`, `SelectPAPK`, `Logistic`, `PairwiseLogistic`, and `LambdaRank`, which
needs LightGBM and whose result scores items with trees; `scores_of` gives the scores of any.
"""

from benchmarks.paper.baselines.greedy import GreedyPAPK
from benchmarks.paper.baselines.lambdarank import LambdaRank, LambdaRankResult
from benchmarks.paper.baselines.logistic import Logistic
from benchmarks.paper.baselines.pairwise import PairwiseLogistic
from benchmarks.paper.baselines.prec_at_k import PrecAtKAvg
from benchmarks.paper.baselines.select import SelectPAPK
from benchmarks.paper.baselines.sgd_at_k_avg import SGDAtKAvg

__all__ = [
    "GreedyPAPK",
    "LambdaRank",
    "LambdaRankResult",
    "Logistic",
    "PairwiseLogistic",
    "PrecAtKAvg",
    "SGDAtKAvg",
    "SelectPAPK",
    "scores_of",
]


def scores_of(result, data):
    """Scores of a result, linear or not, at the list positions of the data."""
    return result.scores(data) if hasattr(result, "scores") else data.scores(result.w)
