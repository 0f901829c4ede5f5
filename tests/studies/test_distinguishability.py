import json

import numpy as np
import pytest

from structsvm_papk.cli import main
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import distinguishability

pytestmark = pytest.mark.study


def test_ahead_from_here_on():
    ahead = np.array([[True, False, True, True], [True, True, True, False]])
    found = distinguishability._from_there_on(ahead)
    np.testing.assert_array_equal(found, [[False, False, True, True], [False] * 4])


def test_more_users_tell_rankers_apart_and_wider_noise_needs_fewer():
    close = distinguishability.run(
        n_replicates=12, largest=400, n_items=40, noise=(1.0, 1.2), chosen=["pAp@10", "AUC"]
    )
    wide = distinguishability.run(
        n_replicates=12, largest=400, n_items=40, noise=(1.0, 2.5), chosen=["pAp@10", "AUC"]
    )
    for name in ("pAp@10", "AUC"):
        assert (np.diff(close.share[name]) >= 0).all()
        assert (close.share[name] <= close.right_now[name]).all()
        assert wide.share[name][-1] == 1.0
        assert wide.share[name].sum() > close.share[name].sum() + 1
        assert wide.needed()[name] < 100


def test_fast_discounts_separate_lists_no_better_as_they_grow():
    found = distinguishability.run(
        "items", n_replicates=16, largest=4000, noise=(1.0, 1.6),
        chosen=["NDCG 2^-r", "NDCG log, k = n/5"],
    )  # fmt: skip
    slow, fast = found.share["NDCG log, k = n/5"], found.share["NDCG 2^-r"]
    middle = found.sizes.size // 2
    assert slow[middle] > 0.8
    assert fast[middle] < 0.5
    assert found.needed()["NDCG 2^-r"] is None
    assert found.as_dict()["sizes"][-1] == 4000


def test_same_seed_same_result_for_any_thread_count():
    how = {"n_replicates": 3, "largest": 60, "chosen": ["AP"]}
    one, two = (distinguishability.run(**how, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.share["AP"], two.share["AP"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"by": "rows"}, "'users' or 'items'"),
        ({"noise": (2.0, 1.0)}, "less noise"),
        ({"chosen": ["MAP"]}, "no metric MAP"),
        ({"largest": 3}, "too small"),
    ],
)
def test_bad_input(arguments, told):
    with pytest.raises(InputError, match=told):
        distinguishability.run(**arguments)


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    found = distinguishability.run(n_replicates=2, largest=30, chosen=["AP", "NDCG log"])
    ax = distinguishability.plot(found, tmp_path / "plot.png")
    assert len(ax.get_legend().get_texts()) == 2
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_command(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curves.svg"
    how = ["reproduce", "distinguishability", "--replicates", "3", "--largest", "40"]
    how += ["--items", "30", "--metric", "AUC", "--metric", "pAp@10"]
    assert main([*how, "--plot", str(picture)]) == 0
    assert "N for 95%" in capsys.readouterr().out
    assert "</svg>" in picture.read_text(encoding="utf-8")
    assert main([*how, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["needed_95"]) == {"AUC", "pAp@10"}
    assert found["sizes"][-1] == 40
    for wrong in (["--by", "rows"], ["--replicates", "0"], ["--metric", "MAP"], ["--items", "1"],
                  ["--positive-rate", "1"], ["--plot", "x.bmp"]):  # fmt: skip
        assert main([*how[:2], *wrong]) == 2
