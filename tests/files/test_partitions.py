"""Data sets in files, cut into partitions of whole users."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.marks import slow
from helpers.sources import npy_source, parquet_source, read_lists
from structsvm_papk import RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.files.partitions import (
    array_partitions,
    file_partitions,
    open_source,
    scan_users,
)
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.sources import ParquetFiles
from structsvm_papk.oracles.streamed import StreamedRisk

pytestmark = pytest.mark.portable

SIZES = [5, 1, 9, 30, 2, 4, 8]


def lists(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat([4, 2, 9, 0, 7, 1, 3], SIZES)
    X = rng.normal(size=(groups.size, 3)).astype(dtype)
    return X, (rng.random(groups.size) < 0.4).astype(np.int64), groups


@pytest.fixture(
    params=["npy", "npy float32", "parquet float32", "three Parquet files", "text users"]
)
def source(request, tmp_path):
    X, y, groups = lists(np.float32 if "float32" in request.param else np.float64)
    if "npy" in request.param:
        source = npy_source(tmp_path, X, y, groups)
    elif request.param == "text users":
        source = parquet_source(tmp_path, X, y, groups.astype(str))
    else:
        source = parquet_source(tmp_path, X, y, groups, 3 if "three" in request.param else 1)
    assert source.dtype == X.dtype
    return source


def same_users(data, X, y, groups):
    """Whether every user of the data has the rows that the arrays say."""
    for u, user in enumerate(data.users):
        rows = data.rows[data.indptr[u] : data.indptr[u + 1]]
        of_user = groups == type(groups[0])(user)
        expected = np.concatenate([X[of_user & (y == 1)], X[of_user & (y == 0)]])
        np.testing.assert_array_equal(data.X[rows], expected)
        assert data.X.dtype == X.dtype
        assert data.n_pos[u] == y[of_user].sum()


@pytest.mark.parametrize("rows", [1, 6, 12, 1000])
def test_partitions_hold_every_row_once_and_whole_users(source, rows):
    X, y, groups = lists(source.dtype)
    partitions = file_partitions(source, rows * source.row_bytes)
    loaded = [partition.load() for partition in partitions]
    assert [p.start for p in partitions[1:]] == [p.stop for p in partitions[:-1]]
    assert sum(data.rows.size for data in loaded) == groups.size
    users = np.concatenate([data.users for data in loaded])
    assert users.astype(str).tolist() == list("4290713")  # in the order of the file
    for data in loaded:
        same_users(data, X, y, groups)
        assert data.rows.size <= max(rows, data.sizes.max())


def test_partitions_of_npy_files_do_not_parse_their_headers(tmp_path, monkeypatch):
    """CPython's parser can fail where threads use it at once, and workers load in threads."""
    partitions = file_partitions(npy_source(tmp_path, *lists()), 24 * 6)
    for name in ("load", "memmap"):
        monkeypatch.setattr(np, name, None)
    monkeypatch.setattr("ast.literal_eval", None)
    assert sum(partition.load().rows.size for partition in partitions) == sum(SIZES)


@pytest.mark.parametrize("name", ["X", "y", "groups"])
def test_npy_files_that_changed_after_they_were_opened(tmp_path, name):
    partition = file_partitions(npy_source(tmp_path, *lists()), 1 << 20)[-1]
    path = tmp_path / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=f"{name}.npy: it ends early: the file has been truncated"):
        partition.load()
    np.save(path, dict(zip(("X", "y", "groups"), lists(), strict=True))[name].astype(np.float32))
    with pytest.raises(InputError, match=f"{name}.npy: the file is another one now"):
        partition.load()


@pytest.mark.parametrize(
    ("piece", "labels", "threshold"),
    [(1, [0, 1], None), (10, [-1, 1], None), (1 << 16, [False, True], None), (10, [0, 3], 2)],
)
def test_the_scan_does_not_depend_on_the_pieces(tmp_path, piece, labels, threshold):
    X, y, groups = lists()
    source = replace(npy_source(tmp_path, X, np.array(labels)[y], groups), scan_rows=piece)
    rows = scan_users(source, threshold)
    assert rows.users.tolist() == [4, 2, 9, 0, 7, 1, 3]
    assert np.diff(rows.indptr).tolist() == SIZES
    np.testing.assert_array_equal(rows.labels > 0, y == 1)
    first = file_partitions(source, 100, relevance_threshold=threshold)[0]
    assert first.load().n_pos[0] == y[:5].sum()


@pytest.mark.parametrize(
    ("what", "row", "value", "message"),
    [
        (2, 45, 4, r"user 4 do not stand together: rows 0 to 4, and again from row 45 .*sort"),
        (1, 3, 2, r"found 0, 1, 2.*relevance_threshold="),
        (1, slice(None), 1, r"all labels are of one class \(1\)"),
        (2, 30, np.nan, "users is missing in row 30.*counted from row 0 of"),
        (1, 30, np.nan, "NaN or infinite in row 30"),
    ],
)
def test_rows_that_cannot_be_used_are_named(tmp_path, what, row, value, message):
    arrays = list(lists())
    arrays[what] = arrays[what].astype(float if value != value else int)
    arrays[what][row] = value
    with pytest.raises(InputError, match=message):
        scan_users(npy_source(tmp_path, *arrays))


def test_npy_files_that_cannot_be_used(tmp_path):
    X, y, groups = lists()
    npy_source(tmp_path, X, y, groups)
    path = tmp_path / "X.npy"
    for values, message in (
        (X[:-1], "has shape .* but"),
        (X.astype(int), "float64 or float32"),
        (np.asfortranarray(X), "stored by columns"),
        (X.ravel(), "expected .rows, features."),
        (X.astype(object), "not a complete .npy"),
    ):
        np.save(path, values)
        with pytest.raises(InputError, match=message):
            open_source(tmp_path)
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="truncated"):
        open_source(tmp_path)
    np.save(path, X)
    (tmp_path / "y.npy").unlink()
    with pytest.raises(InputError, match="cannot read"):
        open_source(tmp_path)


def test_parquet_that_cannot_be_used(tmp_path):
    X, y, groups = lists()
    path = tmp_path / "part0.parquet"
    source = parquet_source(tmp_path, X, y, groups)
    with pytest.raises(InputError, match=r"no column 'user'.*name it with group="):
        ParquetFiles.open(path, group="user")
    parquet_source(tmp_path, X[:40], y[:40], groups[:40])
    with pytest.raises(InputError, match="another file now"):
        source.rows(0, 10)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="not a readable Parquet file"):
        source.rows(0, 10)
    with pytest.raises(InputError, match=r"neither X\.npy nor a \.parquet file"):
        (tmp_path / "empty").mkdir()
        ParquetFiles.open(tmp_path / "empty")


@pytest.mark.parametrize("step", [59, slow(11)])
def test_no_flipped_bit_of_a_footer_is_more_than_wrong_input(tmp_path, step):
    """Or the flip changed nothing that is read."""
    table = {"label": [0, 1] * 20, "user": np.repeat(np.arange(8), 5), "a": np.arange(40) / 2}
    path = tmp_path / "rows.parquet"
    pd.DataFrame(table).to_parquet(path, index=False, row_group_size=20)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little") + 8
    refused = 0
    for bit in range(8 * (len(content) - length), 8 * len(content), step):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        try:
            source = open_source(path)
            n_rows = scan_users(source).labels.size
            X, _, _ = source.rows(0, source.n_rows)
            features, file = source.open_features()
            file.close()
            in_memory = read_table(path)
        except InputError:
            refused += 1
            continue
        assert n_rows == len(X) == features.shape[0] == len(in_memory.X)
    assert refused > 1100 / step


@pytest.mark.parametrize("stored", ["npy", "parquet", "streamed", "memory"])
def test_missing_values_and_text_need_the_lists_in_memory(tmp_path, stored):
    X, y, groups = lists()
    X[20, 1] = np.nan
    source = (parquet_source if stored == "parquet" else npy_source)(tmp_path, X, y, groups)
    said = r"row 20.*column .*: give a sample of the users, or fill them"
    with pytest.raises(InputError, match=said):
        if stored == "streamed":
            StreamedRisk(make_surrogate("ts", 4), source, 1_000_000)
        elif stored == "memory":
            array_partitions(RankingData.from_groups(X, y, groups, missing="separate"), 4)
        else:
            file_partitions(source, 1)[3].load()


def test_text_is_not_cut_into_partitions(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,user,a,b\n0,1,2,p\n1,1,3,q\n")
    with pytest.raises(
        InputError, match=r"column 'b' holds text: .*leave it out with ignore=\['b'\]"
    ):
        array_partitions(read_lists(path, missing="separate"), 4)


def test_values_that_are_not_finite_are_placed(tmp_path):
    X, y, groups = lists()
    X[20, 1] = np.inf
    partition = file_partitions(npy_source(tmp_path, X, y, groups), 1)[3]
    with pytest.raises(InputError, match=r"X\.npy: X holds inf at row 20, column 1"):
        partition.load()
