"""The population version of the pAp@k risk.

For laws P and N of positive and negative scores, shares ``a, b`` in (0, 1] and upper quantiles
``Q(u) = inf{t: Pr(s > t) <= u}``,

    R_{a,b}(P, N) = 1/(ab) int_0^a int_0^b 1[Q_P(u) <= Q_N(v)] dv du
                  = 1/(ab) int_0^a min(b, Pr(N >= Q_P(u))) du

The second line holds because ``{v: Q_N(v) >= x}`` is an interval from 0 of length ``Pr(N >= x)``.
At the empirical laws, with ``a = beta/n_pos`` and ``b = k/n_neg``, R is the empirical pAp@k risk,
ties included.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import scipy


@dataclass(frozen=True)
class DiscreteLaw:
    """A law on finitely many values: ``Pr(s = values[i]) = weights[i]``."""

    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, values, weights=None):
        """Build from values in any order, with repeats; equal weights when none are given."""
        weights = np.full(len(values), 1.0 / len(values)) if weights is None else weights
        distinct, where = np.unique(np.asarray(values, dtype=float), return_inverse=True)
        return cls(distinct[::-1], np.bincount(where, weights=weights)[::-1])

    def rvs(self, size, random_state=None):
        """Draw from the law."""
        rng = np.random.default_rng(random_state)
        return rng.choice(self.values, size=size, p=self.weights)


@dataclass(frozen=True)
class Mixture:
    """With probability `share` the value `atom`, else a draw from the continuous law `rest`."""

    rest: object
    atom: float
    share: float

    def sf(self, x):
        """``Pr(s > x)``."""
        return (1 - self.share) * self.rest.sf(x) + self.share * (np.asarray(x) < self.atom)

    def at_least(self, x):
        """``Pr(s >= x)``."""
        return (1 - self.share) * self.rest.sf(x) + self.share * (np.asarray(x) <= self.atom)

    def isf(self, u):
        """Return the upper quantile, ``inf{t: Pr(s > t) <= u}``."""
        u = np.asarray(u, dtype=float)
        above = (1 - self.share) * self.rest.sf(self.atom)
        weight = max(1 - self.share, 1e-300)
        high = self.rest.isf(np.clip(u / weight, 0, 1))
        low = self.rest.isf(np.clip((u - self.share) / weight, 0, 1))
        return np.where(u < above, high, np.where(u < above + self.share, self.atom, low))

    def rvs(self, size, random_state=None):
        """Draw from the law."""
        rng = np.random.default_rng(random_state)
        draws = self.rest.rvs(size=size, random_state=rng)
        return np.where(rng.random(size) < self.share, self.atom, draws)


def population_risk(pos, neg, a, b):
    """Population risk ``R_{a,b}(P, N)``.

    `a`, `b`: shares in (0, 1] of the positives and negatives that count.

    Exact up to rounding when both laws are discrete or both are `scipy.stats.norm`; else by
    adaptive quadrature in u with the kink and the atoms as break points (about 1e-9).
    """
    if _is_normal(pos) and _is_normal(neg):
        (m1, s1), (m0, s0) = (law.stats(moments="mv") for law in (pos, neg))
        return normal_risk(float(m1), float(np.sqrt(s1)), float(m0), float(np.sqrt(s0)), a, b)
    if isinstance(pos, DiscreteLaw):
        edges = np.minimum(np.concatenate([[0.0], np.cumsum(pos.weights)]), 1.0)
        length = np.diff(np.minimum(edges, a))
        return float(length @ np.minimum(b, at_least(neg, pos.values)) / (a * b))
    return _quadrature(pos, neg, a, b)


def at_least(law, x):
    """``Pr(s >= x)`` for any of the supported laws."""
    x = np.asarray(x, dtype=float)
    if isinstance(law, DiscreteLaw):
        total = np.concatenate([[0.0], np.cumsum(law.weights)])
        return total[np.searchsorted(-law.values, -x, side="right")]
    return law.at_least(x) if isinstance(law, Mixture) else law.sf(x)


def normal_risk(mean_pos, std_pos, mean_neg, std_neg, a, b):
    """``R_{a,b}`` for normal scores, by one bivariate normal probability.

    With ``x_a = Q_P(a)``, ``y_b = Q_N(b)``, ``c = max(x_a, y_b)``:

        a b R = b Pr(x_a <= p <= y_b) + Pr(p >= c, q >= p)
    """
    pos, neg = scipy.stats.norm(mean_pos, std_pos), scipy.stats.norm(mean_neg, std_neg)
    low, high = pos.isf(a), neg.isf(b)
    below = b * max(0.0, pos.cdf(high) - pos.cdf(low)) if high > low else 0.0
    return float(np.clip((below + _both_above(pos, neg, max(low, high))) / (a * b), 0.0, 1.0))


def _both_above(pos, neg, c):
    """``Pr(p >= c, q - p >= 0)`` for independent normals p and q."""
    m1, s1, m0, s0 = pos.mean(), pos.std(), neg.mean(), neg.std()
    spread = np.hypot(s1, s0)
    corr = -s1 / spread
    point = [(m1 - c) / s1, (m0 - m1) / spread]
    return scipy.stats.multivariate_normal.cdf(point, cov=[[1.0, corr], [corr, 1.0]])


def linear_normal_risk(w, mean_pos, cov_pos, mean_neg, cov_neg, a, b):
    """``R_{a,b}`` of the scores ``w.x`` for normal features; means and covariances by class."""
    w = np.asarray(w, dtype=float)
    if not w.any():
        return 1.0  # all scores tie, and ties count as errors
    spread = [np.sqrt(w @ np.asarray(cov) @ w) for cov in (cov_pos, cov_neg)]
    return normal_risk(
        w @ np.asarray(mean_pos), spread[0], w @ np.asarray(mean_neg), spread[1], a, b
    )


def _quadrature(pos, neg, a, b):
    """Integrate min(b, Pr(N >= Q_P(u))) over 0 < u < a."""

    def height(u):
        return min(b, float(at_least(neg, float(pos.isf(u)))))

    cuts = {0.0, a}
    for value in _atoms(pos) + _atoms(neg):
        cuts |= {float(pos.sf(value)), float(at_least(pos, value))}
    if height(a) >= b > height(a * 1e-15):
        cuts.add(
            scipy.optimize.bisect(lambda u: height(u) - b * (1 - 1e-12), a * 1e-15, a, xtol=1e-15)
        )
    places = sorted(c for c in cuts if 0 <= c <= a)
    parts = [
        scipy.integrate.quad(height, low, high, epsabs=1e-11, epsrel=1e-10, limit=200)[0]
        for low, high in itertools.pairwise(places)
        if high > low
    ]
    return float(np.clip(sum(parts) / (a * b), 0.0, 1.0))


def _atoms(law):
    if isinstance(law, DiscreteLaw):
        return list(law.values)
    return [law.atom] if isinstance(law, Mixture) else []


def _is_normal(law):
    return getattr(getattr(law, "dist", None), "name", None) == "norm"
