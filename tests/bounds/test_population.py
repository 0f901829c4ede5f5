import numpy as np
import pytest
from scipy import stats

from helpers.reference import risk
from helpers.reference_theory import population_risk_on_grid, upper_quantile
from structsvm_papk.bounds.population import (
    DiscreteLaw,
    Mixture,
    _quadrature,
    empirical_risk,
    linear_normal_risk,
    monte_carlo_risk,
    population_risk,
)
from structsvm_papk.errors import InputError

POS, NEG = stats.norm(1, 1.5), stats.norm(0, 1)
SHARES = [(1, 1), (0.2, 0.05), (1, 0.05), (0.5, 0.3), (0.01, 0.01)]


def test_plug_in_is_the_empirical_risk_ties_included():
    rng = np.random.default_rng(0)
    for _ in range(400):
        n_pos, n_neg = rng.integers(1, 9, 2)
        k = int(rng.integers(1, n_neg + 1))
        p, q = rng.integers(0, 4, n_pos), rng.integers(0, 4, n_neg)
        found = empirical_risk(p, q, min(n_pos, k) / n_pos, k / n_neg)
        assert found == pytest.approx(risk(p, q, k), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), SHARES)
def test_normal_closed_form_against_quadrature_and_grid(a, b):
    closed = population_risk(POS, NEG, a, b)
    assert closed == pytest.approx(_quadrature(POS, NEG, a, b), abs=1e-7)
    assert closed == pytest.approx(population_risk_on_grid(POS.isf, NEG.isf, a, b), abs=2e-3)


def test_full_shares_give_the_area_over_the_roc_curve():
    expected = stats.norm.sf(0, -1, np.hypot(1.5, 1))
    assert population_risk(POS, NEG, 1, 1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.33, 0.17), (0.6, 1)])
def test_discrete_laws_against_the_definition(a, b):
    v, wp, wn = [0.0, 1, 2, 3], [0.1, 0.4, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1]
    found = population_risk(DiscreteLaw.of(v, wp), DiscreteLaw.of(v, wn), a, b)
    on_grid = population_risk_on_grid(
        lambda u: upper_quantile(v, wp, u), lambda u: upper_quantile(v, wn, u), a, b, 400
    )
    assert found == pytest.approx(on_grid, abs=0.01)


@pytest.mark.parametrize("laws", ["mixture", "mixed kinds", "normal"])
def test_monte_carlo_agrees(laws):
    mixed = Mixture(stats.norm(1, 1), 0.5, 0.2), Mixture(stats.norm(0, 1), 0.5, 0.3)
    pos, neg = {
        "mixture": mixed,
        "mixed kinds": (mixed[0], DiscreteLaw.of([0, 1, 2], [0.7, 0.2, 0.1])),
        "normal": (POS, NEG),
    }[laws]
    exact = population_risk(pos, neg, 0.3, 0.15)
    value, error = monte_carlo_risk(pos, neg, 0.3, 0.15, n_draws=60_000, seed=1)
    assert abs(value - exact) < 4 * error + 1e-3


def test_linear_scorers_of_normal_features():
    rng = np.random.default_rng(3)
    w, mean = rng.standard_normal(3), rng.standard_normal(3)
    cov = np.diag([1.0, 2.0, 0.5])
    found = linear_normal_risk(w, mean, cov, 0 * mean, np.eye(3), 0.4, 0.2)
    pos = stats.norm(w @ mean, np.sqrt(w @ cov @ w))
    assert found == pytest.approx(
        _quadrature(pos, stats.norm(0, np.sqrt(w @ w)), 0.4, 0.2), abs=1e-7
    )
    assert linear_normal_risk(0 * w, mean, cov, mean, cov, 0.4, 0.2) == 1.0


def test_everything_tied_is_all_wrong():
    tied = DiscreteLaw.of([2.0])
    assert population_risk(tied, tied, 0.3, 0.1) == pytest.approx(1.0)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1.1, 0.5), (0.5, -1)])
def test_bad_shares(a, b):
    with pytest.raises(InputError, match="shares"):
        population_risk(POS, NEG, a, b)


def test_scores_without_spread_have_no_normal_law():
    with pytest.raises(InputError, match="above 0"):
        linear_normal_risk([1.0, 0.0], [1, 0], np.zeros((2, 2)), [0, 0], np.eye(2), 0.5, 0.5)


@pytest.mark.parametrize(
    "how",
    [
        ([], None),
        ([1, np.nan], None),
        ([1, 2], [0.5, 0.6]),
        ([1, 2], [0.5, np.nan]),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), None),
    ],
)
def test_bad_laws(how):
    with pytest.raises(InputError):
        DiscreteLaw.of(*how)
