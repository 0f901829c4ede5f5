"""The study of degenerate optima at a small size, and the two commands."""

import json

import numpy as np
import pytest
from scipy import stats

from helpers.problems import degenerate_lists
from structsvm_papk import cli
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import degenerate as study

pytestmark = pytest.mark.study

SIZES = study.Sizes(n_users=40, n_test_users=40, n_items=30, n_features=8, k=3, n_folds=2)
FEW = ("Avg, certified", "logistic, pooled", "logistic, pairwise", "random order")


@pytest.fixture(scope="module")
def found():
    return study.run(range(2), ("mislabelled",), FEW, SIZES)


def test_every_method_is_judged_on_every_data_set(found):
    assert [(o.method, o.seed) for o in found.outcomes] == [
        (method, seed) for seed in range(2) for method in (study.OURS, *FEW)
    ]
    assert all(0.0 <= o.gain <= 1.0 for o in found.outcomes)
    assert all(o.gain == 0.0 for o in found.outcomes if o.zero)


def test_summary_is_paired_by_seed(found):
    rows = {row.method: row for row in found.summary()}
    ours = found.gains("mislabelled", study.OURS)
    others = found.gains("mislabelled", "random order")
    row = rows["random order"]
    assert row.difference == pytest.approx((ours - others).mean())
    interval = stats.t.interval(0.95, 1, (ours - others).mean(), stats.sem(ours - others))
    assert row.difference_half_width == pytest.approx((interval[1] - interval[0]) / 2)
    assert (row.wins, row.losses) == ((ours > others).sum(), (ours < others).sum())
    assert rows[study.OURS].mean > rows["random order"].mean + 0.2


def test_random_order_knows_nothing_of_the_true_direction():
    for seed in range(3):
        train, test = study.make_data("gaussian", seed, SIZES)
        (_, w), *_ = study.METHODS["random order"](train, 3, seed)
        assert study.mean_pap_at_k(w, test, 3) < 0.7
        again, _ = study.make_data("gaussian", seed, SIZES)
        np.testing.assert_array_equal(train.X, again.X)


def test_a_path_names_every_setting_whether_zero_is_the_optimum_or_not():
    train, _ = study.make_data("mislabelled", 0, SIZES)
    paper = dict(study.METHODS["Avg, certified"](train, 3, 0))
    deep = dict(study.METHODS["Avg, certified, depth"](train, 3, 0))
    assert list(paper) == [f"alpha={alpha:g}" for alpha in study.ALPHAS[::-1]]
    assert len(deep) == len(study.DEPTHS) * 2 and "depth=inf, alpha=0.01" in deep
    assert not any(w.any() for w in paper.values())
    assert any(w.any() for w in deep.values())


def test_mislabelled_users_are_in_the_training_data_only():
    train, test = study.make_data("mislabelled", 0, SIZES)
    w = np.random.default_rng(0).standard_normal(8)  # the direction of the generator's seed 0
    gains = [study.mean_pap_at_k(w, data, 3) for data in (train, test)]
    assert gains[0] < gains[1] - 0.2


def test_figure_leaves_out_what_ranks_nothing(found):
    axes = study.figure(found).axes[0]
    shown = {label.get_text() for label in axes.get_yticklabels()}
    assert study.OURS in shown
    zero = {row.method for row in found.summary() if row.zeros == row.n_seeds}
    assert not zero & shown


def test_bad_input():
    with pytest.raises(InputError, match="unknown regime 'calm'"):
        study.run(range(1), ("calm",))
    with pytest.raises(InputError, match="unknown method"):
        study.run(range(1), methods=("magic",))
    with pytest.raises(InputError, match="at least one seed"):
        study.run(range(0))


@pytest.fixture(scope="module")
def balanced_file(tmp_path_factory):
    lists = degenerate_lists(n_users=6, n_pos=4, n_neg=9, n_features=2, seed=0)
    path = tmp_path_factory.mktemp("data") / "balanced.csv"
    rows = zip(lists.y, lists.groups, *lists.X.T, strict=True)
    lines = [",".join(map(repr, map(float, row))) for row in rows]
    path.write_text("label,group,a,b\n" + "\n".join(lines) + "\n")
    return path


def test_command_diagnose(balanced_file, tmp_path, capsys):
    plot = tmp_path / "shares.png"
    arguments = ["diagnose", str(balanced_file), "--k", "2", "--k", "3", "--surrogate", "avg"]
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
        (["--k", "2", "--no-users", "--plot", "x.png"], "--no-users"),
    ):
        assert cli.main(["diagnose", str(balanced_file), *arguments]) == 2
        assert message in capsys.readouterr().err


def test_command_reproduce_degenerate(tmp_path, capsys):
    output = tmp_path / "all.json"
    sizes = ["--users", "20", "--items", "16", "--features", "4", "--k", "2", "--seeds", "2"]
    names = ["--method", "random order", "--regime", "gaussian"]
    assert cli.main(["reproduce", "degenerate", *names, *sizes, "--output", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "ClippedRamp, CCCP" in shown
    assert "95% intervals" in shown
    assert len(json.loads(output.read_text())["outcomes"]) == 4
    assert cli.main(["reproduce", "degenerate", *sizes, "--regime", "calm"]) == 2
    assert "unknown regime" in capsys.readouterr().err
