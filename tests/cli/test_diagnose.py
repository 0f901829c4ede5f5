"""The command diagnose."""

import json

import pytest

from helpers.problems import degenerate_lists
from helpers.sources import write_csv
from structsvm_papk import cli


@pytest.fixture(scope="module")
def balanced_file(tmp_path_factory):
    lists = degenerate_lists(n_users=6, n_pos=4, n_neg=9, n_features=2, seed=0)
    path = tmp_path_factory.mktemp("data") / "balanced.csv"
    return write_csv(path, lists.X, lists.y, lists.groups)


def test_command_diagnose(balanced_file, tmp_path, capsys):
    plot = tmp_path / "shares.png"
    arguments = ["diagnose", str(balanced_file), "--k", "2", "--k", "3", "--surrogate", "avg"]
    arguments += ["--depth", "k"]
    assert cli.main([*arguments, "--plot", str(plot)]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("optimal") >= 3
    assert "clipped_ramp" in shown.err
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert cli.main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["diagnoses"]
    assert [(row["k"], row["zero_is_optimal"]) for row in rows] == [(2, True), (3, True)]
    assert rows[0]["users"]["degenerate"] == 1.0


def test_command_diagnose_refuses(balanced_file, capsys):
    for arguments, message in (
        ([], "give --k"),
        (["--k", "2", "--surrogate", "ts_alg2"], "choose from"),
        (["--k", "2", "--users", "0", "--plot", "x.png"], "--users"),
    ):
        assert cli.main(["diagnose", str(balanced_file), *arguments]) == 2
        assert message in capsys.readouterr().err
