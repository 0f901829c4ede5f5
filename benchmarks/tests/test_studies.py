"""Our own studies at a small size, and the folders that they go on from."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from benchmarks.common.cells import Cells, claim
from benchmarks.paper import table2
from benchmarks.studies import coverage, degenerate, distinguishability
from benchmarks.studies.__main__ import app
from helpers.commands import invoke
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.study
run = partial(invoke, app=app)


# ----------------------------------------------------------------- degenerate optima

SIZES = degenerate.Sizes(n_users=40, n_test_users=40, n_items=30, n_features=8, k=3, n_folds=2)


def test_degenerate_summary_is_paired_by_seed():
    few = ("Avg, certified", "logistic, pooled")
    study = degenerate.run(range(2), ("mislabelled",), few, SIZES)
    rows = {row.method: row for row in study.summary()}
    ours = study.gains("mislabelled", degenerate.OURS)
    others = study.gains("mislabelled", "logistic, pooled")
    row = rows["logistic, pooled"]
    interval = stats.t.interval(0.95, 1, (ours - others).mean(), stats.sem(ours - others))
    assert row.difference_half_width == pytest.approx((interval[1] - interval[0]) / 2)
    assert (row.wins, row.losses) == ((ours > others).sum(), (ours < others).sum())
    assert rows[degenerate.OURS].mean > 0.5
    assert rows["Avg, certified"].mean == 0 and rows["Avg, certified"].zeros == 2


def test_depth_comes_free_of_zero_where_the_paper_does_not():
    train, test = degenerate.make_data("mislabelled", 0, SIZES)
    w = np.random.default_rng(0).standard_normal(8)  # the direction of the generator's seed 0
    gains = [degenerate.mean_pap_at_k(w, data, 3) for data in (train, test)]
    assert gains[0] < gains[1] - 0.2  # held-out users are labelled cleanly
    paper = dict(degenerate.METHODS["Avg, certified"](train, 3, 0))
    deep = dict(degenerate.METHODS["Avg, certified, depth"](train, 3, 0))
    assert list(paper) == [f"alpha={alpha:g}" for alpha in degenerate.ALPHAS[::-1]]
    assert not any(w.any() for w in paper.values()) and any(w.any() for w in deep.values())


# ----------------------------------------------------------------- distinguishability


def test_more_users_tell_rankers_apart_and_wider_noise_needs_fewer():
    how = {"n_replicates": 12, "largest": 400, "n_items": 40, "chosen": ["pAp@10", "AUC"]}
    close, wide = (distinguishability.run(noise=(1.0, worse), **how) for worse in (1.2, 2.5))
    for name in ("pAp@10", "AUC"):
        assert (np.diff(close.share[name]) >= 0).all()
        assert (close.share[name] <= close.right_now[name]).all()
        assert wide.share[name].sum() > close.share[name].sum() + 1
        assert wide.needed()[name] < 100


def test_fast_discounts_separate_lists_no_better_as_they_grow():
    study = distinguishability.run(
        "items", n_replicates=16, largest=4000, noise=(1.0, 1.6),
        chosen=["NDCG 2^-r", "NDCG log, k = n/5"],
    )  # fmt: skip
    slow, fast = study.share["NDCG log, k = n/5"], study.share["NDCG 2^-r"]
    middle = study.sizes.size // 2
    assert slow[middle] > 0.8 and fast[middle] < 0.5 and study.needed()["NDCG 2^-r"] is None


# ----------------------------------------------------------------- coverage


def test_coverage_in_small():
    rows = coverage.coverage(60, (200,), ["normal", "all tied"], n_directions=5, seed=1)
    by_method = {(row.method, row.law): row for row in rows}
    assert all(not row.violated for row in rows)
    broken = replace(by_method["shift", "normal"], n_draws=1000, nominal=0.95, covered=0.9)
    assert broken.violated and not replace(broken, covered=0.945).violated
    assert by_method["shift", "normal"].covered >= 0.95
    assert by_method["uniform auto", "5 directions"].vacuous == 1.0


# ----------------------------------------------------------------- folders of parts


class Stopping(Cells):
    """Cells of a run that is killed after n parts."""

    def __init__(self, folder, n):
        super().__init__(folder, {"x": 1})
        self.left = n

    def save(self, key, content):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        super().save(key, content)


STUDIES = {
    "table2": lambda cells: table2.run(
        2, (table2.Descent(steps=5), table2.Certified(1.0)), cells=cells
    ),
    "degenerate": lambda cells: degenerate.run(
        range(2), ["gaussian"], ["logistic, pooled"], degenerate.Sizes(9, 9, 20, 3, 2), cells=cells
    ).as_dict(),
    "coverage": lambda cells: [
        row.as_dict() for row in coverage.coverage(3, (40,), n_directions=2, cells=cells)
    ],
    "distinguishability": lambda cells: distinguishability.run(
        n_replicates=3, largest=20, n_items=20, cells=cells
    ).as_dict(),
}  # fmt: skip


def as_text(answer):
    return json.dumps(answer, default=lambda value: value.item(), sort_keys=True)


@pytest.mark.parametrize("name", STUDIES)
def test_studies_go_on_and_give_the_same_numbers(name, tmp_path):
    study = STUDIES[name]
    whole = as_text(study(None))
    with pytest.raises(KeyboardInterrupt):
        study(Stopping(tmp_path / "c", 1))
    cells = Stopping(tmp_path / "c", 100)
    assert as_text(study(cells)) == whole
    assert 0 < 100 - cells.left == len(list(cells.folder.iterdir())) - 1
    assert as_text(study(Stopping(tmp_path / "c", 0))) == whole


def test_folders_of_other_runs_are_refused(tmp_path):
    claim(tmp_path / "a", {"study": "x", "version": "1"})
    assert claim(tmp_path / "a", {"study": "x", "version": "1"}) == tmp_path / "a"
    with pytest.raises(InputError, match="belongs to another run: version differ"):
        claim(tmp_path / "a", {"study": "x", "version": "2"})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        claim(tmp_path / "b", {})
    cells = Cells(tmp_path / "c", {})
    assert cells.get(["part"], lambda: {"value": 0.1}) == cells.get(["part"], pytest.fail)
    cells.path(["part"]).write_text("{")
    with pytest.raises(InputError, match="damaged; delete it"):
        cells.load(["part"])


# ----------------------------------------------------------------- commands


def test_commands(tmp_path):
    how = ["--draws", 10, "--size", 200, "--law", "normal", "--directions", 2]
    assert "No guaranteed bound failed" in run("coverage", *how).stdout
    sizes = ["--users", 20, "--items", 16, "--features", 4, "--k", 2, "--seeds", 2]
    names = ["--method", "logistic, pooled", "--regime", "gaussian"]
    assert "95% intervals" in run("degenerate", *sizes, *names).stdout
    how = ["--replicates", 3, "--largest", 40, "--items", 30, "--metric", "AUC"]
    how += ["--checkpoint", tmp_path / "c", "--plot", tmp_path / "curves.svg"]
    assert "N for 95%" in run("distinguishability", *how).stdout
    assert "</svg>" in (tmp_path / "curves.svg").read_text(encoding="utf-8")
    answer = json.loads(run("distinguishability", *how, "--json").stdout)
    assert set(answer["needed_95"]) == {"AUC"} and answer["sizes"][-1] == 40
    for wrong, text in (
        (["coverage", "--law", "x"], "unknown law"),
        (["coverage", "--checkpoint", tmp_path / "c"], "belongs to another run: study"),
        (["degenerate", "--regime", "calm"], "unknown regime 'calm'"),
        (["distinguishability", "--by", "rows"], "'users' or 'items'"),
        (["distinguishability", "--metric", "MAP"], "no metric MAP"),
        (["distinguishability", "--positive-rate", 1], "between 0 and 1"),
    ):
        assert text in str(run(*wrong).exception)


def test_stability_rows_hold_bounds_of_new_users_risk():
    answer = json.loads(run("stability", "--users", 60, "--alpha", 1, "--json").stdout)
    for row in answer["rows"]:
        assert row["training_users"] <= row["bound"] <= 1
    assert {row["depth"] for row in answer["rows"]} == {0.9, None}
    assert answer["rows"][0]["new_users"] < answer["rows"][0]["bound"] < 0.5
