import contextlib
import gzip
import io
import signal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from structsvm_papk.data import text as text_files
from structsvm_papk.data.readers import read_ranking_data, read_table
from structsvm_papk.data.sources import ParquetFiles
from structsvm_papk.data.validation import relevant_from
from structsvm_papk.errors import InputError

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


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz"])
def test_svmlight_with_qid(tmp_path, name):
    table = read_table(written(tmp_path, name, QID_ROWS))
    assert sparse.issparse(table.X) and table.first_index == 1
    np.testing.assert_array_equal(table.X.toarray(), DENSE)
    np.testing.assert_array_equal(table.labels, [2, 0, 1, 0])
    np.testing.assert_array_equal(table.groups, [7, 7, 9, 9])


@pytest.mark.parametrize("side", ["rows.txt.query", "rows.txt.gz", "counts"])
def test_svmlight_with_sidecar(tmp_path, side):
    name = side if side.endswith(".gz") else "rows.txt"
    path = written(tmp_path, name, QID_ROWS.replace("qid:7 ", "").replace("qid:9 ", ""))
    query = written(tmp_path, side if side == "counts" else "rows.txt.query", "1\n3\n")
    table = read_table(path, query=query if side == "counts" else None)
    np.testing.assert_array_equal(table.groups, [0, 1, 1, 1])


def test_sidecar_and_qid_must_agree(tmp_path):
    path = written(tmp_path, "rows.txt", QID_ROWS)
    sidecar = written(tmp_path, "rows.txt.query", "2\n2\n")
    np.testing.assert_array_equal(read_table(path).groups, [7, 7, 9, 9])
    sidecar.write_text("1\n3\n")
    assert "divides the rows differently" in message(path)


BEYOND = f"{10**18 - 1}\n" * 18 + f"{2**64 + 2 - 18 * (10**18 - 1)}\n"  # 2 in 64 bits


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ("1\n1\n", "add up to 2, but"),
        (BEYOND, "add up to 18446744073709551618, but"),
        *((text, "line 2: expected a number of rows") for text in ("2\ntwo\n", "2\n-1\n")),
        ("2\n1.5\n", "line 2: expected a number of rows"),
    ],
)
def test_counts_that_cannot_be(tmp_path, counts, reason):
    path = written(tmp_path, "rows.txt", "1 1:1\n0 1:2\n0 1:3\n")
    written(tmp_path, "rows.txt.query", counts)
    assert reason in message(path)


def test_svmlight_counted_from_zero(tmp_path):
    path = written(tmp_path, "rows.txt", "1 qid:1 0:1\n0 qid:1 2:5\n")
    table = read_table(path)
    assert table.first_index == 0
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0, 0], [0, 0, 5]])


def test_features_as_another_table_has_them(tmp_path):
    """A second file that lacks index 0 and the last feature must still line up with the first."""
    train = read_table(written(tmp_path, "train", "1 qid:1 0:1\n0 qid:1 3:5\n"))
    test = read_table(written(tmp_path, "test", "1 qid:1 1:7\n"), like=train)
    np.testing.assert_array_equal(test.X.toarray(), [[0, 7, 0, 0]])
    wide = written(tmp_path, "wide", "1 qid:1 4:7\n")
    assert "5 features (largest index 4), but 4 are expected" in message(wide, like=train)


def test_index_zero_where_features_are_counted_from_one(tmp_path):
    train = read_table(written(tmp_path, "train", "1 qid:1 1:1\n"))
    path = written(tmp_path, "test", "1 qid:1 0:7\n")
    assert "feature index 0, but the features are counted from 1" in message(path, like=train)


def _model(n_features, **names):
    return SimpleNamespace(**{"n_features": n_features, "feature_names": None} | names)


@pytest.mark.parametrize(
    ("base", "rows", "said"),
    [
        (1, "1 1:5 3:7\n", ""),  # index 3 of 3 features: counted from 1
        (0, "1 0:5 1:7\n", ""),
        (1, "1 1:5 2:7\n", "run from 1 to 2, where 3 features may be counted from 0 or from 1"),
        (0, "1 1:5 2:7\n", "they are taken as counted from 0 (--first-index says otherwise)"),
        (None, "1 1:5 2:7\n", "the model does not say from where features are counted"),
        (1, "1\n", ""),
    ],
)
def test_indices_that_fit_two_ways_are_told_of(tmp_path, base, rows, said):
    path = written(tmp_path, "rows", rows)
    remarks = read_table(path, like=_model(3, first_index=base)).remarks
    assert len(remarks) == bool(said) and all(said in remark for remark in remarks)


def test_a_file_may_count_from_elsewhere_than_the_model(tmp_path):
    path = written(tmp_path, "rows", "1 1:5 2:7\n")
    model = _model(3, first_index=1)
    for base, dense in ((0, [0, 5, 7]), (1, [5, 7, 0])):
        table = read_table(path, like=model, first_index=base)
        assert table.X.toarray().tolist() == [dense] and table.remarks == ()
    assert read_table(path, first_index=0).X.shape == (1, 3)
    assert "counted from 1" in message(written(tmp_path, "zero", "1 0:1\n"), first_index=1)
    plain = written(tmp_path, "f.csv", "label,group,x\n1,1,1\n0,1,2\n")
    assert "for svmlight only" in message(plain, first_index=0)


def test_features_matched_by_their_place_are_told_of(tmp_path):
    plain = written(tmp_path, "f.csv", "label,group,b,a\n1,1,1,2\n")
    (remark,) = read_table(plain, like=_model(2, first_index=1)).remarks
    assert (
        "does not name its 2 features, so the columns are taken in this order: 'b', 'a'" in remark
    )
    assert read_table(plain, like=_model(2, feature_names=("a", "b"))).remarks == ()
    rows = written(tmp_path, "rows", "1 1:5\n")
    (remark,) = read_table(rows, like=_model(2, feature_names=("a", "b"))).remarks
    assert "taken in the order 'a', 'b'" in remark


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("one qid:1 1:1", "the label 'one' is not a number"),
        ("1 qid:a 1:1", "the query 'qid:a' is not a whole number"),
        ("1 qid:99999999999999999999 1:1", "is not a whole number"),
        ("1 qid:1 1:1 2", "expected 'index:value', got '2'"),
        ("1 qid:1 1:1 x:2", "expected 'index:value', got 'x:2'"),
        ("1 qid:1 1:1 2:3:4", "expected 'index:value', got '2:3:4'"),
        ("1 qid:1 1:", "expected 'index:value', got '1:'"),
        ("1 qid:1 -1:1", "negative feature index -1"),
        ("1 qid:1 2:1 1:1", "feature index 1 after 2: indices must rise"),
        ("1 qid:1 1:1 1:2", "feature index 1 after 1: indices must rise"),
        ("1 qid:1 2147483647:1", "feature index 2147483647 is above the limit 2147483646"),
        ("1 qid:1 2147483648:1", "feature index 2147483648 is above the limit 2147483646"),
        ("1 qid:1 99999999999999999999:1", "expected 'index:value'"),
        ("1_0 qid:1 1:1", "the label '1_0' is not a number"),
        ("1 qid:1_0 1:1", "is not a whole number"),
        ("1 qid:1 1_0:1", "expected 'index:value', got '1_0:1'"),
        ("1 qid:1 1:1_0", "expected 'index:value', got '1:1_0'"),
        ("\x00\x01\xff", "is not a number"),
        ("1 1:1", "no qid, though other rows have one"),
        ("1 qid:1 1:nan", "feature 1 is nan"),
        ("1 qid:1 1:1 4:-inf", "feature 4 is -inf"),
        ("inf qid:1 1:1", "the label is inf"),
    ],
)
def test_malformed_svmlight_row_is_named(tmp_path, row, reason):
    text = f"# header\n\n1 qid:1 1:1\n{row}\n0 qid:1 1:2\n"
    complaint = message(written(tmp_path, "rows.txt", text))
    assert "line 4: " in complaint
    assert reason in complaint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no data rows"),
        ("# nothing\n\n", "no data rows"),
        ("1 qid:1\n", "no row has a feature"),
    ],
)
def test_svmlight_without_rows_or_features(tmp_path, text, reason):
    assert reason in message(written(tmp_path, "rows.txt", text))


def test_missing_file_and_foreign_gzip(tmp_path):
    assert "No such file" in message(tmp_path / "absent.txt")
    path = tmp_path / "rows.gz"
    path.write_bytes(b"1 qid:1 1:1\n")
    assert "cannot read" in message(path)
    path.write_bytes(gzip.compress(QID_ROWS.encode() * 100)[:-40])
    assert "cannot read" in message(path)
    assert "directory" in message(tmp_path)


def test_groups_missing_for_a_file_of_many_users(tmp_path):
    path = written(tmp_path, "rows.txt", "1 1:1\n0 1:2\n")
    with pytest.raises(InputError, match=r"does not say which rows belong to which user.*qid"):
        read_ranking_data(path)
    assert read_ranking_data(path, one_list=True).n_users == 1


FRAME = pd.DataFrame(
    {
        "age": [0.5, 1.5, -2.0, 4.0],
        "user": ["b", "a", "b", "a"],
        "clicks": [1.0, 2.0, 3.0, 4.0],
        "item": ["w", "x", "y", "z"],
        "grade": [3, 0, 1, 2],
    }
)
COLUMNS = {"label": "grade", "group": "user", "ignore": ["item"]}


def write_frame(frame, path):
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.tsv", "f.parquet", "a.b.CSV"])
def test_named_columns(tmp_path, name):
    table = read_table(write_frame(FRAME, tmp_path / name), **COLUMNS)
    assert table.feature_names == ("age", "clicks")
    np.testing.assert_array_equal(table.X, FRAME[["age", "clicks"]])
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.labels, FRAME["grade"])
    assert list(table.groups) == list("baba")


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_columns_are_matched_by_name(tmp_path, name):
    table = read_table(write_frame(FRAME, tmp_path / "train.csv"), **COLUMNS)
    other = FRAME[["clicks", "user", "age"]].assign(extra=1.0)
    again = read_table(
        write_frame(other, tmp_path / name), group="user", like=table, require_labels=False
    )
    assert again.labels is None
    np.testing.assert_array_equal(again.X, table.X)
    short = write_frame(FRAME[["age", "user", "grade"]], tmp_path / name)
    complaint = message(short, like=table, label="grade", group="user")
    assert "no column 'clicks', a feature of the model" in complaint


def test_polars_csv_with_truth_values_and_quoted_text(tmp_path):
    frame = pl.DataFrame({"label": [True, False], "group": ['u,"1"', "u2"], "x": [1.0, 2.0]})
    frame.write_csv(tmp_path / "f.csv")
    table = read_table(tmp_path / "f.csv")
    np.testing.assert_array_equal(table.labels, [1, 0])
    assert list(table.groups) == ['u,"1"', "u2"]


IDS = ["007", "7", "1e3", "1000", "12345678901234567890", "12345678901234567891"]


def test_users_of_a_text_table_are_text(tmp_path):
    rows = "".join(f"{i % 2},{user},1\n" for i, user in enumerate(IDS))
    table = read_table(written(tmp_path, "f.csv", "label,group,x\n" + rows))
    assert table.groups.tolist() == IDS
    single = read_table(written(tmp_path, "g.csv", "label,group,x\n1,007,1\n0,007,2\n"))
    assert single.groups.tolist() == ["007", "007"]


@pytest.mark.parametrize("index", [None, "position"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, index):
    frame = pd.DataFrame({"label": [0, 1], "user": [1, 1], "x": [1.0, 2.0]}, index=[5, 3])
    table = read_table(write_frame(frame.rename_axis(index), tmp_path / "f.parquet"))
    assert table.feature_names == ("x",)
    path = write_frame(frame.set_index("user"), tmp_path / "f.parquet")
    assert read_table(path).groups.tolist() == [1, 1]
    assert ParquetFiles.open(path).feature_names == ("x",)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_whole_numbers_that_a_double_rounds_are_no_features(tmp_path, name):
    frame = pd.DataFrame({"label": [0, 1], "user": [1, 1], "x": [2**60, 2**60 + 1]})
    path = write_frame(frame, tmp_path / name)
    where = "line 3" if name == "f.csv" else "row 1 (counted from 0)"
    assert f"{where}: column 'x' holds {2**60 + 1}" in message(path)
    assert read_table(write_frame(frame.head(1), path)).X.tolist() == [[2.0**60]]


def test_users_of_parquet_are_of_their_type(tmp_path):
    frame = pd.DataFrame({"label": [1, 0, 0], "x": [1.0, 2.0, 3.0]})
    for users in ([7, 2**53 + 1, 2**53], ["007", "7", "1e3"]):
        path = write_frame(frame.assign(group=users), tmp_path / "f.parquet")
        assert read_table(path).groups.tolist() == users
    path = write_frame(frame.assign(group=[b"u1", b"\xc3\xbc", b""]), tmp_path / "f.parquet")
    assert read_table(path).groups.tolist() == ["u1", "ü", ""]
    path = write_frame(frame.assign(group=[b"u1", b"\xff", b""]), tmp_path / "f.parquet")
    assert "column 'group' has type binary and is no UTF-8 text" in message(path)


def test_id_columns_are_never_features(tmp_path):
    """Whatever the others are called: what `evaluate` takes for users and items is no feature."""
    ids = ("group", "user_id", "user", "qid", "query_id", "item_id", "item")
    frame = pd.DataFrame({name: [1.0, 2.0] for name in (*ids, "x")} | {"label": [1, 0]})
    for name in ("f.csv", "f.parquet"):
        path = write_frame(frame, tmp_path / name)
        for group in ("user_id", "qid", None):
            table = read_table(path, group=group)
            assert table.feature_names == ("x",)
            assert f"1 features ('x'), label 'label', user {group or 'group'!r}" in (
                table.columns_used
            )
            assert "item 'item_id', ignored " in table.columns_used


def test_names_of_ids_are_known_in_any_spelling(tmp_path):
    names = "userId,movieId,session_id,ID,Unnamed: 0,paid,grid,label"
    path = written(tmp_path, "f.csv", f"{names}\n1,2,3,4,5,6,7,1\n2,2,3,4,5,6,7,0\n")
    table = read_table(path)
    assert table.feature_names == ("paid", "grid") and table.groups.tolist() == ["1", "2"]
    assert "user 'userId', item none, ignored 'movieId', 'session_id', 'ID'" in table.columns_used
    only = written(tmp_path, "g.csv", "user,order_id,label\n1,2,1\n")
    assert "no feature column" in message(only)


@pytest.mark.parametrize("separator", [";", "\t", ","])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_separator_is_that_of_the_first_line(tmp_path, separator, suffix):
    text = "label,user,x,'a,b;c'\n1,u,0.5,3\n0,v,1,x\n".replace(",", separator)
    path = written(tmp_path, f"f.{suffix}", text.replace("'", '"').replace("x\n", "4\n"))
    table = read_table(path)
    assert table.X.tolist() == [[0.5, 3], [1, 4]] and table.feature_names[0] == "x"
    path.write_text(path.read_text().replace("0.5", "0,5" if separator != "," else '"0,5"'))
    assert "holds '0,5', which is not a number; write decimals with a point" in message(path)
    assert "line 2" in message(path)


def test_options_for_named_columns_are_refused_where_there_are_none(tmp_path):
    path = written(tmp_path, "f.txt", "1 qid:1 1:2\n")
    for how in ({"group": "user"}, {"ignore": ["x"]}):
        assert "svmlight has no named columns" in message(path, **how)
    table = written(tmp_path, "g.txt", "label,user,x\n1,1,1\n")
    assert "for a table with named columns give its format" in message(table)


def test_labels_may_be_true_and_false(tmp_path):
    path = written(tmp_path, "f.csv", "label,user,x\nTrue,1,1\nFALSE,1,2\n")
    assert read_table(path).labels.tolist() == [1.0, 0.0]


def test_parquet_keeps_single_precision_and_names_nulls(tmp_path):
    path = tmp_path / "f.parquet"
    frame = pd.DataFrame({"label": [1, 0], "group": [1, 1], "x": np.float32([1, 2])})
    assert read_table(write_frame(frame, path)).X.dtype == np.float32
    frame["z"] = [1.0, None]
    assert "'z' is missing at row 1" in message(write_frame(frame, path))
    frame["z"] = ["p", "q"]
    assert "column 'z' must be numbers or booleans, not text" in message(write_frame(frame, path))
    frame["z"] = [1.0, np.inf]
    assert "row 1 (counted from 0): column 'z' is inf" in message(write_frame(frame, path))
    assert "no data rows" in message(write_frame(frame[:0], path))
    path.write_bytes(b"PAR1 but not really")
    assert "not a readable Parquet file" in message(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the first line must name the columns"),
        ("label,group,x\n", "no data rows"),
        ("label,group,x\n\n\n", "no data rows"),
        ("label,group,x,x\n1,1,1,1\n", "column 'x' appears more than once"),
        (",label,group,x\n0,1,1,1\n", "column 1 has no name (pandas writes its index so"),
        ("z,group,x\n1,1,1\n", "no column 'label' for the label"),
        ("label,group\n1,1\n", "no feature column"),
        ("label,group,x\n1,1,1\n\n1,1,abc\n", "line 4: column 'x' holds 'abc'"),
        ("label,group,x\n1,1,1\n1,1,\n", "line 3: column 'x' holds ''"),
        (
            "label,group,x\n1,1,1\nyes,1,1\n",
            "line 3: column 'label' holds 'yes', which is not a number",
        ),
        ("label,group,x\n1,1,1\n1,1\n", "line 3: 2 fields, but the first line names 3"),
        ("label,group,x\n1,1,1\n1,1,1,1\n", "line 3: 4 fields, but the first line names 3"),
        ("label,group,x\n1,1,1,1\n1,1,1,1\n", "line 2: 4 fields, but the first line names 3"),
        ("label,group,x\n1,1,1\n1,,1\n", "line 3: column 'group' is empty"),
        ("label,group,x\n1,1,1\n\n1,1,nan\n", "line 4: column 'x' holds 'nan'"),
        ("label,group,x\n1,1,1\n1,1,1_000\n", "line 3: column 'x' holds '1_000', which is not"),
        ("label,group,x\n1,1,1\n1,1,٣\n", "line 3: column 'x' holds '٣', which is not a number"),
        ("label,group,x\n1,1,1\n1,1,NA\n", "line 3: column 'x' holds 'NA', which is not a number"),
        ("label,group,x\n1,1,\0\n", "holds a null character"),
        ("label,group,x\n1,1,1\n1,1,inf\n", "line 3: column 'x' is inf"),
    ],
)
def test_malformed_csv_is_named(tmp_path, text, reason):
    assert reason in message(written(tmp_path, "f.csv", text))


def test_csv_that_is_no_text(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(b"label,group,x\n1,1,\xff\xfe\n")
    assert "is not UTF-8 text (byte 0xff)" in message(path)
    path.write_text("label,group,x\n1,ü,1\n", encoding="latin-1")
    assert "iconv -f latin1 -t utf-8" in message(path)
    path.write_text("label,group,x\n1,1,1\n", encoding="utf-16")
    assert "is UTF-16 text" in message(path) and "iconv -f utf-16" in message(path)


def test_large_finite_values_are_no_infinities(tmp_path):
    path = written(tmp_path, "f.csv", "label,group,x,z\n1,1,1e308,1e308\n0,1,1,1\n")
    assert read_table(path).X[0, 0] == 1e308


def test_options_that_do_not_fit(tmp_path):
    path = write_frame(FRAME, tmp_path / "f.csv")
    assert "no column 'nothing' to ignore" in message(path, **COLUMNS | {"ignore": ["nothing"]})
    assert "svmlight only" in message(path, query="x")
    with pytest.raises(InputError, match="format='xml' is not known"):
        read_table(path, format="xml")


def test_csv_without_users(tmp_path):
    path = write_frame(FRAME.rename(columns={"user": "who"}), tmp_path / "f.csv")
    with pytest.raises(InputError, match="name it with --group"):
        read_ranking_data(path, label="grade", ignore=["who"], relevance_threshold=2)


def test_relevance_by_threshold():
    grades = np.array([0.0, 1.0, 2.0, 3.0])
    assert relevant_from(grades, 2, "f") == 2
    assert -1 < relevant_from(np.array([-1.0, 1.0]), None, "f") <= 1
    with pytest.raises(InputError, match=r"not 0/1 or -1/1 \(found -1, 0\)"):
        relevant_from(np.array([-1.0, 0.0]), None, "f")
    with pytest.raises(InputError, match=r"f: labels are not 0/1.*found 0, 1, 2, 3"):
        relevant_from(grades, None, "f")
    with pytest.raises(InputError, match=r"f: at relevance threshold 9 all labels are of one"):
        relevant_from(grades, 9, "f")
    with pytest.raises(InputError, match=r"f: all labels are of one class \(1\)"):
        relevant_from(np.ones(3), None, "f")


def test_one_column_cannot_be_label_and_user(tmp_path):
    path = written(tmp_path, "rows.csv", "label,a\n1,2\n0,1\n")
    assert "both the label and the user" in message(path, label="label", group="label")


def test_a_field_too_long_for_the_csv_module(tmp_path):
    text = f"label,note,a\n1,{'x' * 200_000},nan\n0,b,1\n"
    assert "row 0 (counted from 0): column 'a' holds 'nan'" in message(
        written(tmp_path, "rows.csv", text), ignore=("note",)
    )


@pytest.mark.parametrize("user", ["u" * 1001, "a\0"])
def test_user_labels_that_numpy_would_blow_up_or_cut(tmp_path, user):
    text = f"label,group,a\n1,{user},1\n0,a,2\n"
    assert "null character" in message(written(tmp_path, "rows.csv", text))


def test_an_interrupt_while_a_file_is_read_stays_one(tmp_path, monkeypatch):
    class Interrupted(io.StringIO):
        def read(self, size=-1):
            signal.raise_signal(signal.SIGINT)
            return super().read(size)

    path = written(tmp_path, "rows.csv", "label,group,x\n1,1,2\n")
    opened = contextlib.nullcontext(Interrupted(path.read_text()))
    monkeypatch.setattr(text_files, "_open_text", lambda path: opened)
    with pytest.raises(KeyboardInterrupt):
        read_table(path)


def test_a_null_character_in_the_name():
    with pytest.raises(InputError, match="null character"):
        read_table("a\0b")


@pytest.mark.parametrize("column", ["label", "a", "group"])
def test_parquet_with_nested_or_temporal_columns(tmp_path, column):
    frame = {"label": [1, 0], "group": ["u", "u"], "a": [1.0, 2.0]}
    path = tmp_path / "rows.parquet"
    pl.DataFrame(frame | {column: [[1], [2]]}).write_parquet(path)
    assert "nested" in message(path)
    if column != "group":
        pl.DataFrame(frame | {column: pd.to_datetime(["2020", "2021"])}).write_parquet(path)
        assert "must be numbers or booleans, not datetime64" in message(path)


@pytest.mark.parametrize("text", ["label", "naive", "vvvv"])
def test_parquet_text_that_is_no_utf8(tmp_path, text):
    path = tmp_path / "rows.parquet"
    frame = {"label": [1, 0], "group": ["uuuu", "vvvv"], "naive": [1.0, 2.0]}
    pl.DataFrame(frame).write_parquet(path, compression="uncompressed", statistics=False)
    damaged = path.read_bytes().replace(text.encode(), b"\xe2" + text[1:].encode())
    path.write_bytes(damaged)
    assert "not a readable Parquet file" in message(path)
