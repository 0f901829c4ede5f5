"""Which margin conditions given scores realise, and with which largest margin."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.errors import InputError, check_number

CONDITIONS = ("weak", "beta", "moderate", "strong")


@dataclass(frozen=True)
class MarginReport:
    """The margin conditions of Definitions 2-5 on one list, or on all lists together.

    Attributes
    ----------
    k : int
    delta : float
        The margin asked for.
    weak, beta, moderate, strong : bool
        Whether each condition holds with margin `delta`. Decided without rounding.
    delta_weak, delta_beta, delta_moderate, delta_strong : float
        The largest margin with which it holds; negative when none above zero, -inf when there is
        none at all (moderate, with a positive below a negative).
    """

    k: int
    delta: float
    weak: bool
    beta: bool
    moderate: bool
    strong: bool
    delta_weak: float
    delta_beta: float
    delta_moderate: float
    delta_strong: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values."""
        return asdict(self)


def check_scores(scores: ArrayLike, labels: ArrayLike, k: int, delta: float = 1.0) -> MarginReport:
    """Margin conditions of one list.

    With ``beta = min(n_pos, k)``, ``top = max q`` and the positives sorted decreasingly::

        weak      p_(beta) >= top + delta
        beta      mean of the beta smallest p >= top + delta
        moderate  p_(n_pos) >= top and p_(beta) >= top + delta
        strong    p_(n_pos) >= top + delta

    Parameters
    ----------
    scores : array of shape (n,)
    labels : array of shape (n,), 0/1, -1/1 or booleans
    k : int
    delta : float

    Returns
    -------
    MarginReport

    Raises
    ------
    InputError
        No positives, k > n_neg, NaN scores, labels that are not binary.

    Notes
    -----
    Definitions 2-5 of the paper. The comparisons are exact for the floats given.
    """
    return _report(*_checked(scores, labels), k, delta)


def _report(scores: Array, relevant: Array, k: int, delta: float) -> MarginReport:
    check_number("delta", delta)
    p, q = np.sort(scores[relevant])[::-1], scores[~relevant]
    if len(p) == 0:
        raise InputError("no positives: no margin condition is defined")
    check_number("k", k, least=1)
    if k > len(q):
        raise InputError(f"k = {k} with {len(q)} negatives: need 1 <= k <= n_neg")
    top, beta = q.max(), min(len(p), k)
    bottom = p[len(p) - beta :]
    ordered = p[-1] >= top
    holds = {
        "weak": _at_least(p[beta - 1 : beta], top, delta),
        "beta": _at_least(bottom, top, delta),
        "strong": _at_least(p[-1:], top, delta),
    }
    delta_weak = float(p[beta - 1] - top)
    return MarginReport(
        k=int(k),
        delta=float(delta),
        moderate=bool(ordered and holds["weak"]),
        delta_weak=delta_weak,
        delta_beta=math.fsum([*bottom, *[-top] * beta]) / beta,
        delta_moderate=delta_weak if ordered else -math.inf,
        delta_strong=float(p[-1] - top),
        **holds,
    )


def check_users(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, k: int, delta: float = 1.0
) -> tuple[dict[Any, MarginReport], MarginReport]:
    """Margin conditions of every user, and of all users together.

    Parameters
    ----------
    scores, labels : array of shape (n,)
    groups : array of shape (n,)
        User of each row.
    k : int
    delta : float

    Returns
    -------
    users : dict of user -> MarginReport
    joint : MarginReport
        A condition holds jointly when it does for every user; its margin is the smallest one.
    """
    scores, relevant = _checked(scores, labels)
    names, codes = validation.encode(validation.check_ids(groups, scores.size))
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    users = {}
    for u, name in enumerate(names.tolist()):
        rows = order[bounds[u] : bounds[u + 1]]
        try:
            users[name] = _report(scores[rows], relevant[rows], k, delta)
        except InputError as problem:
            raise InputError(f"user {name!r}: {problem}") from None
    every = [vars(report) for report in users.values()]
    return users, MarginReport(**{name: min(one[name] for one in every) for name in every[0]})


def _at_least(values: Array, top: float, delta: float) -> bool:
    """``mean(values) >= top + delta``, exact: fsum rounds once, so its sign is right."""
    n = len(values)
    return math.fsum([*values, *[-top] * n, *[-float(delta)] * n]) >= 0


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Finite scores, and relevance."""
    scores = validation.check_scores(scores)
    infinite = ~np.isfinite(scores)
    if infinite.any():
        raise InputError(f"scores are infinite in {validation.rows_of(infinite)}")
    return scores, validation.check_labels(labels, scores.size)
