"""Runs and judgments in TREC formats: what is read, refused with its line, and written."""

import gzip
from functools import partial

import numpy as np
import pandas as pd
import pytest

from structsvm_papk.errors import InputError
from structsvm_papk.files import trec
from structsvm_papk.files.trec import JUDGMENTS, RUN, read_lines, write_run

read_run = partial(read_lines, form=RUN)
read_judgments = partial(read_lines, form=JUDGMENTS)

LINES = "007 Q0 d2 1 2.5 tag\n007 Q0 d1 2 1e-3 tag\n7 Q0 d2 1 -4 tag\n"


def written(tmp_path, text, name="a.run"):
    path = tmp_path / name
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def rows(frame):
    return [tuple(row) for row in frame.astype(object).itertuples(index=False)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (LINES, "a.run"),
        (LINES, "a.run.gz"),
        (LINES.replace("\n", "\r\n"), "a.run"),
        (LINES.replace(" ", "\t"), "a.run"),
        (LINES.replace(" ", "  ", 3), "a.run"),
        (LINES.replace(" tag", " tag  "), "a.run"),
        (LINES.replace(" ", " \t", 1), "a.run"),
        ("\n" + LINES + "\n\n", "a.run"),
        ("\ufeff" + LINES, "a.run"),
        (LINES.rstrip("\n"), "a.run"),
    ],
    ids=["plain", "gz", "crlf", "tabs", "wide", "trailing", "mixed", "blank", "bom", "no-newline"],
)
def test_a_run_is_read_as_it_stands(tmp_path, text, name):
    frame = read_run(written(tmp_path, text, name))
    assert rows(frame) == [("007", "d2", 2.5), ("007", "d1", 1e-3), ("7", "d2", -4.0)]
    assert list(frame["query"].cat.categories) == ["007", "7"]
    assert list(frame["document"].cat.categories) == ["d2", "d1"]
    assert frame["score"].dtype == np.float64


@pytest.mark.parametrize("space", [" ", "  ", "\t"])
@pytest.mark.parametrize("score", ["3", "99999999999999999999999", "-1e38"])
def test_scores_are_floats_however_they_are_written(tmp_path, space, score):
    line = space.join(["q", "Q0", "d", "1", score, "t"])
    scores = read_run(written(tmp_path, line + "\n"))["score"]
    assert scores.dtype == np.float64 and scores.tolist() == [float(score)]


def test_judgments_are_read_as_they_stand(tmp_path):
    path = written(tmp_path, '007 0 NA 3\n007 0 1 -2\n7 Q0 null 0\n8 0 \u00fc"x 1.0\n')
    frame = read_judgments(path)
    assert rows(frame) == [
        ("007", "NA", 3),
        ("007", "1", -2),
        ("7", "null", 0),
        ("8", '\u00fc"x', 1),
    ]
    assert frame["grade"].dtype == np.int64


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_run, "", "no lines; expected 'query Q0 document rank score tag'"),
        (read_run, "\n \n", "no lines"),
        (read_run, "a Q0 b 1 2\n", "line 1: expected 'query Q0 document rank score tag', 6 fields"),
        (read_run, "\ufeffa Q0 b 1 2\n", "line 1: expected .* got 'a Q0 b 1 2'"),
        # queries 1, 2, 3: pandas makes an index of them, and of Q0 the queries
        (read_run, "1 Q0 a 1 2 t x\n2 Q0 b 1 2 t x\n3 Q0 c 1 2 t x\n", "line 1: expected 'query"),
        (read_judgments, "1 0 a 1 7\n2 0 b 1 8\n3 0 c 1 9\n", "line 1: expected 'query 0"),
        (read_run, LINES + "a Q0 b 1 2 t u\n", "line 4: expected .* got 'a Q0 b 1 2 t u'"),
        (read_run, LINES + "a Q0 b 1 t\n", "line 4: expected"),
        (read_run, "a Q0 b 1 2 t u\n" + LINES, "line 1: expected"),
        (read_run, LINES + "a  b 1 2 t\n", "line 4: expected"),
        (read_run, LINES + "a Q0 b 1 x t\n", "line 4: the score 'x' is not a finite number"),
        (read_run, LINES + "a Q0 b 1 nan t\n", "line 4: the score 'nan' is not a finite number"),
        (read_run, LINES + "a Q0 b 1 inf t\n", "line 4: the score 'inf'"),
        (read_run, LINES + "a Q0 b 1 1_0 t\n", "line 4: the score '1_0'"),
        (read_run, LINES + "a Q0 b 1 4e38 t\n", "line 4: the score '4e38' .*single precision"),
        (read_run, LINES + "a Q0 b 1 \u0663 t\n", "line 4: the score '\u0663' is not a finite"),
        (read_run, LINES + "a Q0 b\fc 1 2 t\n", "line 4: holds .* a form feed"),
        (read_run, LINES + "a Q0 b\fc 1 t\n", "line 4: holds .* a form feed"),
        (read_run, "a 0 b 1\n", "line 1: .*this is a line of judgments"),
        (read_run, "\nquery,document,score\n", "line 2: expected .* got 'query,document,score'"),
        (read_run, LINES + "\n7 Q0 d2 2 3 t\n", "row 3 .*: document 'd2' of query '7' is"),
        (read_run, LINES.encode("utf-16"), "line 1: is not UTF-8 text"),
        (read_run, LINES.encode() + b"a Q0 \xfc 1 2 t\n", "line 4: is not UTF-8 text .byte 0xfc"),
        (read_run, LINES + "a Q0 b\0c 1 2 t\n", "line 4: holds a null character"),
        (read_judgments, "", "no lines; expected 'query 0 document grade'"),
        (read_judgments, "a 0 b 1\na 0 c\n", "line 2: expected 'query 0 document grade', 4 fields"),
        (read_judgments, "a 0 b 1\na 0 c .5\n", "line 2: the grade '.5' is not a whole number"),
        (read_judgments, "a 0 b 1\na 0 c high\n", "line 2: the grade 'high'"),
        (read_judgments, "a 0 b 9007199254740993\n", "line 1: .* not a whole number below 2.53"),
        (read_judgments, "a 0 b 1e30\n", "line 1: the grade '1e30' is not a whole number"),
        (read_judgments, "a 0 b \u0661\n", "line 1: the grade '\u0661' is not a whole number"),
        (read_judgments, LINES, "line 1: .*this is a line of a run"),
        (read_judgments, "a 0 b 1\na 0 b 1\n", "row 1 .*: document 'b' of query 'a' is judged a"),
    ],
)  # fmt: skip
def test_what_is_no_run_is_refused_with_its_line(tmp_path, read, text, message):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as error:
        read(path)
    assert str(error.value).startswith(str(path))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        read_run(tmp_path / "none.run")
    broken = written(tmp_path, LINES, "a.run.gz")
    broken.write_bytes(broken.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot read"):
        read_run(broken)
    broken.write_bytes(LINES.encode())
    with pytest.raises(InputError, match=r"cannot read .*[Nn]ot a gzipped file"):
        read_run(broken)


def test_what_a_file_looks_like(tmp_path):
    run = written(tmp_path, LINES)
    judgments = written(tmp_path, "a 0 b 1\n", "a.qrels")
    table = written(tmp_path, "user,item,label\n1,2,3\n", "a.csv")
    files = (run, judgments, table)
    assert [trec.is_run(path) for path in files] == [True, False, False]


@pytest.mark.parametrize("name", ["b.run", "b.run.gz"])
def test_a_run_is_written_in_the_order_of_trec_eval(tmp_path, name):
    frame = pd.DataFrame(
        {
            "query": ["b", "a", "b", "b", "b"],
            "document": ["9", "x", "10", "\u00fc", "Z"],
            "score": [0.1, 3.0, 0.1, 0.1, 0.1 + 2**-56],
        }
    )
    path = tmp_path / name
    write_run(path, frame, "t")
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[-1] == "a Q0 x 1 3.0 t"
    # by score in single precision, where .1 and .1 + 2^-56 are one, then by document
    assert [line.split()[2] for line in lines[:-1]] == ["\u00fc", "Z", "9", "10"]
    assert float(lines[1].split()[4]) > 0.1 == float(lines[0].split()[4])
    assert [line.split()[3] for line in lines[:-1]] == ["1", "2", "3", "4"]
    again = read_run(path)
    assert sorted(rows(again)) == sorted(rows(frame))


@pytest.mark.parametrize(
    ("frame", "tag", "message"),
    [
        ({"query": ["a"], "document": ["b"]}, "t", "no column 'score'"),
        ({"query": ["a"], "document": ["b c"], "score": [1.0]}, "t", "document 'b c'"),
        ({"query": [""], "document": ["b"], "score": [1.0]}, "t", "query '' is empty"),
        ({"query": ["a"], "document": [None], "score": [1.0]}, "t", "'document' is missing in row"),
        ({"query": ["a"], "document": ["b"], "score": [np.inf]}, "t", "score in row 0 is inf"),
        ({"query": ["a"] * 2, "document": ["b"] * 2, "score": [1, 2]}, "t", "'b' of query 'a' occ"),
        ({"query": ["a"], "document": ["b"], "score": [1.0]}, "my tag", "tag='my tag'"),
        ({"query": ["a"], "document": ["b"], "score": [1.0]}, "", "one word"),
    ],
)
def test_what_no_run_can_hold_is_not_written(tmp_path, frame, tag, message):
    path = tmp_path / "a.run"
    path.write_text("old")
    with pytest.raises(InputError, match=message):
        write_run(path, pd.DataFrame(frame), tag)
    assert path.read_text() == "old"


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_lines_are_counted_alike_whatever_ends_them(end, tmp_path):
    path = tmp_path / "j.qrels"
    path.write_bytes(end.join(["q1 0 b 1", "q1 0 e 1", "q2 0 c 1", "q2 0 c 2", ""]).encode())
    with pytest.raises(
        InputError, match=r"row 3 of the data .*: document 'c' of query 'q2' is judged a second"
    ):
        read_judgments(path)
    path.write_bytes(end.join(["q1 0 b 1", "q1 0 e x", ""]).encode())
    with pytest.raises(InputError, match="line 2: the grade 'x'"):
        read_judgments(path)
    path.write_bytes(end.join(["q1 0 b 1", "q1 0 e 2", ""]).encode())
    assert read_judgments(path)["grade"].tolist() == [1, 2]
