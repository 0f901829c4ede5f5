"""Lists in files: as folders of ``.npy``, as Parquet, damaged."""

import string
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.files.partitions import open_source
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.sources import Source

N_FEATURES = 5
N_USERS, N_ROWS, D = 12, 400, 10  # of the tall lists


def lists():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 40)
    X = rng.normal(size=(4000, N_FEATURES))
    y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * rng.normal(size=4000) > 1.2
    y[groups == 3] = False
    y[(groups >= 40) & (groups < 60)] = False
    y[(groups == 7) & (np.arange(4000) % 40 > 1)] = True
    return X, y, groups


def in_memory(name="ts"):
    return EmpiricalRisk(make_surrogate(name, 4), RankingData.from_groups(*lists()))


def tall_lists(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_USERS * N_ROWS, D)) * np.geomspace(0.1, 10.0, D) + rng.normal(size=D)
    y = np.zeros((N_USERS, N_ROWS), dtype=bool)
    y[rng.permuted(np.tile(np.arange(N_ROWS), (N_USERS, 1)), axis=1) < 6] = True
    y[3] = False
    X[y.ravel(), 9] += 40.0
    return X.astype(dtype), y.ravel(), np.repeat(np.arange(N_USERS), N_ROWS)


@dataclass(frozen=True)
class Decoded(Source):
    """A source that has what it has to have only: `lists` and `rows`."""

    decoded: tuple
    batch_bytes = 333 * N_FEATURES * 8

    @classmethod
    def of(cls, X, y, groups):
        """All rows."""
        return cls(
            name="decoded",
            n_rows=X.shape[0],
            n_features=X.shape[1],
            dtype=X.dtype,
            columns_used="all",
            feature_names=None,
            decoded=(X, y, groups),
        )

    def lists(self):
        _, y, groups = self.decoded
        for start in range(0, self.n_rows, 300):
            yield start, y[start : start + 300], groups[start : start + 300]

    def rows(self, start, stop):
        X, y, groups = self.decoded
        return X[start:stop], y[start:stop], groups[start:stop]


def npy_source(directory, X, y, groups):
    for name, values in (("X", X), ("y", y), ("groups", groups)):
        np.save(directory / f"{name}.npy", values)
    return open_source(directory)


def parquet_source(directory, X, y, groups, n_files=1, rows=7):
    names = [f"f{c}" for c in range(X.shape[1])]
    for i, part in enumerate(np.array_split(np.arange(len(X)), n_files)):
        columns = dict(zip(names, X[part].T, strict=True))
        table = pa.table({"group": groups[part], **columns, "label": y[part]})
        parquet.write_table(table, directory / f"part{i}.parquet", row_group_size=rows)
    return open_source(directory if n_files > 1 else directory / "part0.parquet")


def write_csv(path, X, y, groups, label="label", group="group"):
    """A table of label, user and the features a, b, ..; every number to its last digit."""
    frame = pd.DataFrame(X, columns=list(string.ascii_lowercase[: X.shape[1]]))
    frame.insert(0, group, groups)
    frame.insert(0, label, np.asarray(y).astype(int))
    frame.to_csv(path, index=False)
    return path


def damage(path, how):
    with open(path, "r+b") as file:
        file.seek(-800, 2)
        if how == "truncated":
            file.truncate()
        else:
            file.write(b"\0" * 100)


def read_lists(path, relevance_threshold=None, one_list=False, **how):
    """The lists of a file of features."""
    return read_table(path, **how).ranking_data(relevance_threshold, one_list)
