"""Verdicts against linear programmes and certified optima; distances against an independent QP."""

from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from helpers import catalogue
from helpers.marks import slow, some_of
from helpers.problems import degenerate_lists
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.diagnosis import critical_depth
from structsvm_papk.diagnosis.convex_test import Verdict
from structsvm_papk.diagnosis.zero_test import SURROGATES, CriticalDepth, diagnose
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.solver import Status

CONVEX = [name for name in catalogue.CONVEX if name in SURROGATES]


def risk_of(lists, name, k):
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    return EmpiricalRisk(make_surrogate(name, k), data)


def draw_user(rng, n_pos=4, n_neg=7, d=3, shift=0.5):
    X = rng.normal(size=(n_pos + n_neg, d))
    X[:n_pos] += shift * rng.normal(size=d)
    return X, np.arange(n_pos + n_neg) < n_pos


def subset_means(points, size):
    return np.array(
        [points[list(part)].mean(axis=0) for part in combinations(range(len(points)), size)]
    )


def subgradients_at_zero(X, y, name, k):
    """Vertices of the subdifferential at 0, written from the formulas."""
    best = subset_means(X[~y], k)
    beta = min(y.sum(), k)
    if name == "max":
        low = subset_means(X[y], beta)
        return (best[:, None, :] - low[None]).reshape(-1, X.shape[1])
    weight = y.sum() / beta if name == "ts" else 1.0
    return weight * (best - X[y].mean(axis=0))


def distance_by_qp(vertices):
    theta = cp.Variable(len(vertices), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.norm(vertices.T @ theta)), [cp.sum(theta) == 1])
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize("name", CONVEX)
def test_distance_of_zero_from_the_subdifferential_of_one_user(name):
    rng = np.random.default_rng(1)
    verdicts = set()
    for trial in range(some_of(25)):
        X, y = draw_user(rng, shift=trial % 3)
        risk = EmpiricalRisk(make_surrogate(name, 3), RankingData.from_groups(X, y))
        test = diagnose(risk, per_user=False).joint
        expected = distance_by_qp(subgradients_at_zero(X, y, name, 3))
        assert test.distance == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert test.lower_bound <= expected + 1e-6
        assert (test.verdict is Verdict.DEGENERATE) == (expected < 1e-6)
        verdicts.add(test.verdict)
    assert verdicts == {Verdict.DEGENERATE, Verdict.INFORMATIVE}


@pytest.mark.parametrize("name", CONVEX)
def test_verdict_agrees_with_the_certified_optimum(name):
    lists = linear_lists(n_users=20, n_items=20, n_features=4, noise=1.5, seed=1)
    for k in (1, 3, 8):
        risk = risk_of(lists, name, k)
        found = diagnose(risk)
        optimum = CuttingPlane(1e-3, tol=1e-7).solve(risk)
        assert found.zero_is_optimal == (optimum.status is Status.DEGENERATE)
        assert found.objective_bound(1e-3) <= optimum.objective + 1e-9
        for test in found.users:
            assert test.verdict is not Verdict.UNDECIDED
            assert (test.direction is None) == (test.verdict is Verdict.DEGENERATE)


def test_balanced_lists_are_degenerate_for_every_convex_surrogate_and_user():
    lists = degenerate_lists(n_users=10, n_pos=6, n_neg=15, n_features=3, seed=3)
    for found in (diagnose(risk_of(lists, name, 3)) for name in CONVEX):
        assert found.zero_is_optimal is True and found.share() == 1.0
    clipped = diagnose(risk_of(lists, "clipped_ramp", 3))
    assert clipped.zero_is_optimal is False
    assert risk_of(lists, "clipped_ramp", 3)(1e-3 * clipped.joint.direction)[0] < 1.0
    assert clipped.share() == 0.0


def test_positive_that_no_direction_lifts_is_not_called_informative():
    """A positive amid the negatives, k = 1: it never beats all of them."""
    X = np.vstack([[[0.0, 0.0]], [[1.0, 0], [-1, 1], [-1, -1], [0, 2], [0, -2]]])
    y = np.arange(6) == 0
    assert linprog([0, 0], X[1:], -np.ones(5), bounds=(None, None)).status == 2  # infeasible
    data = RankingData.from_groups(X, y)
    for name in SURROGATES:
        joint = diagnose(EmpiricalRisk(make_surrogate(name, 1), data), per_user=False).joint
        expected = Verdict.UNDECIDED if name == "clipped_ramp" else Verdict.DEGENERATE
        assert joint.verdict is expected
    clipped = EmpiricalRisk(make_surrogate("clipped_ramp", 1), data)
    assert CCCP(1e-3, tol=1e-3).solve(clipped).objective == pytest.approx(1.0)


def informative_lists(seed=0, n_users=20, n_items=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_items, 3))
    y = np.tile(np.arange(n_items) < 6, n_users)
    X[y, 0] += 3
    return X, y, np.arange(0, y.size + 1, n_items)


@pytest.mark.parametrize("size", [1e4, 1e8, 1e10, 1e12])
@pytest.mark.parametrize(("name", "form"), [("avg", "dense"), ("pauc", "sparse"), ("ramp", "wide")])
def test_a_large_noise_column_hides_no_information(name, size, form):
    X, y, indptr = informative_lists()
    X[:, 2] *= size
    if form == "wide":  # too many features for a correlation matrix
        X = np.hstack([X, np.random.default_rng(1).normal(size=(y.size, 500))[:, :500] * 1e-3])
    X = sparse.csr_matrix(X) if form == "sparse" else X
    risk = EmpiricalRisk(make_surrogate(name, 3), RankingData(X, y, indptr))
    test = diagnose(risk, per_user=False).joint
    assert test.verdict is Verdict.INFORMATIVE
    step = 1e-3 / np.abs(risk.scores(test.direction)).max()
    fall = (1.0 - risk(step * test.direction)[0]) / step
    assert fall > 0.0 and fall >= test.lower_bound * (1 - 1e-6)
    assert fall == pytest.approx(test.lower_bound, rel=1e-3) or name == "ramp"
    assert test.lower_bound > 0.5 or form == "wide"


@pytest.mark.parametrize("name", CONVEX)
def test_the_verdict_does_not_depend_on_the_units(name):
    rng = np.random.default_rng(8)
    lists = degenerate_lists(n_users=10, n_pos=6, n_neg=15, n_features=3, seed=3)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    X, y, indptr = informative_lists()
    for small in (1e-2, 1e-5):  # what tells is in the difference of two like columns
        like = np.array([[small, 0, 0], [0, 0, 0], [1e6, 1e6, 1e6]])
        risk = EmpiricalRisk(make_surrogate(name, 3), RankingData(X @ like, y, indptr))
        assert diagnose(risk, per_user=False).joint.verdict is Verdict.INFORMATIVE
    for _ in range(3):
        units = 10.0 ** rng.integers(-9, 9, 3)
        mix = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        for change in (np.diag(units), mix, np.hstack([mix, mix[:, :1]])):
            nothing = RankingData(data.X[data.rows] @ change, data.labels, data.indptr)
            something = RankingData(X @ change, y, indptr)
            for lists, verdict in ((nothing, "degenerate"), (something, "informative")):
                risk = EmpiricalRisk(make_surrogate(name, 3), lists)
                assert diagnose(risk, per_user=False).joint.verdict == verdict


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_rounding_is_no_information(name, offset):
    """Balanced lists far from the origin: differences of rows are rounding error to some extent."""
    lists = degenerate_lists(n_users=6, n_pos=6, n_neg=15, n_features=3, seed=3)
    data = RankingData.from_groups(lists.X * 1e-3 + offset, lists.y, lists.groups)
    test = diagnose(EmpiricalRisk(make_surrogate(name, 3), data), per_user=False).joint
    if name == "clipped_ramp":  # it has a direction, which may be lost but not made up
        assert test.verdict is not Verdict.DEGENERATE
    else:
        assert test.verdict is not Verdict.INFORMATIVE


def test_what_has_no_diagnosis_and_no_bound_is_refused():
    lists = linear_lists(n_users=8, n_items=20, n_features=3, noise=1.0, seed=5)
    settings = product((1, 4), ("avg", "clipped_ramp"))
    found = [diagnose(risk_of(lists, name, k)) for k, name in settings]
    with pytest.raises(InputError, match="not convex"):
        found[-1].objective_bound(1.0)
    with pytest.raises(InputError, match="ts_alg2"):
        diagnose(risk_of(lists, "ts_alg2", 2))


def test_some_users_alone_are_evenly_spread_and_have_their_verdicts_of_all():
    risk = risk_of(linear_lists(n_users=9, n_features=2, seed=1), "ts", 3)
    every, some, none = (diagnose(risk, n) for n in (True, 3, 0))
    assert some.joint.verdict == every.joint.verdict == none.joint.verdict
    assert list(some.labels) == [every.labels[u] for u in (0, 4, 8)] and none.users == ()
    assert [t.verdict for t in some.users] == [every.users[u].verdict for u in (0, 4, 8)]


# --- the smallest depth at which w = 0 is not the optimum -----------------------------------------


def lists(seed, n_users=6, n_neg=14):
    """Noisy users: degenerate at depth k for most seeds, informative when all negatives count."""
    rng = np.random.default_rng(seed)
    n_pos = rng.integers(1, 5, n_users)
    y = np.concatenate([np.arange(p + n_neg) < p for p in n_pos])
    X = rng.normal(size=(y.size, 3)).round(1)
    X[y, 0] += 0.8
    return RankingData.from_groups(X, y, np.repeat(np.arange(n_users), n_pos + n_neg))


def is_degenerate(data, name, k, depth):
    """By training: the certified optimum is w = 0, at an alpha where a way down would show."""
    risk = EmpiricalRisk(make_surrogate(name, k, depth), data, "cap")
    result = CuttingPlane(1e-3, tol=1e-7).solve(risk)
    assert result.converged
    return result.status is Status.DEGENERATE


@pytest.mark.parametrize(
    ("seed", "name"),
    [
        *[(0, "avg"), (1, "ts")],
        *[slow(0, "ts"), slow(0, "max"), slow(0, "pauc")],
        *[slow(1, "avg"), slow(1, "max"), slow(1, "pauc")],
        *[slow(seed, name) for seed in (2, 3) for name in ("avg", "ts", "max", "pauc")],
    ],
)
def test_it_is_where_training_leaves_zero(name, seed):
    data, k = lists(seed), 2
    answer = critical_depth(EmpiricalRisk(make_surrogate(name, k), data))
    trained = [m for m in range(k, 15) if not is_degenerate(data, name, k, m)]
    assert answer.is_exact
    assert answer.informative_from == (min(trained) if trained else None)
    assert trained == list(range(min(trained), 15)) if trained else True
    assert answer.degenerate_to in (0, (min(trained) if trained else 15) - 1)


def test_no_depth_helps_max_on_symmetric_lists_and_all_say_so():
    """k = 1, positives at +-1, negatives at +-1 and +-1/2: Max is degenerate at every depth."""
    X, y = np.array([1.0, -1.0, 1.0, -1.0, 0.5, -0.5])[:, None], np.array([1, 1, 0, 0, 0, 0])
    answer = critical_depth(EmpiricalRisk(make_surrogate("max", 1), RankingData(X, y, [0, 6])))
    assert (answer.degenerate_to, answer.informative_from) == (4, None)
    assert "no depth" in str(answer)
    assert answer.as_dict() == {
        "surrogate": "max", "k": 1, "degenerate_to": 4, "informative_from": None, "deepest": 4,
        "exact": True,
    }  # fmt: skip
    ranker = PAPKRanker(k=1, surrogate="max", depth=None)
    with pytest.warns(DegenerateOptimumWarning, match=r"max at depth 1.*\nTry depth=0\.9\."):
        ranker.fit(X, y, groups="one_list")
    with pytest.warns(DegenerateOptimumWarning, match="all scores are 0"):
        assert not ranker.predict(X).any()


@pytest.mark.parametrize(
    ("degenerate_to", "informative_from", "is_exact"),
    [(0, 2, True), (0, 3, False), (4, 5, True), (3, 5, False), (8, None, True), (0, None, False)],
)
def test_a_depth_is_exact_where_none_before_it_is_undecided(
    degenerate_to, informative_from, is_exact
):
    answer = CriticalDepth("ramp", 2, degenerate_to, informative_from, deepest=8)
    assert answer.is_exact == answer.as_dict()["exact"] == is_exact
    if informative_from == 3:
        assert str(answer) == "ramp: critical depth at most 3 (of 8)"


def test_the_order_of_the_surrogates():
    """Jointly Avg and pAUC come free together, Max not before them; alone TS with Avg."""
    for seed in range(3):
        data = lists(seed)
        names = ("clipped_ramp", "ramp", "avg", "pauc", "max")
        clipped, ramp, avg, pauc, largest = (free_from(data, name) for name in names)
        assert clipped <= ramp <= avg == pauc <= largest
        alone = data.subset(np.arange(data.n_users) == 0)
        assert free_from(alone, "avg") == free_from(alone, "ts")


def free_from(data, name):
    return critical_depth(EmpiricalRisk(make_surrogate(name, 2), data)).informative_from or 99


@pytest.mark.filterwarnings("ignore:(overflow|invalid):RuntimeWarning")
@pytest.mark.parametrize("size", [1e155, 1e200, 1e300])
@pytest.mark.parametrize("name", ["max", "avg", "ts"])
def test_a_constant_of_any_size_is_nothing_to_rank_by(size, name):
    """Rounding of the mean of 1e200 has no finite square, and is no spread."""
    y, users = np.tile([1, 0, 0, 1, 0, 0], 3), np.repeat([0, 1, 2], 6)
    ranker = PAPKRanker(k=1, surrogate=name, depth=None, alpha=5.0)
    with pytest.warns(DegenerateOptimumWarning, match=r"column \(0\) is constant"):
        ranker.fit(np.full((18, 1), size), y, users)
    assert ranker.result_.converged and not ranker.coef_.any()
