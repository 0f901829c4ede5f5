"""The lists of all users (`RankingData`): rows, columns, and what checks them.

Ids, labels and scores are checked by `validation`, names of columns say what these are (`roles`).
`lists` and `grades` are who is ranked against whom; everything about features is in `columns`.
Knows nothing of files, losses and metrics.
"""

from structsvm_papk.data.ranking_data import RankingData

__all__ = ["RankingData"]
