import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from helpers.reference import avg, maximum, ramp, ts
from structsvm_papk import cli, make_surrogate
from structsvm_papk.baselines import PrecAtKAvg, SGDAtKAvg
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import figure1, movielens, table1, table2, table3
from structsvm_papk.experiments.descents import descend
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.result import Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates.convex import Avg

pytestmark = pytest.mark.study


def run_json(capsys, *arguments):
    status = cli.main([str(argument) for argument in (*arguments, "--json")])
    return status, json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert cli.main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


# ----------------------------------------------------------------- table 1


def test_table1_is_exact(capsys):
    status, found = run_json(capsys, "reproduce", "table1")
    assert status == 0
    assert found["max_abs_difference"] <= 1e-15
    assert len(found["rows"]) == 13
    assert {row["ranker"] for row in found["rows"]} == set(table1.LABELS)


def test_table1_would_notice_another_ranking(monkeypatch):
    monkeypatch.setitem(table1.LABELS, "f1", "10101110000")
    assert table1.run()["max_abs_difference"] > 0.01


# ----------------------------------------------------------------- table 2


def test_table2_rows_stand_beside_the_published_values(capsys):
    status, found = run_json(capsys, "reproduce", "table2", "--runs", 1)
    assert status == 0 and found["n_runs"] == 1
    assert len(found["rows"]) == sum(len(table2.hows_for(case)) for case in (1, 2))
    for row in found["rows"]:
        measured, published = row["measured"], row["published"]
        assert set(published) <= set(measured)
        assert sum(measured["precision_higher"]) + measured["n_equal"] == 1
        assert sum(published["precision_higher"]) + published["n_equal"] == 300
        if row["how"].startswith("certified"):
            assert measured["certified"] == [1, 1]


def test_table2_case_1_comes_near_the_published_means():
    row = table2.run(30, table2.HOWS[:1], cases=(1,))["rows"][0]
    for (mean, _), (published, _) in zip(
        row["measured"]["precision"], row["published"]["precision"], strict=True
    ):
        assert mean == pytest.approx(published, abs=0.07)
    assert row["measured"]["precision_higher"][0] > 15 > 3 > row["measured"]["precision_higher"][1]


def test_summary_by_hand():
    precision = np.array([[0.5, 0.3], [0.2, 0.2], [0.1, 0.4], [0.6, 0.6]])
    auc = np.array([[0.0, 1.0], [0.9, 0.5], [0.0, 1.0], [0.1, 0.5]])
    none = np.zeros((4, 2), dtype=bool)
    found = table2.summarise(precision, auc, none, none)
    assert found["precision_higher"] == [1, 1] and found["n_equal"] == 2
    assert found["auc_where_equal"][0] == pytest.approx((0.5, 0.4))
    assert found["auc_higher"] == [1, 1]


def test_scaled_features_have_range_one():
    X = table2.make_data(2, 0, True).X
    assert np.allclose(np.ptp(X, axis=0), 1) and np.allclose(X.min(axis=0), -0.5)


def test_table2_refuses_other_cases(capsys):
    assert "no case 3" in refused(capsys, "reproduce", "table2", "--case", 3)
    assert "at least one run" in refused(capsys, "reproduce", "table2", "--runs", 0)


# ----------------------------------------------------------------- figure 1


@pytest.fixture(scope="module")
def panels():
    return figure1.run()


def test_figure1_reaches_what_each_condition_promises(panels):
    certified = {panel.condition: panel for panel in panels if panel.solver != "descent"}
    ends = {name: panel.as_dict()["measured"] for name, panel in certified.items()}
    assert all(ends["strong"][name] < 0.05 for name in figure1.SHOWN)
    assert ends["beta"]["avg"] < 0.01 and ends["moderate"]["ts"] < 0.01
    assert ends["weak"]["ramp"] < 0.05 and ends["weak"]["avg"] > 1
    assert all(end["risk"] == 0 for end in ends.values())
    for name in ("strong", "beta", "moderate"):
        assert 0 <= certified[name].result.gap <= 1e-6


def test_figure1_exact_ts_does_not_bound_ramp(panels):
    # the surrogate of equation (14) is zero here and Ramp is not, as no order holds between them
    end = next(p for p in panels if (p.condition, p.solver) == ("moderate", "cutting_plane"))
    measured = end.as_dict()["measured"]
    assert measured["ts"] < 0.01 < 0.5 < measured["ramp"]


def test_certified_is_never_above_the_recipe(panels):
    for condition in ("strong", "beta"):  # the same surrogate in both
        descent, certified = (panel for panel in panels if panel.condition == condition)
        assert certified.result.objective <= descent.result.objective
        assert certified.result.lower_bound <= descent.result.objective


@pytest.mark.parametrize("condition", figure1.SETTINGS)
def test_filtered_lists_satisfy_their_condition_after_scaling(condition):
    data, truth = figure1.make_data(condition, 0)
    scores = data.scores(truth)
    p, q = np.sort(scores[data.labels])[::-1], scores[~data.labels].max()
    best, worst = p[figure1.K - 1], p[-1]
    holds = {
        "strong": worst >= q + 1 - 1e-9,
        "beta": p[-figure1.K :].mean() >= q + 1 - 1e-9,
        "moderate": worst >= q - 1e-9 and best >= q + 1 - 1e-9,
        "weak": best >= q + 1 - 1e-9,
    }
    assert holds[condition]
    assert condition == "strong" or not holds["strong"]


def test_curves_are_the_naive_surrogates():
    data, truth = figure1.make_data("beta", 0)
    curves = figure1._values_along([truth], data)
    scores = data.scores(truth)
    p, q = list(scores[data.labels]), list(scores[~data.labels])
    for name, naive in {"max": maximum, "avg": avg, "ramp": ramp}.items():
        assert curves[name][0] == pytest.approx(naive(p, q, figure1.K))
    few = [1.0, 0.2], [0.5, 0.1]
    bounds = np.array([0, 4])
    value, _ = make_surrogate("ts", 1).value_and_subgradient(
        np.concatenate(few), bounds, np.array([2])
    )
    assert value[0] == pytest.approx(ts(*few, 1))


def test_figure1_command_draws(capsys, tmp_path):
    path = tmp_path / "figure.png"
    status, found = run_json(capsys, "reproduce", "figure1", "--condition", "beta", "--plot", path)
    assert status == 0 and path.read_bytes().startswith(b"\x89PNG")
    assert [panel["solver"] for panel in found["panels"]] == ["descent", "cutting_plane"]
    assert "no condition 'mild'" in refused(capsys, "reproduce", "figure1", "--condition", "mild")


# ----------------------------------------------------------------- MovieLens preparation

SMALL = movielens.Preparation(rank=3, steps=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "ml-100k"
    movielens.write_synthetic(place, n_users=40, n_items=120, mean_ratings=90)
    return place


def test_preparation_keeps_first_ratings_out_of_the_instances(folder):
    ratings = movielens.read_ratings(folder)
    splits = movielens.prepare(ratings, 0, SMALL)
    parts = (splits.train, splits.val, splits.test)
    n_rows = sum(part.rows.size for part in parts)
    expected = first_items = 0
    seen = set()
    for user in np.unique(ratings[:, 0]):  # the rule, user by user
        mine = ratings[ratings[:, 0] == user]
        mine = mine[np.argsort(mine[:, 3], kind="stable")]
        seen |= set(mine[:20, 1])
    for user in np.unique(ratings[:, 0]):
        mine = ratings[ratings[:, 0] == user]
        mine = mine[np.argsort(mine[:, 3], kind="stable")]
        rest = [row for row in mine[20:] if row[1] in seen]
        if len(rest) >= 20:
            expected += len(rest)
            first_items += sum(row[2] == 5 for row in rest)
    assert n_rows == expected
    assert sum(int(part.n_pos.sum()) for part in parts) == first_items
    assert np.allclose(np.ptp(splits.train.X, axis=0), 1)
    assert 0.5 < splits.train.rows.size / n_rows < 0.7


def test_features_are_factors_and_their_products(folder):
    ratings = movielens.read_ratings(folder)
    X = movielens.prepare(ratings, 0, SMALL).train.X
    assert X.shape[1] == 9
    # undo the scaling up to its affine form: products regress exactly on 1, a, b and a*b
    for j in range(3):
        a, b = X[:, j], X[:, 3 + j]
        basis = np.column_stack([np.ones(len(a)), a, b, a * b])
        residual = X[:, 6 + j] - basis @ np.linalg.lstsq(basis, X[:, 6 + j], rcond=None)[0]
        assert np.abs(residual).max() < 1e-8


def test_preparation_is_seeded(folder):
    ratings = movielens.read_ratings(folder)
    first, again, other = (movielens.prepare(ratings, seed, SMALL).train for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X)


def test_masked_factorisation_fits_known_entries_of_a_low_rank_matrix():
    rng = np.random.default_rng(0)
    full = rng.random((12, 2)) @ rng.random((2, 10)) + 0.1
    known = rng.random(full.shape) < 0.8
    matrix = sparse.csr_matrix(np.where(known, full, 0))
    left, right = movielens.masked_nmf(matrix, 3, rng, 2000)
    fitted = left @ right.T
    assert np.abs(fitted - full)[known].max() < 0.05
    assert (left > 0).all() and (right > 0).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no u.data"),
        ("", "no ratings"),
        ("1\t2\t3\t4\n1::2::3::4\n", "line 2"),
        ("1\t2\t3\n", "line 1"),
        ("1\t2\t3\t4\n1\t2\t9\t4\n", "line 2: rating 9"),
        ("1\t2\t3\t4\n", "no user has 20"),
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt. input contained no data")
def test_foreign_folders_are_refused(tmp_path, capsys, content, message):
    if content is not None:
        (tmp_path / "u.data").write_text(content)
    results = tmp_path / "results"
    assert message in refused(capsys, "reproduce", "table3", tmp_path, "--results", results)
    assert not results.exists()


def test_a_missing_folder_is_refused(tmp_path, capsys):
    shown = refused(capsys, "reproduce", "table3", tmp_path / "no", "--results", tmp_path / "r")
    assert "ml-100k.zip" in shown


# ----------------------------------------------------------------- table 3

GRID = table3.Grid(etas=(0.1, 0.5), alphas=(0.01,), ridges=(1e-3,), steps=15)


def plan_of(folder, **given):
    given = {"ks": (4,), "seeds": (0,), "grid": GRID, "preparation": SMALL} | given
    return table3.Plan(str(folder), **given)


def test_every_method_gives_a_row(folder, tmp_path):
    found = table3.run(plan_of(folder), tmp_path / "results")
    assert found["published_data"] is False  # invented ratings
    rows = {row["method"]: row for row in found["rows"]}
    assert set(rows) == set(table3.available())
    for row in rows.values():
        assert row["lower"] <= row["measured"] <= row["upper"]
        assert row["published"] is None  # the paper has no k = 4
    for name in ("logistic, pooled", "Avg, certified, depth", "TS, certified, depth"):
        assert rows[name]["measured"] > 0
    assert rows["TS, certified, depth"]["settings"][0]["depth_over_k"] in GRID.depths
    for name in ("Avg, certified", "Max, certified", "TS, certified", "SVM-pAUC, certified"):
        assert rows[name]["gaps"][0] <= 1e-4
        assert (rows[name]["statuses"] == ["degenerate"]) == rows[name]["zero"][0]


def test_published_values_stand_where_the_paper_has_them():
    assert table3.PUBLISHED["Avg", "movielens", 16] == 36.1
    assert table3.PUBLISHED["SGD@k-avg", "behance", 25] == 35.3
    assert len(table3.PUBLISHED) == 7 * 3 * 5


@pytest.mark.parametrize("name", ["max", "avg", "ts_alg2", "pauc", "prec_avg"])
def test_descents_side_by_side_are_those_one_by_one(folder, name):
    data = movielens.prepare(movielens.read_ratings(folder), 0, SMALL).train
    risk = EmpiricalRisk(PrecAtKAvg(4) if name == "prec_avg" else make_surrogate(name, 4), data)
    start = np.random.default_rng(1).standard_normal(risk.n_features)
    settings = [(eta, alpha) for eta in (0.01, 0.5) for alpha in (1e-3, 0.1, 1.0)]
    together = descend(risk, settings, 30, start)
    fewer = descend(risk, settings[3:5], 30, start)
    for (eta, alpha), result in zip(settings, together, strict=True):
        alone = SubgradientDescent(alpha, eta, 30).solve(risk, start)
        assert np.array_equal(result.w, alone.w)
        assert result.objective == pytest.approx(alone.objective, rel=1e-14)
        assert (result.status, result.data_passes) == (alone.status, alone.data_passes)
    assert all(np.array_equal(a.w, b.w) for a, b in zip(together[3:5], fewer, strict=True))


def test_descents_side_by_side_on_sparse_features(folder):
    data = movielens.prepare(movielens.read_ratings(folder), 0, SMALL).train
    same = RankingData.from_groups(sparse.csr_matrix(data.X), *row_labels(data))
    start, settings = np.ones(data.n_features), [(0.1, 0.01), (0.2, 0.1)]
    dense, thin = (descend(EmpiricalRisk(Avg(4), d), settings, 9, start) for d in (data, same))
    assert all(np.allclose(a.w, b.w) for a, b in zip(dense, thin, strict=True))


def row_labels(data):
    """Relevance and user of each row of X."""
    labels, users = np.empty((2, data.rows.size), dtype=int)
    labels[data.rows], users[data.rows] = data.labels, data.user_of_position
    return labels, users


def test_the_grid_of_sgd_at_k_avg_is_the_baseline(folder):
    data = movielens.prepare(movielens.read_ratings(folder), 0, SMALL).train
    setting = {"eta": 0.2, "alpha": 0.01, "steps": 12}
    (found,) = table3.METHODS["SGD@k-avg"].fit(data, 4, 3, [setting])
    expected = SGDAtKAvg(0.01, 0.2, 12, seed=3).solve(data, 4)
    assert np.array_equal(found.w, expected.w)


def test_the_recipe_has_the_settings_of_the_scripts(folder):
    data = movielens.prepare(movielens.read_ratings(folder), 0, SMALL).train
    settings = GRID.recipe()
    found = list(table3.METHODS["Avg, recipe"].fit(data, 4, 0, settings))
    at = settings.index({"eta": 0.2, "alpha": 0.1, "steps": 121})
    expected = SubgradientDescent.paper(0.1, 0.2, 121).solve(EmpiricalRisk(Avg(4), data))
    assert len(found) == 8 and np.array_equal(found[at].w, expected.w)


def test_seeds_are_averaged(folder, tmp_path):
    plan = plan_of(folder, methods=("logistic, pooled",), seeds=(0, 1))
    both = table3.run(plan, tmp_path / "both")["rows"][0]
    alone = [
        table3.run(replace(plan, seeds=(seed,)), tmp_path / "both")["rows"][0]["measured"]
        for seed in (0, 1)
    ]
    assert both["by_seed"] == alone and both["measured"] == pytest.approx(np.mean(alone))
    assert alone[0] != alone[1] and both["lower"] < both["measured"] < both["upper"]


def test_intervals_are_about_the_mean_that_is_shown():
    # 30 users with gain 1 in all three seeds, 30 more with gain 0 that only one seed could test
    users = [np.arange(30), np.arange(30), np.arange(60)]
    gains = [np.ones(30), np.ones(30), np.repeat([1.0, 0.0], 30)]
    lower, upper = table3._user_bootstrap(users, gains)
    mean, deviation = (1 + 1 + 0.5) / 3, np.sqrt(0.25 / 60) / 3
    assert lower == pytest.approx(mean - 1.96 * deviation, abs=0.004)
    assert upper == pytest.approx(mean + 1.96 * deviation, abs=0.004)


def test_a_fit_that_is_interrupted_is_no_cell(folder, tmp_path, monkeypatch):
    def fit(data, k, seed, settings):
        for _ in settings:
            result = CuttingPlane(0.1, max_iter=2).solve(EmpiricalRisk(Avg(k), data))
            yield replace(result, status=Status.INTERRUPTED)

    monkeypatch.setitem(
        table3.METHODS, "Avg, certified", replace(table3.METHODS["Avg, certified"], fit=fit)
    )
    with pytest.raises(KeyboardInterrupt):
        table3.run(plan_of(folder, methods=("Avg, certified",)), tmp_path / "results")
    assert not list((tmp_path / "results" / "cells").iterdir())


class Interrupted(Exception):
    pass


def test_an_interrupted_run_goes_on_without_loss(folder, tmp_path):
    plan = plan_of(folder, methods=("Avg, descent", "logistic, pooled"), seeds=(0, 1))
    whole = table3.run(plan, tmp_path / "whole")

    def stop_after_two(done, total, cell):
        if done == 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        table3.run(plan, tmp_path / "parts", callback=stop_after_two)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "parts" / "cells").iterdir()}
    assert len(kept) == 2
    calls = []
    again = table3.run(plan, tmp_path / "parts", callback=lambda *args: calls.append(args))
    assert calls[0][:2] == (2, 6) and len(calls) == 5
    assert all(p.stat().st_mtime_ns == time for p, time in kept.items())
    assert again == whole


def test_a_results_folder_of_another_run_is_refused(folder, tmp_path):
    methods = ("logistic, pooled",)
    table3.run(plan_of(folder, methods=methods), tmp_path / "results")
    more = table3.run(plan_of(folder, methods=methods, ks=(4, 5)), tmp_path / "results")
    assert len(more["rows"]) == 2  # more of the same run is welcome
    other = tmp_path / "other"
    movielens.write_synthetic(other, n_users=30, n_items=120, seed=5)
    with pytest.raises(InputError, match="another run: data"):
        table3.run(plan_of(other, methods=methods), tmp_path / "results")
    how = movielens.Preparation(rank=2, steps=20)
    with pytest.raises(InputError, match="another run: preparation"):
        table3.run(plan_of(folder, methods=methods, preparation=how), tmp_path / "results")


def test_a_folder_with_other_files_is_refused(folder, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        table3.run(plan_of(folder, methods=("logistic, pooled",)), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_processes_give_the_same_table(folder, tmp_path):
    plan = plan_of(folder, methods=("Avg, descent",))
    one = table3.run(plan, tmp_path / "one")
    assert table3.run(plan, tmp_path / "two", jobs=2) == one


def write_prepared(place, n_features=3, names=("user_id", "label")):
    """Files of the form that the authors' scripts write."""
    rng = np.random.default_rng(0)
    for part, size in (("train", 30), ("val", 15), ("test", 15)):
        header = [names[0], *(f"f{j}" for j in range(n_features)), names[1]]
        lines = ["\t".join(header)]
        for user in range(12):
            X = rng.standard_normal((size, n_features)).round(5)
            labels = (X[:, 0] + 0.5 * rng.standard_normal(size) > 0.8).astype(int)
            labels[0] = 1
            lines += [
                "\t".join(map(str, (f"user{user}", *row, label)))
                for row, label in zip(X.tolist(), labels.tolist(), strict=True)
            ]
        (place / f"{part}_data_d{n_features}.tsv").write_text("\n".join(lines) + "\n")


def test_prepared_files_of_the_authors(tmp_path, capsys):
    place = tmp_path / "citation"
    place.mkdir()
    write_prepared(place)
    arguments = ("reproduce", "table3", place, "--dataset", "citation", "--results")
    chosen = ("--k", 6, "--method", "Avg, certified", "--alpha", 0.01, "--jobs", 1)
    status, found = run_json(capsys, *arguments, tmp_path / "results", *chosen)
    row = found["rows"][0]
    assert status == 0 and row["published"] == 20.7
    assert row["measured"] > 60 and row["n_users"] == 12
    assert row["statuses"] == ["converged"] * 3 and row["by_seed"] == [row["measured"]] * 3


def test_prepared_files_with_other_columns_are_refused(tmp_path, capsys):
    write_prepared(tmp_path, names=("user", "label"))
    arguments = ("reproduce", "table3", tmp_path, "--dataset", "behance", "--results")
    assert "user_id" in refused(capsys, *arguments, tmp_path / "results")
    (tmp_path / "val_data_d3.tsv").unlink()
    assert "val_data_d*.tsv" in refused(capsys, *arguments, tmp_path / "results")


def test_plans_are_checked(folder):
    with pytest.raises(InputError, match="unknown method"):
        plan_of(folder, methods=("Magic",))
    with pytest.raises(InputError, match="unknown data set"):
        table3.Plan("x", dataset="netflix")
    with pytest.raises(InputError, match="etas"):
        table3.Grid(etas=(0.1, -1))


def test_a_synthetic_folder_is_written_once(tmp_path, capsys):
    place = tmp_path / "new"
    assert cli.main(["reproduce", "synthetic-movielens", str(place), "--users", "5"]) == 0
    assert capsys.readouterr().out.strip() == str(place / "u.data")
    assert "not an empty folder" in refused(capsys, "reproduce", "synthetic-movielens", place)
