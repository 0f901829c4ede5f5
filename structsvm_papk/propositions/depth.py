"""Claims about the training depth m, the number of negatives that a surrogate counts.

The claims about degeneracy are decided by looking everywhere: near w = 0 every surrogate is
``1 + D(w)`` with D linear on the cones in which no two items of a user change places, so whether
w = 0 is the minimiser shows on the rays between the cones and inside each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.propositions.lists import (
    EVERY,
    FULL,
    PAIRS,
    TOL,
    Batch,
    below,
    clipped_limit,
    half,
    separated_gaps,
    shapes,
    tie_some,
)
from structsvm_papk.propositions.search import Claim, Drawn, Effort, Statement
from structsvm_papk.surrogates import make_surrogate

BOUNDS = ("clipped_ramp", "ramp", "pauc", "max", "ts")
_NAMES = ("avg", *BOUNDS)
_ORDER = [*pairwise(("clipped_ramp", "ramp", "avg", "pauc", "max")), ("pauc", "avg")]
_TOGETHER = [("ts", "avg"), ("avg", "ts")]
_SETS_A_DRAW = 4  # data sets for each one that claims about certified optima solve
_WIDE_PAIRS = list(PAIRS) + shapes(0, ((2, 4, 2), (3, 6, 2)), n_lists=2)
_SOURCE = "this package (the page on training depth)"


@dataclass(frozen=True)
class Data:
    """Users of a few points each: positives and negatives, shapes (n, d) with d of 1 or 2."""

    users: tuple[tuple[Array, Array], ...]
    k: int

    @property
    def n_features(self) -> int:
        """The d of the shapes."""
        return int(self.users[0][0].shape[1])

    @property
    def depths(self) -> range:
        """All from k to the longest list's negatives; shorter lists count all of theirs."""
        return range(self.k, max(len(q) for _, q in self.users) + 1)

    @property
    def size(self) -> tuple[float, ...]:
        """The order in which counterexamples are preferred."""
        X = np.concatenate([side for user in self.users for side in user])
        return (self.n_features, len(X), float(np.abs(X).sum()))

    @cached_property
    def directions(self) -> Array:
        """One w in every cone of equal orders, and on every ray between two, shape (n, d)."""
        if self.n_features == 1:
            return np.array([[1.0], [-1.0]])
        items = [np.concatenate(user) for user in self.users]
        apart = np.concatenate([(x[:, None] - x).reshape(-1, 2) for x in items])
        apart = apart[apart.any(axis=1)]
        rays = np.unique(np.arctan2(apart[:, 0], -apart[:, 1]))  # normal to a difference
        rays = np.concatenate([rays, [rays[0] + 2 * np.pi]]) if rays.size else np.zeros(2)
        angles = np.concatenate([rays, (rays[1:] + rays[:-1]) / 2])
        w = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.where(np.abs(w) < 1e-15, 0.0, w)

    def gains(self, name: str, m: int, beta_of_depth: bool = False) -> Array:
        """``1 - S_m(w)`` at a short w along each direction; none above 0: zero is the minimiser."""
        surrogate = make_surrogate(name, m) if beta_of_depth else make_surrogate(name, self.k, m)
        largest = max(np.abs(side).max() for user in self.users for side in user)
        w = self.directions * 0.2 / (1 + largest)
        total = np.zeros(len(self.directions))
        for p, q in self.users:
            scores = np.round(w @ np.concatenate([p, q]).T, 14)  # on rays items tie exactly
            indptr = np.arange(len(w) + 1, dtype=np.int64) * scores.shape[1]
            n_pos = np.full(len(w), len(p), dtype=np.int64)
            total += 1 - surrogate.value_and_subgradient(scores.ravel(), indptr, n_pos)[0]
        return total / len(self.users)

    def gain(self, name: str, m: int, beta_of_depth: bool = False) -> float:
        """The largest of the gains."""
        return float(self.gains(name, m, beta_of_depth).max())

    def critical_depth(self, name: str) -> float:
        """Smallest depth at which w = 0 is not the minimiser; infinite where there is none."""
        return next((float(m) for m in self.depths if self.gain(name, m) > TOL), np.inf)

    def tukey_depths(self, closed: bool = True) -> list[Array]:
        """Of each user's positives x: fewest negatives with ``q.w >= x.w`` (open: >) over all w."""
        edge = -1e-12 if closed else 1e-12
        w = self.directions
        return [
            (((q[None] - p[:, None]) @ w.T) > edge).sum(axis=1).min(axis=1) for p, q in self.users
        ]

    def described(self, names: Sequence[str]) -> dict[str, Any]:
        """The users' items (features, or scores where there are two) and critical depths."""
        m = self.depths[-1]
        w = self.directions[int(np.argmax(self.gains(names[0], m)))]
        w = np.ones(1) if self.n_features == 1 else w
        lists = [
            {"positives": np.sort(p @ w)[::-1].tolist(), "negatives": np.sort(q @ w)[::-1].tolist()}
            for p, q in self.users
        ]
        values = {f"critical depth of {name}": self.critical_depth(name) for name in names}
        return {"k": self.k, "lists": lists, "values": values}


def _on_data(violation: Callable[[Data], float], most_users: int = 3) -> Drawn:
    def draw(seed: int, effort: Effort) -> Iterator[Data]:
        rng = np.random.default_rng(seed)
        return (_drawn(rng, most_users) for _ in range(_SETS_A_DRAW * effort.n_data[1]))

    words = "{n} small data sets of whole numbers, every direction of w looked at"
    return Drawn(violation, draw, words, size=lambda data: data.size)


def _drawn(rng: np.random.Generator, most_users: int) -> Data:
    """Users of different activity, some around a positive, on a lattice full of ties."""
    d = int(rng.integers(1, 3))
    k = int(rng.integers(1, 3))
    users = []
    for _ in range(rng.integers(1, most_users + 1)):
        p = rng.integers(-2, 3, (rng.integers(1, 5), d)).astype(float)
        q = rng.integers(-2, 3, (rng.integers(k, 6), d)).astype(float)
        users.append((p, q))
    return Data(tuple(users), k)


def _monotone(beta_of_depth: bool, data: Data) -> float:
    """Violation of: degenerate at a depth, so at every smaller one."""
    worst = -np.inf
    for name in _NAMES:
        gains = [data.gain(name, m, beta_of_depth) for m in data.depths]
        last = max((i for i, gain in enumerate(gains) if gain <= TOL), default=0)
        worst = max(worst, max(gains[:last], default=worst))
    return worst


def _no_later(pairs: Sequence[tuple[str, str]], data: Data) -> float:
    """Violation of: the first of each pair is free of zero wherever the second is."""
    gains = {n: np.array([data.gain(n, m) for m in data.depths]) for p in pairs for n in p}
    return max(float(np.where(gains[a] <= TOL, gains[b], -np.inf).max()) for a, b in pairs)


def _tukey(closed: bool, data: Data) -> float:
    """Violation of: ClippedRamp is degenerate iff every positive has Tukey depth m_u."""
    depths = data.tukey_depths(closed)
    differ = 0
    n_neg = [len(q) for _, q in data.users]
    for m in data.depths:
        deep = all((t >= min(m, n)).all() for t, n in zip(depths, n_neg, strict=True))
        differ += deep != (data.gain("clipped_ramp", m) <= TOL)
    return float(differ)


def _bound(batch: Batch) -> Array:
    """Violation of ``risk_k <= S_kk <= m/k S_km``, at every depth and for every surrogate."""
    k = batch.shape.k
    risk = batch.risk()[:, 0]
    worst = np.full(len(batch), -np.inf)
    for name in BOUNDS:
        at_k = batch.surrogate(name)[:, 0]
        worst = np.maximum(worst, risk - at_k)
        for m in range(k, batch.shape.n_neg + 1):
            worst = np.maximum(worst, at_k - m / k * batch.surrogate(name, m)[:, 0])
    return worst


def _same_order(batch: Batch) -> Array:
    """Violation of: two scorers (the lists of a pair) stand in one order by both risks."""
    first = batch.risk()
    second = batch.risk(batch.shape.n_neg)
    return np.maximum(
        np.minimum(first[:, 0] - first[:, 1], second[:, 1] - second[:, 0]),
        np.minimum(first[:, 1] - first[:, 0], second[:, 0] - second[:, 1]),
    )


def _zero_together(batch: Batch) -> Array:
    """Violation of: the two risks are zero together."""
    first = batch.risk()
    second = batch.risk(batch.shape.n_neg)
    return np.where((first == 0) != (second == 0), 1.0, 0.0).max(axis=1)


_claim = partial(Claim, source=_SOURCE)
CLAIMS = (
    _claim(
        id="depth-bound",
        title="Depth: the bound",
        claim="A surrogate that counts m >= k negatives bounds the risk by m/k times its value, "
        "and at depth k it is never the weaker bound (ClippedRamp, Ramp, pAUC, Max, TS).",
        formula="risk_k <= S_{k,k} <= (m/k) S_{k,m}",
        statement=Statement(_bound, EVERY),
        control=Statement(below("risk", f"clipped_ramp{FULL}"), EVERY),
        control_words="without the factor m/k",
        quantities=("risk", "clipped_ramp", f"clipped_ramp{FULL}"),
    ),
    _claim(
        id="depth-monotone",
        title="Depth: degeneracy is monotone",
        claim="Where w = 0 minimises at some depth, it does at every smaller one: there is one "
        "critical depth.",
        formula="m <= m', 0 in argmin F_{k,m'} => 0 in argmin F_{k,m}",
        hypothesis="beta = min(n_pos, k) whatever the depth",
        statement=_on_data(partial(_monotone, False)),
        control=_on_data(partial(_monotone, True)),
        control_words="beta = min(n_pos, m)",
        quantities=("ramp", "ts"),
    ),
    _claim(
        id="depth-order",
        title="Depth: the order of critical depths",
        claim="ClippedRamp comes free of zero no later than Ramp, Ramp no later than Avg and pAUC, "
        "which come together, and those no later than Max.",
        formula="m*_ClippedRamp <= m*_Ramp <= m*_Avg = m*_pAUC <= m*_Max",
        statement=_on_data(partial(_no_later, _ORDER)),
        control=_on_data(partial(_no_later, [("max", "avg")])),
        control_words="Max no later than Avg",
        quantities=("clipped_ramp", "ramp", "avg", "pauc", "max"),
    ),
    _claim(
        id="depth-ts-avg",
        title="Depth: TS and Avg on one user",
        claim="On one user TS and Avg come free of zero at the same depth.",
        formula="one user => m*_TS = m*_Avg",
        hypothesis="one user",
        statement=_on_data(partial(_no_later, _TOGETHER), most_users=1),
        control=_on_data(partial(_no_later, _TOGETHER)),
        control_words="several users, whom TS weighs by n_pos/beta",
        quantities=("ts", "avg"),
    ),
    _claim(
        id="depth-tukey",
        title="Depth: when ClippedRamp is degenerate",
        claim="w = 0 minimises ClippedRamp if and only if every positive of every user has closed "
        "Tukey depth m_u or more among the user's negatives.",
        formula="0 in argmin ClippedRamp_{k,m} <=> min_w #{j: q_j.w >= x.w} >= m_u for all x",
        hypothesis="closed half-spaces",
        statement=_on_data(partial(_tukey, True)),
        control=_on_data(partial(_tukey, False)),
        control_words="open half-spaces, q_j.w > x.w",
        quantities=("clipped_ramp",),
    ),
    _claim(
        id="depth-limit",
        title="Depth: what ClippedRamp tends to",
        claim="Scaled up, ClippedRamp at depth m is the share of wrong pairs of the beta best "
        "positives and the m best negatives.",
        formula="ClippedRamp_{k,m}(c s) = risk_{k,m}(s) for c >= 1/(smallest gap p - q > 0)",
        hypothesis="c large",
        statement=Statement(clipped_limit(1 + 1e-6, FULL), EVERY, separated_gaps, half(tie_some)),
        control=Statement(
            clipped_limit(1 + 1e-6, FULL, risk_at=""), EVERY, separated_gaps, half(tie_some)
        ),
        control_words="the risk of the k best negatives instead",
        quantities=("risk", f"risk{FULL}", f"clipped_ramp{FULL}"),
    ),
    _claim(
        id="depth-two-scorers",
        title="Depth: the order of two scorers",
        claim="Two scorers stand in the same order by the risk over m negatives and over k.",
        formula="risk_k(s) < risk_k(s') => risk_{k,m}(s) <= risk_{k,m}(s')",
        source="no claim of the paper: what training at another depth loses",
        statement=Statement(_same_order, _WIDE_PAIRS),
        control=Statement(_zero_together, _WIDE_PAIRS),
        control_words="only that zero risk is common to both",
        quantities=("risk", f"risk{FULL}"),
    ),
)
