"""The lists of all users (`RankingData`), what checks them, and what reads them from files."""

from structsvm_papk.data.ranking_data import Exclusions, RankingData

__all__ = [
    "Exclusions",
    "RankingData",
]
