"""The methods that the paper compares with, each with ``solve(data, k) -> SolverResult``.

`SGDAtKAvg`, `GreedyPAPK`, `SelectPAPK`, `Logistic`, `PairwiseLogistic`, and
`LambdaRank`, which needs LightGBM and whose result scores items with trees. `scores_of` gives the
scores of any of them. They serve the experiments and are not among the supported names. May import
`rankers` and below.
"""

from structsvm_papk._types import Array
from structsvm_papk.baselines.greedy import GreedyPAPK
from structsvm_papk.baselines.lambdarank import LambdaRank, LambdaRankResult
from structsvm_papk.baselines.logistic import Logistic
from structsvm_papk.baselines.pairwise import PairwiseLogistic
from structsvm_papk.baselines.prec_at_k import PrecAtKAvg
from structsvm_papk.baselines.select import SelectPAPK
from structsvm_papk.baselines.sgd_at_k_avg import SGDAtKAvg
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.solvers.result import SolverResult

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


def scores_of(result: SolverResult, data: RankingData) -> Array:
    """Scores of a result, linear or not, at the list positions of the data."""
    return result.scores(data) if hasattr(result, "scores") else data.scores(result.w)
