"""The strength of the penalty: 12 m (d / p)^1.5 of lists, the choice of folds of one list."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score

from helpers.marks import slow
from helpers.sources import npy_source
from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.data.content import digests_of
from structsvm_papk.files.partitions import open_source
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.rankers import choosing
from structsvm_papk.rankers.candidates import folds_of_lists, folds_of_rows

Linear = partial(PAPKRanker, curves=None)


def lists(n_users=30, size=20, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * size, n_features)) * np.arange(1, n_features + 1)
    users = np.repeat(np.arange(n_users), size)
    y = X @ rng.normal(size=n_features) + 3 * rng.normal(size=users.size) > 6
    y[users == 0] = False  # a list without a positive, which does not train
    y[::size][1:] = True
    return X, y, users


def test_it_weighs_columns_against_the_positives_that_train():
    X, y, users = lists()
    X = np.hstack([X, np.full((len(X), 1), 7.0)])  # constant: no column that counts
    ranker = Linear(3).fit(X, y, users)
    assert ranker.alpha_ == pytest.approx(12 * (6 / y.sum()) ** 1.5, rel=1e-12)
    assert ranker.alpha_ == ranker.result_.alpha == ranker.to_model().alpha
    by_hand = Linear(3, alpha=ranker.alpha_).fit(X, y, users)
    np.testing.assert_array_equal(by_hand.coef_, ranker.coef_)
    assert by_hand.alpha_ == by_hand.alpha


def test_columns_as_they_are_count_by_their_variance():
    X, y, users = lists()
    ranker = Linear(3, standardize=False).fit(X, y, users)
    within = np.mean([X[users == u].var(axis=0) for u in range(30)], axis=0)
    n_columns = within.sum() ** 2 / np.sum(within**2)
    expected = 12 * within.mean() * (n_columns / y.sum()) ** 1.5
    assert ranker.alpha_ == pytest.approx(expected, rel=1e-12)
    moved = Linear(3, standardize=False).fit(1e5 * X, y, users)  # units do not matter
    assert moved.result_.objective == pytest.approx(ranker.result_.objective, rel=1e-5)


@pytest.mark.parametrize("largest", [1e152, 1e300])
def test_a_column_whose_variance_overflows_is_one_like_the_others(largest):
    X, y, users = lists()
    X[3, 0] = largest
    ranker = Linear(3).fit(X, y, users)
    assert ranker.alpha_ == pytest.approx(12 * (6 / y.sum()) ** 1.5, rel=1e-12)
    assert ranker.result_.converged and np.isfinite(ranker.coef_).all()
    assert np.abs(ranker.coef_[1:]).min() > 0


def test_weights_of_users_count_as_many_as_equal_ones_of_the_same_certainty():
    X, y, users = lists()
    weight = np.where(users < 15, 1.0, 9.0)
    ranker = Linear(3).fit(X, y, users, sample_weight=weight)
    n_lists = (14 + 15 * 9) ** 2 / (14 + 15 * 81)
    assert ranker.alpha_ == pytest.approx(12 * (6 / (n_lists * y.sum() / 29)) ** 1.5, rel=1e-12)
    by_positives = Linear(3, user_weight="positives").fit(X, y, users)
    n_pos = np.bincount(users, y)
    assert by_positives.alpha_ == pytest.approx(
        12 * (6 * 29 * np.sum(n_pos**2) / n_pos.sum() ** 3) ** 1.5
    )


@pytest.mark.parametrize("weight", ["equal", "positives"])
def test_files_have_the_alpha_of_memory(tmp_path, weight):
    X, y, users = lists()
    npy_source(tmp_path, X, y.astype(int), users)
    ranker = Linear(3, user_weight=weight)
    source = open_source(tmp_path)
    risk = StreamedRisk(ranker.make_surrogate(), source, 60_000, user_weight=weight)
    ranker.fit_risk(risk)
    in_memory = Linear(3, user_weight=weight).fit(X, y, users)
    assert ranker.alpha_ == pytest.approx(in_memory.alpha_, rel=1e-12)
    assert ranker.result_.objective == pytest.approx(in_memory.result_.objective, rel=1e-5)


def test_a_sparse_matrix_has_the_rule_of_a_dense_one():
    X, y, users = lists()
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    ranker = Linear(3, standardize=True).fit(sparse.csr_array(X), y, users)
    assert ranker.alpha_ == pytest.approx(12 * (6 / y.sum()) ** 1.5, rel=1e-12)
    by_one_number = Linear(3).fit(sparse.csr_array(X), y, users)
    as_they_are = Linear(3, standardize=False).fit(X, y, users)
    square = by_one_number.scale_[0] ** 2
    assert by_one_number.alpha_ * square == pytest.approx(as_they_are.alpha_, rel=1e-12)


def of_one_list(noise, n_rows=200, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = X[:, 0] + noise * rng.normal(size=n_rows) > 1.2
    return X, y


def test_the_strength_of_one_list_is_a_multiple_of_the_mean_variance_of_its_columns():
    X, y = of_one_list(0.5)
    ranker = Linear(5, "avg", groups="one_list", standardize=False).fit(1e3 * X, y)
    multiple = ranker.alpha_ / (1e6 * X.var(axis=0).mean())
    assert np.isclose(multiple, choosing.MULTIPLES).any()


def test_one_list_with_few_positives_or_many_values_or_on_file_has_a_fixed_one(
    tmp_path, monkeypatch
):
    X, y = of_one_list(0.5)
    y &= np.cumsum(y) <= 4
    assert Linear(5, groups="one_list").fit(X, y).alpha_ == 0.1
    X, y = of_one_list(0.5)
    npy_source(tmp_path, X, y.astype(int), np.zeros(y.size, dtype=int))
    ranker = Linear(5)
    ranker.fit_risk(StreamedRisk(ranker.make_surrogate(), open_source(tmp_path), 1e6))
    assert ranker.alpha_ == 0.1
    monkeypatch.setattr(choosing, "_MOST_VALUES", X.size)
    ranker = Linear(5, "avg", groups="one_list").fit(X, y)
    assert any(note.startswith("Folds chose") for note in ranker.result_.notes)
    monkeypatch.setattr(choosing, "_MOST_VALUES", X.size - 1)
    ranker = Linear(5, groups="one_list").fit(X, y)
    assert ranker.alpha_ == pytest.approx(0.1) and ranker.surrogate_ == "avg"


def test_copies_of_a_row_or_of_a_list_stand_in_one_fold():
    rng = np.random.default_rng(3)
    X, y = np.tile(rng.normal(size=(60, 10)), (2, 1)), np.tile(rng.random(60) < 0.4, 2)
    for folds, groups in ((folds_of_rows, None), (folds_of_lists, np.arange(120) // 5)):
        data = RankingData.from_groups(X, y, groups)
        for fold in folds(5, data, digests_of(data)):
            held_out = set(data.rows[fold.test].tolist())
            assert held_out == {(row + 60) % 120 for row in held_out}
            assert 18 <= len(held_out) <= 30


# --- what folds of one list choose ----------------------------------------------------------------


RNG = np.random.default_rng(0)
N = 240
SHAPE = RNG.normal(size=(N, 4))
Y = SHAPE @ [1, 1, 0.5, 0] + 0.3 * RNG.normal(size=N) > 1.2


def test_what_is_chosen_has_the_best_mean_on_the_folds():
    """By hand, with fits of their own, of each surrogate at each alpha that is likely."""
    ranker = PAPKRanker(5, groups="one_list", curves=None).fit(SHAPE, Y)
    data = RankingData.from_groups(SHAPE, Y)
    settings = {(ranker.surrogate_, ranker.alpha_): []}
    for surrogate in ("avg", "pauc"):
        for alpha in choosing.MULTIPLES[2:5]:
            settings[surrogate, alpha] = []
    for fold in folds_of_rows(5, data, digests_of(data)):
        train, test = data.rows[fold.train], data.rows[fold.test]
        for (surrogate, alpha), values in settings.items():
            own = PAPKRanker(5, surrogate, alpha=alpha, groups="one_list", curves=None)
            scores = own.fit(SHAPE[train], Y[train]).predict(SHAPE[test])
            values.append(average_precision_score(Y[test], scores))
    means = {key: np.mean(values) for key, values in settings.items()}
    chosen = means[ranker.surrogate_, ranker.alpha_]
    assert chosen >= max(means.values()) - 5e-3


@pytest.mark.parametrize(
    ("given", "open_"),
    [
        slow({"surrogate": "max"}, "alpha"),
        ({"alpha": 0.1}, "surrogate"),
        slow({"surrogate": "clipped_ramp"}, "alpha"),
        ({"surrogate": "ts", "alpha": 0.1}, "curves"),
        ({"surrogate": "ts", "alpha": 0.1, "curves": None}, None),
        ({"curves": 4}, "surrogate and alpha"),
    ],
)
def test_what_is_given_stays(given, open_):
    ranker = PAPKRanker(5, groups="one_list", **given).fit(SHAPE[:160], Y[:160])
    for name in given.keys() & {"surrogate", "alpha"}:
        assert getattr(ranker, f"{name}_") == given[name]
    if "curves" in given:
        assert (ranker.curves_[0].knots.size > 4) == (given["curves"] == 4)
    noted = any(note.startswith("Folds chose") for note in ranker.result_.notes)
    assert noted == (open_ is not None)


@pytest.mark.parametrize(
    ("graded", "curves", "seeds"),
    [(False, None, [2]), slow(False, "auto", [2, 5, 31]), slow(True, "auto", [12, 26])],
)
def test_rows_in_another_order_or_storage_give_the_same_choice(graded, curves, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(50, 120)), int(rng.integers(3, 5))))
        if graded:
            X = np.round(X) + 0.0
        score = X[:, 0] + rng.normal(size=len(X))
        X[:, 1] = np.round(X[:, 1])
        y = np.digitize(score, [0.0, 1.0, 1.5]) if graded else score > 0.7
        order = rng.permutation(len(X))
        forms = {
            "as it is": (X, y),
            "by columns": (np.asfortranarray(X), y),
            "rows": (X[order], y[order]),
            "columns": (X[:, ::-1], y),
            "units": (X * [3.0, 0.1, 1e3, 1.0][: X.shape[1]], y),
            "origin": (X + 5.7, y),
        }
        choices = {}
        for name, rows in list(forms.items())[:: 2 if len(seeds) == 1 else 1]:
            fit = PAPKRanker(3, groups="one_list", curves=curves).fit(*rows)
            choices[name] = fit.alpha_, fit.surrogate_
        assert len(set(choices.values())) == 1, (seed, choices)
