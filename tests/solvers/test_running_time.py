"""No order of the scores makes a list quadratic, and a time limit ends long evaluations.

Only this test and that of many columns look at a clock, that of the processor: on the same number
of rows the work takes up to four times as long as NumPy's stable sort, may take forty times as
long, and with a quadratic step takes 500 times as long.
"""

import time
from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from structsvm_papk import EmpiricalRisk, RankingData, _sorting, make_surrogate, metrics
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import MajorisedOracle
from structsvm_papk.solvers.solver import Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates.losses import SURROGATES

pytestmark = pytest.mark.portable

N_ROWS, MOST = 64000, 40


def new_behind(i):
    """A sorted list with new items of low score behind it."""
    return np.roll(i, -12)


ORDERS = {
    "random": lambda i: np.random.default_rng(0).permutation(i),
    "increasing": lambda i: i,
    "decreasing": lambda i: -i,
    "organ pipe": lambda i: np.minimum(i, i.size - i),
    "valley": lambda i: np.maximum(i, i.size - i),
    "equal": np.zeros_like,
    "two values": lambda i: np.random.default_rng(0).integers(0, 2, i.size).astype(float),
    "sawtooth": lambda i: i % 100,
    "two runs": lambda i: np.concatenate([i[::2], i[1::2]]),
    "new behind": new_behind,
    "new behind, decreasing": lambda i: new_behind(i[::-1])[::-1],
    "new in front": lambda i: new_behind(i)[::-1],
    "new in front, decreasing": lambda i: -new_behind(i)[::-1],
}


ONE = np.ones(1)


def evaluated(name):
    """A risk of one list whose feature is its score; every third row is relevant."""

    def work(scores):
        y, k = np.arange(scores.size) % 3 == 0, scores.size // 4
        data = RankingData.from_groups(scores[:, None] / scores.size, y)
        risk = EmpiricalRisk(make_surrogate(name, k), data)

        def call():
            risk(ONE)
            if risk.convex:
                risk.with_blocks(8).cuts(ONE)
            if risk.surrogate.majorised:
                risk.majorant(ONE)(2 * ONE)

        return call

    return work


def all_metrics(scores):
    y, k = np.arange(scores.size) % 3 == 0, scores.size // 4
    names = ["auc", "ap", "ndcg", "rr"]
    names += [f"{name}@{k}" for name in ("pap", "pauc", "precision", "recall", "auc")]
    return lambda: metrics.evaluate(names, scores, y, n_threads=1)


def graded_ndcg(scores):
    grades = np.roll(scores, 5) - scores.min()
    labels = 3 * grades / max(1, grades.max())
    return lambda: metrics.evaluate(["ndcg"], scores, labels, gains="linear", n_threads=1)


WORK = {name: evaluated(name) for name in SURROGATES}
WORK |= {"metrics": all_metrics, "graded ndcg": graded_ndcg}


def seconds(call):
    """Time of the processor, which waiting BLAS threads use too."""
    with threadpool_limits(1):
        start = time.process_time()
        call()
        return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_no_order_of_the_scores_is_quadratic(work):
    work(np.arange(200.0))()  # compiled code is loaded
    random = ORDERS["random"](np.arange(float(N_ROWS)))
    sort = seconds(lambda: np.argsort(random, kind="stable"))
    for name, order in ORDERS.items():
        assert seconds(work(order(np.arange(float(N_ROWS))))) < MOST * sort, name


def test_sorting_is_stable():
    for n, order in product((0, 1, 2, 31, 32, 33, 64, 65, 700), ORDERS.values()):
        values = order(np.arange(float(n)))
        in_place = values.copy()
        _sorting.sort(in_place, np.empty(n))
        np.testing.assert_array_equal(in_place, np.sort(values))
        expected = np.argsort(values, kind="stable")
        np.testing.assert_array_equal(_sorting.increasing_order(values), expected)


UNEVEN = (
    2.0 ** np.arange(-1000.0, 1000.0),
    1e306 * np.arange(-150.0, 150.0),  # a range that overflows
    5e-324 * np.arange(300.0),  # one that underflows
    np.append(np.random.default_rng(0).normal(size=400), [1e300, -1e300]),
    np.append(np.zeros(400), 1.0),
    1.0 + np.finfo(float).eps * np.random.default_rng(0).integers(0, 9, 300),
)


def test_top_k_are_the_first_of_the_largest_in_order_of_position():
    rng = np.random.default_rng(1)
    lists = [order(np.arange(70.0)) // 3 for order in ORDERS.values()]
    for values in (*lists, *map(rng.permutation, UNEVEN)):
        n = values.size
        for k in (1, 2, 5, 33, n // 2, n - 20, n - 1, n):
            expected = np.sort(np.argsort(-values, kind="stable")[:k])
            np.testing.assert_array_equal(_sorting.top_k(values, k), expected)
        values[rng.random(n) < 0.3] = np.nan  # which no caller gives: it stays within its arrays
        for k in range(1, n + 1, 1 + n // 90):
            chosen = _sorting.top_k(values, k)
            assert ((chosen >= 0) & (chosen < n)).all()


class Slow(MajorisedOracle):
    """A risk whose evaluations take an hour; it counts them."""

    n_features, calls = 2, 0

    def __call__(self, w):
        self.calls += 1
        self.clock.now += 3600.0
        return abs(w[0] - 1) + w[1] ** 2, np.array([np.sign(w[0] - 1), 2 * w[1]])

    def majorant(self, w):
        return self


@pytest.mark.parametrize(
    ("solver", "most"), [(CuttingPlane, 1), (SubgradientDescent, 1), (CCCP, 4)]
)
def test_late_solvers_begin_no_evaluation(solver, most, clock):
    oracle = Slow()
    oracle.clock = clock
    result = solver(alpha=0.1, time_limit=60.0).solve(oracle)
    assert result.status is Status.TIME_LIMIT and oracle.calls <= most
    assert result.lower_bound <= result.objective
