"""Discounts D(r) of NDCG: what an item at rank r = 1, 2, .. is worth."""

import math
import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats

Discount: TypeAlias = str | ArrayLike | Callable[[Array], ArrayLike]

NO_LIMIT = (
    "the discounts sum to a finite number (they fall too fast, or k is fixed): as lists grow NDCG "
    "has no limit, and no two scorers are consistently told apart, unless the relevance of the "
    "items at the very top is certain (Wang et al., COLT 2013, Theorem 6); use a slower discount, "
    "or a cut-off that grows with the list"
)


class NoLimitWarning(UserWarning):
    """The discounts sum to a finite number: NDCG has no limit, unless relevance at the top is
    certain (Wang et al., COLT 2013, Theorem 6)."""


_EXPONENTS = {"log": 0.0, "zipf": 1.0, "exp": math.inf}


def exponent(discount: Discount) -> float:
    """b of a discount r^-b, 0 for `log`, infinite for `exp`; NaN of arrays and functions.

    The sum of the discounts is finite where b > 1.
    """
    if not isinstance(discount, str):
        return math.nan
    match = re.fullmatch(r"r\^-(\d*\.?\d+)", discount.replace(" ", ""))
    if match:
        return float(match[1])
    if discount not in _EXPONENTS:
        raise InputError(
            f"discount={discount!r} does not exist; choose {', '.join(_EXPONENTS)}, r^-0.5 (any "
            "exponent), an array of values for ranks 1, 2, .., or a function of the ranks"
        )
    return _EXPONENTS[discount]


def resolve(discount: Discount) -> Callable[[Array], ArrayLike] | ArrayLike:
    """Discount function of a name, 1 / log2(1 + r), 2^-r or r^-b; arrays and functions as given."""
    if not isinstance(discount, str):
        return discount
    b = exponent(discount)
    if discount == "log":
        return lambda ranks: 1.0 / np.log2(1.0 + ranks)
    return (lambda ranks: np.exp2(-ranks)) if discount == "exp" else lambda ranks: ranks**-b


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
    bad = np.flatnonzero(~(np.isfinite(discounts) & (discounts >= 0)))
    if bad.size:
        raise InputError(
            f"the discount is {discounts[bad[0]]} at rank {bad[0] + 1} ({bad.size} such ranks); "
            "every value must be finite and at least 0"
        )
    if discounts.size and discounts[0] == 0:
        raise InputError("the discount is 0 at rank 1; NDCG is then not defined")
    return discounts
