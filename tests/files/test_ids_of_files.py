"""Which columns are users, items and other ids."""

import warnings

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run
from helpers.marks import slow
from helpers.sources import read_lists
from structsvm_papk import PAPKRanker, metrics
from structsvm_papk.data.roles import ITEM_COLUMNS
from structsvm_papk.errors import InputError
from structsvm_papk.files.readers import read_table

NAMES = ["docid", "docno", "document", "document_id", "DocID", "movieid", "MovieID", "track",
         "track_id", "trackId", "itemid", "ITEM_ID", "product_id", "asin"]  # fmt: skip


def lists(item="docid", n_users=12, n=20, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.concatenate([rng.choice(10_000, n, replace=False) for _ in range(n_users)])
    x = rng.normal(size=n_users * n)
    columns = {"user_id": np.repeat(np.arange(n_users), n), item: ids, "x": x,
               "rank": np.tile(rng.permutation(n) + 1, n_users),
               "label": (x + rng.normal(size=x.size) > 1).astype(int)}  # fmt: skip
    columns["label"][::n] = 1
    columns["label"][1::n] = 0
    return pd.DataFrame(columns)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_items_of_usual_names_are_no_features(tmp_path, name, suffix):
    frame = lists(name)
    path = tmp_path / f"a{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    table = read_table(path)
    assert table.feature_names == ("x", "rank")
    assert f"item {name!r}" in table.columns_used


@pytest.mark.parametrize("name", [*NAMES[:3], *map(slow, NAMES[3:])])
def test_items_come_out_under_their_own_name_and_are_read_again(tmp_path, capsys, name):
    frame = lists(name)
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    model = tmp_path / "model"
    assert run("fit", path, "--k", 3, "--curves", "none", "--model", model) == 0
    out = tmp_path / "top.csv"
    assert run("predict", model, path, "--top", 5, "--output", out) == 0
    written = pd.read_csv(out)
    assert list(written) == ["user", name, "score", "rank"]
    liked = frame.loc[frame.label == 1, ["user_id", name]]
    from_file = metrics.evaluate_recommendations(written, liked, "recall@5")
    ranker = PAPKRanker(k=3, curves=None)
    ranker.fit(frame[["x", "rank"]], frame.label, groups=frame.user_id)
    top = ranker.to_model().top(frame, n=5)
    assert list(top) == ["user", name, "score", "rank"]
    from_frame = metrics.evaluate_recommendations(top, liked, "recall@5")
    whole = metrics.evaluate_frame(
        frame.assign(score=ranker.predict(frame[["x", "rank"]])), "recall@5", item=name,
        relevant=liked,
    )  # fmt: skip
    assert from_frame.mean("recall@5") == pytest.approx(whole.mean("recall@5"), abs=1e-12)
    assert from_file.mean("recall@5") == pytest.approx(whole.mean("recall@5"), abs=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_in_a_column_says_how_to_leave_it_out(tmp_path, capsys, suffix):
    frame = lists(n_users=14)
    frame["the title"] = [f"abc {i}" for i in range(len(frame))]
    path = tmp_path / f"a{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    message = r"is it an id\? .*left out with ignore=\['the title'\], that"
    with pytest.raises(InputError, match=message):
        read_lists(path)
    assert (
        "left out with --ignore 'the title', that of users or queries is named with --group"
        in refused(capsys, "fit", path, "--k", 3, "--model", tmp_path / "m")
    )
    assert read_lists(path, ignore=["the title"]).n_features == 2
    frame = lists().assign(label="good")
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(InputError) as error:
        read_lists(tmp_path / "b.csv")
    assert "ignore=" not in str(error.value)


def test_names_are_plain_and_once():
    plain = [name.replace("_", "") for name in ITEM_COLUMNS]
    assert len(set(plain)) == len(plain)
    assert plain == [name.lower() for name in plain]


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
