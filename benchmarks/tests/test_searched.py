"""The benchmark of what the search chose: one draw of lists, and one of a single list."""

import pytest

from benchmarks.quality import searched
from benchmarks.quality.fusing.lists import trec_years
from benchmarks.quality.graded import Task

pytestmark = pytest.mark.study


def test_one_draw_makes_a_line():
    first, second = trec_years()
    part = searched.on_lists(Task(first, (8,), second), 8, 0)
    if part["chosen"] == "the default":
        assert part["search"] == pytest.approx(part["default"], abs=2e-3)
        assert part["lead"] <= part["by_chance"]
    (line,) = list(searched.page([{"set": "TREC", "lists": 8, "parts": [part]}]))[2:]
    assert line.startswith("| TREC | 8 | 1 | 0.")


def test_sets_that_are_not_given_are_left_out(monkeypatch):
    monkeypatch.setattr("sys.argv", ["searched"])
    names = {name for name, _, _ in searched.tasks(searched.arguments())}
    assert names == {"digits, NDCG@10", *(name for name in names if name.startswith("TREC DL"))}
    assert len(names) == 3
