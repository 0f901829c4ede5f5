"""The smallest depth at which w = 0 is not the optimum, against the certified solver."""

import warnings

import numpy as np
import pytest

from helpers.marks import slow
from structsvm_papk import (
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    Status,
    make_surrogate,
)
from structsvm_papk.diagnosis import advice, critical_depth
from structsvm_papk.errors import DegenerateOptimumWarning


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
        *[(0, "avg"), (1, "ts"), (0, "max"), (1, "pauc")],
        *[slow(1, "avg"), slow(0, "ts"), slow(1, "max"), slow(0, "pauc")],
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
    broken_off = critical_depth(EmpiricalRisk(make_surrogate(name, k), data), max_seconds=0.0)
    assert broken_off.out_of_time and not answer.out_of_time
    assert broken_off.informative_from is None and "depth above 0" in str(broken_off)


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
    words = r"no depth was found[^\n]*\nTry .*clipped_ramp"
    with pytest.warns(DegenerateOptimumWarning, match=words):
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


@pytest.mark.parametrize(
    ("surrogate", "options"),
    [
        slow("avg", {}),
        slow("max", {"user_weight": "positives"}),
        ("ts", {"policy": "cap", "user_weight": "positives"}),
    ],
)
def test_the_call_that_the_warning_names_leaves_zero(surrogate, options):
    """Also with weights of users, and where users with few negatives come in with 'cap'."""
    seen = 0
    for seed in range(6):
        data = lists(seed).weighted(options.get("user_weight", "equal"))
        X, y, users = data.X[data.rows], data.labels, data.user_of_position
        fit = PAPKRanker(k=2, surrogate=surrogate, depth=None, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit.fit(X, y, groups=users)
        for warning in (one.message for one in caught):
            if "surrogate" in warning.settings:
                assert "Try surrogate='clipped_ramp', or" in str(warning)
                continue
            seen += 1
            answer = critical_depth(EmpiricalRisk(make_surrogate(surrogate, 2), data))
            assert f"critical depth {answer.informative_from} (of 14)" in warning.what
            assert fit.set_params(**warning.settings).fit(X, y, groups=users).coef_.any()
    assert seen >= 2


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


@pytest.mark.parametrize("error", [np.linalg.LinAlgError("no pivot"), KeyboardInterrupt()])
@pytest.mark.parametrize("positive", [False, True])
def test_the_search_for_other_settings_never_costs_the_fit(error, positive, monkeypatch):
    def broken(*_, **__):
        raise error

    X, y = np.array([1.0, -1.0, 1.0, -1.0, 0.5, -0.5])[:, None], np.array([1, 1, 0, 0, 0, 0])
    monkeypatch.setattr(advice, "_first_not_zero" if positive else "critical_depth", broken)
    ranker = PAPKRanker(k=1, surrogate="max", depth=None, positive=positive)
    told = (
        rf"ranks nothing \(the search .* ended in {type(error).__name__}: .*\)[^\n]*\nTry .*depth"
    )
    with pytest.warns(DegenerateOptimumWarning, match=told):
        ranker.fit(X, y, groups="one_list")
    assert ranker.result_.status is Status.DEGENERATE and not ranker.coef_.any()
