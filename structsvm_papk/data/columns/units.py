"""What columns are divided by before the penalty sees them, and how that is decided.

    sd_f = sqrt( sum_u sum_{i of u} (x_if - mean_uf)^2 / n_rows )

    each          s_f = sd_f
    indicators    s_f = (high_f - low_f) / 2 where column f takes two values only, else sd_f
    common        s_f = sqrt( mean of sd_g^2 over the columns g that vary )

A rare indicator divided by its deviation, which is almost nothing, would be nearly free: one list
in which it says something by chance would give it a large weight. Half the difference of the two
values is the deviation of an indicator that is as often one as the other. So those are treated as
numbers are, rare ones have a small variance, and what the two values are called does not matter.

Columns that are constant within users, or as good as that, are divided by 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import Variation
from structsvm_papk.errors import InputError, is_auto

_SMALLEST = 1e-150  # what a column can be divided by lies between these
_LARGEST = 1e300
_COMMON = 1e150  # beside a larger one, other columns divided by the same number would be zero


class ScaleRule(StrEnum):
    """What each column is divided by; see the formulas above. Model files hold it."""

    EACH = "each"
    INDICATORS = "indicators"
    COMMON = "common"


@dataclass(frozen=True, eq=False)
class Units:
    """The units in which a solver sees columns: each is divided by its entry of `scale`.

    Scores of weights w are ``(X / scale) w``. No divided copy of X is made: weights are taken to
    the units of X before they are multiplied, and sums of rows from there.

    Attributes
    ----------
    scale : ndarray of shape (n_weights,), or None
        A negative entry turns the sign of its column; None: columns are as they are.
    rule : ScaleRule or None
        By what rule it was chosen.
    """

    scale: Array | None = None
    rule: ScaleRule | None = None

    @classmethod
    def of(cls, variation: Variation, how: bool | str) -> Units:
        """What `standardize`, 'auto', True or False, means for columns that vary so."""
        check_standardize(how)
        if not how:
            return cls()
        rule = _rule(variation, how)
        return cls(_scale(variation, rule), rule)

    def of_columns(self, values: Array) -> Array:
        """Weights in the units of X; or sums of rows of X in those of the divided columns."""
        return values if self.scale is None else values / self.scale

    def of_solver(self, w: Array) -> Array:
        """Weights of X in the units of the solver."""
        return w if self.scale is None else w * self.scale

    def deviation(self, deviation: Array) -> Array:
        """Deviations of X in the units of the solver."""
        return np.abs(self.of_columns(deviation))

    def times(self, factor: Array) -> Units:
        """Columns divided by these numbers, too."""
        scale = factor if self.scale is None else self.scale * factor
        return replace(self, scale=scale)


def check_standardize(how: Any) -> None:
    """Refuse what is neither 'auto' nor True or False."""
    if not (isinstance(how, bool | np.bool_) or is_auto(how)):
        raise InputError(f"standardize must be 'auto', True or False, got {how!r}")


def scale_of(deviation: Array) -> Array:
    """What columns are divided by: 1 for those that are constant, or as good as that."""
    return np.where(_can_divide(deviation), deviation, 1.0)


def _can_divide(numbers: Array) -> Array:
    return (numbers > _SMALLEST) & (numbers < _LARGEST)


def _is_indicator(variation: Variation) -> Array:
    """Columns of two values that vary within users."""
    return _can_divide(variation.deviation) & _can_divide(variation.half_difference)


def _rule(variation: Variation, how: bool | str) -> ScaleRule:
    """'auto' is `INDICATORS` only where a dense X has any, so that the rule says what was done."""
    if not is_auto(how):
        return ScaleRule.EACH
    if variation.is_sparse:
        return ScaleRule.COMMON
    return ScaleRule.INDICATORS if _is_indicator(variation).any() else ScaleRule.EACH


def _scale(variation: Variation, rule: ScaleRule) -> Array:
    """What the columns are divided by, shape (n_weights,)."""
    if rule == ScaleRule.COMMON:
        return _common_scale(variation.deviation)
    scale = scale_of(variation.deviation)
    if rule == ScaleRule.INDICATORS:
        scale = np.where(_is_indicator(variation), variation.half_difference, scale)
    return scale


def _common_scale(deviation: Array) -> Array:
    usual = deviation[(deviation > _SMALLEST) & (deviation < _COMMON)]
    if not usual.size:
        return np.ones(deviation.size)
    largest = usual.max()
    mean_square = np.mean(np.square(usual / largest))
    return np.full(deviation.size, largest * np.sqrt(mean_square))
