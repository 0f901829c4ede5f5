"""The lists of all users (`RankingData`): rows, columns, and what checks them.

Ids, labels and scores are checked by `validation`, the rows that are given by `rows`; how columns
are called is in `columns`, what reads the matrix in `features`. Knows nothing of files, losses and
metrics.
"""

from structsvm_papk.data.ranking_data import RankingData

__all__ = ["RankingData"]
