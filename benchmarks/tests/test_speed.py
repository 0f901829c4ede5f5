"""Measurements of speed at a small size: they run, and the tables are made of what they give."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.speed import opponents, tables
from benchmarks.speed.harness import in_turns, median_seconds, parser, save

pytestmark = pytest.mark.study

ROOT = Path(__file__).parents[2]


def small(name, tmp_path, *words):
    """The numbers that a small run keeps."""
    file = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "benchmarks", name, *words, "--small", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


def lines(table, numbers):
    """Lines of a table after its head."""
    return list(table(numbers))[2:]


def test_oracle(tmp_path):
    rows = lines(tables.oracle, small("oracle", tmp_path, "--rounds", "1"))
    assert [row.split(" | ")[:2] for row in rows[:3]] == [
        ["| 600 x 70 x 90", "8"],
        ["| 1,000 negatives x 50", "500"],
        ["| 1,000 negatives x 50", "1,000"],
    ]


def test_graded_speed(tmp_path):
    rows = small("graded_speed", tmp_path, "--rounds", "1")
    assert [row["columns"] for row in rows] == [20] * 6 + [136] * 6
    assert min(row["ratio"] for row in rows) > 0


def test_pairs_speed(tmp_path):
    rows = small("pairs_speed", tmp_path, "--rounds", "1")
    assert [row["fit"] for row in rows] == ["lines", "curves", "20 pairs"]
    objectives = [row["objective"] for row in rows]
    assert objectives == sorted(objectives, reverse=True)  # the richer the lower
    assert min(row["passes"] for row in rows) > 0


def test_dual_ascent_and_what_is_known_stays(tmp_path):
    small("dual_ascent", tmp_path, "--only", "bundle")
    (ways,) = small("dual_ascent", tmp_path, "--only", "ascent").values()
    assert [point["gap"] <= 1e-2 for points in ways.values() for point in points] == [True] * 5
    rows = lines(tables.dual_ascent, {"2000 x 500, avg, alpha 0.01": ways})
    assert [row.split(" | ")[1] for row in rows] == ["bundle", "ascent"]


def test_targets(tmp_path):
    numbers = small("targets", tmp_path, "--only", "M", "T", "path")
    assert len(lines(tables.path, numbers)) == 2
    assert len(lines(tables.one_user, numbers)) == 4
    assert tables.many_users(numbers) and next(tables.machine(numbers))
    certified = [row for row in numbers["M"] if "rejected" not in row]
    assert all(row["gap"] <= 1e-9 for row in certified) and certified


def test_memory_within_a_budget(tmp_path):
    pytest.importorskip("pyarrow")
    rows = lines(tables.out_of_core, small("memory", tmp_path, "budget"))
    assert [row.split(" | ")[0] for row in rows] == ["| in memory", "| `.npy` file", "| Parquet"]


def test_a_way_of_fusing(tmp_path):
    numbers = small("fuse_speed", tmp_path)
    assert list(numbers["ours"]["seconds"]) == ["read", "join", "learn", "fuse", "write"]


def test_solves_near_the_optimum_are_counted_at_each_effort():
    def row(solver, of_passes, of_seconds):
        percent = dict(zip(("10", "30", "100", "200"), of_passes, strict=True))
        percent["bundle's seconds"] = of_seconds
        return {"problem": "sparse", "surrogate": "avg", "alpha": 1.0, "solver": solver,
                "percent": percent}  # fmt: skip

    rows = [
        row("bundle", (0.5, None, None, None), 0.1),  # ended before the thirtieth pass
        row("descent (eta 1 of 18)", (80.0, 4.0, 1.5, 0.9), None),
        row("descent (eta 5 of 18)", (None, None, None, None), 60.0),
    ]
    answer = {"command": "python -m benchmarks opponents", "seconds": 1.0, "rows": rows}
    assert list(opponents.page(answer))[-2:] == ["| bundle | 1, 1, 1 |", "| descent | 0, 1, 0 |"]


def test_clocks_take_turns_and_keep_the_fastest():
    now = iter([0, 5, 5, 6, 6, 9, 9, 19])  # two rounds: 5 and 1 seconds, then 3 and 10
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    best = in_turns(calls, 2, clock=lambda: next(now))
    assert order == ["a", "b", "a", "b"]
    assert {name: run.seconds for name, run in best.items()} == {"a": 3, "b": 1}
    now = iter([0, 1, 1, 4, 4, 6])
    assert median_seconds(lambda: None, 3, clock=lambda: next(now)) == 2


def test_parts_of_results_that_were_not_measured_stay(tmp_path):
    file = tmp_path / "results.json"
    save(file, {"M": 1, "T": 2})
    save(file, {"T": 3})
    assert json.loads(file.read_text()) == {"M": 1, "T": 3}
    save(file, [4])
    assert json.loads(file.read_text()) == [4]
    assert parser("First line.\n\nMore.").description == "First line."
