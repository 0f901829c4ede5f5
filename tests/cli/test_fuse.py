"""`fuse`: from files to weights, files and advice; what it is given wrongly ends in one line."""

import json

import pandas as pd
import pytest

from helpers.commands import refused, run, run_json
from structsvm_papk import cli, fusion
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.files import load_model
from structsvm_papk.files.trec import JUDGMENTS, RUN, read_lines

RUNS = ("bm25", "bm25_rm3", "tasb", "ada2", "repllama", "splade")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "sample"
    assert cli.main(["example-data", "--runs", str(folder)]) in (0, None)
    return folder


@pytest.fixture
def small(tmp_path):
    """Two runs of two queries with judgments, and a model of them."""
    (tmp_path / "a.run").write_text(
        "q1 Q0 x 1 3 t\nq1 Q0 y 2 1 t\nq2 Q0 x 1 1 t\nq2 Q0 z 2 0.5 t\n"
    )
    (tmp_path / "b.run").write_text("q1 Q0 y 1 9 t\nq1 Q0 x 2 8 t\nq2 Q0 z 1 7 t\nq2 Q0 x 2 3 t\n")
    (tmp_path / "far.run").write_text("q1 Q0 x 1 -1e39 t\n")
    (tmp_path / "judged").write_text("q1 0 x 1\nq2 0 x 1\n")
    return tmp_path


@pytest.mark.slow
def test_example_runs_are_the_sample(sample, capsys):
    year = retrieval_runs().test
    for name in RUNS:
        written = read_lines(sample / f"dl20.{name}.run", RUN).astype(
            {"query": str, "document": str}
        )
        expected = year.runs[name]
        keys = ["query", "document"]
        pd.testing.assert_series_equal(
            written.set_index(keys)["score"].sort_index(),
            expected.set_index(keys)["score"].sort_index(),
        )
    assert len(read_lines(sample / "dl20.qrels", JUDGMENTS)) == len(year.judgments)
    assert "exists" in refused(capsys, "example-data", "--runs", sample)


def test_weights_are_learned_and_used_on_another_year(sample, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    model, fused = tmp_path / "fusion.model", tmp_path / "fused.run"
    train = sorted(map(str, sample.glob("dl19.*.run")))
    assert run("fuse", *train, "--qrels", sample / "dl19.qrels", "--model", model) in (0, None)
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    for word in ("fused", "RRF", "CombSUM", "best of these", *RUNS, "nDCG@10", "relative gap"):
        assert word in out
    assert "Use the fused ranking, by learned weights: 0.0" in out or "Take CombSUM: 0.0" in out
    assert "(at worst 0.0" in " ".join(out.split())
    trained = load_model(model)
    assert set(trained.feature_names) == set(RUNS)
    assert run("fuse", "--model", model, str(sample / "dl20.*.run"), "--output", fused) in (0, None)
    written = read_lines(fused, RUN)
    year = retrieval_runs().test
    joined = fusion.join_lists(year.runs)
    assert len(written) == len(joined)
    names = list(trained.feature_names)
    score = pd.Series(trained.predict(joined[names], joined["query"]))
    score -= score.groupby(joined["query"]).transform("min")
    by_hand = joined[["query", "document"]].astype(str).assign(score=score)
    keys = ["query", "document"]
    pd.testing.assert_series_equal(
        written.astype(dict.fromkeys(keys, str)).set_index(keys)["score"].sort_index(),
        by_hand.set_index(keys)["score"].sort_index(),
        check_exact=True,
    )
    # the same by names of one's own
    again = tmp_path / "again.run"
    named = [f"{name}={sample / f'dl20.{name}.run'}" for name in names]
    assert run("fuse", "--model", model, *named, "--output", again) in (0, None)
    rerun = read_lines(again, RUN)
    assert (
        rerun["document"].astype(str).tolist()[:50] == written["document"].astype(str).tolist()[:50]
    )


def test_json_says_what_is_printed(sample, capsys):
    status, content = run_json(
        capsys, "fuse", str(sample / "dl19.*.run"), "--qrels", sample / "dl19.qrels", "--cv", 3
    )
    assert status in (0, None)
    assert content["metric"] == "nDCG@10" and content["n_folds"] == 3
    names = [each["name"] for each in content["rankings"]]
    assert names[0] == "fused" and set(RUNS) < set(names) and names[-1] == "best of these"
    assert content["certificate"]["converged"] is True
    assert sum(abs(each["share"]) for each in content["weights"]) == pytest.approx(1)


def test_all_outputs_are_written(sample, tmp_path, capsys):
    files = {name: tmp_path / name for name in ("p.html", "w.json", "fused.csv")}
    names = ("bm25", "tasb", "repllama")
    runs = [sample / f"dl19.{name}.run" for name in names]
    call = ["fuse", *runs, "--qrels", sample / "dl19.qrels", "--cv", 3, "--for-engine", "mongodb",
            "--html", files["p.html"],
            "--weights", files["w.json"], "--output", files["fused.csv"], "--top", 7]  # fmt: skip
    assert run(*call) in (0, None)
    page = files["p.html"].read_text()
    assert (
        "equal weights" in page
        and "repllama" in page
        and "http" not in page.replace("http-equiv", "")
    )
    weights = json.loads(files["w.json"].read_text())
    assert weights["engine"] == "mongodb" and set(weights["weights"]) == set(names)
    assert sum(weights["weights"].values()) == pytest.approx(1)
    table = pd.read_csv(files["fused.csv"])
    assert list(table.columns) == ["query", "document", "score", "rank"]
    assert (table.groupby("query").size() == 7).all() and table["rank"].max() == 7
    assert (table.groupby("query")["score"].diff().dropna() <= 0).all()


def test_weights_for_an_engine_come_with_its_request_and_fuse_other_runs(sample, tmp_path, capsys):
    weights, output = tmp_path / "w.json", tmp_path / "fused.run"
    runs = [sample / f"dl19.{name}.run" for name in ("bm25", "tasb")]
    command = ["fuse", *runs, "--qrels", sample / "dl19.qrels", "--for-engine", "elasticsearch-rrf",
               "--depth", 20, "--cv", 2, "--weights", weights]  # fmt: skip
    assert run(*command, "--request") in (0, None)
    out = capsys.readouterr().out
    assert "equal weights" in out and "certified" in out
    body = json.loads(out[out.index("\n{") :])
    content = json.loads(weights.read_text())
    (form,) = body["retriever"]  # the rule that is recommended
    assert content["window"] == body["retriever"][form]["rank_window_size"] == 20
    given = [each["weight"] for each in body["retriever"][form]["retrievers"]]
    assert given == pytest.approx([*content["weights"].values()], abs=1e-6)
    status, said = run_json(capsys, *command, "--request")
    assert status in (0, None) and json.loads(said["request"]) == body
    assert said["recommended"]["engine"] == content
    assert said["recommended"]["name"] in said["advice"]
    assert "judged@10" in out
    other = [sample / f"dl20.{name}.run" for name in ("tasb", "bm25")]
    assert run("fuse", *other, "--model", weights, "--output", output) in (0, None)
    written = read_lines(output, RUN)
    assert written.groupby("query", observed=True).size().max() <= 40  # two lists of 20
    capsys.readouterr()
    shallow = ("fuse", *other, "--model", weights, "--output", output, "--depth", 5)
    assert "the weights are for a window of 20" in refused(capsys, *shallow)


@pytest.mark.parametrize("method", ["rrf", "combsum"])
def test_runs_are_fused_without_judgments(small, capsys, monkeypatch, method):
    monkeypatch.chdir(small)
    assert run("fuse", "a.run", "b.run", "--method", method, "--output", "o.csv") in (0, None)
    joined = fusion.join_lists({"a": small / "a.run", "b": small / "b.run"})
    joined["score"] = getattr(fusion, method)(joined)
    order = joined.sort_values(["query", "score", "document"], ascending=[True, False, False])
    written = pd.read_csv(small / "o.csv")
    assert written["document"].tolist() == order["document"].tolist()


def test_users_and_items_in_tables(tmp_path, capsys):
    rng = pd.Series(range(40)).sample(frac=1, random_state=0)
    rows = [(user, item, (item * 7 + user) % 11) for user in range(12) for item in rng[:15]]
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "score"])
    frame.to_csv(tmp_path / "als.csv", index=False)
    frame.assign(score=frame["item_id"] % 5).to_csv(tmp_path / "knn.csv", index=False)
    liked = frame[frame["score"] > 6].assign(grade=1)[["user_id", "item_id", "grade"]]
    liked.to_csv(tmp_path / "liked.csv", index=False)
    output = tmp_path / "fused.csv"
    call = ("fuse", tmp_path / "als.csv", tmp_path / "knn.csv", "--qrels", tmp_path / "liked.csv",
            "--k", 5, "--output", output)  # fmt: skip
    assert run(*call) in (0, None)
    printed = " ".join(capsys.readouterr().out.split())
    assert "12 judged users" in printed and "items that a run missed" in printed
    assert "quer" not in printed and "document" not in printed
    table = pd.read_csv(output)
    assert list(table.columns) == ["user", "item", "score", "rank"]
    assert len(table) == len(frame)


def test_a_table_of_queries_is_one_of_queries_and_remarks_are_made_once(small, capsys, monkeypatch):
    monkeypatch.chdir(small)
    lines = [line.split() for line in (small / "a.run").read_text().splitlines()]
    table = pd.DataFrame([(q, d, s) for q, _, d, _, s, _ in lines], columns=["qid", "docno", "s"])
    table.to_csv("nameless.csv", index=False)
    table.rename(columns={"s": "score"}).to_csv("a.csv", index=False)
    (small / "c.run").write_text("q1 Q0 y 1 9 t\nq1 Q0 x 2 8 t\n")
    call = ("fuse", "a.csv", "c.run", "--qrels", "judged", "--output", "o.csv")
    assert run(*call) in (0, None)
    printed, said = capsys.readouterr()
    assert "not there: what is added" in " ".join(printed.split())
    assert said.count("run 'c' (c.run) retrieved nothing for 1 of 2 queries: q2") == 1
    assert list(pd.read_csv("o.csv").columns) == ["query", "document", "score", "rank"]
    (small / "d.run").write_text("q8 Q0 y 1 9 t\n")  # no query of it is judged
    assert run("fuse", "a.csv", "d.run", "--qrels", "judged") in (0, None)
    assert "Mean of empty slice" not in capsys.readouterr().err
    said = refused(capsys, "fuse", "nameless.csv", "c.run", "--qrels", "judged")
    assert "no column 'score'; it has 'qid', 'docno', 's': rename" in said


WRONG = {
    "neither judgments nor model": (["a.run"], "give --qrels FILE to learn weights, --model"),
    "a model without output": (["a.run", "--model", "m"], "give --output FILE"),
    "weights without judgments": (
        ["a.run", "--model", "m", "--output", "o.run", "--weights", "w.json"], "give --qrels as"),
    "a model that is not there": (["a.run", "--model", "m", "--output", "o.run"], "m"),
    "an input as output": (
        ["a.run", "b.run", "--qrels", "judged", "--output", "a.run"], "is an input of"),
    "the judgments as model": (
        ["a.run", "b.run", "--qrels", "judged", "--model", "judged"], "is an input of"),
    "one output twice": (
        ["a.run", "--qrels", "judged", "--model", "o", "--output", "o"], "written twice"),
    "a run twice": (["a.run", "a.run", "--qrels", "judged"], "a.run is given twice"),
    "a name twice": (["x=a.run", "x=b.run", "--qrels", "judged"], "two runs are called 'x'"),
    "a name without a file": (["x=", "--qrels", "judged"], "give a path, or name=path"),
    "a pattern of nothing": (["none.*.run", "--qrels", "judged"], "no file is called like"),
    "a run that is not there": (["c.run", "--qrels", "judged"], "cannot read c.run"),
    "judgments that are not there": (["a.run", "--qrels", "none"], "cannot read none"),
    "a level of 95": (["a.run", "--qrels", "judged", "--level", "95"], "level"),
    "a request of no engine": (
        ["a.run", "b.run", "--qrels", "judged", "--request"], "--request needs --for-engine NAME"),
    "a request without judgments": (
        ["a.run", "b.run", "--method", "rrf", "--output", "o", "--request"], "give --qrels as"),
    "a method that is none": (
        ["a.run", "b.run", "--method", "mean", "--output", "o"], "choose one of rrf, combsum"),
    "a method and judgments": (
        ["a.run", "b.run", "--method", "rrf", "--qrels", "judged"], "leave out --qrels"),
    "a method without an output": (["a.run", "b.run", "--method", "rrf"], "give --output"),
    "a model for an engine": (
        ["a.run", "b.run", "--qrels", "judged", "--for-engine", "qdrant", "--model", "m"],
        "written by --weights"),
    "one run": (["a.run", "--qrels", "judged"], "one run (a) has no weights to learn"),
    "a page in no folder": (
        ["a.run", "--qrels", "judged", "--html", "no/such/p.html"], "cannot write"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_calls_end_in_one_line(small, capsys, monkeypatch, what):
    monkeypatch.chdir(small)
    arguments, sentence = WRONG[what]
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    assert sentence in refused(capsys, "fuse", *arguments)
    assert {path.name: path.read_bytes() for path in small.iterdir()} == before


def test_runs_that_the_model_does_not_know_are_refused(small, capsys, monkeypatch):
    monkeypatch.chdir(small)
    assert run("fuse", "a.run", "b.run", "--qrels", "judged", "--model", "m") in (0, None)
    capsys.readouterr()
    said = refused(capsys, "fuse", "a.run", "c=b.run", "--model", "m", "--output", "o.run")
    assert "the model is of the runs a, b; given are a, c: name the files" in said
    said = refused(capsys, "fuse", "a.run", "--model", "m", "--output", "o.run")
    assert "given are a: without b another model has to be learned" in said


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["y/dl19.bm25.run", "y/dl19.bm25_rm3.run.gz"], ["bm25", "bm25_rm3"]),
        (["bm25.train.txt", "dense.train.txt"], ["bm25", "dense"]),
        (["x=a.run", "b.csv"], ["x", "b"]),
        (["dl19.bm25.run"], ["dl19.bm25"]),
    ],
)
def test_names_of_runs_are_what_differs(files, names):
    from structsvm_papk.fusion.storing import named_runs

    assert list(named_runs(files)) == names
