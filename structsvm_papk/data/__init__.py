"""The lists of all users (`RankingData`), what checks them, and what reads them from files.

Ids, labels and scores are checked by `validation`, the rows that are given by `rows`; what reads
the matrix is in `features`; data larger than memory are sources, cut into partitions. May import
`files`, and the contract of `solvers`; knows nothing of losses and metrics.
"""

from structsvm_papk.data.partitions import file_partitions, open_source
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.readers import read_ranking_data

__all__ = [
    "RankingData",
    "file_partitions",
    "open_source",
    "read_ranking_data",
]
