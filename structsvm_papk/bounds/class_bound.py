"""Uniform bounds: all scorers of a class at once (training data)."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are first used: half of the import time
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.bounds.intervals import check_rho, checked_sizes
from structsvm_papk.errors import (
    InputError,
    check_choice,
    warn,
    whole_number,
)

FORMS = ("auto", "c2", "k3")
CONSTANTS = {"c2": 2.0, "k3": 3.0}
_NOT_VALID = (
    "gamma='paper' is not valid in general: its share of positives may exceed beta/n_pos "
    "(structsvm-papk verify --check theorem2); use gamma='empirical'"
)
MOST_COVER = 5_000  # features up to which Cover's sum is added up; Sauer's bound beyond


class NotGuaranteedWarning(UserWarning):
    """The requested bound has no proof behind it."""


@dataclass(frozen=True)
class UniformBound:
    """``|R - R^| <= half_width`` for all scorers of the class at once.

    Attributes
    ----------
    half_width : float
        Clipped to [0, 1].
    raw : float
        Before clipping.
    vacuous : bool
        True when ``raw >= 1``: the statement says nothing.
    guaranteed : bool
        False for ``gamma="paper"``.
    form, gamma : str
    gamma_pos, gamma_neg, vc_dim, rho : float
    note : str
        What is wrong with the bound, when something is.
    """

    half_width: float
    raw: float
    vacuous: bool
    guaranteed: bool
    form: str
    gamma: str
    gamma_pos: float
    gamma_neg: float
    vc_dim: int
    rho: float
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self)


def uniform(
    n_pos: int,
    n_neg: int,
    k: int,
    *,
    n_features: int | None = None,
    vc_dim: int | None = None,
    rho: float = 0.05,
    form: str = "auto",
    gamma: str = "empirical",
) -> UniformBound:
    """Corrected Theorem 2: ``sup_f |R(f) - R^(f)| <= half_width`` with probability 1 - rho.

    With ``a = beta/n_pos``, ``b = k/n_neg``, ``A(n) = d ln n + ln(1/rho)``, d the VC dimension::

        c2    2 ( sqrt(A(n_pos)/n_pos)/a + sqrt(A(n_neg)/n_neg)/b )
        k3    3 ( sqrt(A(n_pos)/beta) + sqrt(A(n_neg)/k) )
        auto  side(n_pos, a) + side(n_neg, b), delta = rho/4
              side(n, g) = min( absolute deviation(n)/g, relative deviation(n, g)/g )

    Parameters
    ----------
    n_pos, n_neg, k : int
        Positives, negatives and recommended items of one list.
    n_features : int, optional
        Linear scorers on R^p have ``d = p + 1`` (thresholds included).
    vc_dim : int, optional
        VC dimension of the sets ``{x: f(x) > t}``, when the class is another one.
    rho : float
        Error probability in (0, 1/2].
    form : {"auto", "c2", "k3"}
    gamma : {"empirical", "paper"}
        "paper" takes ``a = 1 if n_pos/(n_pos + n_neg) <= b else b``; not valid in general, and
        warned about.

    Raises
    ------
    InputError
        For impossible sizes, rho outside (0, 1/2], unknown names.

    Notes
    -----
    The list holds n_pos independent draws of one law and n_neg of another; the sizes, k and the
    class are fixed before it is seen. Theorem 2 of the paper as printed is false:
    ``verify --check theorem2``. "auto" takes the smaller of Sauer's growth function and, for linear
    scorers of at most 5,000 features, Cover's. c2 and k3 follow from the two deviations with
    ``m = n`` and ``m = 4n`` where they are below 1, and say nothing elsewhere; their proof needs
    rho <= 1/2. Proofs: the manual's page "Theorem 2, corrected".
    """
    n_pos, n_neg, k = checked_sizes(n_pos, n_neg, k)
    check_rho(rho)
    check_choice("form", form, FORMS)
    check_choice("gamma", gamma, ("empirical", "paper"))
    dim = _dimension(n_features, vc_dim)
    a, b = shares(n_pos, n_neg, k, gamma)
    if form == "auto":
        raw = sum(
            _one_side(n, share, rho / 4, dim, n_features) for n, share in ((n_pos, a), (n_neg, b))
        )
    else:
        log_pos, log_neg = (dim * np.log(n) + np.log(1 / rho) for n in (n_pos, n_neg))
        rate = np.sqrt(log_pos / (a * n_pos)) + np.sqrt(log_neg / (b * n_neg))
        if form == "c2":
            rate = np.sqrt(log_pos / n_pos) / a + np.sqrt(log_neg / n_neg) / b
        raw = CONSTANTS[form] * rate
    note = _NOT_VALID if gamma == "paper" else ""
    if note:
        warn(note, NotGuaranteedWarning)
    return UniformBound(
        half_width=min(1.0, float(raw)),
        raw=float(raw),
        vacuous=bool(raw >= 1),
        guaranteed=not note,
        form=form,
        gamma=gamma,
        gamma_pos=a,
        gamma_neg=b,
        vc_dim=dim,
        rho=rho,
        note=note,
    )


def shares(n_pos: int, n_neg: int, k: int, gamma: str = "empirical") -> tuple[float, float]:
    """Shares (a, b) of the positives and negatives that count, see `uniform`."""
    b = k / n_neg
    if gamma == "empirical":
        return min(n_pos, k) / n_pos, b
    return (1.0 if n_pos / (n_pos + n_neg) <= b else b), b


def log_sauer(n: ArrayLike, dim: int) -> Array:
    """``ln (e n/d)^d`` for ``n >= d``, else ``n ln 2``: Sauer's bound on the growth function."""
    n = np.asarray(n, dtype=float)
    return np.where(n >= dim, dim * (1 + np.log(np.maximum(n, dim) / dim)), n * np.log(2.0))


def log_cover(n: ArrayLike, n_features: int) -> Array:
    """``ln( 2 sum_{i<=p} C(n-1, i) )``: Cover's count of linear dichotomies on R^p (log-gamma)."""
    n = np.atleast_1d(np.asarray(n, dtype=float))
    i = np.arange(n_features + 1.0)
    top = n[:, None] - 1
    inside = i <= top
    terms = (
        scipy.special.gammaln(top + 1)
        - scipy.special.gammaln(i + 1)
        - scipy.special.gammaln(np.where(inside, top - i, 0.0) + 1)
    )
    return np.log(2.0) + scipy.special.logsumexp(np.where(inside, terms, -np.inf), axis=1)


def _one_side(n: int, share: float, delta: float, dim: int, n_features: int | None) -> float:
    """The smaller of two uniform deviations of n draws from a share of their law, over the share.

    For S the growth function and a ghost sample of any size m, a grid of which is tried::

        absolute  1/m + sqrt( (n + m)(m + 1)/(2 n m^2) (ln S(n + m) + ln(2/delta)) )
        relative  1/m + share (n + m)/m sqrt( 2 (ln S(n + m) + ln(2/delta)) / (share n) )

    Each is one-sided, for empirical probabilities over a class of sets; the second bounds
    ``min(share, P(A)) - min(share, P^(A))`` and its negative, each except with probability delta.
    """
    m = np.unique(np.geomspace(1, 1e3 * max(n, 10), 300).astype(np.int64)).astype(float)
    log_growth = log_sauer(n + m, dim)
    if n_features is not None and n_features <= MOST_COVER:
        log_growth = np.minimum(log_cover(n + m, n_features), log_growth)
    log_term = log_growth + np.log(2 / delta)
    absolute = np.min(1 / m + np.sqrt((n + m) * (m + 1) / (2 * n * m**2) * log_term))
    relative = np.min(1 / m + share * (n + m) / m * np.sqrt(2 * log_term / (share * n)))
    return float(min(absolute, relative)) / share


def _dimension(n_features: int | None, vc_dim: int | None) -> int:
    if (n_features is None) == (vc_dim is None):
        raise InputError("give one of n_features (linear scorers: d = p + 1) and vc_dim")
    if vc_dim is None:
        return whole_number("n_features", n_features) + 1
    return whole_number("vc_dim", vc_dim)
