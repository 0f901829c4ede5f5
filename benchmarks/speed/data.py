"""Generated lists that several measurements take: files of any size, sparse rows, one long list."""

from itertools import pairwise

import numpy as np
from scipy import sparse

from structsvm_papk import RankingData

USER_ROWS = 500
PIECE = 50_000  # rows that are made at a time


def write_lists(folder, n_rows, n_features, parquet=False):
    """`X.npy`, `y.npy` and `groups.npy`, and `data.parquet` of the same rows; never all in memory.

    Relevant are the rows whose noisy linear score, of standard deviation 1, is above 2.
    """
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    files = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape)
        for name, dtype, shape in (
            ("X", np.float64, (n_rows, n_features)),
            ("y", np.int8, (n_rows,)),
            ("groups", np.int32, (n_rows,)),
        )
    }
    writer = None
    for start in range(0, n_rows, PIECE):
        X = rng.standard_normal((min(PIECE, n_rows - start), n_features))
        noise = 0.3 * rng.standard_normal(len(X))
        rows = np.arange(start, start + len(X))
        piece = {
            "X": X,
            "y": (X @ direction + noise > 2.0).astype(np.int8),
            "groups": (rows // USER_ROWS).astype(np.int32),
        }
        for name, values in piece.items():
            files[name][rows] = values
        if parquet:
            writer = append(writer, folder / "data.parquet", piece)
    if writer is not None:
        writer.close()


def append(writer, path, piece):
    """The writer of a Parquet file, after a piece has been written."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {f"f{i}": column for i, column in enumerate(piece["X"].T)}
    table = pa.table({**columns, "label": piece["y"], "group": piece["groups"]})
    writer = writer or parquet.ParquetWriter(path, table.schema)
    writer.write_table(table)
    return writer


def read_lists(folder):
    """All of the `.npy` files."""
    X, y, groups = (np.load(folder / f"{name}.npy") for name in ("X", "y", "groups"))
    return RankingData.from_groups(X, y, groups)


def sparse_lists(n_rows, n_features, per_row, n_users, seed=0):
    """Popular features and rare ones; a user's highest noisy scores are relevant, 2% of them."""
    rng = np.random.default_rng(seed)
    columns = popular_columns(rng, n_rows, per_row, n_features, np.float32)
    columns.sort(axis=1)
    values = rng.random(n_rows * per_row, dtype=np.float32).astype(np.float64)
    X = csr_of(values, columns, n_features)
    scores = X @ rng.standard_normal(n_features)
    scores += 0.3 * scores.std() * rng.standard_normal(n_rows)
    size = n_rows // n_users
    borders = [*(size * user for user in range(n_users)), n_rows]  # the last has the rest, too
    y = np.zeros(n_rows, dtype=bool)
    for start, end in pairwise(borders):
        best = np.argpartition(-scores[start:end], size // 50)[: size // 50]
        y[start + best] = True
    return RankingData.from_groups(X, y, np.repeat(np.arange(n_users), np.diff(borders)))


def popular_columns(rng, n_rows, per_row, n_features, dtype=np.float64):
    """The columns of each row's entries; few columns have most of them."""
    return (n_features * rng.random((n_rows, per_row), dtype=dtype) ** 3).astype(np.int32)


def csr_of(values, columns, n_features):
    """Rows of as many entries each; those of one place are added up."""
    n_rows, per_row = columns.shape
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sparse.csr_array((values, columns.ravel(), indptr), (n_rows, n_features))
    X.sum_duplicates()  # in their own type: the package's would be float64
    return X
