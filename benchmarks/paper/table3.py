"""Table 3 of the paper: mean pAp@k of held-out items on MovieLens-100K, Citation and Behance.

Every method is fitted for every setting of its grid on the training lists; the setting with the
best mean validation gain is kept, and its gain on the test lists reported. Each fit is a cell, kept
in a file of its own in a results folder, so that an interrupted run goes on where it stopped.

Methods: the paper's by descent (TS as in its Algorithm 2), over the grid that the paper states and
with the few settings of its authors' scripts ("recipe"); certified minimisers of the same
surrogates (TS exactly); CCCP on Ramp and ClippedRamp; and the baselines.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from benchmarks.common.cells import Cells
from benchmarks.paper import movielens
from benchmarks.paper.baselines import scores_of
from benchmarks.paper.table3_methods import METHODS, Grid, available
from structsvm_papk import __version__, metrics
from structsvm_papk.errors import InputError

KS = {
    "movielens": (8, 12, 16, 20, 24),
    "citation": (6, 9, 12, 15, 18),
    "behance": (5, 10, 15, 20, 25),
}
_PUBLISHED_ROWS = {  # gain in %, for each k of movielens, citation and behance
    "Max": "32.6 35.1 37.6 40.5 43.7  17.5 21.4 28.6 34.8 35.1  19.2 24.3 28.4 28.6 31.8",
    "Avg": "35.5 34.4 36.1 42.5 46.5  20.7 25.6 26.7 33.6 33.4  21.6 26.5 29.7 30.8 33.7",
    "TS": "33.5 33.3 35.6 42.2 46.0  15.0 19.3 31.6 31.0 34.3  22.8 26.9 28.6 30.5 33.0",
    "SVM-pAUC": "34.9 33.7 35.7 41.1 46.3  14.5 24.4 29.5 32.3 30.8  19.7 24.4 27.8 30.7 32.8",
    "Greedy-pAp@k": "29.3 31.5 34.1 37.4 40.0  18.5 19.6 29.9 30.1 29.4  20.1 24.5 27.5 28.8 31.4",
    "SGD@k-avg": "30.7 32.3 32.8 35.0 36.3  20.4 23.0 24.2 28.1 30.5  19.6 26.6 31.7 30.6 35.3",
    "Select-pAp@k": "31.0 34.9 36.9 39.8 41.5  20.0 23.7 27.0 30.4 31.9  15.6 18.9 22.0 24.3 25.9",
}
PUBLISHED = {
    (method, dataset, k): float(value)
    for method, values in _PUBLISHED_ROWS.items()
    for (dataset, k), value in zip(
        ((dataset, k) for dataset in KS for k in KS[dataset]), values.split(), strict=True
    )
}
SEEDS = (0, 1, 2)
_N_RESAMPLES = 2000


# ----------------------------------------------------------------- the run and its folder


@dataclass(frozen=True)
class Plan:
    """What a run computes; a results folder belongs to one data set and one grid."""

    source: str
    dataset: str = "movielens"
    ks: tuple = ()
    seeds: tuple = SEEDS
    methods: tuple = ()
    grid: Grid = field(default_factory=Grid)
    preparation: movielens.Preparation = field(default_factory=movielens.Preparation)

    def __post_init__(self):
        if self.dataset not in KS:
            raise InputError(f"unknown data set {self.dataset!r}; choose from {', '.join(KS)}")
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise InputError(f"unknown method {unknown[0]!r}; choose from {'; '.join(METHODS)}")
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
    def key(self):
        """What the cell is kept under."""
        return [self.k, self.seed, self.method, self.setting]


def run(plan, results, jobs=1, callback=None):
    """Compute the cells that the results folder lacks, and make the table.

    `callback` is called with ``(done, total, cell)``: once at the start (cell None), then for each
    new cell; the result does not depend on `jobs`.
    """
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    load_splits(plan.source, plan.dataset, plan.seeds[0], plan.preparation)
    cells = Cells(results, plan.identity())
    wanted = plan.cells()
    missing = [cell for cell in wanted if not cells.path(cell.key).is_file()]
    done = len(wanted) - len(missing)
    if callback is not None:
        callback(done, len(wanted), None)
    tasks = [(plan, group, cells) for group in _groups(missing)]
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1):
        for group in Parallel(jobs, return_as="generator")(map(delayed(_compute), tasks)):
            for cell in group:
                done += 1
                if callback is not None:
                    callback(done, len(wanted), cell)
    return table(plan, cells)


def _digest(source, dataset):
    """Digest of the files that a run reads."""
    folder, digest = Path(source), hashlib.sha256()
    names = ["u.data"] if dataset == "movielens" else sorted(p.name for p in folder.glob("*.tsv"))
    for name in names:
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return digest.hexdigest()


def _groups(cells):
    """Cells that are fitted at a time: whole grids where that takes less time than its parts."""
    for (name, _, _), group in groupby(cells, lambda cell: (cell.method, cell.k, cell.seed)):
        if METHODS[name].side_by_side:
            yield list(group)
        else:
            yield from ([cell] for cell in group)


@lru_cache(maxsize=4)
def load_splits(source, dataset, seed, preparation):
    """The lists of one seed, prepared once in each process."""
    if dataset == "movielens":
        return movielens.prepare(movielens.read_ratings(source), seed, preparation)
    if not Path(source).is_dir():
        raise InputError(f"{source} is no folder")
    return movielens.read_prepared(source)


def _compute(task):
    """Fit the cells of a group and keep what they gave; returns the cells."""
    plan, group, cells = task
    k, seed, method = group[0].k, group[0].seed, METHODS[group[0].method]
    splits = load_splits(plan.source, plan.dataset, seed, plan.preparation)
    settings = [json.loads(cell.setting) for cell in group]
    fits = method.fit(splits.train, k, seed, settings)
    for cell, result in zip(group, fits, strict=True):
        if result.status == "interrupted":  # a part of a fit is no cell
            raise KeyboardInterrupt
        cells.save(cell.key, _content(cell, result, splits))
    return group


def _content(cell, result, splits):
    users, gains = _gains(result, splits.test, cell.k)
    return {
        **asdict(cell),
        "validation": float(_gains(result, splits.val, cell.k)[1].mean()),
        "test_users": users.tolist(),
        "test_gains": gains.tolist(),
        "objective": result.objective,
        "gap": result.gap if np.isfinite(result.lower_bound) else None,
        "status": str(result.status),
        "zero": bool(result.w.size and not result.w.any()),
    }


def _gains(result, data, k):
    """Users with a positive and k negatives, and their gains."""
    name = f"pap@{k}"
    data = data.usable(k)
    scores = scores_of(result, data)
    found = metrics.evaluate(name, scores, data.labels, indptr=data.indptr)
    return data.users, found[name]


# ----------------------------------------------------------------- the table


def table(plan, cells):
    """Choose settings by validation and compare with the published gains, all in %."""
    best = {}
    for cell in plan.cells():
        fit = cells.load(cell.key)
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


def _row(plan, k, name, fits):
    users = [np.array(fit["test_users"]) for fit in fits]
    gains = [100 * np.array(fit["test_gains"]) for fit in fits]
    by_seed = [float(part.mean()) for part in gains]
    lower, upper = _user_bootstrap(users, gains)
    return {
        "dataset": plan.dataset,
        "k": k,
        "method": name,
        "published": PUBLISHED.get((METHODS[name].published, plan.dataset, k)),
        "measured": float(np.mean(by_seed)),
        "by_seed": by_seed,
        "lower": lower,
        "upper": upper,
        "n_users": np.unique(np.concatenate(users)).size,
        "validation": 100 * float(np.mean([fit["validation"] for fit in fits])),
        "settings": [json.loads(fit["setting"]) for fit in fits],
        "statuses": [fit["status"] for fit in fits],
        "gaps": [fit["gap"] for fit in fits],
        "zero": [fit["zero"] for fit in fits],
    }


def _user_bootstrap(users, gains):
    """95% interval of ``mean over seeds of mean over users``, drawing users with all their gains.

    `users` and `gains` hold one array a seed; not every user could be tested in every seed.
    """
    everyone, owner = np.unique(np.concatenate(users), return_inverse=True)
    seed = np.repeat(np.arange(len(gains)), [part.size for part in gains])
    table, tested = np.zeros((2, everyone.size, len(gains)))
    table[owner, seed], tested[owner, seed] = np.concatenate(gains), 1.0
    share = np.full(everyone.size, 1 / everyone.size)
    copies = np.random.default_rng(0).multinomial(everyone.size, share, _N_RESAMPLES)
    with np.errstate(invalid="ignore"):  # 0/0: a draw may leave out all users of a seed
        means = np.nanmean((copies @ table) / (copies @ tested), axis=1)
    return tuple(float(q) for q in np.quantile(means, [0.025, 0.975]))
