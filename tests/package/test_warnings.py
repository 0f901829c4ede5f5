"""Warnings point at the line of the user that led to them, not at one of the package."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from structsvm_papk import RankingData, bounds, datasets
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.rankers import PAPKRanker, PAPKRankerCV, compare

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
GROUPS = np.repeat(np.arange(12), 10)
Y = np.tile([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], 12)


def places(call):
    """The files that the warnings of a call name, by category."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return {each.category: each.filename for each in caught}


@pytest.mark.parametrize("ranker", [PAPKRanker, PAPKRankerCV], ids=lambda each: each.__name__)
def test_a_fit_that_ends_early_or_at_zero(ranker):
    settings = {"cv": 2, "random_state": 0} if ranker is PAPKRankerCV else {}
    early = {"max_iter": 1, "tol": 1e-12}
    assert places(lambda: ranker(3, **early, **settings).fit(X, Y, GROUPS)) == {
        ConvergenceWarning: __file__
    }


def test_a_zero_optimum():
    ranker = PAPKRanker(3, "max", depth=None, alpha=10.0)
    assert places(lambda: ranker.fit(X, Y, GROUPS))[DegenerateOptimumWarning] == __file__
    assert places(lambda: ranker.decision_function(X)) == {DegenerateOptimumWarning: __file__}


def test_columns_like_ids():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user_id=np.arange(120))
    fit = PAPKRanker(3).fit
    assert places(lambda: fit(frame, Y, GROUPS)) == {UserWarning: __file__}


LISTS = RankingData.from_groups(X, Y, GROUPS)


@pytest.mark.parametrize(
    ("function", "before", "options"),
    [
        (datasets.linear_lists, (3, 5, 2, 0.1), {"relevant_share": 0.4, "noise_law": "normal"}),
        (datasets.engagement_lists, (4, 2), {"mean_items": 9.0}),
        (datasets.margin_lists, ("weak", 1, 2, 4, 2, 1), {"delta": 0.5, "exclude": None}),
        (bounds.uniform, (50, 200, 10), {"n_features": 5, "vc_dim": None, "rho": 0.1}),
        (compare, (LISTS, ["avg"], 3, 1.0), {"etas": [0.1]}),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_options_by_position(function, before, options):
    """They are taken until 0.4, with a warning that names them; too many or twice is an error."""
    with pytest.warns(DeprecationWarning, match=f"from 0.4 on: write {'=, '.join(options)}=$"):
        old = function(*before, *options.values())
    new = function(*before, **options)
    assert same(old, new)
    assert places(lambda: function(*before, *options.values())) == {DeprecationWarning: __file__}
    with pytest.raises(TypeError, match="positional"):
        function(*before, *range(20))
    with pytest.raises(TypeError, match="multiple values"), pytest.warns(DeprecationWarning):
        function(*before, *options.values(), **options)


def same(old, new):
    if isinstance(old, datasets.generators.Lists):
        return all(np.array_equal(one, other) for one, other in zip(old, new, strict=True))
    if isinstance(old, list):
        return [run.result.objective for run in old] == [run.result.objective for run in new]
    return old == new
