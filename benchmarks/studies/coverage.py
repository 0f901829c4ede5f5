"""Do the intervals for the population risk cover it as often as they say?

Scores of positives and negatives are drawn from known laws, atomic ones included, many times; each
draw gives an interval for ``R_{a,b}``, which is known. Reported: the share of draws covered, the
mean half-width, the share of vacuous intervals, and the half-width divided by the observed
quantile of ``|R - R^|``: 1 would be an interval that knows the truth.
"""

from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from scipy import stats

from benchmarks.common.cells import Cells
from benchmarks.studies.population import (
    DiscreteLaw,
    Mixture,
    linear_normal_risk,
    population_risk,
)
from structsvm_papk import bounds
from structsvm_papk.errors import InputError

LAWS = {
    "normal": (stats.norm(1, 1), stats.norm(0, 1)),
    "close": (stats.norm(0.2, 1), stats.norm(0, 1)),
    "heavy tails": (stats.t(1.5, loc=1), stats.t(1.5)),
    "atoms": (
        DiscreteLaw.of([0, 1, 2, 3, 4], [0.2, 0.3, 0.25, 0.15, 0.1]),
        DiscreteLaw.of([0, 1, 2, 3, 4], [0.5, 0.3, 0.15, 0.04, 0.01]),
    ),
    "half atom": (Mixture(stats.norm(1, 1), 1.5, 0.3), Mixture(stats.norm(0, 1), 1.5, 0.1)),
    "all tied": (DiscreteLaw.of([0.0]), DiscreteLaw.of([0.0])),
}
MANY_USERS = ("kl", "hoeffding", "bernstein", "bootstrap")
FORMS = ("auto", "c2", "k3")
SIZES = (200, 2000, 20000)
POS_PER_NEG = 0.25
TOP_SHARE = 0.05


@dataclass(frozen=True)
class Coverage:
    """How often one method's interval contains the risk in one setting.

    `ratio` is the mean half-width over the observed `nominal` quantile of ``|R - R^|``, nan when
    that is 0; `vacuous` the share of draws with the interval [0, 1].
    """

    method: str
    law: str
    n_pos: int
    n_neg: int
    k: int
    n_draws: int
    risk: float
    nominal: float
    covered: float
    half_width: float
    ratio: float
    vacuous: float
    guaranteed: bool

    @property
    def violated(self):
        """Guaranteed, yet failing more often than chance allows at its level (p < 0.001)."""
        failures = round((1 - self.covered) * self.n_draws)
        chance = stats.binom.sf(failures - 1, self.n_draws, 1 - self.nominal)
        return bool(self.guaranteed and chance < 1e-3)

    def as_dict(self):
        """Return the fields as plain Python values."""
        return asdict(self) | {"violated": self.violated}


def coverage(
    n_draws=1000,
    sizes=SIZES,
    laws=None,
    rho=0.05,
    n_directions=200,
    seed=0,
    progress=None,
    cells=None,
):
    """Fixed-scorer methods for each law and size, means over users, then the uniform bound.

    ``n_pos = n_neg/4``, ``k = n_neg/20``, and k = 10 for the largest size; the uniform bound is
    checked over `n_directions` random linear scorers at once.
    """
    if n_draws < 1 or n_directions < 1:
        raise InputError("n_draws and n_directions must be at least 1")
    names = list(LAWS if laws is None else laws)
    unknown = [name for name in names if name not in LAWS]
    if unknown:
        raise InputError(f"unknown law {unknown[0]!r}; there are {', '.join(LAWS)}")
    rows, cells = [], cells or Cells()
    settings = [(n, max(1, round(TOP_SHARE * n))) for n in sizes] + [(max(sizes), 10)]
    settings = list(dict.fromkeys(settings))
    parts = [
        *(partial(_fixed_scorer, name, n_neg, k, n_draws, rho)
          for name in names for n_neg, k in settings),
        *(partial(_many_users, name, n_draws, rho) for name in names),
        *(partial(_uniform, n_neg, max(50, n_draws // 10), n_directions, rho) for n_neg in sizes),
    ]  # fmt: skip
    streams = np.random.SeedSequence(seed).spawn(len(parts))
    for place, (part, stream) in enumerate(zip(parts, streams, strict=True)):
        key = ["coverage", part.func.__name__, *part.args, seed, place]
        for row in cells.get(key, partial(_rows, part, stream)):
            rows.append(Coverage(**row))
            if progress is not None:
                progress(rows[-1])
    return rows


def _rows(part, stream):
    return [asdict(row) for row in part(np.random.default_rng(stream))]


def _fixed_scorer(name, n_neg, k, n_draws, rho, rng):
    """Intervals from a held-out list."""
    pos, neg = LAWS[name]
    n_pos = max(1, round(POS_PER_NEG * n_neg))
    a, b = min(n_pos, k) / n_pos, k / n_neg
    risk = population_risk(pos, neg, a, b)
    labels = np.repeat([1, 0], [n_pos, n_neg])
    ends = np.empty((n_draws, 2))
    errors = np.empty(n_draws)
    for i in range(n_draws):
        drawn = (pos.rvs(n_pos, random_state=rng), neg.rvs(n_neg, random_state=rng))
        scores = np.concatenate(drawn)
        found = bounds.held_out(scores, labels, k, rho)
        ends[i] = found.lower, found.upper
        errors[i] = abs(found.value - risk)
    sizes = {"law": name, "n_pos": n_pos, "n_neg": n_neg, "k": k}
    return [_row("shift", ends, risk, errors, rho, True, sizes)]


def _row(method, ends, risk, errors, rho, guaranteed, sizes):
    """Summarise intervals; rounding of the ends is not counted as a miss."""
    inside = (ends[:, 0] <= risk + 1e-12) & (risk - 1e-12 <= ends[:, 1])
    half = (ends[:, 1] - ends[:, 0]) / 2
    quantile = np.quantile(errors, 1 - rho)
    return Coverage(
        method=method,
        n_draws=len(ends),
        risk=float(risk),
        nominal=1 - rho,
        covered=float(inside.mean()),
        half_width=float(half.mean()),
        ratio=float(half.mean() / quantile) if quantile > 1e-12 else float("nan"),
        vacuous=float(((ends[:, 0] <= 0) & (ends[:, 1] >= 1)).mean()),
        guaranteed=guaranteed,
        **sizes,
    )


def _many_users(name, n_draws, rho, rng, n_users=200, n_pos=5, n_neg=20, k=4):
    """Mean over users, each with a short list from the same laws; the truth by a long run."""
    pos, neg = LAWS[name]
    truth = _list_risks(pos, neg, 100_000, n_pos, n_neg, k, rng).mean()
    ends = {method: np.empty((n_draws, 2)) for method in MANY_USERS}
    errors = np.empty(n_draws)
    for i in range(n_draws):
        values = _list_risks(pos, neg, n_users, n_pos, n_neg, k, rng)
        for method in MANY_USERS:
            found = bounds.many_users(values, rho, method, n_resamples=200, seed=i)
            ends[method][i] = found.lower, found.upper
        errors[i] = abs(values.mean() - truth)
    sizes = {"law": f"{n_users} users, {name}", "n_pos": n_pos, "n_neg": n_neg, "k": k}
    return [_row(m, ends[m], truth, errors, rho, m != "bootstrap", sizes) for m in MANY_USERS]


def _list_risks(pos, neg, n_users, n_pos, n_neg, k, rng):
    p = np.asarray(pos.rvs((n_users, n_pos), random_state=rng))
    q = np.asarray(neg.rvs((n_users, n_neg), random_state=rng))
    p = -np.sort(-p, axis=1)[:, : min(n_pos, k)]
    q = -np.sort(-q, axis=1)[:, :k]
    return (p[:, :, None] <= q[:, None, :]).mean(axis=(1, 2))


def _uniform(n_neg, n_draws, n_directions, rho, rng, n_features=3):
    """Worst deviation over many directions at once, against the uniform bounds."""
    n_pos, k = max(1, round(POS_PER_NEG * n_neg)), max(1, round(TOP_SHARE * n_neg))
    a, b = min(n_pos, k) / n_pos, k / n_neg
    shift = np.full(n_features, 0.6)
    eye = np.eye(n_features)
    errors = np.empty(n_draws)
    for i in range(n_draws):
        x_pos = rng.standard_normal((n_pos, n_features)) + shift
        x_neg = rng.standard_normal((n_neg, n_features))
        w = rng.standard_normal((n_directions, n_features))
        empirical = [_top_risk(x_pos @ v, x_neg @ v, k) for v in w]
        true = [linear_normal_risk(v, shift, eye, 0 * shift, eye, a, b) for v in w]
        errors[i] = np.abs(np.subtract(empirical, true)).max()
    rows = []
    for form in FORMS:
        found = bounds.uniform(n_pos, n_neg, k, n_features=n_features, rho=rho, form=form)
        ends = np.repeat([[-found.raw, found.raw]], n_draws, axis=0)
        sizes = {"law": f"{n_directions} directions", "n_pos": n_pos, "n_neg": n_neg, "k": k}
        row = _row(f"uniform {form}", ends, 0.0, errors, rho, found.guaranteed, sizes)
        covered, vacuous = float((errors <= found.raw).mean()), float(found.vacuous)
        rows.append(replace(row, risk=float("nan"), covered=covered, vacuous=vacuous))
    return rows


def _top_risk(pos_scores, neg_scores, k):
    """Definition 1 by sorting."""
    p = np.sort(pos_scores)[::-1][: min(len(pos_scores), k)]
    q = np.sort(neg_scores)[::-1][:k]
    return 1 - np.searchsorted(q[::-1], p, side="left").mean() / k
