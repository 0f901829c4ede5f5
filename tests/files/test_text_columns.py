"""Columns of text in files: levels, the same ones in each format, and as training had them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.sources import read_lists
from structsvm_papk import PAPKRanker
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model
from structsvm_papk.files.partitions import open_source
from structsvm_papk.files.readers import read_table

pytestmark = pytest.mark.portable


def hotels(n_lists=12, size=25, seed=0):
    rng = np.random.default_rng(seed)
    n_rows = n_lists * size
    kind = rng.choice(["hotel", "größe", "tent, small"], n_rows).astype(object)
    stars = rng.integers(1, 6, n_rows).astype(float)
    liked = stars / 3 + (kind == "hotel") + rng.normal(size=n_rows) * 0.5
    kind[rng.random(n_rows) < 0.1] = None
    stars[rng.random(n_rows) < 0.1] = np.nan
    frame = pd.DataFrame({"stars": stars, "kind": kind, "noise": rng.normal(size=n_rows).round(3)})
    return frame.assign(
        user=np.repeat(10 + np.arange(n_lists), size), label=(liked > 2).astype(int)
    )


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])


@SUFFIXES
def test_a_file_is_the_frame(tmp_path, suffix):
    frame = hotels()
    X = frame[["stars", "kind", "noise"]]
    path = write(frame, tmp_path / f"a.{suffix}")
    table = read_table(path, missing="separate")
    assert table.levels == {1: ("größe", "hotel", "tent, small")}
    settings = {"k": 3, "alpha": 0.05, "curves": 4, "pairs": None}
    of_file = PAPKRanker(**settings).fit_lists(read_lists(path, missing="separate"))
    of_frame = PAPKRanker(**settings).fit(X, frame["label"], frame["user"])
    for term, other in zip(of_file.terms_, of_frame.terms_, strict=True):
        assert (type(term), term.name) == (type(other), other.name)
        np.testing.assert_array_equal(term.heights, other.heights)
        assert term.gap == other.gap
    of_frame.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    again = read_table(path, like=model, missing="separate")
    scores = model.scores(model.filled(again.X, again.groups))
    np.testing.assert_array_equal(scores, of_frame.predict(X))


@SUFFIXES
def test_levels_are_those_of_training(tmp_path, suffix):
    frame = hotels()
    trained = read_table(write(frame, tmp_path / f"a.{suffix}"), missing="separate")
    few = frame[:4].assign(kind=["tent, small", "castle", None, "größe"])
    new = read_table(write(few, tmp_path / f"b.{suffix}"), like=trained, missing="separate")
    assert new.levels == trained.levels
    np.testing.assert_array_equal(new.X[:, 1], [2, -1, np.nan, 0])
    of_frame = replace(trained, levels={1: ("NA", "None")})  # a file has such text for missing, too
    path = write(few.assign(kind=["None", "NA", None, "castle"]), tmp_path / f"d.{suffix}")
    again = read_table(path, like=of_frame, missing="separate")
    np.testing.assert_array_equal(again.X[:, 1], [1, 0, np.nan, -1])
    of_frame = replace(trained, levels={1: (" hotel", " tent", "tent")})  # text with spaces before
    path = write(few.assign(kind=[" hotel", "tent", None, "castle"]), tmp_path / f"e.{suffix}")
    again = read_table(path, like=of_frame, missing="separate")
    np.testing.assert_array_equal(again.X[:, 1], [0, 2, np.nan, -1])
    numbers = write(frame[:4].assign(kind=["1", "2", "3", "4"]), tmp_path / f"c.{suffix}")
    with pytest.raises(InputError, match=r"c\..*'kind' holds numbers \('1'\), and in training it"):
        read_table(numbers, like=trained, missing="separate")


@SUFFIXES
def test_text_where_training_had_numbers(tmp_path, suffix):
    frame = hotels().drop(columns="kind")
    trained = read_table(write(frame, tmp_path / f"a.{suffix}"), missing="separate")
    text = write(frame.assign(noise="low"), tmp_path / f"b.{suffix}")
    with pytest.raises(InputError, match=r"b\..*'noise' holds text, and in training it held num"):
        read_table(text, like=trained, missing="separate")


@SUFFIXES
def test_numbers_where_training_had_text(tmp_path, suffix):
    frame = hotels()
    trained = read_table(write(frame, tmp_path / f"a.{suffix}"), missing="separate")
    numbers = write(frame.assign(kind=1.5), tmp_path / f"b.{suffix}")
    with pytest.raises(InputError, match=r"b\..*'kind' holds numbers .*in training it held text"):
        read_table(numbers, like=trained, missing="separate")


@SUFFIXES
@pytest.mark.parametrize(
    ("levels", "cells", "places"),
    [
        ([False, True], [True, False, None, True], [1, 0, np.nan, 1]),
        ([3, 7, 11], [7, 8, None, 3], [1, -1, np.nan, 0]),
    ],
)
def test_levels_that_are_no_text(tmp_path, suffix, levels, cells, places):
    """Of a model that was trained on a frame, where truth values and numbers may be levels."""
    rng = np.random.default_rng(0)
    frame = hotels().drop(columns="kind")
    frame["code"] = rng.choice(levels, len(frame))
    ranker = PAPKRanker(k=3, alpha=0.1, curves=None, categorical_features=["code"])
    ranker.fit(frame[["stars", "code"]], frame["label"], frame["user"])
    new = frame[:4].assign(code=pd.array(cells, dtype=pd.array([levels[0]]).dtype))
    table = read_table(
        write(new, tmp_path / f"a.{suffix}"), like=ranker.to_model(), missing="separate"
    )
    np.testing.assert_array_equal(table.X[:, 1], places)


@SUFFIXES
def test_empty_cells_are_missing_values_which_have_to_be_asked_for(tmp_path, suffix):
    path = write(hotels().drop(columns="stars"), tmp_path / f"a.{suffix}")
    assert np.isnan(read_table(path, missing="separate").X[:, 0]).any()
    with pytest.raises(InputError, match=r"column 'kind'.*missing=\"lowest\""):
        read_table(path)


@SUFFIXES
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("day {:03}", r"has 255 different values \('day 000', ..\), and .* at most 254"),
        (
            "2024-01-02 {:03}",
            r"holds dates or durations as text \('2024-01-02 000'\): give days",
        ),
    ],
)
def test_columns_of_text_that_are_no_features(tmp_path, suffix, value, said):
    texts = [value.format(i) for i in range(255)]
    frame = hotels()
    frame["kind"] = texts + texts[: len(frame) - 255]
    path = write(frame, tmp_path / f"a.{suffix}")
    with pytest.raises(InputError, match=rf"a\..*'kind' {said}.*left out with ignore=\['kind'\]"):
        read_table(path, missing="separate")
    assert read_table(path, missing="separate", ignore=["kind"]).levels == {}
    write(frame.assign(kind=frame["kind"].replace(texts[-1], texts[0])), path)
    if value.startswith("day"):
        assert len(read_table(path, missing="separate").levels[1]) == 254


@pytest.mark.parametrize(
    ("first", "then"), [("p", "2"), ("2", "p"), ("p", "2\n0,a,1,p"), ("", "p"), ("p", "")]
)
@pytest.mark.parametrize("n_rows", [1, 1200, 70_000])
def test_a_column_is_numbers_or_text_in_all_of_its_rows(tmp_path, first, then, n_rows):
    path = tmp_path / "a.csv"
    path.write_text("label,user,x,y\n" + f"1,a,1,{first}\n" * n_rows + f"0,a,1,{then}\n")
    if first and then:
        said = r"row \d+ of the data .*: column 'y' holds 'p', which is not a number; .*cell empty"
        if n_rows < 70_000:  # read at once
            said += (
                rf"; where '2' in row {0 if first == '2' else n_rows} is text as well, make text"
            )
        with pytest.raises(InputError, match=said):
            read_table(path, missing="separate")
    else:
        assert read_table(path, missing="separate").levels == {1: ("p",)}


def test_a_column_of_text_without_any_value(tmp_path):
    frame = hotels().assign(kind=pd.array([None] * 300, dtype="string"))
    path = write(frame, tmp_path / "a.parquet")
    lists = read_lists(path, missing="separate")
    ranker = PAPKRanker(k=3, alpha=0.1, curves=None).fit_lists(lists)
    assert ranker.terms_[1].levels == ()
    added = ranker.function_.contributions(ranker.to_model().filled(lists.X, None))
    assert np.ptp(added[:, 1]) == 0


def test_text_in_files_that_are_read_in_parts_is_refused_before_the_first_pass(tmp_path):
    path = write(hotels(), tmp_path / "a.parquet")
    said = r"text has levels only where the lists are in memory, and column 'kind' holds text"
    with pytest.raises(InputError, match=said + r".*leave it out with ignore=\['kind'\]"):
        open_source(path)
    assert open_source(path, ignore=["kind"]).feature_names == ("stars", "noise")
