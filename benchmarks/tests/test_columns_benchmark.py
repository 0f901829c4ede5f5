"""The benchmark of columns: what columns are made, one draw, and what the page says."""

import argparse
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.common.cells import Cells
from benchmarks.quality import columns
from benchmarks.quality.fusing.lists import trec_years

pytestmark = pytest.mark.study
CHEAP = (columns.LINE, columns.CURVES, columns.DEFAULT, "ridge regression on pieces")


@pytest.fixture(scope="module")
def task():
    first, second = map(columns.without_gaps, trec_years())
    return columns.Task(first, (10, first.n_lists), second)


def test_one_draw_of_cheap_methods_makes_a_page(task):
    found = {name: [task.measured(name, 10, draw) for draw in range(2)] for name in CHEAP}
    rows = list(columns.summary("TREC", task, 10, found))
    answer = {"command": "python -m benchmarks columns", "draws": 2, "rows": rows}
    answer |= {"one_list": [], "rows_of_one_list": 0, "memory": {columns.LINE: 12.0}}
    lines = list(columns.page(answer))
    assert lines[-4].startswith("| line | ") and lines[-4].endswith(" | 12 |")
    assert any(line.startswith("| line | 0.7") and "(" not in line for line in lines)
    assert any(line.startswith("| curves | 0.") and " to " in line for line in lines)
    assert any(line.startswith("| TREC | 10 | ") and " to " in line for line in lines)


def test_lists_of_different_draws_are_held_beside_themselves(task):
    alone = columns.Task(task.pool, (10,))
    cells = [{"linear": alone.tested(10, draw).tolist()} for draw in range(2)]
    values = alone.by_list(cells, 10)
    known = ~np.isnan(values)
    assert (values[known] == np.nonzero(known)[1]).all() and (known.sum(axis=1) == 33).all()


@pytest.mark.parametrize("made", columns.COLUMNS)
def test_every_method_takes_the_columns_that_suit_it(task, made):
    some = replace(task, columns=made)
    names = columns.suited(columns.known(columns.METHODS), columns.METHODS, made)
    assert (made == columns.TEXT) == ("ridge regression" not in names)
    for name in sorted({*names} - {columns.DEFAULT, *columns.DEAR}):
        assert np.mean(some.measured(name, 10, 0)["linear"]) > 0.5


def test_gaps_are_in_the_column_that_says_most_and_text_is_its_tenths():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    given = X, X[:, 1] > 0.5, X[:2000] + 0.1
    for name, moved in (("gaps at random", 0.0), ("gaps where it is high", 0.55)):
        for made, before in zip(columns.COLUMNS[name](*given, rng), (X, given[2]), strict=True):
            gaps = np.isnan(made)
            assert not gaps[:, [0, 2]].any()
            assert gaps[:, 1].mean() == pytest.approx(0.15, abs=0.03)
            np.testing.assert_array_equal(made[~gaps], before[~gaps])
            assert before[gaps].mean() - before[:, 1].mean() == pytest.approx(moved, abs=0.12)
    text, others = columns.COLUMNS["text"](*given, rng)
    one_hot, hot_others = columns.COLUMNS["one-hot"](*given, rng)
    for frame, array in ((text, one_hot), (others, hot_others)):
        words = frame["column 1"].cat.codes.to_numpy()
        np.testing.assert_array_equal(array[:, 2:], words[:, None] == np.arange(10))
        np.testing.assert_array_equal(array[:, :2], frame[["column 0", "column 2"]])
    assert (text["column 1"].value_counts() == 400).all()
    scores, others = columns.COLUMNS["normal scores"](np.exp(X), X[:, 1], np.exp(5 * X), rng)
    ranks = np.argsort(np.argsort(X, axis=0), axis=0)
    np.testing.assert_allclose(scores, norm.ppf((ranks + 0.5) / 4000))
    assert others.max() == scores.max() and others.min() == scores.min()


def test_pieces_are_filled_and_written_out(task):
    seen = []

    def method(train, seed):
        seen.append(train.X)
        return lambda test: seen.append(test.X) or test.X[:, 0]

    every_ninth = np.arange(task.pool.X.shape[0])[:, None] % 9 == 0
    gaps = replace(task.pool, X=np.where(every_ninth, np.nan, task.pool.X))
    columns.on_pieces(method)(gaps, 0)(gaps)
    train, test = seen
    assert train.shape[1] > 5 * task.pool.X.shape[1]
    assert not np.isnan(train).any()
    np.testing.assert_array_equal(train, test)


@pytest.mark.filterwarnings("ignore:the weights of this model are zero")  # what a line says here
def test_one_list_is_held_beside_the_line_set_by_set(tmp_path):
    rng = np.random.default_rng(0)
    files = {}
    for name in ("first", "second"):
        x = rng.normal(size=(120, 3))
        lines = [",".join(map(str, (*row, "in" if abs(row[0]) < 0.6 else "out"))) for row in x]
        file = tmp_path / f"{name}.dat"
        file.write_text("@relation\n" + "\n".join(lines) + "\n")
        rows = columns.Rows(file, 60)
        files[name] = {m: [rows.measured(m, 0)] for m in (columns.LINE, columns.CURVES)}
    line, curve = columns.on_one_list(files)
    assert line["ahead"] == 0.0 and curve["sets"] == 2
    assert curve["worst"] > 0.1 and curve["ap"] == pytest.approx(line["ap"] + curve["ahead"])


def test_finished_parts_make_the_page_and_all_lists_have_one_draw(task, tmp_path):
    options = argparse.Namespace(
        draws=2, dear_draws=1, method=[columns.LINE, "ridge regression on pieces"]
    )
    keys = [key for key, _ in columns.parts({"TREC": task}, {}, options)]
    n_lists = task.pool.n_lists
    dear = "ridge regression on pieces"
    assert keys == [
        ["TREC", 10, columns.LINE, 0],
        ["TREC", 10, columns.LINE, 1],
        ["TREC", 10, dear, 0],
        ["TREC", n_lists, columns.LINE, 0],
        ["memory", columns.LINE],
    ]
    cells = Cells(tmp_path / "run", {})
    cells.save(keys[0], {"linear": [1.0]})
    assert columns.finished(cells, ["TREC", 10], options) == {columns.LINE: [{"linear": [1.0]}]}
