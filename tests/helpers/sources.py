"""Lists in files: as folders of ``.npy``, as Parquet, damaged."""

import string

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.files.partitions import open_source
from structsvm_papk.files.readers import read_table

N_FEATURES = 5


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


def read_lists(path, relevance_threshold=None, one_list=False, **how):
    """The lists of a file of features."""
    return read_table(path, **how).ranking_data(relevance_threshold, one_list)
