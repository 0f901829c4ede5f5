"""Tables with text, gaps and numbers: the optimum of columns made by hand, and what terms add."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

from helpers.marks import slow
from helpers.problems import full_problem
from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.data.columns.knots import knots_of
from structsvm_papk.data.columns.pieces import PiecewiseColumns
from structsvm_papk.errors import InputError
from structsvm_papk.rankers.settings import STIFFNESS

N_LISTS, N_ROWS = 12, 14
GROUPS = np.random.default_rng(9).permutation(np.repeat(np.arange(N_LISTS), N_ROWS))
ALPHA = 0.05
HOUSES = np.array(["cabin", "flat", "house", "tent"])


def hotels(seed=0, gaps=True):
    """A price with gaps, stars, a kind of house with gaps, whether there is a pool."""
    rng = np.random.default_rng(seed)
    n = GROUPS.size
    price = np.exp(rng.normal(size=n))
    stars = rng.integers(1, 6, n).astype(float)
    kind = rng.integers(0, 4, n)
    pool = rng.random(n) < 0.3
    score = -np.abs(np.log(price)) + 0.3 * stars + np.array([0.0, 1.0, -1.0, 0.5])[kind] + pool
    score = score + 0.5 * rng.normal(size=n)
    y = score > np.quantile(score, 0.7)
    frame = pd.DataFrame({"price": price, "stars": stars, "kind": HOUSES[kind], "pool": pool})
    if gaps:
        frame.loc[rng.random(n) < 0.2, "price"] = np.nan
        frame.loc[rng.random(n) < 0.1, "kind"] = None
    return frame, y


def ranker(curves=None, surrogate="avg", **settings):
    settings = {"alpha": ALPHA, "curves": curves, "tol": 1e-9, **settings}
    return PAPKRanker(2, surrogate, **settings)


def by_hand(frame, curves=None, signs=None):
    """The columns written out: numbers or their curves, what is missing, one-hot levels."""
    numbers = frame[["price", "stars"]].to_numpy()
    missing = np.isnan(numbers)
    filled = np.where(missing, np.nanmedian(numbers, axis=0), numbers)
    gaps = missing[:, missing.any(axis=0)]
    stiff = np.ones(2)
    if curves is not None:
        lists = RankingData.from_groups(
            numbers, np.arange(len(frame)) % 2, GROUPS, missing="lowest"
        )
        rising = np.zeros(2, dtype=bool) if signs is None else signs != 0
        knots = knots_of(lists.value_counts(), curves, rising)
        filled = PiecewiseColumns(filled, knots).toarray()
        stiff = knots.stiffness(STIFFNESS)
    levels = [frame["kind"] == house for house in HOUSES]
    if frame["kind"].isna().any():
        levels.append(frame["kind"].isna())
    levels.append(frame["pool"])  # of two levels the second has a weight
    written = np.column_stack([filled, gaps, *levels]).astype(float)
    return written, np.concatenate([stiff, np.ones(gaps.shape[1] + len(levels))])


def risk_by_hand(fitted, frame, y, curves=None):
    """In the units of the penalty: indicators by half, all others by their deviation."""
    written, stiff = by_hand(frame, curves)
    lists = RankingData.from_groups(written, y, GROUPS).standardized()
    scale = lists.units.scale * np.sqrt(stiff)
    divided = RankingData.from_groups(written / scale, y, GROUPS)
    return EmpiricalRisk(fitted.make_surrogate(), divided, "cap")


@pytest.mark.parametrize(
    ("surrogate", "curves", "gaps"),
    [
        ("avg", None, True), ("avg", 4, False), ("ts", 4, True), slow("ts", None, False),
        *(slow(name, curves, True) for name in ("max", "pauc") for curves in (None, 4)),
    ],
)  # fmt: skip
def test_the_optimum_is_that_of_columns_written_out_and_of_cvxpy(surrogate, curves, gaps):
    frame, y = hotels(gaps=gaps)
    fitted = ranker(curves, surrogate).fit(frame, y, GROUPS)
    written, stiff = by_hand(frame, curves)
    scale = RankingData.from_groups(written, y, GROUPS).standardized().units.scale
    one_hot = ranker(None, surrogate, standardize=False)
    one_hot.fit(written / (scale * np.sqrt(stiff)), y, GROUPS)
    result = fitted.result_
    assert result.converged and result.w.size == written.shape[1]
    assert result.objective == pytest.approx(one_hot.result_.objective, rel=1e-8)
    assert result.lower_bound <= one_hot.result_.objective * (1 + 1e-12)
    # one solution's weights are those of the other problem: columns stand in the same order
    risk = risk_by_hand(fitted, frame, y, curves)
    value = ALPHA / 2 * result.w @ result.w + risk(result.w)[0]
    assert value == pytest.approx(result.objective, rel=1e-10)
    problem, _ = full_problem(risk, ALPHA)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert result.objective == pytest.approx(problem.value, rel=1e-7)
    assert result.lower_bound <= problem.value * (1 + 1e-8)
    # and the terms add what the columns do
    scores = written / (scale * np.sqrt(stiff)) @ result.w
    assert_same_within_lists(fitted.predict(frame), scores)


def assert_same_within_lists(one, other, atol=1e-9):
    shift = pd.Series(one - other).groupby(GROUPS).transform("mean").to_numpy()
    np.testing.assert_allclose(one - other, shift, rtol=0, atol=atol)


def test_the_penalty_holds_a_gap_to_the_middle_of_its_column():
    """Where nothing says what is missing, a strong penalty gives it about the median's value."""
    rng = np.random.default_rng(0)
    n = GROUPS.size
    x = rng.normal(size=n) + 5.0
    y = x + 0.3 * rng.normal(size=n) > 6.0
    x[rng.random(n) < 0.2] = np.nan
    fitted = ranker(alpha=1.0).fit(x[:, None], y, GROUPS)
    (term,) = fitted.terms_
    assert term.slope > 0.0
    assert abs(term.gap - term(np.nanmedian(x))) < 0.3 * (term(7.0) - term(5.0))


def test_what_two_levels_beside_missing_values_are_called_does_not_matter():
    frame, y = hotels()
    pool = frame["pool"].astype(object).where(np.random.default_rng(1).random(len(frame)) > 0.2)
    fits = [
        ranker(alpha=1.0).fit(frame.assign(pool=pool.map(names)), y, GROUPS)
        for names in ({True: "with", False: "without"}, {True: "yes", False: "no"})
    ]
    first, second = (fitted.terms_[3] for fitted in fits)
    assert fits[0].result_.objective == pytest.approx(fits[1].result_.objective, rel=1e-8)
    np.testing.assert_allclose(first.weights, second.weights[::-1], atol=1e-4)
    assert first.gap == pytest.approx(second.gap, abs=1e-4)


def test_columns_where_all_is_missing_and_levels_that_do_not_vary():
    frame, y = hotels()
    frame["nothing"] = np.nan
    frame["no text"] = pd.Series([None] * len(frame), dtype="category")
    frame["one"] = "same"
    fitted = ranker(4).fit(frame, y, GROUPS)
    plain = ranker(4).fit(hotels()[0], y, GROUPS)
    assert fitted.result_.objective == pytest.approx(plain.result_.objective, rel=1e-8)
    added = fitted.contributions(frame)
    assert not added[:, 4:].any()
    np.testing.assert_allclose(fitted.predict(frame), plain.predict(hotels()[0]), atol=1e-3)
    assert [term.is_zero for term in fitted.terms_[4:]] == [True] * 3
    in_pairs = ranker(4, pairs=9).fit(frame, y, GROUPS).terms_[7:]
    assert in_pairs and all(max(term.columns) < 4 for term in in_pairs)


def test_signs_of_text_and_positive_weights():
    frame, y = hotels()
    with pytest.raises(InputError, match=r"column 'kind' .*text or categories, which do not rise"):
        ranker(monotonic_cst={"kind": 1}).fit(frame, y, GROUPS)
    rising = ranker(4, monotonic_cst={"stars": 1, "price": -1}).fit(frame, y, GROUPS)
    assert np.diff(rising.terms_[0].values).max() <= 0.0 <= np.diff(rising.terms_[1].values).min()
    assert rising.result_.converged
    positive = ranker(4, positive=True).fit(frame, y, GROUPS)
    assert positive.terms_[2].weights.min() < 0.0  # text does not rise
    assert all(np.diff(curve.values).min() >= 0.0 for curve in positive.curves_)


@pytest.mark.parametrize("curves", [None, 4])
def test_units_say_what_the_penalty_divides_by(curves):
    frame, y = hotels()
    fitted = ranker(curves).fit(frame, y, GROUPS)
    written, _ = by_hand(frame, curves)
    scale = RankingData.from_groups(written, y, GROUPS).standardized().units.scale
    np.testing.assert_allclose(fitted.scale_[:2], scale[:2], rtol=1e-9)
    assert np.isnan(fitted.scale_[2:]).all()
    rising = ranker(4, monotonic_cst={"price": -1}).fit(frame, y, GROUPS)
    assert np.isnan(rising.scale_[0]) and rising.scale_[1] > 0.0
    assert ranker(standardize=False).fit(frame, y, GROUPS).scale_ is None
