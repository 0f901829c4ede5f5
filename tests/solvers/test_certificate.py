"""Bounds of risks of one variable that are exact in every entry, against exact optima."""

from fractions import Fraction

import numpy as np

from helpers.pieces import Pieces
from structsvm_papk import CuttingPlane
from structsvm_papk.solvers.cut_model import CutModel

ULP = 2.0**-52
SLOPES_THAT_CANCEL = (
    ((1.0, 1e16, -1e16), 1.0),
    ((0.49 * ULP * 2.0**40, 2.0**40, -(2.0**40)), 1e-8),
    ((0.49 * ULP * 2.0**36, 2.0**36, -(2.0**36)), 1e-10),
    ((1e-9, 1e8, -1e8), 1e-12),
)


def cancelling(rng, n_blocks, n_pieces):
    """Slopes over 12 orders of magnitude that cancel, but for what is near the last digit."""
    slopes = 10.0 ** rng.uniform(-6, 6) * (1 + rng.random((n_blocks, n_pieces)))
    slopes[1::2] = -slopes[: n_blocks - 1 : 2]
    slopes[-1] = np.spacing(np.abs(slopes).max()) * rng.uniform(0.1, 0.9, n_pieces)
    return slopes, (n_blocks * slopes[-1].mean()) ** 2 * 10.0 ** rng.uniform(-2, 1)


def test_bounds_are_below_exact_optima_for_slopes_that_cancel():
    rng = np.random.default_rng(0)
    cases = [(np.reshape(slopes, (3, 1)), alpha) for slopes, alpha in SLOPES_THAT_CANCEL]
    cases += [cancelling(rng, n, int(rng.integers(1, 4))) for n in 8 * [3, 21]]
    for i, (slopes, alpha) in enumerate(cases):
        heights = rng.uniform(0, 1, (1, *slopes.shape)) / len(slopes)
        oracle = Pieces(slopes[None], heights)
        result = CuttingPlane(alpha, 1e-6, max_iter=10).solve(oracle)
        assert Fraction(result.lower_bound) <= oracle.optimum(alpha)
        assert i >= len(SLOPES_THAT_CANCEL) or not result.converged  # the digits do not suffice


def test_slopes_of_many_magnitudes_are_certified():
    certified = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        slopes = rng.normal(size=(9, 3)) * 10.0 ** rng.uniform(-6, 6, (9, 1))
        oracle = Pieces(slopes[None], rng.uniform(0, 1, (1, 9, 3)) / 9)
        alpha = 10.0 ** rng.uniform(-8, 2)
        result = CuttingPlane(alpha, 1e-6, max_iter=60).solve(oracle)
        optimum = oracle.optimum(alpha)
        assert Fraction(result.lower_bound) <= optimum
        if result.converged:
            certified += 1
            assert result.objective - float(optimum) <= 2e-6 * max(result.objective, 1e-3)
    assert certified > 10


def test_weights_that_have_drifted_are_scaled_back():
    rng = np.random.default_rng(0)
    model = CutModel(2, 2, 9, "blocks")
    model.add(rng.normal(size=(36, 2)), rng.normal(size=36), np.repeat(np.arange(9), 4))
    model._theta[:36] = np.tile([1.0, 2e-12, 0.0, 0.0], 9)  # as many small steps leave them
    model.minimise(np.zeros(2), np.ones(2), 1e9)
    sums = np.add.reduceat(model._theta[model.order], model.starts)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-15)


def test_the_slope_in_s_may_cancel_too():
    model = CutModel(1, 2, 3, "blocks")
    model.add(np.array([[0.0, 1.0], [0.0, 1e16], [0.0, -1e16]]), np.full(3, 0.2), np.arange(3))
    # with slopes 1 + 1e16 - 1e16 in s the risk rises by s >= 0: no more than the intercepts hold
    assert model.lower_bound(1.0, 1.0) <= 0.6
    model = CutModel(1, 2, 3, "blocks")
    model.add(np.array([[0.0, -1.0], [0.0, 1e16], [0.0, -1e16]]), np.full(3, 0.2), np.arange(3))
    assert model.lower_bound(1.0, 1.0) <= -0.4  # 0.6 - s for some s between 0 and 1
