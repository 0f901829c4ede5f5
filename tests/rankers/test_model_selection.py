"""Settings chosen on held-out users."""

import itertools
import threading
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, check_cv

from helpers.marks import slow
from helpers.values import values_of
from structsvm_papk import PAPKRanker, PAPKRankerCV, metrics
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.rankers.choice import Lead, ScoreTable, choose, nearest
from structsvm_papk.rankers.grid import Candidate
from structsvm_papk.rankers.settings import DEFAULT, Setting

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(24), 20)
X = RNG.normal(size=(480, 5))
Y = X[:, 0] + 0.3 * RNG.normal(size=480) > 0.8
ALPHAS = (0.3, 0.03, 0.003)


SMALL = {"surrogates": ("ts",), "depths": (None,), "user_scaling": [None]}


def test_the_choice_has_the_best_mean_and_the_model_is_a_cold_fit():
    ranker = PAPKRankerCV(k=2, alphas=ALPHAS, cv=4, tol=1e-7, cv_tol=1e-7, **SMALL)
    ranker.fit(X, Y, GROUPS)
    results = ranker.cv_results_
    assert ranker.n_splits_ == 4 and len(results["params"]) == 3
    best = int(np.argmin(results["rank_test_score"]))
    assert results["params"][best] == ranker.best_params_
    assert results["mean_test_score"][best] == ranker.best_score_
    cold = PAPKRanker(k=2, policy="cap", tol=1e-7, **ranker.best_params_).fit(X, Y, GROUPS)
    assert ranker.result_.objective == pytest.approx(cold.result_.objective, rel=3e-7)


def test_settings_of_several_kinds_share_a_search():
    """Convex and clipped surrogates, depths and weights; results as scikit-learn has them."""
    trials = []
    ranker = PAPKRankerCV(
        k=2, surrogates=("ts", "avg", "clipped_ramp"), depths=(None, 6, 0.9), alphas=(0.1, 0.01),
        user_weights=("equal", "positives"), user_scaling=[None], cv=3, callback=trials.append,
    ).fit(X, Y, GROUPS)  # fmt: skip
    results = ranker.cv_results_
    assert len(results["params"]) == 3 * 3 * 2 * 2 == results["mean_test_score"].size
    parts = {"surrogate", "depth", "user_weight", "alpha", "user_scaling", "standardize"}
    assert set(ranker.best_params_) == parts
    assert results["rank_test_score"].min() == 1
    assert (results["n_splits"] == 3).all()
    assert len(trials) == 3 * 36 == trials[-1].n_done
    assert ranker.score(X, Y, GROUPS) > 0.8


def trained(train, alpha):
    """A model of the rows `train`."""
    rest = PAPKRanker(k=2, surrogate="ts", depth=0.9, alpha=alpha, tol=1e-8, policy="cap")
    return rest.fit(X[train], Y[train], GROUPS[train])


def first_weight(estimator, X, y):
    return estimator.coef_[0]


def test_folds_by_number_leave_each_user_out_once():
    own = {**SMALL, "depths": (0.9,), "alphas": (0.02,), "cv_tol": 1e-8, "scoring": first_weight}
    results = PAPKRankerCV(k=2, cv=24, **own).fit(X, Y, GROUPS).cv_results_
    weights = sorted(results[f"split{fold}_test_score"][0] for fold in range(24))
    expected = sorted(trained(user != GROUPS, 0.02).coef_[0] for user in range(24))
    assert weights == pytest.approx(expected, rel=1e-3)


def drawn():
    """Splits that leave rows out of both sides, and hold users out several times or never."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        users = rng.permutation(24)
        train = np.isin(GROUPS, users[:8]) & (rng.random(480) < 0.8)
        yield np.flatnonzero(train), np.flatnonzero(np.isin(GROUPS, users[14:19]))


def test_a_splitter_decides_who_trains_and_every_split_of_a_user_counts():
    """Scales of columns are those of the training rows, too."""
    folds = list(drawn())
    own = {**SMALL, "depths": (0.9,), "alphas": (0.02,), "cv_tol": 1e-8, "scoring": first_weight}
    weights, results = (
        PAPKRankerCV(k=2, cv=check_cv(folds), **(own | {"scoring": how}))
        .fit(X, Y, GROUPS)
        .cv_results_
        for how in (first_weight, None)
    )
    by_user = {}
    for fold, (train, test) in enumerate(folds):
        w = trained(train, 0.02).coef_
        assert weights[f"split{fold}_test_score"][0] == pytest.approx(w[0], rel=1e-3)
        values = metrics.evaluate("pap@2", X[test] @ w, Y[test], GROUPS[test])["pap@2"]
        assert results[f"split{fold}_test_score"][0] == pytest.approx(np.nanmean(values))
        for user, value in zip(np.unique(GROUPS[test]), values, strict=True):
            by_user.setdefault(user, []).extend([value] if np.isfinite(value) else [])
    everything = np.concatenate(list(by_user.values()))
    assert results["mean_test_score"][0] == pytest.approx(everything.mean())
    # the mean of users' means, weighted by their splits; a user's splits are one observation
    users = [np.array(values) - everything.mean() for values in by_user.values() if values]
    n = len(users)
    error = np.sqrt(n / (n - 1) * sum(v.sum() ** 2 for v in users)) / everything.size
    assert results["se_test_score"][0] == pytest.approx(error)


def scored(ahead, errors):
    """Settings that are so far ahead of the first, with these errors of the difference."""
    noise = np.tile([1.0, -1.0], 50) * np.sqrt(99) / np.sqrt(100) * 10
    settings = [replace(DEFAULT, alpha=float(i + 1)) for i in range(len(ahead))]
    table = ScoreTable(settings, [np.arange(100)])
    for setting, mean, error in zip(settings, ahead, errors, strict=True):
        table.note(setting, 0, mean + error * noise, 1.0, np.zeros(1))
    return table


def test_the_default_is_left_only_for_a_gain_that_chance_does_not_explain():
    """Bonferroni: 2.55 standard errors of a hundred users for four others, 1.98 for one."""
    default = DEFAULT.as_dict() | {"alpha": 0.3}
    candidates = [
        Candidate(Setting(**(default | changed)), usual_alpha=0.3)
        for changed in ({}, {"surrogate": "ts"}, {"alpha": 1.0}, {"surrogate": "clipped_ramp"})
    ]
    candidates.append(Candidate(Setting(**(default | {"depth": None})), usual_alpha=0.3))
    for ahead, errors, best, significant in (
        ([0, 0.1, 0.2, 0.3, 0.4], [0, 0.1, 0.1, 0.2, 0.2], 4, 0),  # each could be chance
        ([0, 0.1, 0.3, 0.3, 0.4], [0, 0.1, 0.1, 0.2, 0.2], 4, 2),
        ([0, 0.1, 0.3, 0.4, 0.2], [0, 0.1, 0.1, 0.1, 0.1], 3, 2),  # the better one uncertified
        ([0, 0.1, 0.1, 0.4, 0.2], [0, 0.1, 0.1, 0.1, 0.1], 3, 3),
        ([0, -0.5, -0.5, -0.5, -0.5], [0, 0, 0, 0, 0], 0, 0),
        ([0, 0.0, 0.0, 0.1, 0.0], [0, 0, 0, 0, 0], 3, 3),
    ):
        table = scored(ahead, errors)
        assert choose("best", candidates, table, 0, list(range(5))) == best
        assert choose("significant", candidates, table, 0, list(range(5))) == significant
    table = scored([0, 0.22], [0, 0.1])
    assert choose("significant", candidates, table, 0, [0, 1]) == 1  # one other alone
    assert nearest(DEFAULT, candidates, [0, 1, 2, 3, 4]) == 0
    assert nearest(DEFAULT, candidates, [1, 3, 4]) in (1, 3)


def test_of_settings_that_are_all_as_good_the_default_is_seldom_left():
    rng = np.random.default_rng(0)
    settings = [replace(DEFAULT, alpha=float(i + 1)) for i in range(8)]
    candidates = [Candidate(setting, 1.0) for setting in settings]
    left = 0
    for _ in range(400):
        table = ScoreTable(settings, [np.arange(30)])
        user = rng.normal(size=30)
        for setting in settings:
            table.note(setting, 0, user + rng.normal(size=30), 1.0, np.zeros(1))
        left += choose("significant", candidates, table, 0, list(range(8))) != 0
    assert left / 400 <= 0.05
    assert Lead(1.0, np.nan, 1).by_chance(3) == np.inf  # one user says nothing


@pytest.mark.parametrize("selection", ["best", "significant"])
def test_the_choice_says_by_how_much_it_is_ahead_of_the_default(selection):
    x, groups = X[:240], GROUPS[:240]
    y = x[:, 0] + np.random.default_rng(3).normal(size=240) > 0.8
    search = PAPKRankerCV(
        k=2, surrogates=("avg", "ts"), depths=(None, 0.9), user_weights=("equal",),
        alphas=(0.1, 0.01), cv=GroupKFold(12), selection=selection,
    ).fit(x, y, groups)  # fmt: skip
    choice, results = search.choice_, search.cv_results_
    users = np.stack([results[f"split{i}_test_score"] for i in range(12)])  # one user a fold
    places = [results["params"].index(s.as_dict()) for s in (choice.rival, choice.default)]
    lead = users[:, places[0]] - users[:, places[1]]
    default = replace(DEFAULT, alpha=0.1)  # the nearer one to the rule
    assert choice.default == default and choice.setting.as_dict() == search.best_params_
    assert choice.lead == pytest.approx(np.nanmean(lead))
    n = np.isfinite(lead).sum()
    assert choice.error == pytest.approx(np.nanstd(lead, ddof=1) / np.sqrt(n))
    assert choice.by_chance == pytest.approx(stats.t.ppf(1 - 0.025 / 7, n - 1) * choice.error)
    best = choice.rival if choice.lead > 0 else choice.default
    assert choice.setting == (best if selection == "best" else default)
    text = str(choice)
    assert text.startswith(f"chosen: {choice.setting}: pap@2 {search.best_score_:.4f}")
    assert f"{abs(choice.lead):.4f} ± {choice.error:.4f}" in text
    assert f"chance explains up to {choice.by_chance:.4f}" in text


@pytest.mark.parametrize("cv", [slow(4), StratifiedKFold(4)])
def test_one_list_is_cut_into_folds_of_its_rows(cv):
    options = {"k": 8, "cv": cv, "alphas": ALPHAS, "cv_tol": 1e-7, **SMALL, "depths": (0.9,)}
    ranker = PAPKRankerCV(**options).fit(X, Y, groups="one_list")
    assert ranker.choice_.scoring == "pap@2"  # of 8, on a quarter of the rows
    results = ranker.cv_results_
    assert ranker.n_splits_ == 4 and np.isfinite(results["se_test_score"]).all()
    folds = np.stack([results[f"split{i}_test_score"] for i in range(4)])
    np.testing.assert_allclose(results["mean_test_score"], folds.mean(axis=0))
    np.testing.assert_allclose(results["se_test_score"], folds.std(axis=0, ddof=1) / 2)
    if cv != 4:
        train, test = next(iter(cv.split(X, Y)))
        own = PAPKRanker(k=8, surrogate="ts", depth=0.9, alpha=0.03, tol=1e-8, one_list=True)
        scores = own.fit(X[train], Y[train]).decision_function(X[test])
        place = [p["alpha"] for p in results["params"]].index(0.03)
        assert folds[0, place] == metrics.evaluate("pap@2", scores, Y[test]).mean("pap@2")
    with pytest.raises(InputError, match=r"rows of the rarer label \(5\)"):
        few = np.arange(480) < 5
        PAPKRankerCV(k=2, cv=6, **SMALL).fit(X, few, groups="one_list")
    with pytest.raises(InputError, match="both in training and in validation; use Strat"):
        overlap = check_cv([(range(300), range(299, 480))])
        PAPKRankerCV(k=2, cv=overlap, **SMALL).fit(X, Y, groups="one_list")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_ends_the_search_and_its_error_every_thread(n_jobs):
    def fail(trial):
        raise RuntimeError("enough")

    before = threading.enumerate()
    with pytest.raises(RuntimeError, match="enough"):
        PAPKRankerCV(k=2, n_jobs=n_jobs, cv=3, callback=fail).fit(X, Y, GROUPS)
    for thread in {*threading.enumerate()} - {*before}:
        thread.join(timeout=60)  # a pool that was told to end does so when its threads hear of it
        assert not thread.is_alive()
    ranker = PAPKRankerCV(k=2, alphas=ALPHAS, cv=4, callback=lambda trial: True, **SMALL)
    ranker.fit(X, Y, GROUPS)  # the best so far is trained
    assert (ranker.cv_results_["n_splits"] == 1).all() and ranker.result_.converged


def mean_auc(estimator, X, y, groups):
    scores = estimator.decision_function(X)
    return metrics.evaluate("auc", scores, y, groups).mean("auc")


def test_a_scorer_gives_one_value_a_fold():
    options = {"k": 2, "alphas": ALPHAS, "cv": GroupKFold(4), "cv_tol": 1e-7, **SMALL}

    def searched(scoring, y=Y):
        return PAPKRankerCV(scoring=scoring, **options).fit(X, y, GROUPS)

    own = searched(mean_auc)
    assert own.choice_.scoring == "mean_auc"
    own, by_name = own.cv_results_, searched("auc").cv_results_
    folds = np.stack([own[f"split{i}_test_score"] for i in range(4)])
    np.testing.assert_allclose(folds, [by_name[f"split{i}_test_score"] for i in range(4)])
    np.testing.assert_allclose(own["mean_test_score"], folds.mean(axis=0))
    np.testing.assert_allclose(own["se_test_score"], folds.std(axis=0, ddof=1) / 2)
    made = make_scorer(roc_auc_score, response_method="decision_function")
    first, other = (
        searched(scoring, Y * 2 - 1).cv_results_["mean_test_score"]
        for scoring in (made, get_scorer("roc_auc"))
    )
    np.testing.assert_array_equal(first, other)
    with config_context(enable_metadata_routing=True):
        results = searched(metrics.scorer("auc")).cv_results_
    np.testing.assert_allclose(results["mean_test_score"], folds.mean(axis=0))


def test_scorers_see_the_rows_as_they_came_and_zero_weights_without_a_warning():
    """A list whose positives stand first would win ties."""
    seen = []

    def scorer(estimator, X, y, groups):
        seen.append((X.copy(), y.copy(), np.array(groups)))
        return float(estimator.predict(X).any())

    options = {"k": 2, "cv": GroupKFold(3), **SMALL, "surrogates": ("avg",)}
    noise = np.random.default_rng(5).random(480) < 0.3
    ranker = PAPKRankerCV(scoring=scorer, alphas=(1e3,), **options)
    with pytest.warns(DegenerateOptimumWarning, match="w = 0"):  # of the fit on all users, once
        ranker.fit(X, noise, GROUPS)
    assert ranker.best_score_ == 0.0
    for (rows, y, users), (_, test) in zip(seen, GroupKFold(3).split(X, Y, GROUPS), strict=True):
        np.testing.assert_array_equal(rows, X[test])
        np.testing.assert_array_equal(y, noise[test])
        np.testing.assert_array_equal(users, GROUPS[test])
    with pytest.raises(InputError, match="scoring <lambda> must give a number, got None"):
        PAPKRankerCV(scoring=lambda *_: None, alphas=(1.0,), **options).fit(X, Y, GROUPS)


def test_verbose_and_the_log_say_how_far_a_fit_is(capsys, caplog, monkeypatch):
    seconds = SimpleNamespace(monotonic=itertools.count().__next__)  # one at each look
    monkeypatch.setattr("structsvm_papk.rankers.log.time", seconds)
    settings = {"k": 2, "alphas": ALPHAS, "cv": 3, **SMALL}
    search = PAPKRankerCV(verbose=1, **settings).fit(X, Y, GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    for number, line in enumerate(lines[:9], 1):
        assert line.startswith(f"{number} of 9 fits, ") and "s left; best so far: ts, " in line
    assert f"pap@2 {search.best_score_:.4f}" in lines[8]
    assert lines[9].startswith("chosen: ts, depth k, users count the same, alpha ")
    ranker = PAPKRanker(k=2, verbose=1).fit(X, Y, GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == ranker.n_iter_ + 1 and ranker.result_.status.sentence in lines[-1]
    assert lines[0].startswith("iteration 1, ") and ", gap " in lines[0]
    with caplog.at_level("INFO", "structsvm_papk"):
        PAPKRanker(k=2).fit(X, Y, GROUPS)
        PAPKRankerCV(**settings).fit(X, Y, GROUPS)
    assert capsys.readouterr().out == "" and "9 of 9 fits" in caplog.text
    assert "iteration 2, " in caplog.text


def test_searches_that_cannot_be():
    with pytest.raises(InputError, match="groups= is missing"):
        PAPKRankerCV(k=2).fit(X, Y)
    for options, words in [
        ({"selection": "worst"}, "selection"),
        ({"cv": 1}, "between 2"),
        ({"cv": 25}, "number of users"),
        ({"cv": "five"}, "split"),
        ({"surrogates": ()}, "surrogates"),
        ({"depths": (1,)}, "at least k=2"),
        ({"depths": (25,), "policy": "exclude"}, "depth=25 is above every list: the most neg"),
        ({"depths": "deep"}, "sequence"),
        ({"alphas": (-1.0,)}, "alpha"),
        ({"scoring": "pap@zero"}, "pap"),
        ({"scoring": 3}, "scoring must be the name of a metric"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": 1000, "policy": "exclude"}, "k=1000 is larger than the number of negatives of "),
        ({"n_jobs": 0}, "n_jobs"),
        ({"cv_tol": 0.0}, "cv_tol must be a number above 0"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"cv": check_cv([(range(0, 480, 2), range(1, 480, 2))])}, "both in training and in"),
        ({"cv": check_cv([(range(300), range(480, 490))])}, "fold 0 of the .* names no rows"),
    ]:
        with pytest.raises((InputError, TypeError), match=words):
            PAPKRankerCV(**{"k": 2, **options}).fit(X, Y, GROUPS)


def test_users_that_every_depth_leaves_out_are_counted():
    y = np.where(np.isin(GROUPS, (3, 7)), False, Y)
    few = np.ones(480, dtype=bool)
    few[np.flatnonzero((GROUPS == 11) & ~Y)[1:]] = False  # user 11 keeps one negative
    ranker = PAPKRankerCV(k=2, alphas=(0.1,), cv=3, policy="exclude", **SMALL)
    ranker.fit(X[few], y[few], GROUPS[few])
    assert ranker.exclusions_.no_positive.tolist() == [3, 7]
    assert ranker.exclusions_.few_negatives.tolist() == [11]
    with pytest.raises(InputError, match=r"number of users that can be used \(1\)"):
        PAPKRankerCV(k=2, alphas=(0.1,), **SMALL).fit(X, Y & (GROUPS == 0), GROUPS)


def test_automatic_alphas_do_not_see_offsets_and_sample_weight_replaces_user_weights():
    """Columns that are constant within users change no score, whatever their size."""
    shown = 1e6 * np.repeat(np.random.default_rng(5).normal(size=(24, 2)), 20, axis=0)
    options = {
        "k": 2,
        "surrogates": ("avg",),
        "user_scaling": [None],
        "standardize": False,
        "cv": 2,
    }
    weight = 1.0 + GROUPS % 2
    alphas = []
    for x in (X, np.hstack([X, shown])):
        ranker = PAPKRankerCV(**options).fit(x, Y, GROUPS, sample_weight=weight)
        alphas.append([p["alpha"] for p in ranker.cv_results_["params"]])  # one weighting
    within = np.mean([X[u == GROUPS].var(axis=0) for u in range(24)], axis=0)
    n_columns = within.sum() ** 2 / np.sum(within**2)
    assert alphas[0] == alphas[1]
    # weights of 24 users that are as many as 21.6 equal ones
    usual = 12 * within.mean() * (n_columns / (36**2 / 60 * Y.sum() / 24)) ** 1.5
    assert alphas[0] == pytest.approx([100 * usual, 10 * usual, usual, 0.1 * usual], rel=1e-9)
    plain = PAPKRanker(k=2, alpha=ranker.best_params_["alpha"], tol=1e-4, standardize=False)
    plain.fit(x, Y, GROUPS, sample_weight=weight)
    assert ranker.result_.objective == pytest.approx(plain.result_.objective, rel=2e-4)


def tried(x, **options):
    """Surrogate, scaling, units and multiple of what PAPKRanker takes, of each setting."""
    usual = {}
    for scaling, units in ((None, "auto"), ("rank", "auto"), (None, False)):
        own = PAPKRanker(k=2, user_scaling=scaling, standardize=units).fit(x, Y, GROUPS)
        usual[scaling, units] = own.alpha_
    results = PAPKRankerCV(k=2, cv=2, **options).fit(x, Y, GROUPS).cv_results_
    return [
        (
            p["surrogate"], p["user_scaling"], p["standardize"],
            round(p["alpha"] / usual[p["user_scaling"], p["standardize"]], 9),
        )
        for p in results["params"]
    ]  # fmt: skip


def test_what_is_tried_by_default():
    """Multiples of what the default takes, its neighbours, and units that columns may share.

    Ranks within lists only where they are asked for: then `predict` needs groups.
    """
    usual = [("avg", None, "auto", multiple) for multiple in (100, 10, 1, 0.1)]
    other = [("ts", None, "auto", 1)]
    ranks = [("avg", "rank", "auto", 1)]
    units = [("avg", None, False, 1)]
    in_one_unit = X * np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert tried(in_one_unit) == [*usual, *other, *units]
    assert tried(in_one_unit, user_scaling="auto") == [*usual, *other, *ranks, *units]
    assert tried(X / X.std(axis=0)) == [*usual, *other]  # nothing to choose
    assert tried(X * 10.0 ** np.arange(5)) == [*usual, *other]  # of different kinds
    assert tried(in_one_unit, user_scaling=[None]) == [*usual, *other]
    assert {
        depth["depth"] for depth in PAPKRankerCV(k=2, cv=2).fit(X, Y, GROUPS).cv_results_["params"]
    } == {0.9}


@pytest.mark.parametrize("k", [3.0, np.int32(3)])
def test_a_whole_number_of_any_type_is_that_number(k):
    ranker = PAPKRanker(k=k).fit(X, Y, GROUPS)
    assert type(ranker.to_model().k) is int and ranker.to_model().k == 3
    np.testing.assert_array_equal(
        values_of(f"pap@{k}", X[:, 0], Y, GROUPS),
        values_of("pap@3", X[:, 0], Y, GROUPS),
    )


@pytest.mark.parametrize(("n_neg", "more"), [(4, 0), (4, 9)], ids=["all short", "but one short"])
def test_few_short_lists_are_chosen_on(n_neg, more):
    """Where pAp@k is not defined on a fold, or on any list, it is computed with what there is."""
    rng = np.random.default_rng(0)
    sizes = np.full(10, 5 + n_neg)
    sizes[0] += more
    groups = np.repeat(np.arange(10), sizes)
    y = np.concatenate([np.arange(size) < 5 for size in sizes])
    x = rng.normal(size=(y.size, 4))
    x[:, 0] += y
    PAPKRanker(k=10).fit(x, y, groups)
    search = PAPKRankerCV(k=10).fit(x, y, groups)
    assert 0.0 < search.best_score_ <= 1.0
    assert search.n_splits_ == 5
    with pytest.raises(InputError, match="no user"):
        search.score(x[groups > 0], y[groups > 0], groups[groups > 0])


def test_a_scorer_of_the_package_gets_the_groups_and_score_goes_by_it():
    by_scorer = PAPKRankerCV(k=2, cv=3, scoring=metrics.scorer("ndcg@5"), **SMALL)
    by_scorer.fit(X, Y, groups=GROUPS)
    by_name = PAPKRankerCV(k=2, cv=3, scoring="ndcg@5", **SMALL).fit(X, Y, groups=GROUPS)
    expected = metrics.evaluate("ndcg@5", by_name.predict(X), Y, GROUPS).mean("ndcg@5")
    assert by_name.score(X, Y, GROUPS) == pytest.approx(expected, rel=1e-12)
    value = metrics.evaluate("ndcg@5", by_scorer.predict(X), Y, GROUPS).mean("ndcg@5")
    assert by_scorer.score(X, Y, GROUPS) == pytest.approx(value, rel=1e-12)


def test_no_fit_on_a_fold_begins_after_the_time():
    trials = []
    ranker = PAPKRankerCV(k=2, cv=3, time_limit=1e-9, callback=trials.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as the last fit may end or not
        ranker.fit(X, Y, GROUPS)
    assert len(trials) == 1
    assert ranker.n_splits_ == 3


@pytest.mark.parametrize("ranker", [PAPKRanker, PAPKRankerCV])
def test_columns_that_are_constant_within_every_list_are_named(ranker):
    shown = np.repeat(X[:24], 20, axis=0)
    with pytest.warns(DegenerateOptimumWarning, match=r"every column \(0, 1, .* is constant"):
        ranker(k=2).fit(shown, Y, GROUPS)


def test_labels_of_text_are_answered_by_the_comparison_to_write():
    with pytest.raises(InputError, match='y == "fraud"'):
        PAPKRanker(k=2).fit(X, np.where(Y, "fraud", "fine"), GROUPS)
