"""Runs and judgments as they are published: BEIR, MTEB, MS MARCO, ESCI, distances, chunks."""

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run, run_json
from helpers.runs import noisy_runs
from structsvm_papk import fusion
from structsvm_papk.errors import InputError
from structsvm_papk.files import trec
from structsvm_papk.fusion.joining import join

A = {"1": {"11": 3.0, "12": 2.0, "13": 1.0}, "2": {"11": 1.0, "14": 0.5}}
B = {"1": {"12": 9.0, "15": 4.0}, "2": {"14": 2.0, "15": 1.0}}
GRADES = {"1": {"12": 1, "13": 0}, "2": {"14": 1, "11": 0}}


def lines(content, form):
    text = ""
    for query, own in content.items():
        ranked = sorted(own.items(), key=lambda pair: -pair[1])
        for rank, (document, value) in enumerate(ranked, start=1):
            text += form.format(q=query, d=document, v=value, r=rank) + "\n"
    return text


def test_judgments_of_beir_and_of_mteb(tmp_path):
    expected = fusion.join_lists({"a": A, "b": B}, GRADES)
    path = tmp_path / "test.tsv"
    path.write_text("query-id\tcorpus-id\tscore\n" + lines(GRADES, "{q}\t{d}\t{v}"))
    pd.testing.assert_frame_equal(fusion.join_lists({"a": A, "b": B}, path), expected)
    frame = pd.read_csv(path, sep="\t", dtype=str).astype({"score": int})
    pd.testing.assert_frame_equal(fusion.join_lists({"a": A, "b": B}, frame), expected)


def test_files_of_ms_marco_have_no_header(tmp_path, capsys):
    (tmp_path / "qrels.dev.tsv").write_text(lines(GRADES, "{q}\t0\t{d}\t{v}"))
    (tmp_path / "bm25.tsv").write_text(lines(A, "{q}\t{d}\t{r}"))
    (tmp_path / "trec.tsv").write_text(lines(B, "{q}\tQ0\t{d}\t{r}\t{v}\tt"))
    files = {"a": tmp_path / "bm25.tsv", "b": tmp_path / "trec.tsv"}
    joined = join(files, tmp_path / "qrels.dev.tsv")
    assert joined.ranked_only == ("a",) and not joined.have_scores
    assert "run 'a'" in joined.remarks[0] and "ranks and no scores" in joined.remarks[0]
    expected = fusion.join_lists({"a": A, "b": B}, GRADES)
    pd.testing.assert_series_equal(joined.frame["b"], expected["b"])
    assert joined.frame["a"].dropna().tolist() == [-1.0, -2.0, -3.0, -1.0, -2.0]
    assert fusion.rrf(joined.frame).tolist() == fusion.rrf(expected).tolist()
    status, said = run_json(
        capsys, "evaluate", files["a"], "--qrels", tmp_path / "qrels.dev.tsv", "-m", "mrr@10"
    )
    assert status == 0 and said["metrics"][0]["value"] == 0.5
    with pytest.raises(InputError, match="line 2: the rank 'x' is not a whole number"):
        (tmp_path / "bad.tsv").write_text("1\t2\t3\n1\t4\tx\n")
        trec.read_lines(tmp_path / "bad.tsv", trec.RANKED)


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_ranks_stand_where_there_are_no_scores(tmp_path, kind):
    ranks = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["11", "12", "11"], "rank": [0, 1, 0]})
    given = ranks
    if kind == "file":
        given = tmp_path / "a.csv"
        ranks.to_csv(given, index=False)
    joined = join({"a": given, "b": B})
    assert joined.ranked_only == ("a",)
    assert joined.frame["a"].dropna().tolist() == [0.0, -1.0, 0.0]


def many():
    def letter(relevance):
        return "ICSE"[np.digitize(relevance, [0.0, 0.5, 1.0])]

    return noisy_runs({"a": 1.0, "b": 1.0}, 14, 12, letter)


GAIN = {"E": 3, "S": 2, "C": 1, "I": 0}


def test_runs_of_ranks_are_for_rules_of_ranks():
    runs, judged = many()
    ranks = {
        name: pd.DataFrame(
            [(q, d, r) for q, own in lists.items()
             for r, d in enumerate(sorted(own, key=lambda d: (-own[d], d)))],
            columns=["query", "document", "rank"],
        )
        for name, lists in runs.items()
    }  # fmt: skip
    how = {"label_gain": GAIN, "n_resamples": 20, "cv": 3}
    report = fusion.for_engine("langchain", ranks, judged, **how)
    scores = fusion.for_engine("langchain", runs, judged, **how)
    assert report.engine_weights.weights == pytest.approx(scores.engine_weights.weights, abs=1e-12)
    both = fusion.for_engine("elasticsearch", ranks, judged, **how)
    assert [each.name for each in both.rankings] == [
        "fused", "a", "b", "equal weights", "best of these"
    ]  # fmt: skip
    assert both.engine_weights.engine == "elasticsearch-rrf"
    with pytest.raises(InputError, match="a run has ranks and no scores, which weaviate needs"):
        fusion.for_engine("weaviate", ranks, judged, **how)


@pytest.mark.parametrize("kind", ["dictionary", "frame", "csv", "qrels"])
def test_labels_that_are_letters_have_grades(tmp_path, kind):
    runs, judged = many()
    rows = [(q, d, v) for q, own in judged.items() for d, v in own.items()]
    frame = pd.DataFrame(rows, columns=["query_id", "product_id", "esci_label"])
    given = {"dictionary": judged, "frame": frame}.get(kind)
    gain = GAIN
    if kind == "csv":
        given = tmp_path / "labels.csv"
        frame.assign(product_locale="us", split="test", small_version=1)[
            ["query_id", "product_id", "esci_label", "product_locale", "split"]
        ].to_csv(given, index=False)
    if kind == "qrels":
        given = tmp_path / "labels.qrels"
        given.write_text("".join(f"{q} 0 {d} {'ICSE'.index(v)}\n" for q, d, v in rows))
        gain = {"0": 0, "1": 1, "2": 2, "3": 3}
    numbers = {q: {d: GAIN[v] for d, v in own.items()} for q, own in judged.items()}
    expected = fusion.join_lists(runs, numbers)
    joined = fusion.join_lists(runs, given, label_gain=gain)
    assert joined["grade"].tolist() == expected["grade"].tolist()
    with pytest.raises(InputError, match="no grade is given for the label"):
        fusion.join_lists(runs, given, label_gain={"E": 3, "0": 0})


def test_labels_of_letters_in_the_commands(tmp_path, capsys):
    (tmp_path / "q.csv").write_text("query_id,product_id,esci_label\nw1,p1,I\nw1,p2,E\n")
    (tmp_path / "r.csv").write_text("query_id,product_id,score\nw1,p1,2\nw1,p2,1\n")
    command = ("evaluate", tmp_path / "r.csv", "--qrels", tmp_path / "q.csv", "-m", "rr,ndcg@2")
    status, said = run_json(capsys, *command, "--label-gain", "E=3,S=2,C=1,I=0")
    assert status == 0
    values = [each["value"] for each in said["metrics"]]
    assert values == pytest.approx([0.5, 1 / np.log2(3)])
    assert "'I', which is not a number" in refused(capsys, *command)
    assert "as E=3,S=2" in refused(capsys, *command, "--label-gain", "E=x")
    assert "--qrels FILE" in refused(capsys, *command[:2], "--label-gain", "E=1")


def test_distances_are_turned_and_the_best_of_chunks_counts(tmp_path, capsys):
    chunks = pd.DataFrame(
        [("1", "11", 0.9), ("1", "11", 0.2), ("1", "12", 0.5), ("2", "14", 0.1)],
        columns=["query", "document", "score"],
    )
    with pytest.raises(InputError, match=r"occurs twice.*duplicates='best'"):
        fusion.join_lists({"a": chunks, "b": B})
    near = fusion.join_lists({"a": chunks, "b": B}, duplicates="best", lower_is_better=["a"])
    assert near["a"].dropna().tolist() == [-0.2, -0.5, -0.1]
    far = fusion.join_lists({"a": chunks, "b": B}, duplicates="best")
    assert far["a"].dropna().tolist() == [0.9, 0.5, 0.1]
    path = tmp_path / "a.run"
    path.write_text("".join(f"{q} Q0 {d} 0 {s} t\n" for q, d, s in chunks.itertuples(index=False)))
    from_file = fusion.join_lists({"a": path, "b": B}, duplicates="best", lower_is_better=["a"])
    assert from_file["a"].dropna().tolist() == near["a"].dropna().tolist()
    with pytest.raises(InputError, match="lower_is_better names 'c'; the runs are a, b"):
        fusion.join_lists({"a": A, "b": B}, lower_is_better=["c"])
    (tmp_path / "b.run").write_text(lines(B, "{q} Q0 {d} {r} {v} t"))
    call = ("fuse", path, tmp_path / "b.run", "--method", "combsum", "--output", tmp_path / "f.csv")
    assert "row 1 of the data (counted from 0): document '11'" in refused(capsys, *call)
    more = ("--duplicates", "best", "--lower-is-better", "a")
    assert run(*call, *more) in (0, None)
    fused = pd.read_csv(tmp_path / "f.csv", dtype={"document": str})
    assert fused["document"].tolist()[:2] == ["12", "11"]  # 0 + 1, and 1 of two scores


def test_documents_that_are_their_query_are_said_and_left_out():
    own = {q: {q: 99.0} | documents for q, documents in A.items()}
    with pytest.warns(UserWarning, match="2 documents have the id of their query"):
        joined = fusion.join_lists({"a": own, "b": B})
    assert (joined["document"] == joined["query"]).sum() == 2
    without = fusion.join_lists({"a": own, "b": B}, ignore_identical=True)
    pd.testing.assert_frame_equal(without, fusion.join_lists({"a": A, "b": B}))
