"""Which columns are users, items and other ids."""

import warnings

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run
from structsvm_papk import PAPKRanker
from structsvm_papk.files.readers import read_table

NAMES = ["docid", "docno", "document", "document_id", "DocID", "movieid", "MovieID", "track",
         "track_id", "trackId", "itemid", "ITEM_ID", "product_id", "asin"]  # fmt: skip


def lists(item="docid"):
    rng = np.random.default_rng(0)
    columns = {"user_id": np.repeat(np.arange(12), 20), item: rng.permutation(240),
               "x": rng.normal(size=240), "rank": np.tile(np.arange(20), 12),
               "label": np.tile([1, 0], 120)}  # fmt: skip
    return pd.DataFrame(columns)


@pytest.mark.parametrize("name", NAMES)
def test_items_of_usual_names_are_no_features(tmp_path, name):
    path = tmp_path / "a.csv"
    lists(name)[:40].to_csv(path, index=False)
    table = read_table(path)
    assert table.feature_names == ("x", "rank")
    assert f"item {name!r}" in table.columns_used


@pytest.mark.parametrize("library", ["pandas", "polars", "dask"])
def test_a_frame_with_ids_among_its_features_warns(library):
    frame = lists("docno").drop(columns="label")
    y = lists()["label"]
    users = frame["user_id"]
    if library == "polars":
        pl = pytest.importorskip("polars")
        frame = pl.from_pandas(frame)
    if library == "dask":
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    ranker = PAPKRanker(k=3, alpha=1)
    with pytest.warns(UserWarning, match=r"called as ids are.*: 'user_id', 'docno'; leave"):
        ranker.fit(frame, y, groups=users)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.fit(frame[["x", "rank"]], y, groups=users)


@pytest.mark.filterwarnings("default:.*called as labels:UserWarning")
def test_a_feature_that_is_called_as_labels_are_warns(tmp_path, capsys):
    frame = lists("docno").assign(relevance=1.0)
    frame.to_csv(tmp_path / "a.csv", index=False)
    fit = ["fit", tmp_path / "a.csv", "--k", 3, "--alpha", 1, "-o", tmp_path / "m"]
    said = "called as labels are: 'relevance'; unless they are meant, leave them out with --ignore"
    for more, is_warned in (([], True), (["--ignore", "relevance"], False)):
        assert run(*fit, *more) == 0
        assert (said in " ".join(capsys.readouterr().err.split())) == is_warned
    X = frame[["x", "rank", "relevance"]]
    with pytest.warns(UserWarning, match="called as labels are.*: 'relevance'; leave"):
        PAPKRanker(k=3, alpha=1).fit(X, frame["label"], groups=frame["user_id"])
