"""Lists on which a margin condition holds exactly, by construction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.datasets.generators import LabelledRows, check_sizes, generator
from structsvm_papk.errors import InputError, check_choice, check_number

CONDITIONS = ("weak", "beta", "moderate", "strong")
GRID = 2.0**-10  # feature grid of `margin_lists`: sums of products on it are exact in float64


def largest_negative(pos_scores: Array, beta: int, condition: str, delta: float) -> Array:
    """Largest value that ``max q`` may take for a margin condition to hold (Defs. 2-5), by list.

    ``weak: p_(beta) - delta; beta: mean of the beta smallest - delta; strong: p_(n_pos) - delta;``
    ``moderate: min(p_(n_pos), p_(beta) - delta)``.
    """
    p = -np.sort(-np.asarray(pos_scores, dtype=float), axis=-1)
    limits: dict[str, Array] = {
        "weak": p[..., beta - 1] - delta,
        "beta": p[..., p.shape[-1] - beta :].mean(axis=-1) - delta,
        "moderate": np.minimum(p[..., -1], p[..., beta - 1] - delta),
        "strong": p[..., -1] - delta,
    }
    return limits[condition]


def margin_lists(
    condition: str,
    n_users: int = 1,
    n_pos: int = 8,
    n_neg: int = 20,
    n_features: int = 4,
    k: int = 3,
    *,
    delta: float = 1.0,
    exclude: str | None = None,
    seed: int = 0,
) -> LabelledRows:
    """Lists on which one shared linear w realises a margin condition exactly, and, on request, no
    other.

    `w_true` has small integer entries and the features lie on a grid of 2^-10, so that ``X @
    w_true`` is exact in float64: the condition holds with margin `delta` (rounded up to the grid)
    without any rounding.

    Parameters
    ----------
    condition : {"weak", "beta", "moderate", "strong"}
    n_users, n_pos, n_neg, n_features, k : int
        Sizes of every user; ``1 <= k <= n_neg``, ``beta = min(n_pos, k)``.
    delta : float
        Margin, > 0.
    exclude : None or "any"
        None: stronger conditions may hold too. "any": no linear w realises, with any positive
        margin, a condition that `condition` does not imply. Implied: strong => all; moderate =>
        weak; beta => weak when ``n_pos >= 2 beta - 1``.
    seed : int

    Raises
    ------
    InputError
        When the request contradicts itself; the message says which condition contradicts which.
    """
    check_sizes(n_users=n_users, n_features=n_features)
    _check_margin_request(condition, n_pos, n_neg, k, delta, exclude, n_features)
    rng = generator(seed)
    delta = np.ceil(delta / GRID) * GRID
    w_true = rng.integers(-3, 4, n_features).astype(float)
    w_true[rng.integers(n_features)] = rng.choice([-1.0, 1.0])  # so scores can be set exactly
    users = [
        _margin_user(condition, n_pos, n_neg, k, delta, exclude, w_true, rng)
        for _ in range(n_users)
    ]
    X = np.concatenate([side for user in users for side in user])
    y = np.tile(np.repeat([1, 0], [n_pos, n_neg]), n_users)
    return LabelledRows(X, y, np.repeat(np.arange(n_users), n_pos + n_neg), w_true)


def _check_margin_request(
    condition: str, n_pos: int, n_neg: int, k: int, delta: float, exclude: str | None, d: int
) -> None:
    """Refuse requests that no data can satisfy."""
    check_choice("condition", condition, CONDITIONS)
    if exclude is not None:
        check_choice("exclude", exclude, ("any",))
    check_sizes(n_pos=n_pos, n_neg=n_neg, k=k)
    if k > n_neg:
        raise InputError(f"k={k} is larger than n_neg={n_neg}")
    check_number("delta", delta, above=0)
    if exclude is None or condition == "strong":
        return
    beta = min(n_pos, k)
    problem = None
    if condition in ("weak", "moderate") and n_pos <= k:
        problem = f"with n_pos = {n_pos} <= k = {k} the {condition} condition is the strong one"
    elif condition == "beta" and beta == 1:
        problem = "with beta = 1 the beta condition is the strong one"
    elif condition == "moderate" and n_pos < 2 * beta:
        problem = (
            f"with n_pos = {n_pos} < 2 beta = {2 * beta} every set of beta positives meets the "
            "best beta: a w that realises the moderate condition realises the beta condition too "
            "(with a smaller margin)"
        )
    elif condition in ("weak", "beta") and n_neg < d + 2:
        problem = (
            "excluding the moderate condition for every w needs a positive inside a full simplex "
            f"of negatives and one more negative: n_neg >= n_features + 2 = {d + 2}, got {n_neg}"
        )
    if problem:
        raise InputError(f"{condition} with exclude={exclude!r} is impossible: {problem}")


def _margin_user(
    condition: str,
    n_pos: int,
    n_neg: int,
    k: int,
    delta: float,
    exclude: str | None,
    w: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draw one user's positives and negatives: scores first, then features with those scores."""
    beta = min(n_pos, k)
    neg = _on_grid(rng.standard_normal((n_neg, len(w))))
    top = (neg @ w).max()
    spread = lambda size: _on_grid(rng.exponential(1.0, size))  # noqa: E731
    high = _with_scores(top + delta + spread(n_pos), w, rng)
    if exclude is None or condition == "strong":
        n_free = n_pos - beta if condition in ("weak", "moderate") else 0
        if n_free:  # positives that the condition leaves free are lowered
            shift = spread(n_free) if condition == "moderate" else -spread(n_free)
            high[-n_free:] = _with_scores(top + shift, w, rng)
        return high, neg
    if condition == "moderate":
        high[beta:] = neg[np.argmax(neg @ w)]  # at max q: beta and strong fail
        return high, neg
    inside, neg = _surrounded_point(neg, w, rng)
    gap = top + delta - inside @ w
    if condition == "beta":
        n_low = 1 if n_pos >= 2 * beta - 1 else n_pos - beta + 1
        lift = np.ceil(n_low * gap / (beta - n_low) / GRID) * GRID
        high = _with_scores(top + delta + lift + spread(n_pos), w, rng)
        high[-n_low:] = inside
        return high, neg
    high[-1] = beta * inside - high[: beta - 1].sum(axis=0) if beta > 1 else inside
    if n_pos > beta + 1:
        high[beta:-1] = inside
    return high, neg


def _surrounded_point(neg: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """A point c that scores below max q for every w but zero, and the negatives around it.

    ``d + 1`` negatives (not the best one) become the corners of a simplex, ``c + h e_i`` and
    ``c - h (1, .., 1)``, so that c is their mean without rounding.
    """
    best = int(np.argmax(neg @ w))
    low = neg[np.argsort(neg @ w)[: max(1, len(neg) // 2)]]
    centre = low[rng.integers(len(low))].copy()
    centre[_unit_entry(w)] -= w[_unit_entry(w)] * 1.0
    step = np.vstack([np.eye(len(w)), -np.ones(len(w))])
    room = (neg @ w).max() - centre @ w
    h = GRID * max(1.0, np.floor(min(1.0, room / (2 * np.abs(w).sum())) / GRID))
    others = [i for i in np.argsort(neg @ w) if i != best][: len(step)]
    neg = neg.copy()
    neg[others] = centre + h * step
    return centre, neg


def _unit_entry(w: Array) -> int:
    return int(np.flatnonzero(np.abs(w) == 1.0)[0])


def _with_scores(scores: Array, w: Array, rng: np.random.Generator) -> Array:
    """Draw rows on the grid with ``rows @ w`` equal to the given scores (on the grid), exactly."""
    rows = _on_grid(rng.standard_normal((len(scores), len(w))))
    j = _unit_entry(w)
    rows[:, j] = 0.0
    rows[:, j] = (scores - rows @ w) * w[j]
    return rows


def _on_grid(values: ArrayLike) -> Array:
    return np.rint(np.divide(values, GRID)) * GRID
