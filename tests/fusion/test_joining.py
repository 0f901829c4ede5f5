"""`join_lists`: every form of a run, what is joined to what, and what is refused, in a sentence."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest

from helpers.runs import noisy_runs
from structsvm_papk import fusion
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.joining import join

A = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 5.0, "d": 4.0}}
B = {"q1": {"b": 0.9, "e": 0.8}, "q2": {"d": 0.7, "f": 0.6}}
GRADES = {"q1": {"b": 1, "e": 2, "z": 3}, "q2": {"d": 1, "a": 0}}


def frame_of(nested, names=("query", "document", "score")):
    rows = [(q, d, value) for q, members in nested.items() for d, value in members.items()]
    return pd.DataFrame(rows, columns=list(names))


def lines(nested, form):
    return "".join(
        form.format(query=q, document=d, value=value)
        for q, members in nested.items()
        for d, value in members.items()
    )


RUN = "{query} Q0 {document} 1 {value} tag\n"
QRELS = "{query} 0 {document} {value}\n"


def forms(folder, nested, kind):
    """The same run or judgments in every form that is taken."""
    form = RUN if kind == "score" else QRELS
    text = lines(nested, form)
    names = ("query", "document", kind)
    plain = folder / "plain.run"
    plain.write_text(text)
    tabs = folder / "tabs.run"
    tabs.write_bytes(text.replace(" ", "\t").replace("\n", "\r\n").encode())
    packed = folder / "packed.run.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    table = folder / "table.csv"
    frame_of(nested, names).to_csv(table, index=False)
    parquet = folder / "table.parquet"
    frame_of(nested, names).to_parquet(parquet)
    yield from (nested, plain, str(plain), tabs, packed, table, parquet)
    frame = frame_of(nested, names)
    yield frame
    yield frame.astype({"query": "category", "document": "category"})
    yield pl.DataFrame({name: column.tolist() for name, column in frame.items()})
    yield frame.sample(frac=1.0, random_state=0).set_index(np.arange(len(frame))[::-1])
    usual = {"query": "qid", "document": "docno"} | ({} if kind == "score" else {kind: "label"})
    yield frame.rename(columns=usual).assign(rank=1)


def as_text(frame):
    return frame.astype({"query": str, "document": str}).sort_values(
        ["query", "document"], ignore_index=True
    )


def test_every_form_of_a_run_and_of_judgments_gives_the_same_frame(tmp_path):
    expected = as_text(fusion.join_lists({"a": A, "b": B}, GRADES))
    by_hand = frame_of(A).merge(frame_of(B), on=["query", "document"], how="outer")
    by_hand = by_hand.merge(frame_of(GRADES), on=["query", "document"], how="left")
    by_hand.columns = ["query", "document", "a", "b", "grade"]
    by_hand["grade"] = by_hand["grade"].fillna(0).astype(int)
    pd.testing.assert_frame_equal(expected, as_text(by_hand))
    for run in forms(tmp_path, A, "score"):
        pd.testing.assert_frame_equal(
            as_text(fusion.join_lists({"a": run, "b": B}, GRADES)), expected
        )
    (tmp_path / "judged").mkdir()
    for judged in forms(tmp_path / "judged", GRADES, "grade"):
        pd.testing.assert_frame_equal(
            as_text(fusion.join_lists({"a": A, "b": B}, judged)), expected
        )


def test_rows_of_a_query_stand_together_in_the_order_of_first_rows():
    joined = fusion.join_lists({"b": B, "a": A})
    assert joined["query"].tolist() == ["q1"] * 4 + ["q2"] * 3
    assert list(joined.columns) == ["query", "document", "b", "a"]


@pytest.mark.filterwarnings("ignore:run")
def test_without_judgments_there_is_no_grade_and_no_query_is_left_out():
    joined = fusion.join_lists({"a": A, "b": {"q3": {"a": 1.0}}, "c": {**A, "q3": {"a": 1.0}}})
    assert "grade" not in joined
    assert set(joined["query"]) == {"q1", "q2", "q3"}


def test_ids_that_look_like_numbers_stay_as_they_stand(tmp_path):
    (tmp_path / "a.run").write_text("007 Q0 0042 1 1.5 x\n7 Q0 42 1 2.5 x\n")
    joined = fusion.join_lists({"a": tmp_path / "a.run"}, {"007": {"0042": 1}, "7": {"0042": 1}})
    assert joined[["query", "document", "grade"]].astype(str).to_numpy().tolist() == [
        ["007", "0042", "1"],
        ["7", "42", "0"],
    ]


def test_users_and_items_may_be_numbers():
    def frame(scores, **more):
        return pd.DataFrame({"user_id": [1, 1, 2], "item_id": [10, 11, 10], **scores, **more})

    liked = pd.DataFrame({"user": [1, 2], "item": [11, 12], "grade": [1, 1]})
    runs = {"als": frame({"score": [3.0, 2.0, 1.0]}), "knn": frame({"score": [0.1, 0.2, 0.3]})}
    joined = fusion.join_lists(runs, liked, on=("user", "item"))
    assert list(joined.columns) == ["user", "item", "als", "knn", "grade"]
    assert joined["user"].tolist() == [1, 1, 2] and joined["grade"].tolist() == [0, 1, 0]


def test_judged_documents_that_nobody_retrieved_are_kept_apart():
    joined = join({"a": A, "b": B}, GRADES)
    assert "z" not in set(joined.frame["document"])
    assert joined.missed_query.tolist() == [0] and joined.missed_grade.tolist() == [3]
    assert joined.remarks == ()


def test_grades_may_be_fractions_and_negative():
    joined = fusion.join_lists({"a": A}, {"q1": {"a": 0.5, "b": -1.0}, "q2": {"a": 1.0}})
    assert joined["grade"].tolist() == [0.5, -1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("runs", "judgments", "sentence"),
    [
        ({"a": {**A, "q9": {"a": 1.0}}}, GRADES,
         "1 of 3 queries have no judgments and are left out: q9"),
        ({"a": A}, {**GRADES, "q9": {"a": 1}},
         "1 of 3 judged queries are in no run and do not count: q9"),
        ({"a": A, "b": {"q1": B["q1"]}}, None, "run 'b' retrieved nothing for 1 of 2 queries: q2"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_said(runs, judgments, sentence):
    with pytest.warns(UserWarning, match="quer") as raised:
        fusion.join_lists(runs, judgments)
    assert [str(warning.message) for warning in raised] == [sentence]


def test_a_run_of_which_no_query_is_judged_is_a_column_of_holes():
    with pytest.warns(UserWarning, match="quer") as raised:
        joined = fusion.join_lists({"a": A, "b": {"q9": {"a": 1.0}}}, GRADES)
    assert joined["b"].isna().all() and len(joined) == sum(map(len, A.values()))
    said = [str(warning.message) for warning in raised]
    assert said[0] == "1 of 3 queries have no judgments and are left out: q9"
    assert said[1] == "run 'b' retrieved nothing for 2 of 2 queries: q1, q2"


def test_a_run_whose_documents_nobody_else_knows_is_named():
    strange = {query: {d.upper(): s for d, s in of.items()} for query, of in A.items()}
    for judgments, where in ((GRADES, "are judged"), (None, "are in another run")):
        with pytest.warns(UserWarning, match="spelled") as raised:
            fusion.join_lists({"a": A, "b": B, "c": strange}, judgments)
        (said,) = [str(warning.message) for warning in raised]
        assert said.startswith(f"run 'c': none of its documents {where}: ")


def test_a_run_may_join_runs_that_do_not_meet():
    runs = {"a": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}, "c": {"q": {"x": 2.0, "y": 1.0}}}
    assert fusion.join_lists(runs)["c"].notna().all()


def test_a_run_of_equal_scores_is_named():
    flat = {query: dict.fromkeys(of, 1.0) for query, of in A.items()}
    with pytest.warns(UserWarning, match="all scores of a query are equal") as raised:
        fusion.join_lists({"a": A, "flat": flat})
    assert len(raised) == 1 and str(raised[0].message).startswith("run 'flat'")
    fusion.join_lists({"a": A, "one": {query: {min(of): 1.0} for query, of in A.items()}})


def test_a_copy_of_a_run_is_named():
    with pytest.warns(UserWarning, match="was one given twice") as raised:
        fusion.join_lists({"a": A, "b": B, "c": A})
    (said,) = [str(warning.message) for warning in raised]
    assert said.startswith("run 'c' has the same documents and scores as run 'a', and both count")


def test_a_run_the_wrong_way_round_is_named():
    runs, judgments = noisy_runs({"near": 0.3, "far": 0.3}, n_queries=12, n_documents=30)
    flipped = {**runs, "far": {q: {d: -s for d, s in of.items()} for q, of in runs["far"].items()}}
    fusion.join_lists(runs, judgments)
    with pytest.warns(UserWarning, match="wrong way round") as raised:
        fusion.join_lists(flipped, judgments)
    (said,) = [str(warning.message) for warning in raised]
    assert said.startswith("run 'far': in 12 of 12 queries relevant documents have lower scores")
    fusion.join_lists(flipped, judgments, lower_is_better=["far"])


def test_ids_that_are_lists_are_refused():
    frame = pd.DataFrame({"query": ["q1"], "document": [["a"]], "score": [1.0]})
    with pytest.raises(InputError, match="document must be texts or whole numbers: unhashable"):
        fusion.join_lists({"a": frame})


def text(content, name="x.run"):
    """A file with this content, made when the test has a folder."""
    return lambda folder: (folder / name, (folder / name).write_bytes(content.encode()))[0]


WRONG = {
    "too few fields": ({"a": text("q1 Q0 d1 1 2.5\n")}, None, "x.run, line 1: expected 'query Q0"),
    "a file that is not there": ({"a": "/no/such.run"}, None, "cannot read /no/such.run"),
    "a table without scores": (
        {"a": text("query,document\nq,d\n", "x.csv")}, None, "no column 'score'"),
    "a table without queries": (
        {"a": text("document,score\nd,1\n", "x.csv")}, None, "no column 'query' (or qid,"),
    "a table with text scores": (
        {"a": text("query,document,score\nq,d,high\n", "x.csv")}, None,
        "row 0 of the data (counted from 0): column 'score'"),
    "a table without rows": (
        {"a": text("query,document,score\n", "x.csv")}, None, "no data rows"),
    "a table with an empty id": (
        {"a": text("query,document,score\n,d,1\n", "x.csv")}, None, "column 'query' is empty"),
    "a frame with NaN": (
        {"a": frame_of({"q": {"d": np.nan}})}, None, "run 'a': the score in row 0"),
    "a frame with text scores": ({"a": frame_of({"q": {"d": "x"}})}, None, "must be numbers"),
    "a frame without a document": (
        {"a": frame_of(A).drop(columns="document")}, None, "run 'a': no column 'document'"),
    "a frame with a missing id": (
        {"a": frame_of({"q": {None: 1.0}})}, None, "run 'a': document is missing in row 0"),
    "an empty frame": ({"a": frame_of({"q": {}})}, None, "run 'a' is empty"),
    "an empty dictionary": ({"a": {}}, None, "run 'a' is empty"),
    "a dictionary of text scores": ({"a": {"q1": {"d": "x"}}}, None, "must be numbers"),
    "a pair twice in a frame": (
        {"a": pd.concat([frame_of(A)] * 2)}, None, "run 'a': document 'a' of query 'q1' occurs"),
    "a judged pair twice": (
        {"a": A}, pd.concat([frame_of(GRADES, ("query", "document", "grade"))] * 2), "judgments:"),
    "a grade of NaN": ({"a": A}, {"q1": {"b": np.nan}}, "judgments: the grade in row 0 is nan"),
    "no query in common": ({"a": A}, {"x": {"b": 1}}, "no query of the runs is in the judgments"),
    "queries of two kinds": (
        {"a": A, "b": {1: {"a": 1.0}}}, None, "query is text in run 'a' and numbers in run 'b'"),
    "documents of two kinds": (
        {"a": A}, {"q1": {7: 1}}, "document is text in run 'a' and numbers in judgments"),
    "no runs": ({}, None, "there are no runs"),
    "a run called grade": ({"grade": A}, None, "a run cannot be called 'grade'"),
    "a run called query": ({"query": A}, None, "a run cannot be called 'query'"),
    "a run called as ids are": ({"qid": A}, None, "a run cannot be called 'qid', as columns"),
    "a score beyond single precision": (
        {"a": {"q": {"d": -1e39}}}, None, "run 'a': the score in row 0 is -1e+39 (1 such rows)"),
    "documents spelled otherwise": (
        {"a": A}, {"q1": {"A": 1}, "q2": {"B": 1}}, "no document of the runs is judged"),
    "a run called nothing": ({" ": A}, None, "a run cannot be called ' '"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_inputs_end_in_a_sentence(tmp_path, what):
    runs, judgments, sentence = WRONG[what]
    runs = {name: run(tmp_path) if callable(run) else run for name, run in runs.items()}
    judgments = judgments(tmp_path) if callable(judgments) else judgments
    with pytest.raises(InputError) as raised:
        fusion.join_lists(runs, judgments)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: fusion.join_lists([A]), "runs must be a dict"),
        (lambda: fusion.join_lists({1: A}), "each name of a run must be text"),
        (lambda: fusion.join_lists({"a": 3}), "run 'a' must be a file, a frame or a dictionary"),
        (lambda: fusion.join_lists({"a": A}, 3), "judgments must be a file"),
        (lambda: fusion.join_lists({"a": A}, on="query"), "on must be a sequence such as"),
        (lambda: fusion.join_lists({"a": {"q": ["d"]}}), "of query 'q' must be a dictionary"),
        (lambda: fusion.join_lists({"a": A}, on=("a", "a")), "two different column names"),
        (lambda: fusion.rrf(A), "as join_lists makes it"),
        (lambda: fusion.combsum(frame_of(A)[["query", "document"]]), "which columns are runs"),
        (lambda: fusion.rrf(fusion.join_lists({"a": A}), k=-1), "k must be a number"),
    ],
)
def test_wrong_arguments_end_in_a_sentence(call, sentence):
    with pytest.raises((InputError, TypeError), match=sentence):
        call()
