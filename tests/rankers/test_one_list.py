"""What folds of one list choose: surrogate, scaling of columns and alpha."""

import json
import pickle
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from helpers.marks import slow
from helpers.sources import write_csv
from structsvm_papk import PAPKRanker, PAPKRankerCV, cli
from structsvm_papk.data import RankingData
from structsvm_papk.files import load_model
from structsvm_papk.rankers.folds import folds_by_content
from structsvm_papk.rankers.search import Training

RNG = np.random.default_rng(0)
N = 240
SHAPE = RNG.normal(size=(N, 4))
Y = SHAPE @ [1, 1, 0.5, 0] + 0.3 * RNG.normal(size=N) > 1.2
HEAVY = np.sinh(4 * SHAPE)  # tails that a linear score follows by ranks only


def test_heavy_tails_are_ranked_and_model_files_and_commands_say_it(tmp_path, capsys):
    ranker = PAPKRanker(5, one_list=True).fit(HEAVY, Y)
    assert (ranker.surrogate_, ranker.user_scaling_) == ("avg", "rank")
    (note, *_) = ranker.result_.notes
    assert note.startswith("Folds of the list chose avg, ranks of the columns, alpha ")
    as_they_are = PAPKRanker(5, one_list=True, user_scaling=None).fit(HEAVY, Y)
    assert as_they_are.user_scaling_ is None
    new = RNG.normal(size=(400, 4))
    relevant = new @ [1, 1, 0.5, 0] > 1.2
    values = [
        average_precision_score(relevant, fitted.predict(np.sinh(4 * new)))
        for fitted in (ranker, as_they_are)
    ]
    assert values[0] > values[1] + 0.02
    ranker.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert (model.surrogate, model.user_scaling, model.alpha) == ("avg", "rank", ranker.alpha_)
    rows = write_csv(tmp_path / "rows.csv", HEAVY, Y, np.zeros(N, dtype=int))
    assert cli.main(["fit", str(rows), "--k", "5", "--one-list", "-o", str(tmp_path / "n"),
                     "--ignore", "group", "--json"]) == 0  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert (told["surrogate"], told["user_scaling"]) == ("avg", "rank")
    assert "Folds of the list chose avg, ranks" in told["message"]


def test_what_is_chosen_has_the_best_mean_on_the_folds():
    """By hand, with fits of their own, at the alpha that was chosen and its neighbours."""
    ranker = PAPKRanker(5, one_list=True).fit(SHAPE, Y)
    assert ranker.surrogate_ == "ts" and ranker.user_scaling_ is None
    data = RankingData.from_groups(SHAPE, Y)
    settings = {(ranker.surrogate_, ranker.user_scaling_, ranker.alpha_): []}
    for surrogate, scaling in (("avg", None), ("ts", None), ("avg", "rank")):
        for alpha in (1.0, 0.1, 0.01):
            settings[surrogate, scaling, alpha] = []
    for fold in folds_by_content(5, data):
        train, test = data.rows[fold.train], data.rows[fold.test]
        for (surrogate, scaling, alpha), values in settings.items():
            own = PAPKRanker(5, surrogate, alpha=alpha, user_scaling=scaling, one_list=True)
            scores = own.fit(SHAPE[train], Y[train]).predict(SHAPE[test])
            values.append(average_precision_score(Y[test], scores))
    means = {key: np.mean(values) for key, values in settings.items()}
    chosen = means[ranker.surrogate_, ranker.user_scaling_, ranker.alpha_]
    assert chosen >= max(means.values()) - 5e-3


@pytest.mark.parametrize(
    ("given", "open_"),
    [
        slow({"surrogate": "max"}, "scaling"),
        ({"alpha": 0.1}, "surrogate"),
        slow({"user_scaling": "rank", "alpha": 0.1}, "surrogate"),
        ({"surrogate": "clipped_ramp", "user_scaling": None}, "alpha"),
        ({"surrogate": "ts", "user_scaling": None, "alpha": 0.1}, None),
    ],
)
def test_what_is_given_stays(given, open_):
    ranker = PAPKRanker(5, one_list=True, **given).fit(SHAPE, Y)
    for name, value in given.items():
        assert getattr(ranker, f"{name}_") == value
    noted = any(note.startswith("Folds of the list chose") for note in ranker.result_.notes)
    assert noted == (open_ is not None)


def test_several_lists_and_a_sparse_one_are_taken_as_they_are():
    groups = np.repeat(np.arange(12), 20)
    ranker = PAPKRanker(5).fit(HEAVY, Y, groups)
    assert (ranker.surrogate_, ranker.user_scaling_) == ("avg", None)
    sparse_one = PAPKRanker(5, one_list=True).fit(sparse.csr_matrix(HEAVY), Y)
    assert sparse_one.user_scaling_ is None


def test_the_default_of_a_search_on_one_list_is_what_the_ranker_takes():
    rows = [(HEAVY, Y)]
    for seed in (0, 3, 9):  # columns that may share a unit, too
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(90, 6)) * [1, 1, 2, 2, 3, 3]
        rows.append((X, X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=90) > 1.5))
    for X, y in rows:
        ranker = PAPKRanker(5, one_list=True).fit(X, y)
        default = PAPKRankerCV(5, one_list=True, cv=3).fit(X, y).choice_.default
        taken = default.surrogate, default.user_scaling, default.standardize, default.alpha
        assert taken == (ranker.surrogate_, ranker.user_scaling_, "auto", ranker.alpha_)


@pytest.mark.parametrize(("graded", "seeds"), [(False, (2, 5, 31)), (True, (12, 26))])
def test_rows_in_another_order_or_storage_give_the_same_choice(graded, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(50, 120)), int(rng.integers(3, 5))))
        if graded:
            X = np.round(X) + 0.0
        score = X[:, 0] + rng.normal(size=len(X))
        X[:, 1] = np.round(X[:, 1])
        y = np.digitize(score, [0.0, 1.0, 1.5]) if graded else score > 0.7
        order = rng.permutation(len(X))
        fits = [
            PAPKRanker(3, one_list=True).fit(*rows)
            for rows in ((X, y), (np.asfortranarray(X), y), (X[order], y[order]))
        ]
        choices = {(fit.alpha_, fit.surrogate_, fit.user_scaling_) for fit in fits}
        assert len(choices) == 1, (seed, choices)


N_FITS = 2 * 20 + 3 * 10  # two folds try all, the others what is best there


@pytest.fixture
def choosing(monkeypatch):
    """Fits of the choice; of a `patience` that is set the clock jumps ahead after so many."""
    fits = SimpleNamespace(n_made=0, patience=np.inf)
    now = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: now() + 1e6 * (fits.n_made >= fits.patience))
    solve = Training.solve

    def counted(*args, **options):
        result = solve(*args, **options)
        fits.n_made += 1
        return result

    monkeypatch.setattr(Training, "solve", counted)
    return fits


@pytest.mark.parametrize("how", ["checkpoint", "warm_start"])
def test_a_time_limit_that_ends_the_choice_says_so_and_more_time_goes_on(choosing, how, tmp_path):
    whole = PAPKRanker(5, one_list=True).fit(SHAPE, Y)
    assert choosing.n_made == N_FITS
    choosing.n_made, choosing.patience = 0, 50
    early = PAPKRanker(5, one_list=True, time_limit=1e5)
    early.set_params(**{how: True if how == "warm_start" else tmp_path / "kept"})
    with pytest.warns(ConvergenceWarning, match=r"ended the choice .* goes on from here"):
        early.fit(SHAPE, Y)
    assert choosing.n_made == 50
    assert early.alpha_ == pytest.approx(0.1) and early.surrogate_ == "avg"
    assert any("ended the choice by folds" in note for note in early.result_.notes)
    if how == "checkpoint":  # another process
        early = PAPKRanker(5, one_list=True, checkpoint=tmp_path / "kept", time_limit=1e5)
    resumed = pickle.loads(pickle.dumps(early))
    choosing.patience = np.inf
    resumed.fit(SHAPE, Y)
    assert choosing.n_made == N_FITS
    assert (resumed.surrogate_, resumed.alpha_) == (whole.surrogate_, whole.alpha_)
    assert resumed.result_.objective == pytest.approx(whole.result_.objective, rel=1e-5)


def test_another_list_takes_nothing_of_what_was_kept(choosing):
    ranker = PAPKRanker(5, one_list=True, time_limit=1e5, warm_start=True)
    for X, n_made in ((SHAPE, 3), (-SHAPE, 4), (-SHAPE, 5)):  # at least one fit, however late
        choosing.patience = n_made
        with pytest.warns(ConvergenceWarning, match="ended the choice"):
            ranker.fit(X, Y)
        assert choosing.n_made == n_made


def test_a_choice_without_a_place_to_keep_it_says_what_to_give(choosing):
    choosing.patience = 1
    early = PAPKRanker(5, one_list=True, time_limit=1e5)
    with pytest.warns(ConvergenceWarning, match="Give checkpoint or warm_start=True"):
        early.fit(SHAPE, Y)
