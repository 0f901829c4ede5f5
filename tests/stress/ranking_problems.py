"""Random training problems of every awkward kind, each from one seed."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.solvers.solver import RISK_SCALE

sys.path.append(str(Path(__file__).resolve().parents[1]))
from helpers import catalogue
from helpers.catalogue import EXACT as CONVEX
from helpers.catalogue import RAMPS
from helpers.exact_risk import ExactRisk, minimise, wide
from helpers.piecewise import PiecewiseLinear

STORAGE = ("dense", "dense", "fortran", "csr", "csr", "csr_unsorted", "csr_duplicates")
# users, rows of a list, features
SHAPES = {
    "small": ((1, 9), (4, 17), (1, 7)),
    "one_list": ((1, 2), (10, 100), (1, 9)),
    "many_users": ((15, 40), (4, 9), (1, 6)),
    "long_lists": ((1, 5), (60, 240), (8, 12)),
    "wide": ((2, 8), (5, 10), (10, 20)),
    "large": ((1, 150), (20, 60), (3, 20)),
    "exact": ((1, 4), (4, 12), (1, 5)),  # small enough for an optimum in fractions
}
_SHAPE_SHARES = (0.48, 0.15, 0.13, 0.14, 0.08, 0.02, 0)
_EPS = np.finfo(float).eps


@dataclass
class Problem:
    """One training problem, and what is exactly true of it.

    `benign` says whether offsets and scales leave double precision enough digits for any method;
    `words` says what it is, in a line.
    """

    X: object
    y: np.ndarray
    user: np.ndarray
    k: int
    depth: int | float | None
    weight: np.ndarray
    surrogate: str
    alpha: float
    exact: ExactRisk = field(repr=False)
    benign: bool
    words: str

    @property
    def convex(self):
        return self.surrogate in CONVEX

    @property
    def _formula(self):
        return catalogue.SURROGATES[self.surrogate].formula

    def risk(self, rows=None, **options):
        """As `EmpiricalRisk`."""
        data = RankingData.from_groups(*(rows or (self.X, self.y, self.user, self.weight)))
        surrogate = make_surrogate(self.surrogate, self.k, self.depth)
        return EmpiricalRisk(surrogate, data, **{"policy": "exclude", **options})

    def twin(self):
        """The same problem without offsets, dense, float64: it has the same objective."""
        return self.risk((*self.exact.centred(), self.weight[self.exact.users]))

    def risks(self, W):
        """R at the columns of W, in extended precision."""
        return self.exact.values(self._formula, W)

    def rounding(self, w, alpha, value):
        """What an objective may be off, and a bound may lie above an objective.

        The bound is capped at the reported objective, which is rounded like any sum.
        """
        size, value = _EPS * self.exact.sizes(w[:, None])[0], max(float(value), RISK_SCALE)
        return 1e-9 * value + 64 * (w.size + 8) * size, 1e-13 * value + 16 * size

    def optimum(self, alpha):
        """The least objective as a fraction; None where that would take long."""
        if not (self.convex and self.words.startswith("exact")):
            return None
        zero = np.zeros(self.exact.n_features)
        return minimise(lambda w: self.exact.cut(self._formula, w), alpha, zero)


@dataclass
class OwnOracle:
    """An oracle that no list stands behind: slopes over twelve orders of magnitude that cancel."""

    oracle: PiecewiseLinear
    alpha: float
    words: str
    surrogate, convex, benign = "own", True, True

    def risk(self):
        return self.oracle

    def risks(self, W):
        return np.array([wide(self.oracle.value(w)) for w in W.T])

    def rounding(self, w, alpha, value):
        size = np.abs(self.oracle.blocks(w)[0]).sum() + alpha / 2 * (w @ w)
        return _EPS * (self.oracle.n_blocks + 4) * size, 0.0

    def optimum(self, alpha):
        return self.oracle.optimum(alpha)


def draw_oracle(rng):
    shape = int(rng.integers(1, 5)), int(rng.integers(2, 30)), int(rng.integers(1, 4))
    slopes = rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, (*shape[:2], 1))
    kind = str(rng.choice(["many magnitudes", "cancelling", "equal"]))
    alpha = 10.0 ** rng.uniform(-10, 3)
    if kind != "many magnitudes":
        half = shape[1] // 2
        slopes[:, half : 2 * half] = -slopes[:, :half]
        small = np.spacing(np.abs(slopes).max(axis=1)) * rng.uniform(0.1, 3.0, (shape[0], shape[2]))
        slopes[:, -1] = small if kind == "cancelling" else small * 10.0 ** rng.uniform(0, 14)
        alpha = float(np.mean(slopes[:, -1] ** 2)) * 10.0 ** rng.uniform(-2, 3)
    heights = rng.uniform(0, 2, shape) / (shape[0] * shape[1])
    return OwnOracle(
        PiecewiseLinear(slopes, heights), alpha, f"own oracle {shape} {kind} {alpha=:.1e}"
    )


def draw(rng, shape=None):
    """A problem; every choice comes from the generator."""
    shape = shape or rng.choice(list(SHAPES), p=_SHAPE_SHARES)
    user, d = _users(rng, shape)
    X = _values(rng, user.size, d)
    y = _relevance(rng, X, user)
    X, offset, scale = _columns(rng, X)
    surrogate = str(rng.choice(RAMPS if rng.random() < 0.15 else CONVEX))
    outliers = bool(rng.random() < (0.4 if surrogate in RAMPS else 0.08))
    if outliers:
        few = rng.random(X.shape) < 0.02
        X = np.where(few, X * 10.0 ** rng.uniform(3, 15, X.shape), X)
    storage = str(rng.choice(STORAGE))
    if shape == "long_lists" and rng.random() < 0.3:
        storage = "csr_duplicates"
    single = bool(rng.random() < 0.2) and np.abs(X).max() < 1e30
    X = X.astype(np.float32) if single else X
    if storage == "csr_duplicates":
        X = _short_numbers(X)
    if storage.startswith("csr") and rng.random() < 0.5 and shape != "long_lists":
        X = X * (rng.random(X.shape) < rng.uniform(0.3, 1.0))
    k = _cut_off(rng, y, user)
    if shape == "long_lists":  # few enough to pay for leaving rows out
        k = min(k, int(rng.integers(1, 4)))
    depth = _depth(rng, y, user, k)
    weight = _weights(rng, y, user)
    alpha = float(10.0 ** rng.uniform(-6, 2 if shape == "exact" else 0))
    limit = 1e2 if single else 1e3
    words = (
        f"{shape} {user[-1] + 1}x{user.size // (user[-1] + 1)}x{d} {storage} {X.dtype} "
        f"offset {offset:.0e} scale {scale[0]:.0e}..{scale[1]:.0e} k={k} depth={depth} "
        f"weights {weight.min():.0e}..{weight.max():.0e} {surrogate} alpha={alpha:.1e}"
        f"{' outliers' if outliers else ''}"
    )
    order = rng.permutation(user.size) if rng.random() < 0.3 else np.arange(user.size)
    X, y, user = X[order], y[order], user[order]
    return Problem(
        _stored(rng, X, storage), y, user, k, depth, weight, surrogate, alpha,
        ExactRisk(X, y, user, k, depth, weight),
        not outliers and offset <= limit and scale[0] >= 1e-4 and scale[1] <= 1e4, words,
    )  # fmt: skip


def _users(rng, shape):
    n_users, n_items, d = (int(rng.integers(*bounds)) for bounds in SHAPES[shape])
    if rng.random() < 0.3:  # lists of uneven lengths
        sizes = rng.integers(max(4, n_items // 2), 2 * n_items, n_users)
    else:
        sizes = np.full(n_users, n_items)
    return np.repeat(np.arange(n_users), sizes), d


def _values(rng, n, d):
    kind = rng.choice(["normal", "integers", "binary", "duplicates", "constant", "rank_one"])
    X = rng.normal(size=(n, d))
    if kind == "integers":
        X = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "binary":
        X = (rng.random((n, d)) < 0.4).astype(float)
    elif kind == "duplicates":
        X = X[rng.integers(0, max(2, n // 3), n)]
    elif kind == "constant":
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, 3.5])
    elif kind == "rank_one":
        X = rng.normal(size=(n, 1)) * rng.normal(size=d)
    return X


def _relevance(rng, X, user):
    """The highest of a noisy score in every list; the first user has both classes."""
    score = X @ rng.normal(size=X.shape[1]) + rng.uniform(0, 1.5) * rng.normal(size=len(X))
    y = np.zeros(len(X), dtype=bool)
    share = rng.uniform(0.1, 0.6)
    for u in np.unique(user):
        rows = np.flatnonzero(user == u)
        n_pos = min(max(1, round(share * rows.size)), rows.size - 1)
        y[rows[np.argsort(-score[rows])[:n_pos]]] = True
    if rng.random() < 0.1 and user[-1] > 0:  # a user that cannot be used
        y[user == user[-1]] = rng.random() < 0.5
    return y


def _cut_off(rng, y, user):
    n_neg = min((~y[user == u]).sum() for u in np.unique(user) if y[user == u].any())
    n_neg = max(int(n_neg), 1 if n_neg else int((~y[user == 0]).sum()))
    return int(rng.integers(1, min(n_neg, 8 if rng.random() < 0.8 else n_neg) + 1))


def _depth(rng, y, user, k):
    """None, a share, or a number up to the most negatives that a user has."""
    kind = rng.choice(["paper", "share", "number"], p=[0.5, 0.3, 0.2])
    if kind == "paper":
        return None
    if kind == "share":
        return float(rng.uniform(0.05, 0.99))
    usable = [u for u in np.unique(user) if y[user == u].any()]
    return int(rng.integers(k, max((~y[user == u]).sum() for u in usable) + 1))


def _weights(rng, y, user):
    """Equal, by positives, or over six orders of magnitude."""
    kind = rng.choice(["equal", "positives", "many"], p=[0.5, 0.25, 0.25])
    if kind == "equal":
        return np.ones(user.max() + 1)
    if kind == "positives":
        return np.maximum(np.bincount(user, y), 1.0)
    return 10.0 ** rng.uniform(-3, 3, user.max() + 1)


def _columns(rng, X):
    """Offsets up to 1e12 times the spread of a column, and scales from 1e-8 to 1e8."""
    mode = rng.choice(["plain", "offset", "scaled", "both"], p=[0.4, 0.3, 0.2, 0.1])
    d = X.shape[1]
    offset, scale = np.zeros(d), np.ones(d)
    some = rng.random(d) < rng.choice([0.3, 1.0])
    if mode in ("offset", "both"):
        offset = np.where(some, 10.0 ** rng.uniform(0, 12), 0.0)
        if rng.random() < 0.3:
            offset = np.where(some, 10.0 ** rng.uniform(0, 12, d), 0.0)
    if mode in ("scaled", "both"):
        scale = np.where(some, 10.0 ** rng.uniform(-8, 8, d), 1.0)
    X = (X + offset * rng.choice([-1.0, 1.0])) * scale
    return X, offset.max(), (scale.min(), scale.max())


def _stored(rng, X, storage):
    if storage == "fortran":
        return np.asfortranarray(X)
    if not storage.startswith("csr"):
        return X
    X = sparse.csr_matrix(X)
    if storage == "csr_duplicates":
        return _with_duplicates(rng, X)
    return _unsorted(rng, X) if storage == "csr_unsorted" else X


def _short_numbers(X):
    """The last eight bits cut off, so that parts of a number add up exactly."""
    bits = X.view(np.uint32 if X.dtype == np.float32 else np.uint64)
    return (bits & ~bits.dtype.type(255)).view(X.dtype)


def _with_duplicates(rng, X):
    """Every entry in several parts that add up exactly, in any order."""
    parts = [[0.5, 0.5], [0.5, 0.25, 0.25], [0.125] * 8, [0.5] + [0.0625] * 8, [2.0, -1.0]]
    parts = np.array(parts[rng.integers(len(parts))])
    data = (X.data[:, None] * parts.astype(X.dtype)).ravel()
    indices = np.repeat(X.indices, parts.size)
    made = sparse.csr_matrix((data, indices, X.indptr * parts.size), shape=X.shape)
    return _unsorted(rng, made) if rng.random() < 0.5 else made


def _unsorted(rng, X):
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((rng.random(row.size), row))
    return sparse.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
