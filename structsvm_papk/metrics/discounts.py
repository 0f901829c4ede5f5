"""Discounts D(r) of NDCG: what an item at rank r = 1, 2, .. is worth."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats

Discount: TypeAlias = str | ArrayLike | Callable[[Array], ArrayLike]

NO_LIMIT = (
    "the discounts sum to a finite number (they fall too fast, or k is fixed): as lists grow NDCG "
    "has no limit, and no two scorers are consistently told apart, unless the relevance of the "
    "items at the very top is certain (T6); use a slower discount or a cut-off that grows with "
    "the list"
)


class NoLimitWarning(UserWarning):
    """The discounts sum to a finite number: NDCG has no limit, unless relevance at the top is
    certain (T6)."""


@dataclass(frozen=True)
class Power:
    """D(r) = r^-b, b at least 0; b = 1 is Zipf's discount."""

    b: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.b) and self.b >= 0):
            raise InputError(
                f"the exponent b of the discount r^-b must be at least 0, not {self.b}"
            )

    def __call__(self, ranks: ArrayLike) -> Array:
        """Values at the ranks."""
        return np.asarray(ranks, dtype=float) ** -self.b


def logarithmic(ranks: ArrayLike) -> Array:
    """D(r) = 1 / log2(1 + r), the usual discount."""
    return 1.0 / np.log2(1.0 + np.asarray(ranks, dtype=float))


def exponential(ranks: ArrayLike) -> Array:
    """D(r) = 2^-r; its sum is finite, so NDCG has no limit in general (T6 of Wang et al. 2013)."""
    return np.exp2(-np.asarray(ranks, dtype=float))


_NAMED: dict[str, Callable[[Array], Array]] = {
    "log": logarithmic,
    "zipf": Power(1.0),
    "exp": exponential,
}


def resolve(discount: Discount) -> Callable[[Array], ArrayLike] | ArrayLike:
    """Discount function or array of a name (`log`, `zipf`, `exp`, `r^-0.5`), callable or array."""
    if not isinstance(discount, str):
        return discount
    if discount in _NAMED:
        return _NAMED[discount]
    match = re.fullmatch(r"r\^-(\d*\.?\d+)", discount.replace(" ", ""))
    if not match:
        raise InputError(
            f"discount={discount!r} does not exist; choose {', '.join(_NAMED)}, r^-0.5 (any "
            "exponent), an array of values for ranks 1, 2, .., or a function of the ranks"
        )
    return Power(float(match[1]))


def values(discount: Discount, n: int) -> Array:
    """D(1), .., D(n) as float64, checked: finite, not negative, the first one positive."""
    discount = resolve(discount)
    if callable(discount):
        discounts = as_floats("discount", discount(np.arange(1, n + 1, dtype=float)))
        if discounts.shape != (n,):
            raise InputError(
                f"the discount gave shape {discounts.shape} for {n} ranks; give one each"
            )
    else:
        discounts = as_floats("discount", discount)
        if discounts.ndim != 1 or discounts.size < n:
            raise InputError(
                f"the discount array has shape {discounts.shape}, but the longest list has {n} "
                "places; append zeros for ranks that shall not count"
            )
        discounts = discounts[:n]
    _check(discounts)
    return discounts


def _check(discounts: Array) -> None:
    bad = np.flatnonzero(~(np.isfinite(discounts) & (discounts >= 0)))
    if bad.size:
        raise InputError(
            f"the discount is {discounts[bad[0]]} at rank {bad[0] + 1} ({bad.size} such ranks); "
            "every value must be finite and at least 0"
        )
    if discounts.size and discounts[0] == 0:
        raise InputError("the discount is 0 at rank 1; NDCG is then not defined")


def sum_is_bounded(discount: Discount) -> bool:
    """Whether sum_r D(r) is known to be finite: r^-b with b > 1, and 2^-r."""
    weight = resolve(discount)
    return weight is exponential or (isinstance(weight, Power) and weight.b > 1)
