"""What folds of one list choose: surrogate, alpha, and lines or curves."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score

from helpers.marks import slow
from structsvm_papk import PAPKRanker
from structsvm_papk.data import RankingData
from structsvm_papk.data.content import digests_of
from structsvm_papk.rankers.folds import folds_of_rows

RNG = np.random.default_rng(0)
N = 240
SHAPE = RNG.normal(size=(N, 4))
Y = SHAPE @ [1, 1, 0.5, 0] + 0.3 * RNG.normal(size=N) > 1.2


def test_what_is_chosen_has_the_best_mean_on_the_folds():
    """By hand, with fits of their own, at the alpha that was chosen and its neighbours."""
    ranker = PAPKRanker(5, one_list=True, curves=None).fit(SHAPE, Y)
    data = RankingData.from_groups(SHAPE, Y)
    settings = {(ranker.surrogate_, ranker.alpha_): []}
    for surrogate in ("avg", "ts"):
        for alpha in (1.0, 0.1):
            settings[surrogate, alpha] = []
    for fold in folds_of_rows(5, data, digests_of(data)):
        train, test = data.rows[fold.train], data.rows[fold.test]
        for (surrogate, alpha), values in settings.items():
            own = PAPKRanker(5, surrogate, alpha=alpha, one_list=True, curves=None)
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
    ranker = PAPKRanker(5, one_list=True, **given).fit(SHAPE[:160], Y[:160])
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
        for name, rows in forms.items():
            fit = PAPKRanker(3, one_list=True, curves=curves).fit(*rows)
            choices[name] = fit.alpha_, fit.surrogate_
        assert len(set(choices.values())) == 1, (seed, choices)


@pytest.mark.parametrize("standardize", [False, slow(True)])
def test_a_sparse_list_gets_the_strength_of_a_dense_one_by_the_same_rule(standardize):
    X = np.where(np.abs(SHAPE) < 0.4, 0.0, SHAPE)
    fits = [
        PAPKRanker(5, one_list=True, curves=None, standardize=standardize).fit(form, Y)
        for form in (X, sparse.csr_matrix(X))
    ]
    assert fits[0].surrogate_ == fits[1].surrogate_
    assert fits[0].alpha_ == pytest.approx(fits[1].alpha_, rel=1e-9)
