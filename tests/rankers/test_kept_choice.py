"""A fit with a checkpoint goes on with what folds chose, unless these were cut short."""

from functools import cache

import numpy as np
import pytest

from helpers.marks import slow
from structsvm_papk import PAPKRanker, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.files.checkpoint import _FILE
from structsvm_papk.rankers import candidates, choosing
from structsvm_papk.rankers.candidates import TimeIsOverError
from structsvm_papk.rankers.choosing import choose

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rows(n_lists):
    """Bent lists: curves are chosen, and of one list another strength than the usual one."""
    rng = np.random.default_rng(1)
    n = 900 if n_lists > 1 else 150
    X = rng.normal(size=(n, 3))
    score = -3 * np.abs(X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=n)
    groups = np.sort(rng.integers(0, n_lists, n))
    return {"X": X, "y": score > np.quantile(score, 0.7), "groups": groups}


def fit(kept, n_lists, **settings):
    fewer = {} if n_lists > 1 else {"pairs": None, "curves": None}  # to choose from
    return PAPKRanker(3, checkpoint=kept, **fewer | settings).fit(**rows(n_lists))


@cache
def undisturbed(n_lists, surrogate="auto"):
    """The ranker without a checkpoint."""
    return fit(None, n_lists, surrogate=surrogate)


def first_folds(n, ended_by="time_limit"):
    """A choice by some of the folds only."""

    def some(*given, **how):
        left = iter(range(n))

        def values_on(*fold):
            if next(left, None) is None:
                raise TimeIsOverError
            return candidates.values_on(*fold)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choosing, "values_on", values_on)
            choice = choose(*given, **how)
        choice.ended_by = ended_by
        return choice

    return some


@pytest.mark.parametrize("n_lists", [60, 1])
def test_with_more_time_a_fit_ends_where_it_would_have_without_a_limit(tmp_path, n_lists):
    whole = undisturbed(n_lists)
    short = fit(tmp_path / "kept", n_lists, time_limit=1e-6)
    assert (short.alpha_, short.surrogate_) != (whole.alpha_, whole.surrogate_)
    assert "No fold was finished: the usual surrogate and alpha" in " ".join(short.result_.notes)
    again = fit(tmp_path / "kept", n_lists)
    assert (again.alpha_, again.surrogate_) == (whole.alpha_, whole.surrogate_)
    assert again.result_.objective == whole.result_.objective
    assert "With more time folds chose anew" in again.result_.message
    assert "went on from" not in again.result_.message
    once_more = fit(tmp_path / "kept", n_lists, tol=1e-8)
    assert "went on from" in once_more.result_.message and once_more.alpha_ == whole.alpha_


AVG = make_surrogate("avg", 3)


@pytest.mark.parametrize(
    ("n_lists", "surrogate"), [(60, AVG), (1, "auto"), slow(60, "auto"), slow(1, AVG)]
)
def test_what_all_folds_chose_is_not_asked_again(tmp_path, monkeypatch, n_lists, surrogate):
    whole = undisturbed(n_lists, surrogate)
    stop = {"callback": lambda progress: progress.iteration >= 2}
    stopped = fit(tmp_path / "kept", n_lists, surrogate=surrogate, **stop)
    monkeypatch.setattr(choosing, "choose", lambda *_, **__: pytest.fail("asked"))
    short = fit(tmp_path / "kept", n_lists, surrogate=surrogate, time_limit=1e-6)
    again = fit(tmp_path / "kept", n_lists, surrogate=surrogate)
    for each in (stopped, short, again):
        assert (each.alpha_, each.surrogate_) == (whole.alpha_, whole.surrogate_)
    assert again.result_.objective == pytest.approx(whole.result_.objective, rel=3e-6)
    assert "Folds chose" in again.result_.message and "went on from" in again.result_.message


def test_of_folds_that_were_cut_short_those_that_finished_more_decide(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    whole = undisturbed(60)
    monkeypatch.setattr(choosing, "choose", first_folds(2, "Ctrl-C"))
    two = fit(kept, 60)
    assert "Ctrl-C ended them early" in two.result_.message
    monkeypatch.setattr(choosing, "choose", first_folds(0))
    none = fit(kept, 60)
    assert none.alpha_ == two.alpha_ and "went on from" in none.result_.message
    monkeypatch.undo()
    assert fit(kept, 60).alpha_ == whole.alpha_


@pytest.mark.parametrize(
    "other", [{"surrogate": "ts"}, {"alpha": 0.1}, {"standardize": False}, {"depth": None}]
)
def test_another_problem_is_refused_all_the_same(tmp_path, other):
    fit(tmp_path / "kept", 60, time_limit=1e-6)
    with pytest.raises(InputError, match="holds the result of another run"):
        fit(tmp_path / "kept", 60, **other)


def test_wrong_choices_are_refused(tmp_path):
    kept = tmp_path / "kept"
    fit(kept, 60)
    description, arrays = _FILE.read(kept)
    right = description["choice"]["setting"]
    wrong = {"alpha": -1.0, "pieces": "many", "surrogate": 3, "stiffness": None, "n_pairs": 0}
    for setting in ({}, *(right | {name: value} for name, value in wrong.items())):
        description["choice"]["setting"] = setting
        kept.write_bytes(_FILE.encoded(description, arrays))
        with pytest.raises(InputError, match=r"kept is damaged: .*; delete .*kept to start again"):
            fit(kept, 60)
