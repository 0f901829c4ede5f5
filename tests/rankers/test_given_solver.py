"""Solvers that a ranker is given as objects or functions: used as they are, or refused."""

import pickle
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from helpers.marks import slow
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model
from structsvm_papk.solvers.solver import Status

Linear = partial(PAPKRanker, curves=None)  # no folds are asked

LISTS = linear_lists(n_users=12, n_items=14, n_features=3, noise=1.0, relevant_share=0.3, seed=0)
ROWS = LISTS.X, LISTS.y, LISTS.groups


def averaged_subgradient(risk, alpha, n_steps=300):
    w = mean = np.zeros(risk.n_features)
    for t in range(1, n_steps + 1):
        w = w - 2 / (alpha * (t + 1)) * (alpha * w + risk(w)[1])
        mean = mean + 2 / (t + 1) * (w - mean)
    return mean


@dataclass
class Plane:
    """The cutting plane, or what a faulty solver would say."""

    alpha: float
    changes: tuple = ()

    def solve(self, risk, w_init, callback):
        result = CuttingPlane(self.alpha, tol=1e-8).solve(risk, w_init, callback)
        return replace(result, **dict(self.changes))


@pytest.mark.parametrize(
    ("solver", "name", "alpha"),
    [
        (CuttingPlane(0.1, tol=1e-8), "cutting_plane", "auto"),
        (CuttingPlane(0.1, tol=1e-8), "cutting_plane", 0.1),
        (DualAscent(0.1, tol=1e-8), "dual_ascent", "auto"),
        slow(DualAscent(0.1, tol=1e-8), "dual_ascent", 0.1),
        (Plane(0.1), "Plane", "auto"),
        slow(Plane(0.1), "Plane", 0.1),
    ],
)
def test_an_object_keeps_its_settings_and_its_name(solver, name, alpha, tmp_path):
    named = Linear(2, "ts", alpha=0.1, tol=1e-8).fit(*ROWS)
    ranker = Linear(2, "ts", alpha=alpha, solver=solver)
    assert type(solver).__name__ in repr(ranker)
    for one in (ranker, clone(ranker), pickle.loads(pickle.dumps(ranker))):
        one.check_settings()
        one.fit(*ROWS)
        assert one.alpha_ == 0.1 and one.result_.gap <= 1e-8
        assert one.result_.objective == pytest.approx(named.result_.objective, rel=1e-7)
    assert one.export_weights()["solver"] == name
    one.save(tmp_path / "model")
    assert load_model(tmp_path / "model").solver == name


@pytest.mark.parametrize("alpha", ["auto", 0.1])
def test_a_function_is_told_alpha_and_has_no_certificate(alpha):
    ranker = Linear(2, "ts", alpha=alpha, solver=partial(averaged_subgradient, n_steps=2000))
    result = ranker.fit(*ROWS).result_
    best = Linear(2, "ts", alpha=alpha, tol=1e-8).fit(*ROWS)
    assert ranker.alpha_ == best.alpha_
    lowest = best.result_.lower_bound
    assert lowest <= result.objective <= lowest * 1.01
    assert result.lower_bound == -np.inf and result.status is Status.FINISHED
    model = ranker.to_model()
    assert model.solver == "averaged_subgradient" and model.certificate["lower_bound"] is None


def test_settings_that_agree_are_taken_and_a_start_is_handed_on():
    ranker = Linear(
        2, "ts", alpha=0.1, solver=CuttingPlane(0.1, tol=1e-3, max_iter=50, positive=True),
        tol=1e-3, max_iter=50, positive=True, warm_start=True,
    ).fit(*ROWS)  # fmt: skip
    assert ranker.coef_.min() >= 0 and ranker.to_model().positive
    seen = []
    plane = Plane(0.1)
    plane.solve = lambda risk, w_init, callback: seen.append(w_init) or w_init
    warm = Linear(2, "ts", alpha=0.1, warm_start=True).fit(*ROWS)
    last = warm.coef_
    warm.set_params(solver=plane).fit(*ROWS)
    np.testing.assert_array_equal(seen[0], last * warm.scale_)
    np.testing.assert_allclose(warm.coef_, last, rtol=1e-12)


def negative(risk, alpha):
    return -np.ones(risk.n_features)


class NoAlpha:
    def solve(self, risk, w_init, callback):
        return w_init


class FewArguments:
    alpha = 0.1

    def solve(self, risk):
        return np.zeros(risk.n_features)


REFUSED = {
    "a number": ({"solver": 5}, "solver must be a name, a solver such as"),
    "nothing": ({"solver": None}, "solver must be a name"),
    "a wrong name": ({"solver": "simplex"}, "choose one of auto, cutting_plane"),
    "a class": (
        {"solver": CuttingPlane},
        r"a solver such as CuttingPlane\(alpha=0.1\), .* got <class",
    ),
    "no alpha": ({"solver": NoAlpha()}, "alpha of solver NoAlpha must be a number"),
    "solve of one": ({"solver": FewArguments()}, r"must take \(risk, w_init, callback\)"),
    "function of one": ({"solver": lambda risk: 0}, r"must take \(risk, alpha\)"),
    "alpha": (
        {"solver": CuttingPlane(0.1), "alpha": 0.2},
        "alpha is 0.2, that of solver CuttingPlane 0.1: they must agree",
    ),
    "tol": (
        {"solver": CuttingPlane(0.1), "tol": 1e-3},
        "tol is 0.001, that of solver CuttingPlane 1e-06",
    ),
    "steps": ({"solver": averaged_subgradient, "max_iter": 5}, "max_iter is 5, .* None"),
    "sign": ({"solver": CuttingPlane(0.1, positive=True)}, "positive is False, .* True"),
    "some signs": (
        {"solver": CuttingPlane(0.1, positive=[True, False])},
        r"positive is False, .* \(True, False\)",
    ),
    "no sign": ({"solver": averaged_subgradient, "positive": True}, "positive is True, .* False"),
    "callback": ({"solver": negative, "callback": print}, "callback"),
    "not convex": ({"solver": CuttingPlane(0.1), "surrogate": "ramp"}, "not convex"),
    "no majorants": ({"solver": CCCP(0.1)}, "CCCP solves"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_solver_or_contradicts_is_refused_before_work(case):
    settings, said = REFUSED[case]
    with pytest.raises(InputError, match=said):
        Linear(**{"k": 2, "surrogate": "ts"} | settings).check_settings()


RESULTS = {
    "shape": (lambda risk, alpha: np.zeros(7), r"finite weights of shape \(3,\), got shape \(7,\)"),
    "NaN": (lambda risk, alpha: np.full(3, np.nan), "finite weights"),
    "text": (lambda risk, alpha: "w", "must be numbers"),
    "bound": (Plane(0.1, (("lower_bound", 2.0),)), r"lower bound 2, but an objective is 0\.\d"),
    "no bound": (Plane(0.1, (("lower_bound", np.nan),)), "lower bound nan, but"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_what_an_own_solver_returns_is_checked(case):
    solver, said = RESULTS[case]
    with pytest.raises(InputError, match=said):
        Linear(2, "ts", solver=solver).fit(*ROWS)


def test_what_an_own_solver_cannot_do_is_said(tmp_path):
    with pytest.raises(InputError, match="takes no checkpoint"):
        Linear(2, "ts", solver=negative, checkpoint=tmp_path / "kept").fit(*ROWS)
    ranker = Linear(2, "ts", solver=negative, warm_start=True).fit(*ROWS)
    with pytest.raises(InputError, match="takes no start"):
        ranker.fit(*ROWS)


@pytest.mark.parametrize("surrogate", ["avg", "ts"])
def test_the_preset_is_the_problem_of_the_paper(surrogate):
    ranker = PAPKRanker.paper(2, surrogate, tol=1e-8)
    assert (ranker.depth, ranker.standardize, ranker.policy) == (None, False, "exclude")
    near = linear_lists(n_users=10, n_items=20, n_features=3, noise=0.1, seed=0)
    rows = near.X, near.y, near.groups
    ranker.fit(*rows)
    risk = EmpiricalRisk(make_surrogate(surrogate, 2), RankingData.from_groups(*rows), "exclude")
    result = CuttingPlane(1e-2, tol=1e-8).solve(risk)
    assert ranker.result_.objective == pytest.approx(result.objective, rel=1e-7)
    assert 0 < result.objective < 0.9  # w = 0 has 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "done"}, "a SolverResult that is none: 'done' is not a valid Status"),
        ({"status": None}, "a SolverResult that is none"),
        ({"lower_bound": None}, "a SolverResult that is none: float"),
        ({"history": None}, "a SolverResult that is none: 'NoneType'"),
        ({"notes": None}, "a SolverResult that is none: 'NoneType'"),
        ({"w": -5 * np.ones(3), "lower_bound": 1.5}, "lower bound 1.5, but an objective is 1"),
    ],
)
def test_a_result_that_is_none_or_claims_too_much_is_refused(changes, words):
    # the last w is far from the optimum, and its objective above the bound
    with pytest.raises(InputError, match=words):
        Linear(2, "ts", solver=Plane(0.1, tuple(changes.items()))).fit(*ROWS)


def test_the_objective_is_that_of_the_weights_and_no_bound_is_no_certificate():
    right = Linear(2, "ts", solver=Plane(0.1)).fit(*ROWS).result_
    assert right.status is Status.CONVERGED and right.gap <= 1e-8
    changes = (("objective", 0.01), ("lower_bound", -np.inf))
    result = Linear(2, "ts", solver=Plane(0.1, changes)).fit(*ROWS).result_
    assert result.objective == right.objective
    assert result.status is Status.FINISHED and not result.converged
    assert result.n_iter == right.n_iter


def test_a_status_may_be_a_text_and_weights_may_not_be_huge(tmp_path):
    ranker = Linear(2, "ts", solver=Plane(0.1, (("status", "converged"), ("notes", "mine"))))
    ranker.fit(*ROWS)
    assert ranker.result_.message.startswith("Converged") and "mine" in ranker.result_.message
    with pytest.raises(InputError, match="so large that their objective is inf"):
        Linear(2, "ts", solver=lambda risk, alpha: np.full(3, 1e200)).fit(*ROWS)
