"""The smallest depth at which w = 0 is not the optimum, against the certified solver."""

import numpy as np
import pytest

from helpers.marks import slow
from structsvm_papk import (
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.diagnosis import critical_depth
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.solvers.solver import Status


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
