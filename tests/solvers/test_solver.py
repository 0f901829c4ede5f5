"""What all solvers share."""

import gc
import pickle
import weakref
from contextvars import copy_context

import numpy as np
import pytest

from helpers.problems import objective, ranking_data, risk
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    GlobalRamp,
    PAPKRanker,
    RankingData,
    SubgradientDescent,
    make_surrogate,
)
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient, StochasticSubgradient
from structsvm_papk.solvers.oracle import BlockOracle, Oracle
from structsvm_papk.solvers.solver import Solver, Status
from structsvm_papk.solvers.subgradient import normal_start

WRONG = (-1.0, np.nan, "1", None, [1.0], True)
SOLVERS = (CuttingPlane, DualAscent, CCCP, GlobalRamp, SubgradientDescent)


@pytest.mark.parametrize(
    ("solver", "surrogate"),
    [
        (CuttingPlane(1e-2), "ts"),
        (CuttingPlane(1e-2, method="one_slack", tol=1e-3), "ts"),
        (DualAscent(1e-2), "avg"),
        (CCCP(1e-2), "ramp"),
        (GlobalRamp(1.0, tol=0.1), "ramp"),
        (SubgradientDescent(1e-2, max_iter=5), "ts"),
    ],
)
def test_the_data_are_let_go_of_with_the_risk_and_its_result(solver, surrogate):
    """Even where the context of the solve is kept, as by the connections that Dask opens in it."""
    contexts = []

    def make():
        return EmpiricalRisk(make_surrogate(surrogate, 3), ranking_data(n_users=3, n_features=2))

    solver.solve(make())  # what numba compiles leaves cycles behind
    gc.disable()  # which would find cycles, at some time: too late for a cluster's memory
    try:
        risk = make()
        alive = weakref.ref(risk)
        result = solver.solve(risk, callback=lambda _: contexts.append(copy_context()))
        del risk, result
        assert contexts and alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("solver", [CuttingPlane(1e-2, tol=1e-3), DualAscent(1e-2, tol=1e-3)])
def test_pickled_results_and_rankers_do_not_hold_the_data(solver):
    lists = linear_lists(n_users=40, n_items=300, n_features=4, noise=0.5, seed=0)
    data = RankingData.from_groups(*lists[:3])
    result = solver.solve(EmpiricalRisk(make_surrogate("avg", 3), data))
    ranker = PAPKRanker(3, "avg", curves=None, solver=solver).fit(*lists[:3])
    for one in (result, ranker):
        assert len(pickle.dumps(one)) < 0.5 * lists.X.nbytes
    again = pickle.loads(pickle.dumps(result))
    for part, same in zip(result.cuts, again.cuts, strict=True):
        np.testing.assert_array_equal(part, same)
    with pytest.raises(InputError, match="not known any more"):
        CuttingPlane(1e-2).solve(EmpiricalRisk(make_surrogate("avg", 3), data), warm_start=again)


@pytest.mark.parametrize(
    ("solver", "surrogate", "stops", "limit"),
    [
        (CuttingPlane, "ts", 4, {"max_iter": 3}),
        (DualAscent, "avg", 4, {"max_iter": 3}),
        (CCCP, "clipped_ramp", 2, {}),  # a sum over starts
        (GlobalRamp, "clipped_ramp", 4, {"max_boxes": 1}),
        (SubgradientDescent, "avg", 3, {}),  # which has no other end
    ],
)
def test_limits_callback_and_interrupt_return_the_best_point(solver, surrogate, stops, limit):
    oracle, alpha = risk(surrogate, n_users=4, n_features=2 if solver is GlobalRamp else 4), 1e-2
    best = solver(alpha).solve(oracle)

    def interrupt(progress):
        if progress.iteration == stops:
            raise KeyboardInterrupt

    runs = {
        Status.TIME_LIMIT: solver(alpha, time_limit=1e-9).solve(oracle),
        Status.STOPPED: solver(alpha).solve(oracle, callback=lambda p: p.iteration == 2),
        Status.INTERRUPTED: solver(alpha).solve(oracle, callback=interrupt),
    }
    runs |= {Status.MAX_ITER: solver(alpha, **limit).solve(oracle)} if limit else {}
    for status, result in runs.items():
        assert result.status is status and not result.converged
        assert result.message.startswith(("Stopped", "Interrupted"))
        assert result.lower_bound <= best.objective + 1e-12
        assert result.objective >= best.lower_bound
        assert result.objective == pytest.approx(objective(oracle, alpha, result.w))
    assert runs[Status.STOPPED].n_iter <= 2  # CCCP: one where it stopped among L-BFGS steps


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        *((each, {"alpha": alpha}, "alpha") for each in SOLVERS for alpha in WRONG),
        *((each, {"alpha": 0.0}, "alpha") for each in SOLVERS[:-1]),
        *((each, {"time_limit": limit}, "time_limit") for each in SOLVERS for limit in (0.0, "1")),
        *((each, {"tol": 0.0}, "tol") for each in SOLVERS if each is not SubgradientDescent),
        *((CuttingPlane, {"max_iter": most}, "max_iter") for most in (0, 2.5, None, "5")),
        *((each, {"max_iter": 0}, "max_iter") for each in (DualAscent, CCCP, SubgradientDescent)),
        (GlobalRamp, {"max_boxes": 0}, "max_boxes"),
        (CuttingPlane, {"method": "newton"}, "bundle, one_slack"),
        (CuttingPlane, {"method": "one_slack", "n_blocks": 5}, "one cut an iteration"),
        (CuttingPlane, {"n_blocks": 0}, "n_blocks"),
        (CCCP, {"continuation": (10.0, 100.0)}, "continuation"),
        (SubgradientDescent, {"eta": 0.0}, "eta"),
        (SubgradientDescent, {"keep": "first"}, "best, last, average"),
    ],
)
def test_options_that_cannot_be(solver, options, message):
    with pytest.raises(InputError, match=message):
        solver(**{"alpha": 1.0} | options)


@pytest.mark.parametrize(
    ("solver", "surrogate", "message"),
    [
        (CuttingPlane, "ramp", "use CCCP"),
        (CuttingPlane, "ts_alg2", "Subgradient"),
        (DualAscent, "ramp", "not convex"),
        (CCCP, "avg", "CuttingPlane for convex"),
        (CCCP, "ts_alg2", "CCCP is for"),
        (GlobalRamp, "avg", "CuttingPlane certifies"),
    ],
)
def test_surrogates_of_another_solver_are_refused_with_the_way_out(solver, surrogate, message):
    with pytest.raises(InputError, match=message):
        solver(1e-2).solve(risk(surrogate))


def test_a_solver_that_says_nothing_of_convexity_is_for_convex_risks():
    class FirstCut(Solver):
        """A bound from a single cut."""

        def _run(self, oracle, w_init, warm_start):
            raise AssertionError("the run began")

    class AnyRisk(FirstCut):
        convex_only = False

    tents = risk("ts_alg2")
    with pytest.raises(InputError, match="is not convex"):
        FirstCut(1.0).solve(tents)
    for solver, allowed in ((FirstCut(1.0), risk("ts")), (AnyRisk(1.0), tents)):
        with pytest.raises(AssertionError, match="the run began"):
            solver.solve(allowed)


@pytest.mark.parametrize("solver", SOLVERS)
def test_oracles_and_starts_that_cannot_be(solver):
    for other in (None, np.zeros(3), lambda w: (0.0, w), "risk"):
        with pytest.raises(InputError, match="is not an oracle: a solver needs"):
            solver(1.0).solve(other)
    oracle = risk("ramp" if solver in (CCCP, GlobalRamp) else "avg", n_features=2)
    for start, words in ((np.full(2, 1e200), "too far out"), (np.zeros(3), "length 2")):
        with pytest.raises(InputError, match=words):
            solver(0.1).solve(oracle, w_init=start)
    if solver is CCCP:
        with pytest.raises(InputError, match="starts='random' is not known"):
            solver(1e-2, starts=("random",)).solve(oracle)


def test_signs_that_cannot_be():
    convex, ramp = risk("avg"), risk("ramp")
    for solver, oracle in (
        *((each, convex) for each in (CuttingPlane, SubgradientDescent, AveragedSubgradient)),
        (StochasticSubgradient, convex),
        (CCCP, ramp),
    ):
        for wrong in (1, "yes", None):
            with pytest.raises(TypeError, match="positive must be True, False, or"):
                solver(0.1, positive=wrong)
        for wrong in ([1, 0, 1, 0], np.ones(4), [[True] * 4], ["yes"] * 4, []):
            with pytest.raises(TypeError, match="or one of them for each weight, got"):
                solver(0.1, positive=wrong)
        with pytest.raises(InputError, match="positive has 3 entries, but there are 4 weights"):
            solver(0.1, positive=[True, False, True]).solve(oracle)
    masks = [CuttingPlane(0.1, positive=np.arange(4) == i) for i in range(4)]
    assert len(set(masks)) == 4 and masks[0] == CuttingPlane(0.1, positive=[True] + 3 * [False])


# --- the paper's Algorithm 1, step by step, and beside the certified optimum --------------------


def test_steps_are_those_of_algorithm_1():
    oracle, alpha, eta = risk("avg"), 0.1, 0.7
    w = np.zeros(4)
    for t in range(5):
        w = w - eta / np.sqrt(t + 1) * (alpha * w + oracle(w)[1])
    solver = SubgradientDescent(alpha, eta, max_iter=6, keep="last")
    np.testing.assert_allclose(solver.solve(oracle).w, w, rtol=1e-12)


def test_a_start_is_not_the_truth_behind_data_of_the_same_seed():
    lists = linear_lists(n_users=5, n_items=20, n_features=8, seed=3)
    start = normal_start(8, 3)
    unit = start / np.linalg.norm(start), lists.w_true / np.linalg.norm(lists.w_true)
    assert abs(unit[0] @ unit[1]) < 0.9
    assert np.array_equal(start, normal_start(8, 3)) and start.std() == pytest.approx(1, abs=0.7)


class Tents:
    """``max_i a_i . w + b_i`` as somebody else's function, with habits of its own."""

    slopes = np.array([[2.0, 1.0], [-1.0, 0.5], [0.0, -3.0]])
    heights = np.array([0.5, 1.0, 0.2])
    n_features = 2

    def __init__(self, habit=None):
        self.habit, self.kept = habit, np.zeros(2)

    def __call__(self, w):
        lines = self.slopes @ w + self.heights
        value, slope = float(lines.max()), self.slopes[lines.argmax()]
        if self.habit == "changes w":
            w[:] = 7.0
        elif self.habit == "fills one array anew":
            self.kept[:] = slope
            slope = self.kept
        elif self.habit == "gives lists":
            slope = slope.tolist()
        return {
            "gives an array for the value": (np.array([value]), slope),
            "gives a column": (value, slope[:, None] if hasattr(slope, "shape") else slope),
            "gives too few": (value, slope[:1]),
            "gives the value only": value,
            "gives nothing": None,
            "gives three": (value, slope, 0),
            "gives text": ("high", slope),
        }.get(self.habit, (value, slope))


class TentsByClass(Tents, Oracle):
    convex = True


class TwoTents(BlockOracle):
    """The same, twice a half, in blocks that are given in one array."""

    n_features = n_blocks = 2

    def __init__(self, habit=None):
        self.of_half = Tents(habit)
        self.kept = np.zeros((2, 2))

    def blocks(self, w):
        value, slope = self.of_half(w)
        self.kept[:] = np.asarray(slope) / 2
        return np.full(2, value / 2), self.kept


@pytest.mark.parametrize("kind", [Tents, TentsByClass, TwoTents])
@pytest.mark.parametrize("habit", ["changes w", "fills one array anew", "gives lists"])
@pytest.mark.parametrize(
    "solver", [CuttingPlane(0.3), CuttingPlane(0.3, method="one_slack"), SubgradientDescent(0.3)]
)
def test_habits_of_an_own_oracle_make_no_bound_false(solver, habit, kind):
    if kind is TwoTents and isinstance(solver, SubgradientDescent):
        solver = CuttingPlane(0.3, n_blocks=2)
    result, right = solver.solve(kind(habit)), CuttingPlane(0.3, tol=1e-9).solve(Tents())
    value = Tents()(result.w.copy())[0]
    assert result.objective == pytest.approx(0.15 * result.w @ result.w + value, abs=1e-12)
    assert result.lower_bound <= right.objective * (1 + 1e-12)
    assert result.status in ("converged", "finished")


@pytest.mark.parametrize("kind", [Tents, TentsByClass])
@pytest.mark.parametrize(
    ("habit", "got"),
    [
        ("gives an array for the value", r"\(ndarray\(1,\), ndarray\(2,\)\)"),
        ("gives a column", r"\(float, ndarray\(2, 1\)\)"),
        ("gives too few", r"\(float, ndarray\(1,\)\)"),
        ("gives the value only", "float"), ("gives nothing", "NoneType"),
        ("gives three", r"\(float, ndarray\(2,\), int\)"), ("gives text", r"\(str, ndarray"),
    ],
)  # fmt: skip
def test_what_is_no_value_and_slope_is_refused_with_a_sentence(kind, habit, got):
    words = rf"the oracle {kind.__name__} must return a number and a slope of shape \(2,\), got "
    for solver in (CuttingPlane(0.3), SubgradientDescent(0.3, max_iter=5)):
        with pytest.raises(InputError, match=words + got):
            solver.solve(kind(habit))


def test_blocks_of_another_shape_are_refused():
    oracle = TwoTents()
    oracle.n_blocks = 3
    with pytest.raises(InputError, match=r"gave values of shape \(2,\) and slopes of shape \(2, 2"):
        CuttingPlane(0.3).solve(oracle)
