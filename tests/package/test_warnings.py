"""Warnings point at the line of the user that led to them, not at one of the package."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.rankers import PAPKRanker

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


def test_a_fit_that_ends_early():
    early = PAPKRanker(3, time_limit=1e-9, tol=1e-12)
    assert places(lambda: early.fit(X, Y, GROUPS)) == {ConvergenceWarning: __file__}


def test_a_zero_optimum():
    ranker = PAPKRanker(3, "max", depth=None, alpha=10.0, curves=None)
    assert places(lambda: ranker.fit(X, Y, GROUPS))[DegenerateOptimumWarning] == __file__
    assert places(lambda: ranker.decision_function(X)) == {DegenerateOptimumWarning: __file__}


def test_columns_like_ids():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user_id=np.arange(120))
    fit = PAPKRanker(3).fit
    assert places(lambda: fit(frame, Y, GROUPS)) == {UserWarning: __file__}


def test_code_in_no_module_is_warned_as_any_other():
    code = "from structsvm_papk.errors import warn\nwarn('said')"
    with pytest.warns(UserWarning, match="said"):
        exec(code, {})
