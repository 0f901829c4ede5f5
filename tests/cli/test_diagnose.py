"""The command diagnose."""

import re

from helpers.commands import run, run_json
from helpers.problems import degenerate_lists
from helpers.sources import write_csv


def test_zero_is_optimal_at_depth_k_and_from_which_depth_on_not(tmp_path, capsys):
    lists = degenerate_lists(n_users=6, n_pos=4, n_neg=9, n_features=2, seed=0)
    path = write_csv(tmp_path / "a.csv", lists.X, lists.y, lists.groups)
    command = ["diagnose", path, "--k", "2", "--k", "3", "--surrogate", "avg", "--surrogate", "ts"]
    assert run(*command, "--depth", "k") == 0
    shown = capsys.readouterr()
    assert shown.out.count("optimal") >= 3 and "clipped_ramp" in shown.err
    _, told = run_json(capsys, *command, "--depth", "k")
    rows = told["diagnoses"]
    assert [(row["k"], row["zero_is_optimal"]) for row in rows] == [(2, True)] * 2 + [(3, True)] * 2
    assert rows[0]["users"]["degenerate"] == 1.0
    depths = [row["critical_depth"] for row in rows]
    assert [one["surrogate"] for one in depths] == ["avg", "ts"] * 2
    for one in depths:
        assert one["k"] <= (one["informative_from"] or one["deepest"]) <= one["deepest"] == 9
        text = f"none of {one['deepest']}"
        if one["informative_from"]:
            text = f"{one['informative_from']} of {one['deepest']}"
        assert re.search(text, shown.out)
    _, deep = run_json(capsys, *command, "--depth", "9", "--users", "0")
    assert [row["zero_is_optimal"] for row in deep["diagnoses"]].count(True) < 4
