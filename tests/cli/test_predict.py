"""`predict`: scores with their ids, and the best rows of each user; `Model` does the same."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run
from helpers.functions import lines
from helpers.marks import slow
from structsvm_papk import metrics
from structsvm_papk.data.columns.terms import AdditiveFunction
from structsvm_papk.datasets.generators import recommender_lists
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files import load_model
from structsvm_papk.files.model import Model, save_model

CERTIFICATE = {"objective": 0.5, "lower_bound": None, "gap": None, "status": "finished",
               "converged": False, "n_iter": 1}  # fmt: skip
FEATURES = ("ease", "content")


def model(gap=None, slopes=(1.0, 0.25), **fields):
    """Lines; `gap` is what a missing value of the second feature adds."""
    fields = {"feature_names": FEATURES} | fields
    first, second = lines(slopes, fields["feature_names"] or ("x0", "x1")).terms
    function = AdditiveFunction((first, replace(second, gap=gap)))
    return Model(function, 3, "ts", 1.0, "cutting_plane", CERTIFICATE, **fields)


@pytest.fixture(scope="module")
def frame():
    return recommender_lists(n_users=12, n_items=40, n_candidates=9)[1]


@pytest.fixture
def place(tmp_path, frame):
    frame.to_csv(tmp_path / "new.csv", index=False)
    save_model(tmp_path / "plain", model())
    save_model(tmp_path / "filled", model(gap=-1.0, missing="lowest"))
    return tmp_path


def best_by_hand(frame, scores, n):
    rows = frame.assign(score=scores)[["user", "item", "score"]]
    parts = [r.sort_values("score", ascending=False, kind="stable").head(n).assign(
        rank=range(1, min(n, len(r)) + 1)) for _, r in rows.groupby("user")]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("name", ["plain", slow("filled")])
def test_contributions_stand_beside_the_scores_and_sum_to_them(place, frame, name, capsys):
    terms = load_model(place / name).contributions(frame, frame["user"])
    common = ("predict", place / name, place / "new.csv", "--contributions")
    assert (
        run(*common, "-o", place / "all.csv") == 0 == run(*common, "--top", 2, "-o", place / "top")
    )
    whole = pd.read_csv(place / "all.csv")
    assert list(whole) == ["user", "item", "score", "from ease", "from content"]
    beside = whole[["from ease", "from content"]]
    np.testing.assert_allclose(beside, terms)
    np.testing.assert_allclose(beside.sum(axis=1), whole["score"])
    top = pd.read_csv(place / "top")
    assert list(top) == ["user", "item", "score", "rank", "from ease", "from content"]
    merged = top.drop(columns="rank").merge(whole)
    assert len(merged) == len(top) == 24
    capsys.readouterr()
    assert run(*common, "--json") == 0
    told = json.loads(capsys.readouterr().out)["contributions"]
    np.testing.assert_allclose(told["from content"], terms[:, 1])


@pytest.mark.parametrize("name", [slow("plain"), "filled"])
def test_scores_and_lists_of_the_command_and_the_model(place, frame, name, capsys):
    trained = load_model(place / name)
    scores = trained.predict(frame, frame["user"])
    top = trained.top(frame, n=4)
    pd.testing.assert_frame_equal(top, best_by_hand(frame, scores, 4))
    assert len(trained.top(frame)) == 12 * trained.k
    for suffix, separator in ((".csv", ","), (".tsv", "\t"), ("", ",")):
        file, whole = place / f"top{suffix}", place / f"all{suffix}"
        common = ("predict", place / name, place / "new.csv")
        assert run(*common, "--top", 4, "-o", file) == 0 == run(*common, "-o", whole)
        pd.testing.assert_frame_equal(pd.read_csv(file, sep=separator), top)
        written = pd.read_csv(whole, sep=separator)
        assert list(written) == ["user", "item", "score"]
        np.testing.assert_array_equal(written["score"], scores)
        np.testing.assert_array_equal(written[["user", "item"]], frame[["user", "item"]])
        capsys.readouterr()
        both = ("evaluate", place / name, place / "new.csv")
        assert run(*both, "-m", "ap", "--json") == 0
        value = json.loads(capsys.readouterr().out)["metrics"][0]["value"]
        expected = metrics.evaluate("ap", scores, frame["relevant"], frame["user"]).mean("ap")
        assert value == pytest.approx(expected, abs=1e-12)
    assert run(*common, "--top", 4) == 0
    assert capsys.readouterr().out == (place / "top").read_text()
    assert run(*common, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scores"] == scores.tolist() and told["n_rows"] == len(frame)
    assert run(*common, "--top", 4, "--json") == 0
    records = json.loads(capsys.readouterr().out)["top"]
    assert [r["score"] for r in records] == top["score"].tolist()
    assert [r["user"] for r in records] == top["user"].astype(str).tolist()


def test_ties_short_lists_and_ids_stay_as_they_are(place, capsys):
    rows = 'user_id,sku,ease,content\n007,a b,1,0\n7,x,2,0\n007,"c,d",1,0\n007,é,0,9\n'
    (place / "rows.csv").write_text(rows)
    assert run("predict", place / "plain", place / "rows.csv", "--item", "sku", "--top", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["user,sku,score,rank", "007,é,2.25,1", "007,a b,1.0,2", "7,x,2.0,1"]
    assert run("predict", place / "plain", place / "rows.csv", "--one-list", "--top", 2) == 0
    assert capsys.readouterr().out.splitlines() == ["sku,score,rank", "é,2.25,1", "x,2.0,2"]
    save_model(place / "unnamed", model(feature_names=None, first_index=1))
    (place / "rows.txt").write_text("1 qid:3 1:1\n0 qid:3 2:8\n")
    assert run("predict", place / "unnamed", place / "rows.txt") == 0
    assert capsys.readouterr().out.splitlines() == ["user,row,score", "3,0,1.0", "3,1,2.0"]
    assert run("predict", place / "unnamed", place / "rows.csv", "--item", "sku") == 0
    assert "'é'" not in capsys.readouterr().err


def test_frames_are_taken_by_name(frame):
    scores = model().predict(frame)
    pl = pytest.importorskip("polars")
    other = pl.from_pandas(frame[["content", "user", "ease", "item"]])
    np.testing.assert_array_equal(model().predict(other), scores)
    pd.testing.assert_frame_equal(model().top(other), model().top(frame))
    X = frame[list(FEATURES)]
    np.testing.assert_array_equal(model().predict(X.to_numpy()), scores)
    top = model().top(X, groups=frame["user"], n=1)
    assert list(top) == ["user", "row", "score", "rank"]
    np.testing.assert_array_equal(
        frame["item"].to_numpy()[top["row"]], model().top(frame, n=1)["item"]
    )
    assert list(model().top(X, "one_list", 2)["rank"]) == [1, 2]


def test_wrong_calls_of_a_model(frame):
    X = frame[list(FEATURES)]
    twice = pd.concat([X, X[["ease"]]], axis=1)
    for call, said in [
        (lambda: model().predict(frame.drop(columns="ease")), "one column 'ease'"),
        (lambda: model().predict(twice), "several columns called 'ease'"),
        (lambda: model().predict(X.to_numpy()[:, :1]), "1 columns, the model 2 features"),
        (lambda: model(feature_names=None).predict(frame), "columns, the model 2"),
        (lambda: model().predict(X.assign(ease="much")), "much"),
        (lambda: model().predict(X.assign(ease=np.nan)), "NaN at row 0"),
        (lambda: model().predict(None), "X must"),
        (lambda: model().top(X), "groups= is missing"),
        (lambda: model().top(X, "all"), "'one_list'"),
        (lambda: model().top(frame, n=0), "n must be"),
        (lambda: model().top(frame, n=1.5), "n must be"),
        (lambda: model().top(frame, 3), "how many items is n=3"),
        (lambda: model().top(frame, groups=[1]), "one label per row"),
        (lambda: model().top(frame.assign(item=None)), "items is missing"),
        (lambda: model().top(frame.assign(user=np.nan)), "groups is missing"),
        (lambda: model(gap=0.0, missing="lowest").predict(X), "groups="),
    ]:
        with pytest.raises(InputError, match=said):
            call()
    zero = model(slopes=(0.0, 0.0))
    with pytest.warns(DegenerateOptimumWarning, match="every score is 0"):
        zero.predict(X)


def test_wrong_calls_of_the_command(place, capsys):
    plain, filled, data = place / "plain", place / "filled", place / "new.csv"
    (place / "features.csv").write_text("ease,content\n1,2\n")
    (place / "no-item.csv").write_text("user,item,ease,content\n1,,1,2\n")
    features = place / "features.csv"
    for arguments, said in [
        ((plain, features, "--top", 3), "no column names the list"),
        ((filled, features), "no column names the list"),
        ((plain, data, "--item", "sku"), "no column 'sku' for the item; it has"),
        ((plain, data, "-o", place / "x.json"), "CSV, TSV or Parquet is written, not JSON"),
        ((plain, data, "-o", place / "x.csv.gz"), "CSV, TSV or Parquet is written, not compressed"),
        ((plain, place / "no-item.csv"), "column 'item' is empty"),
    ]:
        assert said in refused(capsys, "predict", *arguments)
    (place / "bad.csv").write_text("user,label,score\n1,1,0.5\n1,0,much\n")
    bad = refused(capsys, "evaluate", place / "bad.csv")
    assert "row 1 of the data (counted from 0): column 'score'" in bad


@pytest.mark.parametrize("options", [[], ["--top", "3"], ["--contributions"]])
def test_scores_in_parquet_are_those_in_csv(place, frame, options):
    predict = ["predict", place / "plain", place / "new.csv", *options, "--output"]
    for name in ("o.csv", "o.tsv", "o.parquet", "o.pq"):
        assert run(*predict, place / name) == 0
    expected = pd.read_csv(place / "o.csv")
    pd.testing.assert_frame_equal(pd.read_csv(place / "o.tsv", sep="\t"), expected)
    for name in ("o.parquet", "o.pq"):
        read = pd.read_parquet(place / name)
        types = {column: expected[column].dtype for column in ("user", "item")}
        pd.testing.assert_frame_equal(read.astype(types), expected, check_dtype=False)
