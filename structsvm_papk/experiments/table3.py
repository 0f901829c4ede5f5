"""Table 3 of the paper: mean pAp@k of held-out items on MovieLens-100K, Citation and Behance.

Every method is fitted for every setting of its grid on the training lists; the setting with the
best mean validation gain is kept, and its gain on the test lists reported. Each fit is a cell, kept
in a file of its own in a results folder, so that an interrupted run goes on where it stopped.

Methods: the paper's with its recipe (descent; TS as in its Algorithm 2), certified minimisers of
the same surrogates (TS exactly), CCCP on Ramp and ClippedRamp, and the baselines.
"""

import hashlib
import json
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from structsvm_papk import __version__, metrics
from structsvm_papk.baselines import (
    GreedyPAPK,
    LambdaRank,
    Logistic,
    SelectPAPK,
    SGDAtKAvg,
    scores_of,
)
from structsvm_papk.errors import InputError
from structsvm_papk.experiments import movielens
from structsvm_papk.outputs import write_atomically
from structsvm_papk.risk import EmpiricalRisk
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate

KS = {
    "movielens": (8, 12, 16, 20, 24),
    "citation": (6, 9, 12, 15, 18),
    "behance": (5, 10, 15, 20, 25),
}
PUBLISHED = {  # gain in %, for each k of KS
    "movielens": {
        "Max": (32.6, 35.1, 37.6, 40.5, 43.7),
        "Avg": (35.5, 34.4, 36.1, 42.5, 46.5),
        "TS": (33.5, 33.3, 35.6, 42.2, 46.0),
        "SVM-pAUC": (34.9, 33.7, 35.7, 41.1, 46.3),
        "Greedy-pAp@k": (29.3, 31.5, 34.1, 37.4, 40.0),
        "SGD@k-avg": (30.7, 32.3, 32.8, 35.0, 36.3),
        "Select-pAp@k": (31.0, 34.9, 36.9, 39.8, 41.5),
    },
    "citation": {
        "Max": (17.5, 21.4, 28.6, 34.8, 35.1),
        "Avg": (20.7, 25.6, 26.7, 33.6, 33.4),
        "TS": (15.0, 19.3, 31.6, 31.0, 34.3),
        "SVM-pAUC": (14.5, 24.4, 29.5, 32.3, 30.8),
        "Greedy-pAp@k": (18.5, 19.6, 29.9, 30.1, 29.4),
        "SGD@k-avg": (20.4, 23.0, 24.2, 28.1, 30.5),
        "Select-pAp@k": (20.0, 23.7, 27.0, 30.4, 31.9),
    },
    "behance": {
        "Max": (19.2, 24.3, 28.4, 28.6, 31.8),
        "Avg": (21.6, 26.5, 29.7, 30.8, 33.7),
        "TS": (22.8, 26.9, 28.6, 30.5, 33.0),
        "SVM-pAUC": (19.7, 24.4, 27.8, 30.7, 32.8),
        "Greedy-pAp@k": (20.1, 24.5, 27.5, 28.8, 31.4),
        "SGD@k-avg": (19.6, 26.6, 31.7, 30.6, 35.3),
        "Select-pAp@k": (15.6, 18.9, 22.0, 24.3, 25.9),
    },
}
_TOL = 1e-4
_MAX_ITER = 500
_N_RESAMPLES = 2000
_OTHER_SEEDS = 1 << 20  # starts must not repeat the draws of the data


@dataclass(frozen=True)
class Grid:
    """What cross-validation tries; the defaults are the paper's.

    Parameters
    ----------
    etas : sequence of float
        Step sizes of descent.
    alphas : sequence of float
        Regularisation of descent, certified minimisers and CCCP.
    ridges : sequence of float
        Regularisation of the methods that fit cross-entropy.
    steps : int
        Steps of descent.
    """

    etas: tuple = tuple(m * 10.0**e for e in (-4, -3, -2, -1) for m in (1, 2, 5))
    alphas: tuple = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
    ridges: tuple = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    steps: int = 201

    def __post_init__(self):
        for name in ("etas", "alphas", "ridges"):
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

    def certified(self):
        """Settings of the certified minimisers and of CCCP."""
        return [{"alpha": alpha} for alpha in self.alphas]

    def ridge(self):
        """Settings of what fits cross-entropy."""
        return [{"alpha": alpha} for alpha in self.ridges]

    def trees(self):
        """Settings of LambdaRank."""
        return [{"learning_rate": rate, "n_leaves": n} for rate in (0.05, 0.1) for n in (7, 31)]


# ----------------------------------------------------------------- the methods


@dataclass(frozen=True)
class Method:
    """How a row of the table is fitted.

    Attributes
    ----------
    published : str or None
        The row of the paper that it stands beside.
    settings : str
        The method of `Grid` that lists its settings.
    fit : callable
        ``fit(data, k, seed, **setting) -> SolverResult``.
    """

    published: str | None
    settings: str
    fit: Callable


def _descent(name):
    def fit(data, k, seed, eta, alpha, steps):
        solver = SubgradientDescent.paper(alpha, eta, steps, seed=_OTHER_SEEDS + seed)
        return solver.solve(EmpiricalRisk(make_surrogate(name, k), data))

    return fit


def _certified(name):
    def fit(data, k, seed, alpha):
        risk = EmpiricalRisk(make_surrogate(name, k), data)
        return CuttingPlane(alpha, _TOL, _MAX_ITER).solve(risk)

    return fit


def _cccp(name):
    def fit(data, k, seed, alpha):
        risk = EmpiricalRisk(make_surrogate(name, k), data)
        return CCCP(alpha, tol=1e-3, max_iter=50).solve(risk)

    return fit


def _sgd(data, k, seed, eta, alpha, steps):
    return SGDAtKAvg(alpha, eta, steps, seed=_OTHER_SEEDS + seed).solve(data, k)


def _greedy(data, k, seed, alpha):
    return GreedyPAPK(alpha, seed=seed).solve(data, k)


def _select(data, k, seed, alpha):
    return SelectPAPK(alpha, seed=seed).solve(data, k)


def _logistic(centred):
    return lambda data, k, seed, alpha: Logistic(alpha, centred).solve(data, k)


def _lambdarank(data, k, seed, learning_rate, n_leaves):
    return LambdaRank(100, n_leaves, learning_rate, seed=seed).solve(data, k)


METHODS = {
    "Max, descent": Method("Max", "descent", _descent("max")),
    "Avg, descent": Method("Avg", "descent", _descent("avg")),
    "TS (Algorithm 2), descent": Method("TS", "descent", _descent("ts_alg2")),
    "SVM-pAUC, descent": Method("SVM-pAUC", "descent", _descent("pauc")),
    "Greedy-pAp@k": Method("Greedy-pAp@k", "ridge", _greedy),
    "SGD@k-avg": Method("SGD@k-avg", "descent", _sgd),
    "Select-pAp@k": Method("Select-pAp@k", "ridge", _select),
    "Max, certified": Method("Max", "certified", _certified("max")),
    "Avg, certified": Method("Avg", "certified", _certified("avg")),
    "TS, certified": Method("TS", "certified", _certified("ts")),
    "SVM-pAUC, certified": Method("SVM-pAUC", "certified", _certified("pauc")),
    "Ramp, CCCP": Method(None, "certified", _cccp("ramp")),
    "ClippedRamp, CCCP": Method(None, "certified", _cccp("clipped_ramp")),
    "logistic, pooled": Method(None, "ridge", _logistic(False)),
    "logistic, user-centred": Method(None, "ridge", _logistic(True)),
    "LambdaRank": Method(None, "trees", _lambdarank),
}


def available():
    """Names of the methods that can run here: LambdaRank only with LightGBM."""
    return tuple(n for n in METHODS if n != "LambdaRank" or find_spec("lightgbm") is not None)


# ----------------------------------------------------------------- the run and its folder


@dataclass(frozen=True)
class Plan:
    """What a run computes; a results folder belongs to one data set and one grid.

    Parameters
    ----------
    source : str
        Folder of the data.
    dataset : {'movielens', 'citation', 'behance'}
    ks : sequence of int
    seeds : sequence of int
        Preparations (MovieLens) and starts.
    methods : sequence of str
        Keys of `METHODS`.
    grid : Grid
    preparation : movielens.Preparation
    """

    source: str
    dataset: str = "movielens"
    ks: tuple = ()
    seeds: tuple = (0,)
    methods: tuple = ()
    grid: Grid = field(default_factory=Grid)
    preparation: movielens.Preparation = field(default_factory=movielens.Preparation)

    def __post_init__(self):
        if self.dataset not in KS:
            raise InputError(f"unknown data set {self.dataset!r}; choose from {', '.join(KS)}")
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise InputError(f"unknown method {unknown[0]!r}; choose from {', '.join(METHODS)}")
        if any(k < 1 for k in self.ks) or not self.seeds:
            raise InputError("a run needs k >= 1 and at least one seed")
        object.__setattr__(self, "ks", tuple(self.ks) or KS[self.dataset])
        object.__setattr__(self, "methods", tuple(self.methods) or available())

    def cells(self):
        """Every fit of the run."""
        return [
            Cell(k, seed, name, json.dumps(setting, sort_keys=True))
            for seed, k, name in product(self.seeds, self.ks, self.methods)
            for setting in getattr(self.grid, METHODS[name].settings)()
        ]

    def identity(self):
        """What two runs must share so that their cells may stand in one folder."""
        found = {
            "version": __version__,
            "dataset": self.dataset,
            "data": _digest(self.source, self.dataset),
            "preparation": asdict(self.preparation),
            "steps": self.grid.steps,
        }
        return json.loads(json.dumps(found))


@dataclass(frozen=True)
class Cell:
    """One fit; `setting` is JSON with sorted keys."""

    k: int
    seed: int
    method: str
    setting: str

    @property
    def name(self):
        """File name, the same for the same fit."""
        text = json.dumps([self.k, self.seed, self.method, self.setting])
        return f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def run(plan, results, jobs=1, callback=None):
    """Compute the cells that the results folder lacks, and make the table.

    Parameters
    ----------
    plan : Plan
    results : path-like
        Folder of the run: new, empty, or of an earlier run of the same data and preparation.
    jobs : int
        Processes; the result does not depend on it.
    callback : callable, optional
        Called with ``(done, total, cell)``: once at the start (cell None), then for each new cell.

    Returns
    -------
    dict
        ``rows``, see `table`.

    Raises
    ------
    InputError
        The data cannot be read, or the results folder belongs to another run.
    """
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    load_splits(plan.source, plan.dataset, plan.seeds[0], plan.preparation)
    cells = _claim(plan, Path(results))
    wanted = plan.cells()
    missing = [cell for cell in wanted if not (cells / cell.name).is_file()]
    done = len(wanted) - len(missing)
    if callback is not None:
        callback(done, len(wanted), None)
    tasks = [(plan, cell, cells) for cell in missing]
    for cell in _in_turn(tasks) if jobs == 1 else _in_processes(tasks, jobs):
        done += 1
        if callback is not None:
            callback(done, len(wanted), cell)
    return table(plan, results)


def _claim(plan, results):
    """The folder of the cells, after making sure that it is this run's."""
    identity, cells = plan.identity(), results / "cells"
    record = results / "run.json"
    if results.exists() and not results.is_dir():
        raise InputError(f"{results} is no folder")
    if record.is_file():
        _refuse_other(record, identity)
    elif results.is_dir() and any(results.iterdir()):
        raise InputError(
            f"{results} is not empty and holds no run.json, so it is no results folder of this "
            "table; choose a new folder"
        )
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {results}: {error.strerror}") from None
    if not record.is_file():
        write_atomically(record, json.dumps(identity, indent=1).encode())
    return cells


def _refuse_other(record, identity):
    try:
        found = json.loads(record.read_text())
    except (ValueError, OSError):
        raise InputError(f"{record} cannot be read; choose a new results folder") from None
    found = found if isinstance(found, dict) else {}
    other = [key for key in identity if found.get(key) != identity[key]]
    if other:
        raise InputError(
            f"{record.parent} belongs to another run: {', '.join(other)} differ; results are not "
            "mixed, choose another folder"
        )


def _digest(source, dataset):
    """Digest of the files that a run reads."""
    folder, digest = Path(source), hashlib.sha256()
    names = ["u.data"] if dataset == "movielens" else sorted(p.name for p in folder.glob("*.tsv"))
    for name in names:
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return digest.hexdigest()


def _in_turn(tasks):
    for task in tasks:
        yield _compute(task)


def _in_processes(tasks, jobs):
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_set_up_worker)
    try:
        for future in as_completed([pool.submit(_compute, task) for task in tasks]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _set_up_worker():
    """No threads of its own, as workers share the processors; Ctrl-C is the parent's business."""
    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=4)
def load_splits(source, dataset, seed, preparation):
    """The lists of one seed, prepared once in each process."""
    if dataset == "movielens":
        return movielens.prepare(movielens.read_ratings(source), seed, preparation)
    if not Path(source).is_dir():
        raise InputError(f"{source} is no folder")
    return movielens.read_prepared(source)


def _compute(task):
    """Fit one cell and write its file."""
    plan, cell, folder = task
    splits = load_splits(plan.source, plan.dataset, cell.seed, plan.preparation)
    fit = METHODS[cell.method].fit
    result = fit(splits.train, cell.k, cell.seed, **json.loads(cell.setting))
    users, gains = _gains(result, splits.test, cell.k)
    known = np.isfinite(result.lower_bound)
    content = {
        **{f.name: getattr(cell, f.name) for f in fields(cell)},
        "validation": float(_gains(result, splits.val, cell.k)[1].mean()),
        "test_users": users.tolist(),
        "test_gains": gains.tolist(),
        "objective": result.objective,
        "gap": result.gap if known else None,
        "status": str(result.status),
        "zero": bool(result.w.size and not result.w.any()),
        "seconds": result.seconds,
    }
    write_atomically(folder / cell.name, json.dumps(content).encode())
    return cell


def _gains(result, data, k):
    """Users with a positive and k negatives, and their gains."""
    name = f"pap@{k}"
    data = data.usable(k)
    scores = scores_of(result, data)
    found = metrics.evaluate(name, scores, data.labels, indptr=data.indptr)
    return data.users, found[name]


# ----------------------------------------------------------------- the table


def table(plan, results):
    """Choose settings by validation and compare with the published gains.

    Returns
    -------
    dict
        ``published_data``, whether the ratings are those of MovieLens 100K (by their sizes; None
        for prepared files), and ``rows``, one for each k and method, with ``published`` (gain in
        %, None where the paper has none), ``measured`` (mean test gain in % over the seeds),
        ``lower`` and ``upper`` (95% bootstrap over users, each with the mean of its gains over the
        seeds), ``n_users``, and for each seed ``settings``, ``statuses`` and ``gaps`` of the
        chosen fit and ``zero``.
    """
    folder = Path(results) / "cells"
    best = {}
    for cell in plan.cells():
        fit = _read(folder / cell.name)
        place = (cell.k, cell.method, cell.seed)
        if place not in best or fit["validation"] > best[place]["validation"]:
            best[place] = fit
    rows = [
        _row(plan, k, name, [best[k, name, seed] for seed in plan.seeds])
        for k, name in product(plan.ks, plan.methods)
    ]
    return {
        "table": "table3",
        "dataset": plan.dataset,
        "published_data": _is_published_data(plan),
        "seeds": list(plan.seeds),
        "rows": rows,
    }


def _is_published_data(plan):
    """Whether the ratings are those of the paper; None where that cannot be told."""
    if plan.dataset != "movielens":
        return None
    return movielens.is_movielens_100k(movielens.read_ratings(plan.source))


def _read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        raise InputError(f"{path} is missing or damaged; delete it and run again") from None


def _row(plan, k, name, fits):
    gains = _user_means(fits)
    lower, upper = _bootstrap(gains)
    return {
        "dataset": plan.dataset,
        "k": k,
        "method": name,
        "published": _published(plan.dataset, k, METHODS[name].published),
        "measured": 100 * float(np.mean([np.mean(fit["test_gains"]) for fit in fits])),
        "lower": 100 * lower,
        "upper": 100 * upper,
        "n_users": gains.size,
        "validation": 100 * float(np.mean([fit["validation"] for fit in fits])),
        "settings": [json.loads(fit["setting"]) for fit in fits],
        "statuses": [fit["status"] for fit in fits],
        "gaps": [fit["gap"] for fit in fits],
        "zero": [fit["zero"] for fit in fits],
    }


def _published(dataset, k, name):
    if name is None or k not in KS[dataset]:
        return None
    return PUBLISHED[dataset][name][KS[dataset].index(k)]


def _user_means(fits):
    """Each test user's gain, averaged over the seeds in which it could be tested."""
    users = np.concatenate([fit["test_users"] for fit in fits])
    gains = np.concatenate([fit["test_gains"] for fit in fits])
    _, owner = np.unique(users, return_inverse=True)
    return np.bincount(owner, weights=gains) / np.bincount(owner)


def _bootstrap(values):
    rng = np.random.default_rng(0)
    draws = values[rng.integers(0, values.size, (_N_RESAMPLES, values.size))].mean(axis=1)
    return tuple(float(q) for q in np.quantile(draws, [0.025, 0.975]))
