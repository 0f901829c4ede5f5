"""Solvers and surrogates of a user's own: used as they are, certified, kept, or refused."""

import pickle
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

import helpers.own
from helpers.commands import invoke, run_json
from helpers.marks import slow
from helpers.own import PowerPairs
from helpers.problems import degenerate_lists
from helpers.sources import write_csv
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    cli,
    make_surrogate,
)
from structsvm_papk.cli._shared.reading import surrogate_of
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import DegenerateOptimumWarning, InputError, OracleFailure
from structsvm_papk.files import load_model
from structsvm_papk.files.partitions import array_partitions
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.solvers.solver import Status
from structsvm_papk.surrogates.losses import PAUC, Avg

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
    named = Linear(2, "avg", alpha=0.1, tol=1e-8).fit(*ROWS)
    ranker = Linear(2, "avg", alpha=alpha, solver=solver)
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


def plane(**changes):
    return Plane(0.1, tuple(changes.items()))


RESULTS = {
    "shape": (lambda risk, alpha: np.zeros(7), r"finite weights of shape \(3,\), got shape \(7,\)"),
    "NaN": (lambda risk, alpha: np.full(3, np.nan), "finite weights"),
    "text": (lambda risk, alpha: "w", "must be numbers"),
    "huge": (lambda risk, alpha: np.full(3, 1e200), "so large that their objective is inf"),
    "bound": (plane(lower_bound=2.0), r"lower bound 2, but an objective is 0\.\d"),
    "NaN for a bound": (plane(lower_bound=np.nan), "lower bound nan, but"),
    "above the last": (plane(w=-5 * np.ones(3), lower_bound=1.5), "1.5, but an objective is 1"),
    "status": (plane(status="done"), "a SolverResult that is none: 'done' is not a valid Status"),
    "no status": (plane(status=None), "a SolverResult that is none"),
    "no bound": (plane(lower_bound=None), "a SolverResult that is none: float"),
    "no history": (plane(history=None), "a SolverResult that is none: 'NoneType'"),
    "no notes": (plane(notes=None), "a SolverResult that is none: 'NoneType'"),
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


def test_the_objective_is_that_of_the_weights_and_no_bound_is_no_certificate():
    right = Linear(2, "ts", solver=plane()).fit(*ROWS).result_
    assert right.status is Status.CONVERGED and right.gap <= 1e-8
    unfounded = plane(objective=0.01, lower_bound=-np.inf)
    result = Linear(2, "ts", solver=unfounded).fit(*ROWS).result_
    assert result.objective == right.objective
    assert result.status is Status.FINISHED and not result.converged
    assert result.n_iter == right.n_iter


def test_a_status_and_notes_may_be_texts():
    own = plane(status="converged", notes="mine")
    result = Linear(2, "ts", solver=own).fit(*ROWS).result_
    assert result.message.startswith("Converged") and "mine" in result.message


# --- surrogates of a user's own -------------------------------------------------------------------


SQUARES = PowerPairs(k=2)


def test_the_certificate_holds_against_another_solver():
    ranker = Linear(
        surrogate=PowerPairs(2, depth=10), alpha=0.1, tol=1e-8, policy="cap", standardize=False
    ).fit(*ROWS)  # all negatives count: a quadratic program
    w, losses = cp.Variable(3), []
    for u in np.unique(LISTS.groups):
        X, y = LISTS.X[LISTS.groups == u], LISTS.y[LISTS.groups == u].astype(bool)
        pairs = (X[y][:, None] - X[~y][None]).reshape(-1, 3)
        if len(pairs):
            losses.append(cp.sum_squares(cp.pos(1 - pairs @ w)) / len(pairs))
    problem = cp.Problem(cp.Minimize(0.05 * cp.sum_squares(w) + sum(losses) / len(losses)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    result = ranker.result_
    assert result.converged and result.lower_bound <= problem.value * (1 + 1e-9)
    assert problem.value <= result.objective * (1 + 1e-9)


def test_k_and_depth_are_taken_from_the_object_or_agree():
    assert Linear(surrogate=SQUARES).make_surrogate() == replace(SQUARES, depth=0.9)
    assert Linear(surrogate=SQUARES, depth=None).make_surrogate() == SQUARES
    deep = replace(SQUARES, depth=5)
    assert Linear(surrogate=deep).make_surrogate() == deep
    assert Linear(k=2, surrogate=deep, depth=5).make_surrogate() == deep
    assert Linear().make_surrogate().k == 1
    with pytest.raises(InputError, match=r"k is 3 .*, 2 \(that of surrogate power_pairs"):
        Linear(k=3, surrogate=SQUARES).fit(*ROWS)
    for depth in (4, None, 0.9):
        with pytest.raises(InputError, match="has depth=5: give one of them"):
            Linear(surrogate=deep, depth=depth).fit(*ROWS)


def test_copies_pickles_and_model_files_have_it_or_its_name(tmp_path, capsys):
    ranker = Linear(surrogate=SQUARES, alpha=0.1)
    copied = clone(ranker)
    assert copied.get_params()["surrogate"] == SQUARES and repr(copied) == repr(ranker)
    copied.set_params(surrogate="ts", k=2)
    assert copied.fit(*ROWS).to_model().surrogate == "ts"
    fitted = pickle.loads(pickle.dumps(ranker.fit(*ROWS)))
    ranker.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    for same in (fitted, model):
        assert np.array_equal(same.predict(LISTS.X), ranker.predict(LISTS.X))
    assert 0.5 < fitted.score(*ROWS) <= 1  # pAp@2
    assert (model.surrogate, model.k, model.depth) == ("power_pairs(exponent=2.0)", 2, 0.9)
    assert model.solver == "cutting_plane" and model.certificate["gap"] <= 1e-6
    write_csv(tmp_path / "data.csv", *ROWS)
    command = ["bound", "new-users", str(tmp_path / "model"), str(tmp_path / "data.csv")]
    assert cli.main(command) == 2
    assert "of which the file holds the name only" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_solvers_are_compared_on_a_class_of_ones_own_in_a_file(tmp_path, capsys):
    write_csv(tmp_path / "lists.csv", *ROWS)
    command = ["compare", tmp_path / "lists.csv", "--k", 2, "--alpha", 0.1, "--depth", 10]
    command += ["--eta", 0.1, "--eta", 1, "--passes", 40]
    status, answer = run_json(capsys, *command, "--surrogate", f"{helpers.own.__file__}:PowerPairs")
    certified, descent, _ = answer["runs"]
    assert status == 0 and certified["surrogate"] == "power_pairs(exponent=2.0)"
    data = RankingData.from_groups(*ROWS).standardized("auto")
    alone = CuttingPlane(0.1).solve(EmpiricalRisk(replace(SQUARES, depth=10), data, "cap"))
    assert certified["objective"] == pytest.approx(alone.objective, rel=2e-6)
    assert certified["best_bound"] <= descent["objective"]
    assert descent["data_passes_of_all_tried"] == 2 * descent["data_passes"] == 80


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("", ":Loss", "has no class of Surrogate, and no object of one, 'Loss'"),
        ("Loss = 3", ":Loss", "has no class of Surrogate, and no object of one, 'Loss'"),
        ("x = 1\n1 / 0", ":Loss", "line 2: ZeroDivisionError"),
        ("x = (", ":Loss", "SyntaxError: .*line 1"),
        (None, ":Loss", "No such file"),
    ],
)
def test_files_without_such_a_class_are_refused(tmp_path, text, name, words):
    file = tmp_path / "loss.py"
    if text is not None:
        file.write_text(text)
    write_csv(tmp_path / "lists.csv", *ROWS)
    call = ["compare", tmp_path / "lists.csv", "--k", 2, "--surrogate", f"{file}{name}"]
    with pytest.raises(InputError, match=words):
        raise invoke(*call).exception


def test_an_object_in_a_file_has_its_settings(tmp_path):
    file = tmp_path / "loss.py"
    file.write_text(Path(helpers.own.__file__).read_text() + "\nhalf = PowerPairs(3, exponent=1.5)")
    assert surrogate_of(f"{file}:half", 3).label == "power_pairs(exponent=1.5)"
    assert surrogate_of("avg", 3) == "avg"


def test_the_warning_of_zero_names_a_call_that_works():
    class Pairs(PAUC):
        name = "pairs"

    data = degenerate_lists(n_users=5, n_pos=4, n_neg=8, n_features=3)
    ranker = Linear(surrogate=Pairs(2), depth=None)
    with pytest.warns(DegenerateOptimumWarning, match="w = 0 is the optimum of pairs") as caught:
        ranker.fit(data.X, data.y, data.groups)
    assert ranker.set_params(**caught[0].message.settings).fit(*ROWS).coef_.any()


def test_what_is_no_surrogate_is_refused():
    class SameName(Avg):
        pass

    for given, told in (
        (PowerPairs, r"or give an object: PowerPairs\(k=..\)"),
        (SameName(2), "SameName is called 'avg', as a surrogate of the package"),
        (3, "unknown surrogate 3"),
    ):
        with pytest.raises(InputError, match=told):
            Linear(surrogate=given).fit(*ROWS)

    class Wrong(PowerPairs):
        clipped = True

    with pytest.raises(InputError, match="Wrong declares what it is not: clipped"):
        Linear(surrogate=Wrong(2)).fit(*ROWS)


@dataclass(frozen=True)
class Elsewhere(PowerPairs):
    """Cannot be loaded where its module is not."""

    def __reduce__(self):
        return _load, (self.k,)


def _load(k):
    raise ImportError("No module named 'mine'")


@pytest.mark.scale
def test_on_a_cluster_it_is_sent_to_the_workers_or_refused():
    data = RankingData.from_groups(*ROWS)
    cut = array_partitions(data, 3)
    with connect(n_workers=1, threads_per_worker=2) as client:
        there = Linear(surrogate=SQUARES, alpha=0.1, tol=1e-8)
        there.fit_risk(DaskRisk(there.make_surrogate(), cut, client))
        here = Linear(surrogate=SQUARES, alpha=0.1, tol=1e-8).fit(*ROWS)
        assert there.result_.objective == pytest.approx(here.result_.objective, rel=2e-8)
        w = np.zeros(data.n_features)
        with pytest.raises(OracleFailure, match="Could not serialize"):
            DaskRisk(replace(SQUARES, exponent=threading.Lock()), cut, client)(w)
        with pytest.raises(OracleFailure, match="have different environments"):
            DaskRisk(Elsewhere(2), cut, client)(w)
