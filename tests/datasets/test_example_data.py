"""Files to try the commands on."""

import numpy as np

import structsvm_papk
from structsvm_papk import cli
from structsvm_papk.data import read_ranking_data
from structsvm_papk.datasets import recommender_lists


def test_files_hold_the_lists_and_are_never_overwritten(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    command = ["example-data", str(folder), "--n-users", "15"]
    assert cli.main(command) in (0, None)
    train, _ = recommender_lists(n_users=15)
    read = read_ranking_data(folder / "train.csv", label="relevant")
    names = ["ease", "neighbours", "content", "popularity"]  # ids are no features
    assert np.array_equal(read.X, train[names])
    before = (folder / "train.csv").read_bytes()
    assert cli.main(command) == 2
    assert "train.csv exists" in " ".join(capsys.readouterr().err.split())
    assert (folder / "train.csv").read_bytes() == before


def test_versions_are_printed(capsys):
    structsvm_papk.show_versions()
    out = capsys.readouterr().out
    assert f"structsvm-papk   {structsvm_papk.__version__}" in out and "numba" in out
