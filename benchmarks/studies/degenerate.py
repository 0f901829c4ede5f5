"""Where every convex surrogate's optimum is zero: what ClippedRamp gains there.

Users with a common linear taste w*, ``s = X w* / sqrt(d) + noise``, the best fifth of each user's
items relevant. Three regimes: Gaussian noise, heavy-tailed noise, and mislabelled training users
(held-out users are clean). Every method chooses its settings by cross-validation over users, is
trained on all training users, and is judged by the mean pAp@k gain of held-out users.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy import stats

from benchmarks.common.cells import Cells
from benchmarks.paper.baselines.common import mean_pap_at_k
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    EmpiricalRisk,
    RankingData,
    SubgradientDescent,
    make_surrogate,
)
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError

REGIMES = {
    "gaussian": {"noise": 1.0},
    "heavy_tails": {"noise": 0.7, "df": 1.5},
    "mislabelled": {"noise": 0.3, "df": 1.5, "mislabelled_users": 0.5},
}
DEPTHS = (0.35, 0.65, 10**6)  # shares of a user's negatives; more than there are: all of them
ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_RECIPES = ((0.1, 0.01), (0.2, 0.1))  # (eta, alpha), the ends of the paper's ranges
_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # scikit-learn's C
_CCCP_TOL = 1e-3


@dataclass(frozen=True)
class Sizes:
    """Size of one data set of the study; the defaults are the published task's."""

    n_users: int = 600
    n_test_users: int = 600
    n_items: int = 70
    n_features: int = 90
    k: int = 8
    n_folds: int = 3


@dataclass(frozen=True)
class Outcome:
    """One method on one data set: its mean pAp@k gain on held-out users, ties as errors."""

    regime: str
    method: str
    seed: int
    gain: float
    setting: str
    zero: bool = False


# ----------------------------------------------------------------- the methods
# Each yields (setting, w) for its settings, one after the other.


def _non_convex(name):
    def path(data, k, seed):
        risk = EmpiricalRisk(make_surrogate(name, k), data)
        for alpha in ALPHAS:
            solver = CCCP(alpha, tol=_CCCP_TOL, starts=("centred_logistic",), continuation=())
            yield f"alpha={alpha:g}", solver.solve(risk).w

    return path


def _convex(name, depths=(None,), alphas=ALPHAS[::-1]):
    def path(data, k, seed):
        """A zero that is certified for the smallest alpha is the optimum for all of them."""
        for depth in depths:
            risk = EmpiricalRisk(
                make_surrogate(name, k, depth), data, "cap" if depth else "exclude"
            )
            result = None
            for alpha in alphas:
                if result is None or result.status != "degenerate":
                    result = CuttingPlane(alpha).solve(risk)
                at = "" if depth is None else f"depth={depth:g}, "
                yield f"{at}alpha={alpha:g}", result.w

    return path


def _recipe(data, k, seed):
    risk = EmpiricalRisk(make_surrogate("avg", k), data)
    for eta, alpha in _RECIPES:
        solver = SubgradientDescent(alpha, eta, start_scale=1.0, seed=seed)
        yield f"eta={eta:g}, alpha={alpha:g}", solver.solve(risk).w


def _logistic(data, k, seed):
    from sklearn.linear_model import LogisticRegression

    X = np.asarray(data.X[data.rows])
    model = LogisticRegression(warm_start=True, max_iter=300)
    for strength in _STRENGTHS:
        w = model.set_params(C=strength).fit(X, data.labels).coef_[0]
        yield f"C={strength:g}", w.copy()


METHODS: dict[str, Callable] = {
    "ClippedRamp, CCCP": _non_convex("clipped_ramp"),
    "Ramp, CCCP": _non_convex("ramp"),
    "Avg, certified": _convex("avg"),
    "Max, certified": _convex("max"),
    "TS, certified": _convex("ts"),
    "pAUC, certified": _convex("pauc"),
    "Avg, certified, depth": _convex("avg", DEPTHS, ALPHAS[2:0:-1]),
    "Avg, paper's descent": _recipe,
    "logistic, pooled": _logistic,
}
OURS = "ClippedRamp, CCCP"


# ----------------------------------------------------------------- the study


@dataclass(frozen=True)
class Summary:
    """Means over the seeds of one method in one regime, with half-widths of 95% intervals.

    `difference`, `wins` and `losses` are ClippedRamp's against this method, paired by seed;
    `zeros`: seeds where the weights are zero.
    """

    regime: str
    method: str
    n_seeds: int
    mean: float
    half_width: float
    difference: float
    difference_half_width: float
    wins: int
    losses: int
    zeros: int


@dataclass(frozen=True)
class Study:
    """All outcomes, and their summary."""

    outcomes: list
    sizes: Sizes = field(default_factory=Sizes)

    def gains(self, regime, method):
        """Test gains by seed."""
        return np.array([o.gain for o in self.outcomes if (o.regime, o.method) == (regime, method)])

    def summary(self):
        """One `Summary` for each regime and method, in the order of the study."""
        pairs = dict.fromkeys((o.regime, o.method) for o in self.outcomes)
        return [self._summarise(*pair) for pair in pairs]

    def _summarise(self, regime, method):
        gains, ours = self.gains(regime, method), self.gains(regime, OURS)
        difference = ours - gains
        return Summary(
            regime,
            method,
            gains.size,
            gains.mean(),
            half_width(gains),
            difference.mean(),
            half_width(difference),
            int((difference > 0).sum()),
            int((difference < 0).sum()),
            sum(o.zero for o in self.outcomes if (o.regime, o.method) == (regime, method)),
        )

    def as_dict(self):
        """Plain values for JSON."""
        return {
            "sizes": vars(self.sizes),
            "summary": [vars(row) for row in self.summary()],
            "outcomes": [vars(outcome) for outcome in self.outcomes],
        }


def half_width(values):
    """Half-width of the 95% Student interval of a mean; nan for fewer than two values."""
    if values.size < 2:
        return np.nan
    error = values.std(ddof=1) / np.sqrt(values.size)
    return float(stats.t.ppf(0.975, values.size - 1) * error)


def run(
    seeds=range(10),
    regimes=tuple(REGIMES),
    methods=tuple(METHODS),
    sizes=None,
    jobs=1,
    callback=None,
    cells=None,
):
    """Run the study, ClippedRamp always among the methods; `jobs` does not change the result."""
    sizes = sizes or Sizes()
    _check_names("regime", regimes, REGIMES)
    _check_names("method", methods, METHODS)
    seeds = list(seeds)
    if not seeds or jobs < 1:
        raise InputError("the study needs at least one seed and one process")
    methods = list(dict.fromkeys([OURS, *methods]))
    cells = cells or Cells()
    tasks = [(regime, seed, methods, sizes) for regime in regimes for seed in seeds]
    found = {_key(task): cells.load(_key(task)) for task in tasks}
    missing = [task for task in tasks if found[_key(task)] is None]
    with parallel_config("loky", inner_max_num_threads=1):
        each = Parallel(jobs, return_as="generator")(map(delayed(_one_data_set), missing))
    outcomes = []
    for task in tasks:
        kept = found[_key(task)]
        part = next(each) if kept is None else [Outcome(**entry) for entry in kept]
        if kept is None:
            cells.save(_key(task), [vars(outcome) for outcome in part])
        outcomes += part
        if callback is not None:
            callback(part)
    return Study(outcomes, sizes)


def _key(task):
    regime, seed, methods, sizes = task
    return ("degenerate", regime, seed, *methods, *vars(sizes).values())


def _one_data_set(task):
    regime, seed, methods, sizes = task
    train, test = make_data(regime, seed, sizes)
    return [_evaluate(regime, method, seed, train, test, sizes) for method in methods]


def make_data(regime, seed, sizes):
    """Training and held-out users with the same taste; the held-out ones are labelled cleanly."""
    shape = {"n_items": sizes.n_items, "n_features": sizes.n_features}
    law = dict(REGIMES[regime])
    train = linear_lists(n_users=sizes.n_users, seed=2 * seed, **shape, **law)
    law.pop("mislabelled_users", None)
    test = linear_lists(
        n_users=sizes.n_test_users, seed=2 * seed + 1, w_true=train.w_true, **shape, **law
    )
    return tuple(RankingData.from_groups(part.X, part.y, part.groups) for part in (train, test))


def _check_names(kind, names, known):
    for name in names:
        if name not in known:
            raise InputError(f"unknown {kind} {name!r}; choose from {', '.join(known)}")


def _evaluate(regime, method, seed, train, test, sizes):
    path = METHODS[method]
    chosen = _cross_validate(path, train, sizes, seed)
    found = path(train, sizes.k, seed)
    setting, w = next(pair for pair in found if chosen in (None, pair[0]))
    gain = mean_pap_at_k(w, test, sizes.k)
    return Outcome(regime, method, seed, float(gain), setting, not w.any())


def _cross_validate(path, data, sizes, seed):
    """The setting with the best mean gain over the folds; None where there is only one."""
    folds = np.random.default_rng(seed).permutation(data.n_users) % sizes.n_folds
    totals = {}
    for fold in range(sizes.n_folds):
        held_out = data.subset(folds == fold)
        for setting, w in path(data.subset(folds != fold), sizes.k, seed):
            gains = totals.setdefault(setting, [])
            gains.append(mean_pap_at_k(w, held_out, sizes.k))
    complete = {s: np.mean(g) for s, g in totals.items() if len(g) == sizes.n_folds}
    return max(complete, key=complete.get) if len(complete) > 1 else None
