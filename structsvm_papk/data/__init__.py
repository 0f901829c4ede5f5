"""The lists of all users (`RankingData`), what checks them, and what reads them from files.

Small files are read as a whole (`read_table`, `read_ranking_data`); a source (`NpyFiles`,
`ParquetFiles`, `open_source`) is read in pieces, and `file_partitions` cuts it between users.
"""

from structsvm_papk.data.partitions import array_partitions, file_partitions, open_source
from structsvm_papk.data.ranking_data import Exclusions, RankingData
from structsvm_papk.data.readers import Table, read_ranking_data, read_table
from structsvm_papk.data.sources import NpyFiles, ParquetFiles

__all__ = [
    "Exclusions",
    "NpyFiles",
    "ParquetFiles",
    "RankingData",
    "Table",
    "array_partitions",
    "file_partitions",
    "open_source",
    "read_ranking_data",
    "read_table",
]
