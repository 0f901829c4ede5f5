"""Discounts D(r) of NDCG: what an item at rank r = 1, 2, .. is worth, and what NDCG tends to.

Limits are those of one growing list (Wang et al., COLT 2013; T1 to T13 are their theorems).
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Self, TypeAlias

import numpy as np
import scipy  # its parts load when they are first used
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_number

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


Probability: TypeAlias = Callable[[Array], ArrayLike]


def ndcg_limit(
    discount: str,
    cutoff: float | str | None,
    relevance: Probability | Mapping[float, Probability],
    n_items: int | None = None,
) -> float:
    """Limit of NDCG as the items of one list, drawn independently, grow in number.

    Let y_1 > y_2 > .. be the levels of relevance, R_j = Pr[Y >= y_j], and g(s) the mean relevance
    of the items above which a share 1 - s of the list stands. For a discount r^-b with b < 1 (b = 0
    for `log`) and the first c n of n places (c = 1: all) the limit is::

        (1 - b) int_{1-c}^1 g(s) (1-s)^-b ds / sum_j y_j (min(R_j, c)^(1-b) - min(R_{j-1}, c)^(1-b))

    which is 1 for `log` without a cut-off, whatever the scorer (T1). For b = 1, and for cut-offs
    that grow more slowly than the list, the top decides: g(1) / y_1.

    Parameters
    ----------
    discount : str
        `log`, `zipf`, `exp` or `r^-0.5`, any exponent.
    cutoff : float, int, "slow" or None
        A share of the list, as 0.2; a fixed number of places, as 10; `slow`: places that grow
        without bound, but more slowly than the list; None: the whole list.
    relevance : callable, or dict from levels to callables
        Pr[Y = 1 | s], or Pr[Y = level | s] of each level above 0, for an array of shares s in
        [0, 1]; continuous. This is all that the limit needs to know of scorer and data.
    n_items : int, optional
        Instead of the limit give what a list of so many items has on average, to first order.

    Raises
    ------
    InputError
        There is no limit: the discounts that count have a finite sum, as with a fixed cut-off, and
        the relevance at the very top is not certain (T6, whose hypothesis is stronger).
        No probabilities, nothing relevant, other discounts and cut-offs.
    """
    b = exponent(discount)
    share = _share(cutoff)
    if np.isnan(b):
        raise InputError(
            "limits are known for the discounts log, zipf, exp and r^-0.5, any exponent"
        )
    scorer = _Relevance.checked(relevance)
    if n_items is not None:
        return scorer.expected(discount, share, n_items)
    if b < 1 and isinstance(share, float):
        return scorer.integral(b, share) / scorer.ideal(lambda r: min(r, share) ** (1 - b))
    chances = scorer.chances(np.ones(1))[:, 0]
    if (b > 1 or isinstance(share, int)) and not np.isin(chances, (0, 1)).all():
        raise InputError(f"NDCG has no limit here: {NO_LIMIT}")
    return float(scorer.levels @ chances / scorer.levels[0])


def _share(cutoff: float | str | None) -> float | int | None:
    """Share of the list as a float, a number of places as an int, None for `slow`."""
    if cutoff is None or (isinstance(cutoff, str) and cutoff == "slow"):
        return 1.0 if cutoff is None else None
    if isinstance(cutoff, Integral) and not isinstance(cutoff, bool) and cutoff >= 1:
        return int(cutoff)
    if isinstance(cutoff, float | np.floating) and 0 < cutoff <= 1:
        return float(cutoff)
    raise InputError(
        f"cutoff={cutoff!r} must be a share as 0.2, a number of places as 10, 'slow' or None"
    )


@dataclass(frozen=True)
class _Relevance:
    """Levels y_1 > y_2 > .. > 0, and the functions Pr[Y = y_j | s]."""

    levels: Array
    functions: tuple[Probability, ...]

    @classmethod
    def checked(cls, relevance: Probability | Mapping[float, Probability]) -> Self:
        given = relevance if isinstance(relevance, Mapping) else {1.0: relevance}
        for level, function in given.items():
            check_number("a level of relevance", level, above=0)
            if not callable(function):
                raise InputError(f"relevance of level {level} must be a function of the share s")
        levels = sorted(given, reverse=True)
        made = cls(np.array(levels, dtype=float), tuple(given[level] for level in levels))
        shares = made.chances(np.linspace(0, 1, 1001))
        if not ((shares >= 0).all() and (shares.sum(0) <= 1 + 1e-12).all() and shares.any()):
            raise InputError(
                "relevance must be probabilities for s in [0, 1], in sum at most 1, and not all 0"
            )
        first = int(shares.any(axis=1).argmax())  # of the levels that occur
        return cls(made.levels[first:], made.functions[first:])

    def chances(self, s: Array) -> Array:
        """Probabilities of the levels, shape (n_levels, n)."""
        return np.array([self._of_level(y, s) for y in range(len(self.functions))])

    def _of_level(self, place: int, s: Array) -> Array:
        """The probabilities of one level; what its function says may be anything."""
        function = self.functions[place]
        try:
            given = function(s)
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                return np.broadcast_to(np.asarray(given, dtype=float), s.shape)
        except (TypeError, ValueError, np.exceptions.ComplexWarning) as error:
            raise InputError(
                f"relevance of level {self.levels[place]:g} must be a function that takes an array "
                f"of shares s and gives as many probabilities, or one for all: {error}"
            ) from error

    def integral(self, b: float, share: float) -> float:
        """The limit's numerator, in t = 1 - s; the weight t^-b is the quadrature's."""

        def mean(t: float) -> float:
            return float(self.levels @ self.chances(np.array([1 - t]))[:, 0])

        rule = {"weight": "alg", "wvar": (-b, 0.0)} if b > 0 else {}
        size = (1 - b) * scipy.integrate.quad(mean, 0, share, epsabs=1e-12, limit=200, **rule)[0]
        return float(size)

    def ideal(self, gained: Callable[[float], float]) -> float:
        """``sum_j y_j (gained(R_j) - gained(R_{j-1}))``."""
        gains = [type(self)(np.ones(1), (f,)).integral(0.0, 1.0) for f in self.functions]
        steps = np.diff([gained(share) for share in np.cumsum([0.0, *gains])])
        return float(self.levels @ steps)

    def expected(self, discount: str, share: float | int | None, n: int) -> float:
        """Mean DCG over that of the most likely number of items of each level in order."""
        check_number("n_items", n, least=1)
        if share is None:
            raise InputError("cutoff='slow' does not say how many of n_items places count")
        k = min(share, n) if isinstance(share, int) else max(1, round(share * n))
        weights = values(discount, k)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        gain = self.levels @ self.chances(1 - (np.arange(k) + 0.5) / n) @ weights
        return float(gain / self.ideal(lambda r: np.interp(r * n, np.arange(k + 1), sums)))
