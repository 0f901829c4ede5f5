"""The benchmark of grades: what is measured on one draw, and what its page says."""

import numpy as np
import pytest

from benchmarks.quality import graded
from benchmarks.quality.fusing.lists import trec_years

pytestmark = pytest.mark.study


def test_one_draw_of_each_cheap_way_makes_a_page():
    first, second = trec_years()
    task = graded.Task(first, (10,), second)
    names = ("threshold 1", graded.DEFAULT, "ridge regression")
    found = {name: [task.measured(name, 10, draw) for draw in range(2)] for name in names}
    assert all(len(cell["linear"]) == second.n_lists for cell in found["threshold 1"])
    rows = list(graded.summary("TREC", task, 10, found))
    answer = {"command": "python -m benchmarks graded", "draws": 2, "rows": rows}
    lines = list(graded.page(answer))
    assert any(line.startswith("| grades, linear | 0.7") for line in lines)
    (threshold,) = [row for row in rows if row["method"] == "threshold 1"]
    low, high = threshold["interval"]
    (line,) = [line for line in lines if line.startswith("| threshold 1 | ")]
    assert ("(" in line) == (low <= 0 <= high)


def test_lists_of_different_draws_are_held_beside_themselves():
    first, _ = trec_years()
    task = graded.Task(first, (10,))
    cells = [{"linear": task.tested(10, draw).tolist()} for draw in range(2)]
    values = task.by_list(cells, 10)
    assert values.shape == (2, first.n_lists)
    known = ~np.isnan(values)
    assert (values[known] == np.nonzero(known)[1]).all() and (known.sum(axis=1) == 33).all()
