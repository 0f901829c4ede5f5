"""The risk of known laws, which the study of coverage compares with."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.studies.population import (
    DiscreteLaw,
    Mixture,
    _quadrature,
    linear_normal_risk,
    population_risk,
)

pytestmark = pytest.mark.study
POS, NEG = stats.norm(1, 1.5), stats.norm(0, 1)
SHARES = [(1, 1), (0.2, 0.05), (1, 0.05), (0.5, 0.3), (0.01, 0.01)]


def on_grid(pos, neg, a, b, n=2000):
    """R_{a,b} by the midpoint rule over both quantile functions."""
    u = (np.arange(n) + 0.5) / n
    return (pos.isf(a * u)[:, None] <= neg.isf(b * u)).mean()


@pytest.mark.parametrize(("a", "b"), SHARES)
def test_normal_closed_form_against_quadrature_and_grid(a, b):
    closed = population_risk(POS, NEG, a, b)
    assert closed == pytest.approx(_quadrature(POS, NEG, a, b), abs=1e-7)
    assert closed == pytest.approx(on_grid(POS, NEG, a, b), abs=2e-3)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.33, 0.17), (0.6, 1)])
def test_discrete_laws_against_the_definition(a, b):
    weights = [0.1, 0.4, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1]
    found = population_risk(*(DiscreteLaw.of(np.arange(4.0), each) for each in weights), a, b)
    laws = [stats.rv_discrete(values=(range(4), each)) for each in weights]
    assert found == pytest.approx(on_grid(*laws, a, b, 400), abs=0.01)
    tied = DiscreteLaw.of([2.0])
    assert population_risk(tied, tied, a, b) == pytest.approx(1.0)  # all of it is wrong


def test_mixtures_against_simulation():
    pos, neg = Mixture(stats.norm(1, 1), 0.5, 0.2), DiscreteLaw.of([0, 1, 2], [0.7, 0.2, 0.1])
    rng = np.random.default_rng(1)
    values = []
    for _ in range(20):
        p, q = (np.sort(law.rvs(3000, random_state=rng))[::-1] for law in (pos, neg))
        beaten = 450 - np.searchsorted(q[449::-1], p[:900], side="left")  # of the best 15%
        values.append(beaten.mean() / 450)
    error = np.std(values, ddof=1) / np.sqrt(20)
    assert abs(np.mean(values) - population_risk(pos, neg, 0.3, 0.15)) < 4 * error + 1e-3


def test_linear_scorers_of_normal_features():
    rng = np.random.default_rng(3)
    w, mean = rng.standard_normal(3), rng.standard_normal(3)
    cov = np.diag([1.0, 2.0, 0.5])
    found = linear_normal_risk(w, mean, cov, 0 * mean, np.eye(3), 0.4, 0.2)
    pos, neg = stats.norm(w @ mean, np.sqrt(w @ cov @ w)), stats.norm(0, np.sqrt(w @ w))
    assert found == pytest.approx(_quadrature(pos, neg, 0.4, 0.2), abs=1e-7)
    assert linear_normal_risk(0 * w, mean, cov, mean, cov, 0.4, 0.2) == 1.0
