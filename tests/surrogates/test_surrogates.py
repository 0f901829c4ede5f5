"""Values against the formulas by enumeration; subgradients against their inequality."""

from fractions import Fraction

import numpy as np
import pytest

from helpers import reference
from helpers.marks import slow
from helpers.problems import one_list
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import SURROGATES, _kernels, make_surrogate


def draw_list(rng, n_max=4):
    """A small list on a lattice full of ties, or with scores of any size."""
    n_pos, n_neg = rng.integers(1, n_max + 1, 2)
    k = rng.integers(1, n_neg + 1)
    if rng.random() < 0.5:
        return k, rng.integers(-2, 3, n_pos) / 2, rng.integers(-2, 3, n_neg) / 2
    spread = 10.0 ** rng.integers(-1, 2)
    return k, spread * rng.normal(size=n_pos), spread * rng.normal(size=n_neg)


@pytest.mark.parametrize("name", SURROGATES)
def test_matches_the_definition(name):
    rng = np.random.default_rng(0)
    for _ in range(60 if name == "ts" else 400):
        k, p, q = draw_list(rng, 3 if name == "ts" else 8)
        assert one_list(name, k, p, q)[0] == pytest.approx(
            reference.SURROGATES[name](list(p), list(q), k), abs=1e-12
        )


NOT_CONVEX = {  # two score vectors whose midpoint lies above the mean of the values
    "ts_alg2": (1, ([1, 0], [0]), ([0, 1], [0])),
    "ramp": (1, ([2, 0], [1]), ([0, 2], [1])),
    "clipped_ramp": (1, ([2, 0], [1]), ([0, 2], [1])),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_midpoint_counterexample_to_convexity(name):
    k, (p1, q1), (p2, q2) = NOT_CONVEX[name]
    middle = one_list(name, k, np.add(p1, p2) / 2, np.add(q1, q2) / 2)[0]
    ends = (one_list(name, k, p1, q1)[0] + one_list(name, k, p2, q2)[0]) / 2
    assert not SURROGATES[name].convex
    assert middle > ends + 0.4


def test_identities_for_users_with_few_positives():
    rng = np.random.default_rng(3)
    for _ in range(100):
        p, q = rng.normal(size=3), rng.normal(size=8)
        ts = one_list("ts", 4, p, q)[0]
        for name in ("ramp", "max", "pauc"):
            assert one_list(name, 4, p, q)[0] == pytest.approx(ts, abs=1e-12)
        assert one_list("avg", 4, p, q)[0] <= ts + 1e-12


@pytest.mark.parametrize("name", SURROGATES)
def test_large_lists_match_sorted_numpy(name):
    """k = n_neg with thousands of rows: the sweep against all pairs."""
    rng = np.random.default_rng(4)
    p, q = rng.normal(size=60), rng.normal(size=900)
    for k in (1, 50, 900):
        value, coef = one_list(name, k, p, q)
        if name != "ts":
            expected = reference.SURROGATES[name](list(p), list(q), k)
            assert value == pytest.approx(expected, rel=1e-12)
        assert coef.sum() == pytest.approx(0, abs=1e-12)


def test_many_users_are_independent():
    rng = np.random.default_rng(5)
    lists = [draw_list(rng, 9) for _ in range(20)]
    lists = [(p, q) for k, p, q in lists if q.size >= 2]
    scores = np.concatenate([np.concatenate(pair) for pair in lists])
    indptr = np.concatenate([[0], np.cumsum([p.size + q.size for p, q in lists])])
    n_pos = np.array([p.size for p, _ in lists])
    for name in SURROGATES:
        values, coef = make_surrogate(name, 2).value_and_subgradient(scores, indptr, n_pos)
        for u, (p, q) in enumerate(lists):
            value, own = one_list(name, 2, p, q)
            assert values[u] == value
            np.testing.assert_array_equal(coef[indptr[u] : indptr[u + 1]], own)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_extreme_scores_stay_finite_and_ordered(scale):
    rng = np.random.default_rng(6)
    p, q = scale * rng.normal(size=40), scale * rng.normal(size=90)
    for name in SURROGATES:
        value, coef = one_list(name, 30, p, q)
        assert np.isfinite(value)
        assert np.isfinite(coef).all()
        expected = reference.SURROGATES[name](list(p), list(q), 30) if name != "ts" else value
        assert value == pytest.approx(expected, rel=1e-9)


def test_unknown_name_lists_the_known_and_suggests():
    with pytest.raises(InputError, match="did you mean 'clipped_ramp'"):
        make_surrogate("clippedramp", 3)
    for k in (0, -3, 2.5, None, [1], np.inf, np.nan, "3"):
        with pytest.raises(InputError, match="at least 1"):
            make_surrogate("avg", k)
    assert make_surrogate("avg", np.float64(3.0)).k == 3


@pytest.mark.parametrize("sweep", [_kernels.hinge_sweep, _kernels.clipped_sweep])
@pytest.mark.parametrize("m", [1, 2, 127, 128, 129, 400])
def test_sweeps_are_the_sums_over_pairs(sweep, m):
    rng = np.random.default_rng(m)
    for draw in (lambda size: rng.integers(-6, 7, size) / 2, lambda size: rng.normal(size=size)):
        p, q = np.sort(draw(m))[::-1].copy(), draw(70)
        clipped = sweep is _kernels.clipped_sweep
        excess = q - p[:, None] + clipped
        sloped = (excess >= 0) & (excess < 1) if clipped else excess >= 0
        rows, columns = np.empty(m, dtype=np.int64), np.empty(70, dtype=np.int64)
        value = sweep(p, q, rows, columns)
        assert value == pytest.approx(np.clip(excess, 0, 1 if clipped else np.inf).sum())
        np.testing.assert_array_equal(rows, sloped.sum(axis=1))
        np.testing.assert_array_equal(columns, sloped.sum(axis=0))


@pytest.mark.parametrize(
    ("size", "lists"),
    [
        *[(size, ((5, 3), (90, 90))) for size in (1e3, 1e9, 1e12, 1e15, 1e17, 1e300)],
        (1e15, ((300, 250),)),  # fractions of so many pairs take seconds
        *[slow(size, ((300, 250), (400, 400))) for size in (1e3, 1e9, 1e12, 1e15, 1e17, 1e300)],
    ],
)
def test_clipped_ramp_keeps_its_digits_beside_outliers(size, lists):
    value, _ = one_list("clipped_ramp", 2, np.array([0.1, -size]), np.array([0.0, -3 * size]))
    assert value == pytest.approx(0.475, abs=1e-15)
    rng = np.random.default_rng(0)
    for n_pos, k in lists:
        p, q = rng.normal(size=n_pos), rng.normal(size=2 * n_pos)
        p[rng.random(n_pos) < 0.2] *= size
        q[rng.random(q.size) < 0.2] *= size
        near = rng.random(q.size) < 0.2  # close to a large one
        q[near] = rng.choice(p, near.sum()) + rng.normal(size=near.sum())
        value, coef = one_list("clipped_ramp", k, p, q)
        assert 0.0 <= value <= 1.0
        # 1 - p + q is rounded once where the scores are large, never summed with others
        exact = reference.clipped_ramp(list(map(Fraction, p)), list(map(Fraction, q)), k)
        assert value == pytest.approx(float(exact), abs=1e-14)
        assert coef.sum() == pytest.approx(0.0, abs=1e-14)


def test_kernels_never_leave_their_arrays():
    rng = np.random.default_rng(0)
    few, many = np.array([np.nan, 1.0, np.nan, 3.0, 2.0, np.nan]), rng.normal(size=90)
    many[rng.random(90) < 0.3] = np.nan
    for values in (few, many):
        for k in range(1, values.size + 1):
            chosen = _kernels.top_k(values, k)
            assert ((chosen >= 0) & (chosen < values.size)).all()


@pytest.mark.parametrize("name", SURROGATES)
def test_what_surrogates_declare_is_what_they_do(name):
    surrogate, ramps = make_surrogate(name, 2), ("ramp", "clipped_ramp")
    assert surrogate.majorised == surrogate.boxed == (name in ramps)
    assert surrogate.clipped == (name == "clipped_ramp")
    lists = np.zeros(5), np.array([0, 5]), np.array([2])
    if name not in ramps:
        with pytest.raises(InputError, match="has no majorant"):
            surrogate.majorant(*lists)
