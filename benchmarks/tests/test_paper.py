"""Tables and figure of the paper, at a small size."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from benchmarks.paper import figure1, movielens, table1, table2, table3
from benchmarks.paper.__main__ import app
from benchmarks.paper.baselines import PrecAtKAvg
from benchmarks.paper.descents import descend
from helpers.commands import invoke
from structsvm_papk import EmpiricalRisk, SubgradientDescent, make_surrogate
from structsvm_papk.errors import InputError

pytestmark = pytest.mark.study
run = partial(invoke, app=app)


def run_json(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


# ----------------------------------------------------------------- tables 1 and 2


def test_table1_is_exact():
    answer = run_json("table1")
    assert answer["max_abs_difference"] <= 1e-15 and len(answer["rows"]) == 13
    assert answer["run"]["versions"]["structsvm-papk"]
    others = table1.LABELS | {"f1": "10101110000"}
    assert table1.run(others)["max_abs_difference"] > 0.01


def test_table2_rows_stand_beside_the_published_values():
    answer = run_json("table2", "--runs", 1)
    assert len(answer["rows"]) == sum(len(table2.hows_for(case)) for case in (1, 2))
    for row in answer["rows"]:
        measured, published = row["measured"], row["published"]
        assert sum(measured["precision_higher"]) + measured["n_equal"] == 1
        assert sum(published["precision_higher"]) + published["n_equal"] == 300
        if row["how"].startswith("certified"):
            assert measured["certified"] == [1, 1]


def test_table2_case_1_comes_near_the_published_means():
    row = table2.run(30, table2.HOWS[:1], cases=(1,))["rows"][0]
    measured, published = (np.array(row[name]["precision"]) for name in ("measured", "published"))
    assert np.abs(measured - published)[:, 0].max() < 0.07  # deviations beside the means
    won, lost = row["measured"]["precision_higher"]
    assert won > 15 > 3 > lost and won + lost + row["measured"]["n_equal"] == 30
    auc = np.array(row["measured"]["auc_where_equal"])
    assert (np.abs(auc - row["published"]["auc_where_equal"]) < 0.15).all()


# ----------------------------------------------------------------- figure 1


@pytest.fixture(scope="module")
def panels():
    return figure1.run()


def test_figure1_reaches_what_each_condition_promises(panels):
    certified = {panel.condition: panel for panel in panels if panel.solver != "descent"}
    ends = {name: panel.as_dict()["measured"] for name, panel in certified.items()}
    assert all(ends["strong"][name] < 0.05 for name in figure1.SHOWN)
    assert ends["beta"]["avg"] < 0.01
    assert ends["moderate"]["ts"] < 0.01 < 0.5 < ends["moderate"]["ramp"]  # no order holds
    assert ends["weak"]["ramp"] < 0.05 and ends["weak"]["avg"] > 1
    assert all(end["risk"] == 0 for end in ends.values())
    for name in ("strong", "beta", "moderate"):
        assert 0 <= certified[name].result.gap <= 1e-6
    for condition in ("strong", "beta"):  # the same surrogate in both
        descent, exact = (panel for panel in panels if panel.condition == condition)
        assert exact.result.lower_bound <= exact.result.objective <= descent.result.objective


def test_figure1_is_drawn(tmp_path):
    path = tmp_path / "figure.png"
    answer = run_json("figure1", "--condition", "beta", "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [panel["solver"] for panel in answer["panels"]] == ["descent", "cutting_plane"]


# ----------------------------------------------------------------- MovieLens

SMALL = movielens.Preparation(rank=3, steps=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "ml-100k"
    movielens.write_synthetic(place, n_users=40, n_items=120, mean_ratings=90)
    return place


def test_preparation_keeps_first_ratings_out_of_the_instances(folder):
    ratings = movielens.read_ratings(folder)
    splits = movielens.prepare(ratings, 0, SMALL)
    in_order = ratings[np.argsort(ratings[:, 3], kind="stable")]
    by_user = [in_order[in_order[:, 0] == user] for user in np.unique(ratings[:, 0])]
    seen = {item for mine in by_user for item in mine[:20, 1]}
    rest = [[row for row in mine[20:] if row[1] in seen] for mine in by_user]
    rest = [row for mine in rest if len(mine) >= 20 for row in mine]
    labels = np.concatenate([part.labels for part in vars(splits).values()])
    assert (labels.size, labels.sum()) == (len(rest), sum(row[2] == 5 for row in rest))
    assert np.allclose(np.ptp(splits.train.X, axis=0), 1)
    assert 0.5 < splits.train.rows.size / len(rest) < 0.7


def test_masked_factorisation_fits_known_entries_of_a_low_rank_matrix():
    rng = np.random.default_rng(0)
    full = rng.random((12, 2)) @ rng.random((2, 10)) + 0.1
    known = rng.random(full.shape) < 0.8
    left, right = movielens.masked_nmf(sparse.csr_matrix(np.where(known, full, 0)), 3, rng, 2000)
    assert np.abs(left @ right.T - full)[known].max() < 0.05
    assert (left > 0).all() and (right > 0).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no u.data"),
        ("1\t2\t3\t4\n1::2::3::4\n", "line 2"),
        ("1\t2\t3\t4\n1\t2\t9\t4\n", "line 2: rating 9"),
        ("1\t2\t3\t4\n", "no user has 20"),
    ],
)
def test_foreign_folders_are_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "u.data").write_text(content)
    done = run("table3", tmp_path, "--results", tmp_path / "results")
    assert isinstance(done.exception, InputError) and message in str(done.exception)
    assert not (tmp_path / "results").exists()


# ----------------------------------------------------------------- table 3

GRID = table3.Grid(etas=(0.1, 0.5), alphas=(0.01,), ridges=(1e-3,), steps=15)


def plan_of(folder, **given):
    given = {"ks": (4,), "seeds": (0,), "grid": GRID, "preparation": SMALL} | given
    return table3.Plan(str(folder), **given)


def test_every_method_gives_a_row(folder, tmp_path):
    answer = table3.run(plan_of(folder), tmp_path / "results")
    assert answer["published_data"] is False  # invented ratings
    assert table3.PUBLISHED["SGD@k-avg", "behance", 25] == 35.3 and len(table3.PUBLISHED) == 105
    rows = {row["method"]: row for row in answer["rows"]}
    assert set(rows) == set(table3.available())
    assert all(row["lower"] <= row["measured"] <= row["upper"] for row in rows.values())
    for name in ("logistic, pooled", "Avg, certified, depth", "TS, certified, depth"):
        assert rows[name]["measured"] > 0
    for name in ("Avg", "Max", "TS", "SVM-pAUC"):
        row = rows[f"{name}, certified"]
        assert row["gaps"][0] <= 1e-4 and (row["statuses"] == ["degenerate"]) == row["zero"][0]


@pytest.mark.parametrize("surrogate", [make_surrogate("ts_alg2", 4), PrecAtKAvg(4)])
def test_descents_side_by_side_are_those_one_by_one(folder, surrogate):
    data = movielens.prepare(movielens.read_ratings(folder), 0, SMALL).train
    start = np.random.default_rng(1).standard_normal(data.n_features)
    settings = [(0.01, 1e-3), (0.01, 0.1), (0.5, 1e-3)]
    found = descend(surrogate, data, settings, 9, start)
    for (eta, alpha), result in zip(settings, found, strict=True):
        alone = SubgradientDescent(alpha, eta, 9).solve(EmpiricalRisk(surrogate, data), start)
        assert result.w == pytest.approx(alone.w, rel=1e-9)
        assert result.objective == pytest.approx(alone.objective, rel=1e-12)


def test_intervals_are_about_the_mean_that_is_shown():
    # 30 users with gain 1 in all three seeds, 30 more with gain 0 that only one seed could test
    users = [np.arange(30), np.arange(30), np.arange(60)]
    gains = [np.ones(30), np.ones(30), np.repeat([1.0, 0.0], 30)]
    lower, upper = table3._user_bootstrap(users, gains)
    mean, deviation = (1 + 1 + 0.5) / 3, np.sqrt(0.25 / 60) / 3
    assert lower == pytest.approx(mean - 1.96 * deviation, abs=0.004)
    assert upper == pytest.approx(mean + 1.96 * deviation, abs=0.004)


def test_a_run_goes_on_without_loss_and_in_several_processes(folder, tmp_path):
    plan = plan_of(folder, methods=("Avg, descent", "logistic, pooled"), seeds=(0, 1))
    whole = table3.run(plan, tmp_path / "whole", jobs=2)

    def stop_after_two(done, total, cell):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table3.run(plan, tmp_path / "parts", callback=stop_after_two)
    calls = []
    again = table3.run(plan, tmp_path / "parts", callback=lambda *args: calls.append(args))
    assert calls[0][:2] == (2, 6) and again == whole
    other = replace(plan, preparation=movielens.Preparation(rank=2, steps=20))
    with pytest.raises(InputError, match="another run: preparation"):
        table3.run(other, tmp_path / "parts")


def test_prepared_files_of_the_authors(tmp_path):
    rng = np.random.default_rng(0)
    for part, size in (("train", 30), ("val", 15), ("test", 15)):
        X = rng.standard_normal((12 * size, 3)).round(5)
        labels = X[:, 0] + 0.5 * rng.standard_normal(len(X)) > 0.8
        labels[::size] = True
        users = np.repeat(np.arange(12), size)
        rows = [f"u{u}\t{a}\t{b}\t{c}\t{y:d}" for u, (a, b, c), y in zip(users, X, labels)]  # noqa: B905
        text = "\n".join(["user_id\tf0\tf1\tf2\tlabel", *rows]) + "\n"
        (tmp_path / f"{part}_data_d3.tsv").write_text(text)
    chosen = ("--k", 6, "--method", "Avg, certified", "--alpha", 0.01, "--jobs", 1)
    results = ("--dataset", "citation", "--results", tmp_path / "results")
    row = run_json("table3", tmp_path, *results, *chosen)["rows"][0]
    assert row["published"] == 20.7 and row["measured"] > 60 and row["n_users"] == 12
    (tmp_path / "val_data_d3.tsv").write_text("user\tf0\tlabel\n")
    with pytest.raises(InputError, match="expected the columns user_id"):
        movielens.read_prepared(tmp_path)
