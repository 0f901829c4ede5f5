"""The benchmark of curves: one draw of lists, one of a single list, and what the page says."""

import argparse
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.common.cells import Cells
from benchmarks.quality import curves
from benchmarks.quality.fusing.lists import trec_years

pytestmark = pytest.mark.study
CHEAP = (curves.LINE, curves.CURVES, curves.DEFAULT, "ridge regression on pieces")


@pytest.fixture(scope="module")
def task():
    first, second = trec_years()
    return curves.Task(first, (10, first.n_lists), second)


def test_one_draw_of_cheap_methods_makes_a_page(task):
    found = {name: [task.measured(name, 10, draw) for draw in range(2)] for name in CHEAP}
    rows = list(curves.summary("TREC", task, 10, found))
    of_default = next(row for row in rows if row["method"] == curves.DEFAULT)
    assert 0 <= of_default["curved"] <= 2
    chosen = [found[name] for name in (curves.DEFAULT, curves.LINE, curves.CURVES)]
    for default, line, curve in zip(*chosen, strict=True):
        assert default["linear"] in (line["linear"], curve["linear"])
    answer = {"command": "python -m benchmarks curves", "draws": 2, "rows": rows}
    answer |= {"one_list": [], "rows_of_one_list": 0, "memory": {curves.LINE: 12.0}}
    lines = list(curves.page(answer))
    assert lines[-4].startswith("| line | ") and lines[-4].endswith(" | 12 |")
    assert any(line.startswith("| line | 0.7") and "(" not in line for line in lines)
    assert any(line.startswith("| curves | 0.") and " to " in line for line in lines)
    assert any(line.startswith("| TREC | 10 | ") and line.endswith(" of 2 |") for line in lines)


def test_pieces_are_filled_and_written_out(task):
    seen = []

    def method(train, seed):
        seen.append(train.X)
        return lambda test: seen.append(test.X) or test.X[:, 0]

    holes = replace(
        task.pool, X=np.where(np.arange(task.pool.X.shape[0])[:, None] % 9, task.pool.X, np.nan)
    )
    curves.on_pieces(method)(holes, 0)(task.others)
    train, test = seen
    assert train.shape[1] == test.shape[1] > 10 * task.pool.X.shape[1]
    assert not np.isnan(train).any() and train.min() == 0.0


def test_one_list_is_held_beside_the_line_set_by_set(tmp_path):
    rng = np.random.default_rng(0)
    files = {}
    for name in ("first", "second"):
        x = rng.normal(size=(120, 3))
        lines = [",".join(map(str, (*row, "in" if abs(row[0]) < 0.6 else "out"))) for row in x]
        file = tmp_path / f"{name}.dat"
        file.write_text("@relation\n" + "\n".join(lines) + "\n")
        rows = curves.Rows(file, 60)
        files[name] = {m: [rows.measured(m, 0)] for m in (curves.LINE, curves.CURVES)}
    line, curve = curves.on_one_list(files)
    assert line["ahead"] == 0.0 and curve["sets"] == 2
    assert curve["worst"] > 0.1 and curve["ap"] == pytest.approx(line["ap"] + curve["ahead"])


def test_finished_parts_make_the_page_and_all_lists_have_one_draw(task, tmp_path):
    options = argparse.Namespace(
        draws=2, dear_draws=1, method=[curves.LINE, "ridge regression on pieces"]
    )
    keys = [key for key, _ in curves.parts({"TREC": task}, {}, options)]
    n_lists = task.pool.n_lists
    dear = "ridge regression on pieces"
    assert keys == [
        ["TREC", 10, curves.LINE, 0],
        ["TREC", 10, curves.LINE, 1],
        ["TREC", 10, dear, 0],
        ["TREC", n_lists, curves.LINE, 0],
        ["memory", curves.LINE],
    ]
    cells = Cells(tmp_path / "run", {})
    cells.save(keys[0], {"linear": [1.0]})
    assert curves.finished(cells, ["TREC", 10], options) == {curves.LINE: [{"linear": [1.0]}]}
