"""The benchmark of fusion: lists with holes, their NDCG, and a whole run on a small set."""

import json
import sys

import numpy as np
import pytest

from benchmarks.quality import fusion
from benchmarks.quality.fusing.lists import JoinedLists, trec_years
from benchmarks.quality.fusing.methods import METHODS, filled
from benchmarks.studies.rerank.data import write_synthetic

pytestmark = pytest.mark.study


@pytest.fixture
def lists():
    X = [[3.0, np.nan], [np.nan, 2.0], [1.0, 5.0], [np.nan, 1.0], [np.nan, 4.0]]
    return JoinedLists(
        runs=np.array(["a", "b"]),
        X=np.array(X),
        grades=np.array([0, 2, 1, 0, 1]),
        sizes=np.array([3, 2]),
        missed=np.array([3, 1]),
        missed_sizes=np.array([1, 1]),
        k=2,
    )


def test_ndcg_counts_what_nobody_retrieved(lists):
    places = 1 / np.log2([2, 3])
    found = lists.ndcg(np.array([1.0, 3.0, 2.0, 0.0, 1.0]))
    np.testing.assert_allclose(found[0], ([2, 1] @ places) / ([3, 2] @ places))
    np.testing.assert_allclose(found[1], places[0] / places.sum())


def test_subset_keeps_lists_whole(lists):
    second = lists.subset(np.array([1]))
    np.testing.assert_array_equal(second.X, lists.X[3:])
    assert second.missed.tolist() == [1]
    swapped = lists.subset(np.array([1, 0]))
    assert swapped.grades.tolist() == [0, 1, 0, 2, 1]
    assert swapped.missed.tolist() == [1, 3]


def test_holes_take_the_lowest_of_their_list(lists):
    columns = filled(lists)
    np.testing.assert_array_equal(columns[:, 0], [3, 1, 1, 0, 0])  # a run without a second list
    np.testing.assert_array_equal(columns[:, 1], [2, 2, 5, 1, 4])
    np.testing.assert_array_equal(columns[:, 2:], np.isnan(lists.X))


def test_best_run_is_chosen_in_training(lists):
    scores = METHODS["best single run"](lists, 0)(lists)
    np.testing.assert_array_equal(scores, np.nan_to_num(lists.X[:, 1], nan=-np.inf))


def test_years_hold_every_judged_query():
    first, second = trec_years()
    assert (first.n_lists, second.n_lists) == (43, 54)
    assert first.runs.size == 6
    assert np.isnan(first.X).mean() > 0.6


def test_small_run(tmp_path, monkeypatch, capsys):
    folder = write_synthetic(tmp_path / "data", n_users=120, n_items=150)
    monkeypatch.setattr(
        fusion, "trec_years", lambda: [year.subset(np.arange(12)) for year in of_trec]
    )
    of_trec = trec_years()
    file = tmp_path / "fusion.json"
    words = ["fusion", str(folder), "--draws", "2", "--sizes", "10", "--test-lists", "40"]
    words += ["--json", str(file)]
    names = ["RRF", "CombSUM", "equal weights", "positive"]
    monkeypatch.setattr(
        sys, "argv", [*words, "--results", str(tmp_path / "run"), "--method", *names]
    )
    fusion.main()
    text = file.with_suffix(".md").read_text()
    assert text == capsys.readouterr().out
    head, _, *lines = text[text.index("| method") :].splitlines()
    columns = head.strip("| ").split(" | ")[1:]
    years = [f"TREC DL {a} to {b}, {n}" for a, b in ((2019, 2020), (2020, 2019)) for n in (10, 12)]
    assert columns == [*years, "TREC DL, both years, 19", "data, 10"]
    assert [line.split(" | ")[0][2:] for line in lines] == ["the default", *names]
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == len({(row["set"], row["size"], row["method"]) for row in rows})
