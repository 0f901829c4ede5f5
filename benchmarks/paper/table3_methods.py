"""The methods of Table 3 and the grids of settings that cross-validation tries."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby, product

import numpy as np

from benchmarks.paper.baselines import (
    GreedyPAPK,
    LambdaRank,
    Logistic,
    PrecAtKAvg,
    SelectPAPK,
    SGDAtKAvg,
)
from benchmarks.paper.descents import descend
from structsvm_papk import CCCP, CuttingPlane, EmpiricalRisk, make_surrogate
from structsvm_papk.errors import InputError

_TOL = 1e-4
_MAX_ITER = 500


@dataclass(frozen=True)
class Grid:
    """What cross-validation tries; the defaults are the paper's; `depths` are multiples of k."""

    etas: tuple = tuple(m * 10.0**e for e in (-4, -3, -2, -1) for m in (1, 2, 5))
    alphas: tuple = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
    ridges: tuple = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    depths: tuple = (2, 4, 8)
    steps: int = 201

    def __post_init__(self):
        for name in ("etas", "alphas", "ridges", "depths"):
            values = getattr(self, name)
            if not values or not all(np.isfinite(v) and v > 0 for v in values):
                raise InputError(f"{name} must be positive numbers, got {values!r}")
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}")

    def descent(self):
        """Settings of the descents."""
        return [
            {"eta": eta, "alpha": alpha, "steps": self.steps}
            for eta, alpha in product(self.etas, self.alphas)
        ]

    def recipe(self):
        """Settings that the authors' scripts use; those do not depend on the grid."""
        return [
            {"eta": eta, "alpha": alpha, "steps": steps}
            for steps, eta, alpha in product((121, 201), (0.1, 0.2), (0.01, 0.1))
        ]

    def certified(self):
        """Settings of the certified minimisers and of CCCP."""
        return [{"alpha": alpha} for alpha in self.alphas]

    def deep(self):
        """Settings of the certified minimisers that count more negatives than k."""
        pairs = product(self.depths, self.alphas)
        return [{"depth_over_k": depth, "alpha": alpha} for depth, alpha in pairs]

    def ridge(self):
        """Settings of what fits cross-entropy."""
        return [{"alpha": alpha} for alpha in self.ridges]

    def trees(self):
        """Settings of LambdaRank."""
        return [{"learning_rate": rate, "n_leaves": n} for rate in (0.05, 0.1) for n in (7, 31)]


@dataclass(frozen=True)
class Method:
    """How a row of the table is fitted: ``fit(data, k, seed, settings)`` gives their results."""

    published: str | None
    settings: str
    fit: Callable

    @property
    def side_by_side(self):
        """Whether all settings together take much less time than one after the other."""
        return self.settings in ("descent", "recipe")


def _descent(surrogate):
    def fit(data, k, seed, settings):
        # the descents' own start, see `SubgradientDescent`
        start = np.random.default_rng(2**20 + seed).standard_normal(data.n_features)
        for steps, same in groupby(settings, lambda setting: setting["steps"]):
            pairs = [(setting["eta"], setting["alpha"]) for setting in same]
            yield from descend(surrogate(k), data, pairs, steps, start)

    return fit


def _on_risk(name, solver):
    def fit(data, k, seed, settings):
        risk = EmpiricalRisk(make_surrogate(name, k), data, "exclude")
        return (solver(setting["alpha"]).solve(risk) for setting in settings)

    return fit


def _baseline(make):
    """A baseline that takes data and k; ``make(seed, **setting)`` configures it."""

    def fit(data, k, seed, settings):
        return (make(seed, **setting).solve(data, k) for setting in settings)

    return fit


def _ours(name):
    return _descent(lambda k: make_surrogate(name, k))


def _certified(name):
    return _on_risk(name, lambda alpha: CuttingPlane(alpha, _TOL, _MAX_ITER))


def _deep(name):
    def fit(data, k, seed, settings):
        for s in settings:
            surrogate = make_surrogate(name, k, max(k, round(s["depth_over_k"] * k)))
            risk = EmpiricalRisk(surrogate, data, "cap")
            yield CuttingPlane(s["alpha"], _TOL, _MAX_ITER).solve(risk)

    return fit


def _cccp(name):
    return _on_risk(name, lambda alpha: CCCP(alpha, tol=1e-3, max_iter=50))


def _stochastic(data, k, seed, settings):
    tenth = max(1, data.n_users // 10)
    for s in settings:
        descent = SGDAtKAvg(s["alpha"], s["eta"], s["steps"], batch_users=tenth, seed=seed)
        yield descent.solve(data, k)


_greedy = _baseline(lambda seed, alpha: GreedyPAPK(alpha, seed=seed))
_select = _baseline(lambda seed, alpha: SelectPAPK(alpha))
_pooled = _baseline(lambda seed, alpha: Logistic(alpha))
_centred = _baseline(lambda seed, alpha: Logistic(alpha, centred=True))
_trees = _baseline(
    lambda seed, learning_rate, n_leaves: LambdaRank(100, n_leaves, learning_rate, seed=seed)
)

METHODS = {
    "Max, descent": Method("Max", "descent", _ours("max")),
    "Avg, descent": Method("Avg", "descent", _ours("avg")),
    "TS (Alg. 2), descent": Method("TS", "descent", _ours("ts_alg2")),
    "Max, recipe": Method("Max", "recipe", _ours("max")),
    "Avg, recipe": Method("Avg", "recipe", _ours("avg")),
    "TS (Alg. 2), recipe": Method("TS", "recipe", _ours("ts_alg2")),
    "Max, certified": Method("Max", "certified", _certified("max")),
    "Avg, certified": Method("Avg", "certified", _certified("avg")),
    "TS, certified": Method("TS", "certified", _certified("ts")),
    "Avg, certified, depth": Method(None, "deep", _deep("avg")),
    "TS, certified, depth": Method(None, "deep", _deep("ts")),
    "SVM-pAUC, descent": Method("SVM-pAUC", "descent", _ours("pauc")),
    "SVM-pAUC, certified": Method("SVM-pAUC", "certified", _certified("pauc")),
    "SGD@k-avg": Method("SGD@k-avg", "descent", _descent(PrecAtKAvg)),
    "SGD@k-avg, stochastic": Method("SGD@k-avg", "descent", _stochastic),
    "Greedy-pAp@k": Method("Greedy-pAp@k", "ridge", _greedy),
    "Select-pAp@k": Method("Select-pAp@k", "ridge", _select),
    "Ramp, CCCP": Method(None, "certified", _cccp("ramp")),
    "ClippedRamp, CCCP": Method(None, "certified", _cccp("clipped_ramp")),
    "logistic, pooled": Method(None, "ridge", _pooled),
    "logistic, user-centred": Method(None, "ridge", _centred),
    "LambdaRank": Method(None, "trees", _trees),
}


def available():
    """Names of the methods that can run here: LambdaRank only with LightGBM."""
    return tuple(n for n in METHODS if n != "LambdaRank" or find_spec("lightgbm") is not None)
