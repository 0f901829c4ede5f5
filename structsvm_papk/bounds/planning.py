"""How many items or users a bound needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts load when they are first used

from structsvm_papk.bounds.class_bound import FORMS, uniform
from structsvm_papk.bounds.intervals import (
    MANY_USERS,
    check_rho,
    dkw_width,
    kl_inverse_down,
    kl_inverse_up,
    mean_half_width,
)
from structsvm_papk.errors import InputError, check_choice, check_number


def required_items(
    half_width: float,
    top_share: float,
    pos_per_neg: float = 0.25,
    rho: float = 0.05,
    form: str = "auto",
    n_features: int | None = None,
) -> dict[str, Any]:
    """Smallest list for which a bound reaches a half-width, with k a fixed share of the negatives.

    Parameters
    ----------
    half_width : float
        In (0, 1).
    top_share : float
        ``k/n_neg``; k is rounded up.
    pos_per_neg : float
        ``n_pos/n_neg``; n_pos is rounded up.
    rho : float
    form : {"auto", "c2", "k3", "dkw"}
        A uniform bound, or the held-out DKW interval.
    n_features : int, optional
        As in `uniform`.

    Returns
    -------
    dict
        ``n_pos, n_neg, k, half_width``: found by bisection on n_neg. Nearby smaller sizes can also
        reach the target, since k is rounded.

    Raises
    ------
    InputError
        When no list up to 1e12 negatives is enough.
    """
    check_number("half_width", half_width, above=0, below=1)
    check_number("top_share", top_share, above=0, most=1)
    check_number("pos_per_neg", pos_per_neg, above=0)
    check_choice("form", form, (*FORMS, "dkw"))

    check_rho(rho)

    def reached(n_neg: int) -> dict[str, Any]:
        n_pos = int(np.ceil(pos_per_neg * n_neg))
        k = int(np.ceil(top_share * n_neg))
        if form == "dkw":
            width = dkw_width(n_pos, n_neg, k, rho)
        else:
            width = uniform(n_pos, n_neg, k, n_features=n_features, rho=rho, form=form).raw
        return {"n_pos": n_pos, "n_neg": n_neg, "k": k, "half_width": float(width)}

    return reached(_smallest(lambda n: reached(n)["half_width"] <= half_width))


def required_users(
    half_width: float,
    rho: float = 0.05,
    method: str = "kl",
    mean: float = 0.5,
    std: float | None = None,
) -> int:
    """Smallest number of users for which the interval of `many_users` is this narrow.

    Half of the interval's width is at most `half_width`. The interval of "kl" is not symmetric
    about the measured mean, so one of its ends can be further away than that; "hoeffding" gives
    the number of users for which neither end is, whatever the mean. "bootstrap" is about its
    width for many users, ``z std / sqrt(n)`` with the normal quantile z: asymptotic.

    Parameters
    ----------
    half_width : float
    rho : float
    method : {"kl", "hoeffding", "bernstein", "bootstrap"}
    mean : float
        Expected mean risk, for "kl"; 0.5 is the worst case.
    std : float, optional
        Expected standard deviation over users (ddof 1), for "bernstein" and "bootstrap"; by default
        the largest that n users with this mean can have, ``sqrt(mean (1 - mean) n/(n - 1))``.
    """
    check_number("half_width", half_width, above=0, below=1)
    check_rho(rho)
    check_choice("method", method, (*MANY_USERS[:3], "bootstrap"))
    check_number("mean, of risks,", mean, least=0.0, most=1)

    def enough(n: int) -> bool:
        if method == "kl":
            level = np.log(2 / rho) / n
            return kl_inverse_up(mean, level) - kl_inverse_down(mean, level) <= 2 * half_width
        variance = mean * (1 - mean) * n / max(n - 1, 1) if std is None else std**2
        if method == "bootstrap":
            return float(scipy.stats.norm.isf(rho / 2) * np.sqrt(variance / n)) <= half_width
        return mean_half_width(n, variance, rho, method) <= half_width

    return _smallest(enough)


def _smallest(enough: Callable[[int], bool], limit: int = 10**12) -> int:
    """Smallest n with ``enough(n)``, for a condition that stays true once it is."""
    high = 1
    while not enough(high):
        high *= 2
        if high > limit:
            raise InputError(f"no size up to {limit:.0e} is enough: ask for a larger half_width")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
