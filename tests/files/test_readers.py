import gzip
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from helpers.sources import read_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.partitions import open_source
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.sources import ParquetFiles

pytestmark = pytest.mark.portable

QID_ROWS = """# a comment line
2 qid:7 1:0.5 3:-1.25e-3 # with a comment
0 qid:7 2:4

1 qid:9 1:1
0 qid:9 3:2
"""
DENSE = [[0.5, 0, -1.25e-3], [0, 4, 0], [1, 0, 0], [0, 0, 2]]


def written(tmp_path, name, text):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def message(path, **how):
    with pytest.raises(InputError) as caught:
        read_table(path, **how)
    assert str(path) in str(caught.value)
    return str(caught.value)


NO_QID = QID_ROWS.replace("qid:7 ", "").replace("qid:9 ", "")
BEYOND = f"{10**18 - 1}\n" * 18 + f"{2**64 + 4 - 18 * (10**18 - 1)}\n"  # 4 in 64 bits


@pytest.mark.parametrize(
    ("name", "text", "counts", "groups"),
    [
        ("rows.txt", QID_ROWS, None, [7, 7, 9, 9]),
        ("rows.txt.gz", QID_ROWS, ("rows.txt.query", "2\n2\n"), [7, 7, 9, 9]),
        ("rows.txt", NO_QID, ("rows.txt.query", "1\n3\n"), [0, 1, 1, 1]),
        ("rows.txt.gz", NO_QID, ("rows.txt.query", "1\n3\n"), [0, 1, 1, 1]),
        ("rows.txt", NO_QID, ("counts", "1\n3\n"), [0, 1, 1, 1]),
        ("rows.txt", QID_ROWS, ("rows.txt.query", "1\n3\n"), [7, 7, 9, 9]),
        ("rows.txt", NO_QID, ("rows.txt.query", "1\n1\n"), "add up to 2, but"),
        ("rows.txt", NO_QID, ("rows.txt.query", BEYOND), "add up to 18446744073709551620, but"),
        ("rows.txt", NO_QID, ("rows.txt.query", "2\n-1\n"), "line 2: expected a number of rows"),
        ("rows.txt", NO_QID, ("rows.txt.query", "2\n1.5\n"), "line 2: expected a number of rows"),
    ],
)
def test_users_of_svmlight_rows_stand_in_qid_or_in_a_file_of_counts(
    tmp_path, name, text, counts, groups
):
    path = written(tmp_path, name, text)
    query = counts and written(tmp_path, *counts)
    how = {"query": query} if counts and counts[0] == "counts" else {}
    if isinstance(groups, str):
        assert groups in message(path, **how)
        return
    table = read_table(path, **how)
    assert sparse.issparse(table.X) and table.first_index == 1
    np.testing.assert_array_equal(table.X.toarray(), DENSE)
    np.testing.assert_array_equal(table.labels, [2, 0, 1, 0])
    np.testing.assert_array_equal(table.groups, groups)


def _model(n_features, **names):
    return SimpleNamespace(**{"n_features": n_features, "feature_names": None} | names)


FROM_ZERO, FROM_ONE = _model(3, first_index=0), _model(3, first_index=1)
NAMED = _model(3, feature_names=("c", "a", "b"))


@pytest.mark.parametrize(
    ("rows", "like", "base", "dense"),
    [
        ("1 0:1 2:5\n", None, None, [1, 0, 5]),
        ("1 1:5 2:7\n", None, 0, [0, 5, 7]),
        ("1 1:5 3:7\n", FROM_ONE, None, [5, 0, 7]),  # index 3 of 3: counted from 1
        ("1 0:5 1:7\n", FROM_ZERO, None, [5, 7, 0]),
        ("1 1:5 2:7\n", FROM_ONE, None, [5, 7, 0]),
        ("1 1:5 2:7\n", FROM_ZERO, None, [0, 5, 7]),
        ("1 1:5 2:7\n", _model(3, first_index=None), None, [5, 7, 0]),
        ("1 1:5 2:7\n", NAMED, None, "give a table with the columns 'c', 'a', 'b'"),
        ("1\n", FROM_ONE, None, [0, 0, 0]),
        ("1 1:5 2:7\n", FROM_ONE, 0, [0, 5, 7]),
        ("1 3:7\n", FROM_ZERO, None, "4 features (largest index 3), but 3 are expected"),
        ("1 0:7\n", FROM_ONE, None, "feature index 0, but the features are counted from 1"),
        ("1 0:7\n", None, 1, "feature index 0, but the features are counted from 1"),
    ],
)
def test_indices_are_matched_with_a_model(tmp_path, rows, like, base, dense):
    path = written(tmp_path, "rows", rows)
    if isinstance(dense, str):
        assert dense in message(path, like=like, first_index=base)
        return
    table = read_table(path, like=like, first_index=base)
    assert table.X.toarray().tolist() == [dense]
    first = table.first_index
    assert f"(indices {first} to {first + 2}, counted from {first})" in table.columns_used


def test_columns_are_matched_by_name_or_place(tmp_path):
    plain = written(tmp_path, "f.csv", "label,group,b,a\n1,1,1,2\n")
    assert "2 features ('b', 'a')" in read_table(plain, like=_model(2, first_index=1)).columns_used
    assert read_table(plain, like=_model(2, feature_names=("a", "b"))).X.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("one qid:1 1:1", "line 4: no row of svmlight.*could not convert string to float: b'one'"),
        ("1 qid:a 1:1", "line 4: .*invalid literal for int.*b'a'"),
        ("1 qid:99999999999999999999 1:1", "line 4: .*too large"),
        ("1 qid:1 1:1 x:2", "line 4: .*invalid literal for int.*b'x'"),
        ("1 qid:1 1:", "line 4: .*could not convert string to float: b''"),
        ("1 qid:1 -1:1", "line 4: .*Invalid index -1"),
        ("1 qid:1 1:1 1:2", "line 4: .*should be sorted and unique"),
        ("1 qid:1 2147483647:1", "feature index 2147483647 is above the limit 2147483646"),
        ("1 qid:1 2147483648:1", "line 4: .*too large"),
        ("1 qid:1_0 1:1", "line 4: .*an underscore"),
        ("1 qid:1 1:1_0", "line 4: .*an underscore"),
        ("\x00\x01\xff", "line 4: .*could not convert string to float"),
        ("1 1:1", "1 of 3 rows have no qid, the others do"),
        ("1 qid:1 1:1 4:-inf", "row 1 of the data .*: feature 4 is -inf"),
        ("inf qid:1 1:1", "row 1 of the data .*: the label is inf"),
    ],
)
def test_malformed_svmlight_row_is_named(tmp_path, row, reason):
    text = f"# header\n\n1 qid:1 1:1\n{row}\n0 qid:1 1:2\n"
    assert re.search(reason, message(written(tmp_path, "rows.txt", text)))


def test_missing_file_and_foreign_gzip(tmp_path):
    assert "No such file" in message(tmp_path / "absent.txt")
    path = tmp_path / "rows.gz"
    for content in (b"1 qid:1 1:1\n", gzip.compress(QID_ROWS.encode() * 100)[:-40]):
        path.write_bytes(content)
        assert "cannot read" in message(path)
    assert "directory" in message(tmp_path)
    with pytest.raises(InputError, match="null character"):
        read_table("a\0b")


@pytest.mark.parametrize(
    ("labels", "threshold", "words"),
    [
        ((0, 1), None, "which user .no user column; name it with group="),
        ((0, 1, 2, 3), 9, "at relevance threshold 9 all labels are of one class"),
        ((-1, 0), None, r"labels are not 0/1 or -1/1 \(found -1, 0\)"),
        ((1, 1), None, r"all labels are of one class \(1\)"),
    ],
)
def test_a_file_has_users_and_labels_of_two_classes(tmp_path, labels, threshold, words):
    path = tmp_path / "f.csv"
    pd.DataFrame({"label": labels, "x": 1.0}).to_csv(path, index=False)
    with pytest.raises(InputError, match=f"f.csv.*{words}"):
        read_lists(path, relevance_threshold=threshold)
    rows = written(tmp_path, "rows.txt", "1 1:1\n2 1:2\n3 1:2\n")
    assert read_lists(rows, relevance_threshold=2, one_list=True).n_pos == [2]
    with pytest.raises(InputError, match=r"does not say which rows belong to which user.*qid"):
        read_lists(rows, relevance_threshold=2)


FRAME = pd.DataFrame({
    "age": [0.5, 1.5, -2.0, 4.0], "user": list("baba"), "clicks": [1.0, 2.0, 3.0, 4.0],
    "item": list("wxyz"), "grade": [3, 0, 1, 2],
})  # fmt: skip
COLUMNS = {"label": "grade", "group": "user", "ignore": ["item"]}


def write_frame(frame, path):
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.tsv", "f.parquet", "a.b.CSV"])
def test_named_columns_are_found_and_matched_by_name(tmp_path, name):
    table = read_table(write_frame(FRAME, tmp_path / name), **COLUMNS)
    assert table.feature_names == ("age", "clicks")
    np.testing.assert_array_equal(table.X, FRAME[["age", "clicks"]])
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.labels, FRAME["grade"])
    assert list(table.groups) == list("baba")
    other = write_frame(FRAME[["clicks", "user", "age"]].assign(extra=1.0), tmp_path / name)
    again = read_table(other, group="user", like=table, require_labels=False)
    assert again.labels is None
    np.testing.assert_array_equal(again.X, table.X)
    short = write_frame(FRAME[["age", "user", "grade"]], tmp_path / name)
    assert "no column 'clicks', of the features of the model ('age', 'clicks')" in message(
        short, like=table, label="grade", group="user"
    )


IDS = ["007", "7", "1e3", "1000", "12345678901234567890", "12345678901234567891", 'u,"1"']


def test_users_of_a_text_table_are_text_and_labels_may_be_true_and_false(tmp_path):
    for users in ([IDS[0]] * 2, IDS):  # all the same; like whole numbers and like floats
        labels = np.arange(len(users)) % 2 == 1
        frame = pl.DataFrame({"label": labels, "group": users, "x": np.ones(len(users))})
        frame.write_csv(tmp_path / "f.csv")
        table = read_table(tmp_path / "f.csv")
        assert table.groups.tolist() == users
        np.testing.assert_array_equal(table.labels, labels)
    path = written(tmp_path, "g.csv", f"label,user,x,z\nTrue,1,1e308,{2**60}\nFALSE,1,1,1\n")
    assert read_table(path).labels.tolist() == [1.0, 0.0]
    assert read_table(path).X[0].tolist() == [1e308, 2.0**60]  # large, but as they are


@pytest.mark.parametrize("index", [None, "position", "user"])
def test_the_index_of_a_frame_is_no_feature_and_labels_have_a_usual_name(tmp_path, index):
    frame = pd.DataFrame({"relevant": [0, 1], "user": [1, 1], "x": [1.0, 2.0]}, index=[5, 3])
    frame = frame.set_index("user") if index == "user" else frame.rename_axis(index)
    path = write_frame(frame, tmp_path / "f.parquet")
    source = ParquetFiles.open(path)
    table = read_table(path)
    assert source.feature_names == table.feature_names == ("x",)
    (_, labels, groups), *_ = source.lists()
    assert labels.tolist() == table.labels.tolist() == [0, 1]
    assert groups.tolist() == table.groups.tolist() == [1, 1]


def test_users_of_parquet_are_of_their_type_and_single_precision_stays(tmp_path):
    frame = pd.DataFrame({"label": [1, 0, 0], "x": np.float32([1, 2, 3])})
    for users in ([7, 2**53 + 1, 2**53], ["007", "7", "1e3"], [b"u1", b"\xc3\xbc", b""]):
        table = read_table(write_frame(frame.assign(group=users), tmp_path / "f.parquet"))
        assert table.groups.tolist() == [u.decode() if isinstance(u, bytes) else u for u in users]
        assert table.X.dtype == np.float32


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
@pytest.mark.parametrize("group", ["user_id", "qid", None])
def test_id_columns_are_never_features_however_they_are_spelled(tmp_path, name, group):
    """Whatever the others are called: what `evaluate` takes for users and items is no feature."""
    ids = ("group", "user_id", "user", "qid", "query_id", "item_id", "item")
    frame = pd.DataFrame({name: [1.0, 2.0] for name in (*ids, "x")} | {"label": [1, 0]})
    table = read_table(write_frame(frame, tmp_path / name), group=group)
    assert table.feature_names == ("x",)
    assert f"('x'), label 'label', user {group or 'group'!r}, item 'item_id', ignored " in (
        table.columns_used
    )
    names = "userId,movieId,session_id,ID,Unnamed: 0,rownames,paid,grid,label"
    frame = pd.DataFrame({name: [1, 0] for name in names.split(",")})
    table = read_table(write_frame(frame, tmp_path / name))
    assert table.feature_names == ("paid", "grid") and table.groups.astype(int).tolist() == [1, 0]
    assert "user 'userId', item 'movieId', ignored 'session_id', 'ID'" in table.columns_used


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_separator_is_that_of_the_first_line(tmp_path, separator, suffix):
    text = "label,user,x,'a,b;c'\n1,u,0.5,3\n0,v,1,x\n".replace(",", separator)
    path = written(tmp_path, f"f.{suffix}", text.replace("'", '"').replace("x\n", "4\n"))
    table = read_table(path)
    assert table.X.tolist() == [[0.5, 3], [1, 4]] and table.feature_names[0] == "x"
    path.write_text(path.read_text().replace("0.5", "0,5" if separator != "," else '"0,5"'))
    assert "holds '0,5', which is not a number; write decimals with a point, and" in message(path)
    assert "row 0 of the data" in message(path)


NESTED, TIMES = [[1], [2]], pd.to_datetime(["2020", "2021"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"z": [1.0, None]}, "row 1 of the data (counted from 0): column 'z' is missing"),
        ({"label": [1, None]}, "'label' is missing; leave rows without it out of the file"),
        ({"label": ["p", "q"]}, "column 'label' must be numbers or booleans, not text"),
        ({"z": [1.0, np.inf]}, "row 1 of the data (counted from 0): column 'z' is inf"),
        (
            {"z": [2**60, 2**60 + 1]},
            f"row 1 of the data (counted from 0): column 'z' holds {2**60 + 1}",
        ),
        *(({name: NESTED}, "nested") for name in ("label", "z", "group")),
        *(({name: TIMES}, "numbers or booleans, not datetime64") for name in ("label", "z")),
        ({"z": TIMES}, "give days, for example, (today - date).dt.days"),
        ({"group": [b"u1", b"\xff"]}, "binary and is no UTF-8 text"),
        ({"label": [], "group": [], "x": []}, "no data rows"),
    ],
)
def test_parquet_that_cannot_be_used(tmp_path, changes, reason):
    frame = {"label": [1, 0], "group": [1, 1], "x": np.float32([1, 2])} | changes
    pl.DataFrame(frame).write_parquet(tmp_path / "f.parquet")
    assert reason in message(tmp_path / "f.parquet")


GOOD = "label,group,x\n1,1,1\n"
REFUSED = {
    "the first line must name the columns": "",
    "but no data rows": "label,group,x\n\n\n",
    "column 'x' appears more than once": "label,group,x,x\n1,1,1,1\n",
    "column 1 has no name (pandas writes its index so": ",label,group,x\n0,1,1,1\n",
    "no column 'label' for the label": "z,group,x\n1,1,1\n",
    "no column 'label' for the label; the columns are 'label|group|x'; columns are separated by "
    "commas": "label|group|x\n1|1|1\n",
    "no feature column": "user,order_id,label\n1,2,1\n",
    "row 1 of the data (counted from 0): column 'x' is empty": GOOD + "1,1,\n",
    "column 'label' holds 'yes', which is not a number; write 1 for yes and 0": GOOD + "yes,1,1\n",
    "row 1 of the data (counted from 0): column 'customer' holds 'a', which is not a number; a "
    "column that is no feature is left out with ignore=['customer'], that of users or queries is "
    "named with group=": ("label,customer,x\n1,2,1\n1,a,1\n"),
    "line 3: 2 fields, but the first line names 3": GOOD + "1,1\n",
    "line 3: 4 fields, but the first line names 3": GOOD + "1,1,1,1\n",
    "line 2: 4 fields, but the first line names 3": "label,group,x\n1,1,1,1\n1,1,1,1\n",
    "line 5: 1 fields, but the first line names 3": GOOD + '"1,1,1\n0,1,2\n0,1,3\n',
    # pandas takes the first fields as an index, which looks like none where they are 0, 1, 2, ..
    "line 2: 4 fields, but the first line names 3 ": "label,group,x\n0,1,1,5\n1,0,1,6\n2,1,1,7\n",
    "line 2: 5 fields, but the first line names 3 ": "label,group,x\n0,1,1,5,\n1,0,1,6,\n",
    "EOF inside string starting at row 1": GOOD + '1,1,"1\n0,1,2\n0,1,3\n',
    "row 1 of the data (counted from 0): column 'group' is empty": GOOD + "1,,1\n",
    "row 1 of the data (counted from 0): column 'x' holds 'nan'": GOOD + "\n1,1,nan\n",
    "row 1 of the data (counted from 0): column 'x' holds '1_000', which is not": GOOD
    + "1,1,1_000\n",
    "row 1 of the data (counted from 0): column 'x' holds '٣', which is not a number": GOOD
    + "1,1,٣\n",
    "holds a null character": "label,group,x\n1,1,\0\n",
    f"row 1 of the data (counted from 0): column 'x' holds {2**60 + 1}": GOOD
    + f"1,1,{2**60 + 1}\n",
    "row 1 of the data (counted from 0): column 'x' is inf": GOOD + "1,1,inf\n",
    f"column 'group' holds '{'u' * 40}'.., which is longer than 1000 characters": (
        f"label,group,x\n1,{'u' * 1001},1\n"
    ),
    # the csv module limits the length of a field, pandas does not
    "row 0 of the data (counted from 0): column 'a'": f"label,a,item\n1,nan,{'x' * 200_000}\n",
    "is not UTF-8 text (byte 0xfc): save it as UTF-8, for example with iconv -f latin1 -t utf-8": (
        "label,group,x\n1,ü,1\n".encode("latin-1")
    ),
    "is UTF-16 text (byte 0xff): save it as UTF-8, for example with iconv -f utf-16": (
        GOOD.encode("utf-16")
    ),
}


@pytest.mark.parametrize(("text", "reason"), [(t, r) for r, t in REFUSED.items()], ids=REFUSED)
def test_malformed_csv_is_named(tmp_path, text, reason):
    path = tmp_path / "f.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert reason in message(path)


@pytest.mark.parametrize("note", ["plain", '"one, two"', '"a ""b"", c"', '5" wide', '"two\nlines"'])
def test_a_short_row_is_refused_though_its_last_column_is_not_read(tmp_path, note):
    # pandas fills the row: a, the user and x of the second row would be one column too far left
    path = tmp_path / "f.csv"
    path.write_text(f"label,a,user,x,note\n1,1,7,2,{note}\n0,7,2,9\n0,1,7,3,9\n")
    with pytest.raises(InputError, match="4 fields, but the first line names 5 columns"):
        read_table(path, ignore=["note"])
    path.write_text(f"label,a,user,x,note\n1,1,7,2,{note}\n0,1,7,2,9\n")
    with warnings.catch_warnings(action="ignore"):  # of two lines in a cell
        assert read_table(path, ignore=["note"]).X.tolist() == [[1, 2], [1, 2]]


def test_a_short_row_is_no_missing_value(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("label,group,x,y\n1,1,2,3\n0,1,2,\n")
    assert np.isnan(read_table(path, missing="lowest").X[1, 1])
    path.write_text("label,group,x,y\n1,1,2,3\n0,1,2\n")
    with pytest.raises(InputError, match="line 3: 3 fields, but the first line names 4 columns"):
        read_table(path, missing="lowest")


def test_rows_inside_a_quoted_cell_are_told(tmp_path):
    text = "label,user,x,title\n1,1,1,a\n\n0,1,2,{}b\n0,1,3,c\n0,1,4,{}d\n0,1,5,e\n"
    path = written(tmp_path, "f.csv", text.format('"', '"'))
    with pytest.warns(UserWarning, match=r"f\.csv, line 4: a quoted cell goes on to the next line"):
        assert read_table(path, ignore=["title"]).labels.size == 3
    assert read_table(written(tmp_path, "g.csv", text.format("", "")), ignore=["title"])
    unended = 'label,user,x\n1,u1,1\n0,"u\n1",2'
    with pytest.warns(UserWarning, match=r"line 3: a quoted cell goes on to the next line"):
        read_table(written(tmp_path, "h.csv", unended))


def test_blanks_behind_separators_count_for_nothing(tmp_path):
    path = written(tmp_path, "f.csv", "label, user, item, x\n1, u, i, 0.5\n0, u, j, 2\n")
    table = read_table(path)
    assert table.feature_names == ("x",) and table.X.tolist() == [[0.5], [2.0]]
    assert table.groups.tolist() == ["u", "u"]


@pytest.mark.parametrize(
    ("name", "how", "reason"),
    [
        ("f.csv", {"ignore": ["nothing"]}, "no column 'nothing' to ignore"),
        ("f.csv", {"label": "group", "group": "group"}, "both the label and the user"),
        ("f.csv", {"query": "x"}, "svmlight only"),
        ("f.csv", {"first_index": 0}, "for svmlight only"),
        ("f.txt", {"group": "user"}, "svmlight has no named columns"),
        ("f.txt", {"ignore": ["x"]}, "svmlight has no named columns"),
        ("f.txt", {}, "a table is read by its format, csv, tsv or parquet, if that ends its name"),
        ("e.txt", {}, "no data rows"),
        ("l.txt", {}, "no row has a feature"),
    ],
)
def test_options_and_formats_that_do_not_fit(tmp_path, name, how, reason):
    text = {"e.txt": "# nothing\n\n", "l.txt": "1 qid:1\n"}.get(name, GOOD)
    assert reason in message(written(tmp_path, name, text), **how)


@pytest.mark.parametrize("text", ["label", "naive", "vvvv"])
def test_parquet_text_that_is_no_utf8(tmp_path, text):
    path = tmp_path / "rows.parquet"
    frame = {"label": [1, 0], "group": ["uuuu", "vvvv"], "naive": [1.0, 2.0]}
    pl.DataFrame(frame).write_parquet(path, compression="uncompressed", statistics=False)
    broken = path.read_bytes().replace(text.encode(), b"\xe2" + text[1:].encode())
    for damaged in (broken, b"PAR1 but not really"):
        path.write_bytes(damaged)
        assert "not a readable Parquet file" in message(path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "partitions"])
def test_all_columns_that_cannot_be_read_are_named_at_once(tmp_path, kind):
    table = {"label": [0, 1], "user": [1, 1], "a": [1.0, 2.0], "b": [1.0, 2.0], "c": [3, 4]}
    frame = pd.DataFrame(table)
    if kind == "csv":
        frame = frame.astype({"a": object, "c": object})
        frame.loc[1, ["a", "c"]] = "about 7"
        frame.to_csv(tmp_path / "rows.csv", index=False)
        expected = r"row 1 .*: column 'a' holds 'about 7'.*; nor can these columns be read: 'c'"
    else:
        frame = frame.astype({"a": "Float64", "c": "Int64"})
        frame.loc[1, ["a", "c"]] = pd.NA
        frame.to_parquet(tmp_path / "rows.parquet", index=False)
        expected = (
            r"row 1 of the data .*: column 'a' is missing.*; nor can these columns be read: 'c'"
        )
    with pytest.raises(InputError, match=expected + r".* left out with ignore=\['a', 'c'\]"):
        if kind == "partitions":
            open_source(tmp_path / "rows.parquet").rows(0, 2)
        else:
            read_table(tmp_path / f"rows.{kind}")
    names = {"ignore": ["x", "b", "y"]}
    with pytest.raises(InputError, match="no column 'x', 'y' to ignore"):
        read_table(next(tmp_path.iterdir()), **names)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whole_numbers_beside_holes_that_floats_would_round_are_refused(tmp_path, ending):
    whole = pd.array([2**53 + 1, None, 7, 8] * 5, dtype="Int64")
    frame = pd.DataFrame({"label": [1, 0, 0, 1] * 5, "user": np.repeat(range(5), 4), "big": whole})
    path = tmp_path / f"rows.{ending}"
    write = frame.to_csv if ending == "csv" else frame.to_parquet
    write(path, index=False)
    with pytest.raises(InputError, match=r"row 0 of the data .*: column 'big' holds .*lose digits"):
        read_table(path, missing="lowest")
    frame["big"] = whole - 2**53 + 5
    frame["big"] = frame["big"].where(frame["big"] > 0)
    write(path, index=False)
    expected = frame["big"].to_numpy(dtype=float, na_value=np.nan)
    np.testing.assert_array_equal(read_table(path, missing="lowest").X[:, 0], expected)
